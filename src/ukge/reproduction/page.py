"""The page: all tables of a reproduction in order, as sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ukge.reproduction import tables
from ukge.reproduction.beyond_paper import clean_section, rules_section
from ukge.reproduction.document import Block, Bullets, Cell, Section, grid, markdown
from ukge.reproduction.field import field_sections
from ukge.reproduction.jobs import EVIDENCE, PAPER
from ukge.reproduction.recipes import APART, FIELD, MAIN, Recipes, contestants, registered
from ukge.reproduction.reproduce import GraphResults, Reproduction
from ukge.settings.config import Config

TITLE = "The paper's tables, reproduced"
FIELD_TITLE = "The models of the field, reproduced"


def sections(found: Reproduction) -> list[Section]:
    """Return the sections of the page; those that have nothing to show are left out."""
    graphs, models = found.graphs, tables.in_order(found.request.of(PAPER))
    wanted: list[Section | None] = [_about(found)]
    if not only_field(found):
        wanted += [
            tables.statistics(graphs),
            tables.rules(graphs),
            *tables.tasks(graphs, models),
            tables.missed(graphs, models),
            tables.orders(graphs, models),
            tables.cases(graphs),
            rules_section(graphs),
            clean_section(graphs, models),
        ]
    if FIELD in found.request.parts:
        wanted += field_sections(found)
    wanted += [_settings(found), _failures(found)]
    return [each for each in wanted if each is not None]


def only_field(found: Reproduction) -> bool:
    """Return whether nothing but the models of the field was asked for."""
    return set(found.request.parts) == {FIELD}


def page(found: Reproduction) -> str:
    """Return the page as Markdown."""
    return markdown(FIELD_TITLE if only_field(found) else TITLE, sections(found))


def _about(found: Reproduction) -> Section:
    seeds = sorted({each.seed for graph in found.graphs for each in graph.outcomes})
    outcomes = [each for graph in found.graphs for each in graph.outcomes if each.model != EVIDENCE]
    hours = sum(float(each.training["seconds"]) for each in outcomes) / 3600.0
    versions = sorted({each.versions["ukge"] for each in outcomes})
    lines = [
        f"Made by `{command(found)}` from {len(outcomes)} trainings with {_seeds(seeds)}, {hours:.1f} hours of epochs "
        f"in all{', ukge ' + ', '.join(versions) if versions else ''}. Change the settings or the code, not this page.",
        "In each cell ours stands first, as mean ± standard deviation over the seeds, and below it the published "
        "number with the difference. Bold: as good as published, or worse by no more than the deviation. In italics: "
        "what needs no model, or was published and is not trained here. A dash: no figure.",
    ]
    notes = {f"{graph.name}: {note}." for graph in found.graphs for note in graph.trivial.notes}
    blocks: list[Block] = list(lines)
    if notes:
        blocks.append(Bullets(tuple(sorted(notes))))
    return Section("How to read it", tuple(blocks), page_only=True)


def command(found: Reproduction) -> str:
    """Return the command that makes this page, without what says where."""
    request = found.request
    words = ["ukge reproduce", *(graph.name for graph in found.graphs), f"--seeds {request.seeds}"]
    words += [f"--models {','.join(request.models)}"] if request.models else []
    words += [f"--parts {','.join(request.parts)}"]
    words += [f"--{name.replace('_', '-')} {value}" for name, value in request.overrides.items()]
    return " ".join(words)


def _seeds(seeds: Sequence[int]) -> str:
    if not seeds:
        return "no seed yet"
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _settings(found: Reproduction) -> Section:
    rows: list[list[Cell | str]] = []
    changed, parts = found.request.overrides, found.request.parts
    models = dict.fromkeys(
        [*tables.in_order(found.request.of(PAPER) if not only_field(found) else ())]
        + [each for each in (found.request.of(FIELD) if FIELD in parts else ()) if registered(each)]
    )
    for graph in found.graphs:
        for model in filter(graph.recipes.enters, models):
            title = contestants.get(model).title
            rows.append([graph.name, title, *_recipe(graph.recipes, model, MAIN, changed), _cost(graph, model, MAIN)])
            for task in graph.recipes.apart(model):
                recipe = _recipe(graph.recipes, model, task, changed)
                rows.append([graph.name, f"{title}, {APART[task]}", *recipe, _cost(graph, model, task)])
    note = "What differs from the defaults; the files are in `src/ukge/reproduction/settings`."
    table = grid(("graph", "model", "settings", "how they were found", "what it took"), rows, words=True)
    return Section("Settings", (note, table), page_only=True)


def _cost(graph: GraphResults, model: str, task: str) -> str:
    """Return the epochs of a training, the best of them, and how long they took; of the first seed."""
    done = graph.of(model, task)
    if not done:
        return "not trained"
    training = done[0].training
    epochs, seconds = int(training["epochs"]), float(training["seconds"])
    each = f"{seconds / max(epochs, 1):.1f} s"
    return f"{epochs} epochs of {each}, {seconds / 60:.1f} min; the best is {training['best_epoch']}"


def _recipe(recipes: Recipes, model: str, task: str, overrides: Mapping[str, Any]) -> Iterator[str]:
    plain: Mapping[str, Mapping[str, Any]] = Config().to_dict()
    used = recipes.config(model, task, overrides).to_dict()
    changed = [
        f"{name} {value}"
        for part, values in used.items()
        for name, value in values.items()
        if plain[part][name] != value
    ]
    yield ", ".join(changed) or "the defaults"
    yield recipes.found(model, task)


def _failures(found: Reproduction) -> Section | None:
    if not found.failures:
        return None
    return Section("What failed", (Bullets(tuple(found.failures)),))
