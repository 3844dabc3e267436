"""What the paper does not ask: whether rules help, and what its order of the models is worth where nothing leaks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ukge.reproduction.cells import (
    ACCURACY,
    F1,
    HELD_OUT,
    LINEAR,
    MAE,
    MSE,
    NOTHING,
    Column,
    Summary,
    ranks,
    swapped,
)
from ukge.reproduction.document import Block, Bullets, Cell, Section, grid
from ukge.reproduction.recipes import ABLATION, MAIN, contestants
from ukge.reproduction.reproduce import GraphResults
from ukge.reproduction.tables import predicts_confidence

CLEAN_COLUMNS = (MSE, LINEAR, F1)
BESIDE = ("relation mean", "twin, else relation mean", "twin, else 0")
Ranked = dict[str, tuple[Summary, float]]
RULE_COLUMNS = (MSE, MAE, LINEAR, F1, ACCURACY)
WITHOUT, OWN, MINED = ABLATION
SOURCES = {WITHOUT: "no rules", OWN: "ground rules that come with the data", MINED: "mined rules"}
AUTHORS = "the authors' ground rules"
BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "no different beyond chance", "unknown"
RULE_SETTINGS = {"rule_weight", "rule_prior", "rules_per_fact"}


def verdict(column: Column, ours: Summary, without: Summary) -> str:
    """Return what rules do to a metric: a difference counts if it is larger than the two deviations together.

    The deviation of a difference of two means that vary independently is the root of the sum of their squares.
    """
    if ours.deviation is None or without.deviation is None:
        return UNKNOWN
    gain = ours.mean - without.mean if column.higher_is_better else without.mean - ours.mean
    chance = math.hypot(ours.deviation, without.deviation)
    if abs(gain) <= max(chance, 1e-12):
        return SAME
    return BETTER if gain > 0 else WORSE


def sentence(graph: str, rules: str, found: Sequence[tuple[Column, Summary, Summary]]) -> str:
    """Return in one sentence whether some rules help on a graph."""
    verdicts = {column.title: verdict(column, ours, without) for column, ours, without in found}
    if UNKNOWN in verdicts.values():
        return (
            f"On {graph}, one seed cannot tell whether {rules} help: a difference needs a deviation to stand against."
        )
    by = {kind: [title for title, each in verdicts.items() if each == kind] for kind in (BETTER, WORSE, SAME)}
    if by[BETTER] and by[WORSE]:
        answer = "help in part and hurt in part"
    elif by[BETTER]:
        answer = "help" if not by[SAME] else "help in part"
    elif by[WORSE]:
        answer = "hurt" if not by[SAME] else "hurt in part and help nowhere"
    else:
        answer = "do not help"
    parts = [f"{kind} in {', '.join(by[kind])}" for kind in (BETTER, WORSE, SAME) if by[kind]]
    return f"On {graph}, {rules} {answer}: {'; '.join(parts)}."


def source(graph: GraphResults, model: str) -> str:
    """Return where the rules of a model come from, in words."""
    return AUTHORS if model == OWN and graph.published else SOURCES[model]


def rules_section(graphs: Sequence[GraphResults]) -> Section | None:
    """Return the table of the ablation with its sentences, None where nothing was trained for it."""
    rows: list[list[Cell | str]] = []
    said: list[str] = []
    for graph in graphs:
        found = {model: [graph.figure(model, column) for column in RULE_COLUMNS] for model in ABLATION}
        if not any(any(each) for model, each in found.items() if model != WITHOUT) or not any(found[WITHOUT]):
            continue
        for model, summaries in found.items():
            cells = [
                NOTHING if each is None else each.text(column)
                for each, column in zip(summaries, RULE_COLUMNS, strict=True)
            ]
            rows.append([f"{graph.name}, {source(graph, model)}", *cells])
        for model in (OWN, MINED):
            both = [
                (column, ours, without)
                for column, ours, without in zip(RULE_COLUMNS, found[model], found[WITHOUT], strict=True)
                if ours is not None and without is not None
            ]
            if both:
                said.append(sentence(graph.name, source(graph, model), both) + _unlike(graph, model))
    if not rows:
        return None
    header = ("rules", *(column.header for column in RULE_COLUMNS))
    note = (
        "UKGE rect with the same settings in all three rows of a graph but for the rules; protocol `paper`, mean ± "
        "deviation over seeds. A difference counts if it is larger than the root of the two squared deviations' sum."
    )
    blocks: tuple[Block, ...] = (note, grid(header, rows), Bullets(tuple(said)))
    return Section("Do rules help?", blocks)


def _unlike(graph: GraphResults, model: str) -> str:
    """Return a warning if more than the rules differs between the two models."""
    ours, without = (graph.of(each, MAIN)[0].settings for each in (model, WITHOUT))
    other = [
        name
        for part, values in ours.items()
        for name, value in values.items()
        if name not in RULE_SETTINGS and without[part][name] != value
    ]
    return f" Their settings differ in more than rules: {', '.join(other)}." if other else ""


def clean_section(graphs: Sequence[GraphResults], models: Sequence[str]) -> Section | None:
    """Return figures and ranks under both protocols, None where nothing was trained for `clean`."""
    blocks: list[Block] = []
    for graph in graphs:
        shown = [model for model in models if graph.of(model, MAIN) and graph.of(model, MAIN, clean=True)]
        if shown:
            blocks += [_table(graph, shown), Bullets(tuple(_sentences(graph, shown)))]
    if not blocks:
        return None
    note = (
        "Below each figure the rank of the model; equals share theirs. `clean`: a leak-safe cut of the same graph, one "
        "per seed, with true negatives of several kinds; the models are trained anew on it, with the same settings, "
        "and those that learn from rules mine them on its training facts. *Held out* leaves the tails that train "
        "knows out of the ranking. The test sets differ, so that a figure under one protocol says nothing of the same "
        "figure under the other: compare the orders, and the models with what needs none."
    )
    return Section("The order of the models under `clean`", (note, *blocks))


def ranked(graph: GraphResults, models: Sequence[str], column: Column, *, clean: bool) -> Ranked:
    """Return the figure and the rank of each model that has one in a column."""
    able = [model for model in models if column is not MSE or predicts_confidence(model)]
    found = {model: graph.figure(model, column, clean=clean) for model in able}
    known = {model: each for model, each in found.items() if each is not None}
    places = ranks({model: each.mean for model, each in known.items()}, column)
    return {model: (each, places[model]) for model, each in known.items()}


def _table(graph: GraphResults, models: Sequence[str]) -> Block:
    shown = [(column, clean) for column in CLEAN_COLUMNS for clean in (False, True)] + [(HELD_OUT, True)]
    places = [(column, clean, ranked(graph, models, column, clean=clean)) for column, clean in shown]
    rows: list[list[Cell | str]] = []
    for model in models:
        row: list[Cell | str] = [contestants.get(model).title]
        for column, _, found in places:
            if model in found:
                figure, rank = found[model]
                row.append(Cell(figure.text(column), f"rank {rank:g}", strong=rank == 1))
            else:
                row.append(NOTHING)
        rows.append(row)
    for name in BESIDE:
        cells = [graph.trivial_figure(name, column, clean=clean) for column, clean in shown]
        texts = [NOTHING if s is None else s.text(column) for s, (column, _) in zip(cells, shown, strict=True)]
        rows.append([Cell(name, soft=True), *(Cell(text, soft=True) for text in texts)])
    header = (graph.name, *(f"{column.header} `{'clean' if clean else 'paper'}`" for column, clean in shown))
    return grid(header, rows)


def _sentences(graph: GraphResults, models: Sequence[str]) -> Iterator[str]:
    for column in CLEAN_COLUMNS:
        before, after = (ranked(graph, models, column, clean=clean) for clean in (False, True))
        if len(before) < 2 or set(before) != set(after):
            continue
        pairs = swapped(*({model: rank for model, (_, rank) in each.items()} for each in (before, after)))
        count = len(before) * (len(before) - 1) // 2
        words = f"{len(pairs)} of {count} pairs of models change places" if pairs else "no two models change places"
        leaders = f"{_leaders(before)} under `paper`, {_leaders(after)} under `clean`"
        yield f"{graph.name}, {column.title}: {words}; {leaders}."
        yield _against_lookup(graph, column, (before, after))


def _leaders(found: Ranked) -> str:
    best = min(rank for _, rank in found.values())
    names = [contestants.get(model).title for model, (_, rank) in found.items() if rank == best]
    if len(names) == len(found):
        return "all are equal"
    return f"{' and '.join(names)} {'leads' if len(names) == 1 else 'lead'}"


def _against_lookup(graph: GraphResults, column: Column, models: tuple[Ranked, Ranked]) -> str:
    """Say how many models beat the best that needs no model."""
    told = []
    for clean, found in zip((False, True), models, strict=True):
        known = {name: each for name in BESIDE if (each := graph.trivial_figure(name, column, clean=clean)) is not None}
        places = ranks({name: each.mean for name, each in known.items()}, column)
        best = min(places, key=places.__getitem__)
        beaten = sum(not column.better(known[best].mean, figure.mean) for figure, _ in found.values())
        told.append(
            f"{beaten} of {len(found)} models are at least as good as “{best}” ({known[best].text(column)}) under "
            f"`{'clean' if clean else 'paper'}`"
        )
    return f"{graph.name}, {column.title}: {', and '.join(told)}."
