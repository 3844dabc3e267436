"""What the order of the models is worth: the paper's protocol beside ours on a split that does not leak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ukge.reproduction.cells import F1, HELD_OUT, LINEAR, MSE, NOTHING, Column, Summary, ranks, summary, swapped
from ukge.reproduction.document import Block, Bullets, Cell, Section, grid
from ukge.reproduction.outcomes import Trivial
from ukge.reproduction.recipes import MAIN, contestants
from ukge.reproduction.reproduce import GraphResults
from ukge.reproduction.tables import predicts_confidence

COLUMNS = (MSE, LINEAR, F1)
BESIDE = ("relation mean", "twin, else relation mean", "twin, else 0")
Ranked = dict[str, tuple[Summary, float]]


def section(graphs: Sequence[GraphResults], models: Sequence[str]) -> Section | None:
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
    found = {model: _ours(graph, model, column, clean=clean) for model in able}
    known = {model: each for model, each in found.items() if each is not None}
    places = ranks({model: each.mean for model, each in known.items()}, column)
    return {model: (each, places[model]) for model, each in known.items()}


def _ours(graph: GraphResults, model: str, column: Column, *, clean: bool) -> Summary | None:
    outcomes = graph.of(model, MAIN, clean=clean)
    return summary((each.value(column.table, column.metric) for each in outcomes), column.scale)


def _table(graph: GraphResults, models: Sequence[str]) -> Block:
    shown = [(column, clean) for column in COLUMNS for clean in (False, True)] + [(HELD_OUT, True)]
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
        cells = [_trivial(graph, name, column, clean=clean) for column, clean in shown]
        texts = [NOTHING if s is None else s.text(column) for s, (column, _) in zip(cells, shown, strict=True)]
        rows.append([Cell(name, soft=True), *(Cell(text, soft=True) for text in texts)])
    header = (graph.name, *(f"{column.header} `{'clean' if clean else 'paper'}`" for column, clean in shown))
    return grid(header, rows)


def _trivial(graph: GraphResults, name: str, column: Column, *, clean: bool) -> Summary | None:
    measured: Sequence[Trivial] = graph.clean_trivial if clean else (graph.trivial,)
    values = (each.figures.get(name, {}).get(column.table, {}).get(column.metric) for each in measured)
    return summary(values, column.scale)


def _sentences(graph: GraphResults, models: Sequence[str]) -> Iterator[str]:
    for column in COLUMNS:
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
        known = {name: each for name in BESIDE if (each := _trivial(graph, name, column, clean=clean)) is not None}
        places = ranks({name: each.mean for name, each in known.items()}, column)
        best = min(places, key=places.__getitem__)
        beaten = sum(not column.better(known[best].mean, figure.mean) for figure, _ in found.values())
        told.append(
            f"{beaten} of {len(found)} models are at least as good as “{best}” ({known[best].text(column)}) under "
            f"`{'clean' if clean else 'paper'}`"
        )
    return f"{graph.name}, {column.title}: {', and '.join(told)}."
