"""The models of the field, each by the protocols it was published with, beside what needs no model and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ukge.reproduction.cells import (
    EXPONENTIAL,
    HITS,
    LEAST_SURE,
    LINEAR,
    MAE,
    MRR,
    MSE,
    MSE_FACTS,
    MSE_NEGATIVES,
    NOTHING,
    POSITIVE_MAE,
    POSITIVE_MSE,
    SUREST,
    UNKNOWN_TAILS,
    WHITS,
    WMR,
    WMRR,
    Column,
    Comparison,
    Summary,
)
from ukge.reproduction.document import Block, Bullets, Cell, Section, grid
from ukge.reproduction.jobs import EVIDENCE
from ukge.reproduction.recipes import FIELD, MAIN, contestants, registered
from ukge.reproduction.reproduce import GraphResults, Reproduction, absent
from ukge.reproduction.tables import compared, not_reached, predicts_confidence, shown


@dataclass(frozen=True, slots=True)
class Judgement:
    """A protocol of the field: what its table is called, whose it is, and its columns."""

    title: str
    about: str
    columns: tuple[Column, ...]


JUDGEMENTS = (
    Judgement(
        "Protocol `paper`, as BEUrRE was judged",
        "Test facts and negative links together; nDCG over all entities. MSE and MAE × 100.",
        (MSE, MAE, LINEAR, EXPONENTIAL),
    ),
    Judgement(
        "Protocol `split`, as PASSLEAF and UPGAT were judged",
        "Facts and negative links apart; tails only, of which those that train knows are left out, weighed by their "
        "confidence. MSE × 100, WHits@20 in %.",
        (MSE_FACTS, MSE_NEGATIVES, WMR, WHITS, UNKNOWN_TAILS),
    ),
    Judgement(
        "Protocol `positives`, as unKR and ssCDL judge",
        "Test facts only; filtered ranks of tails. What unKR published was trained with corruptions that are filtered "
        "by test facts too, a leak that ours do without.",
        (POSITIVE_MSE, POSITIVE_MAE, WMRR, MRR, HITS),
    ),
    Judgement(
        "Protocol `focus`, as FocusE was judged",
        "Filtered ranks, on both sides, of the tenth of the test facts that are surest, which should come first, and "
        "of the tenth that are least sure, which should not. Equals share a rank here and have the worst in the paper.",
        (SUREST, LEAST_SURE),
    ),
)


def field_sections(found: Reproduction) -> Iterator[Section | None]:
    """Yield a section for each protocol with a table for each graph, and what was not reached."""
    models = [model for model in found.request.of(FIELD) if registered(model)]
    for each in JUDGEMENTS:
        tables = [table for graph in found.graphs if (table := _table(graph, models, each)) is not None]
        yield Section(each.title, (each.about, *tables)) if tables else None
    cells = [
        (graph, model, cell)
        for each in JUDGEMENTS
        for graph in found.graphs
        for model in models
        for cell in _cells(graph, model, each)
    ]
    tried = [
        f"{contestants.get(model).title} on {graph.name}: {sentence}"
        for graph in found.graphs
        for model in models
        for sentence in graph.recipes.tried_for(model)
    ]
    yield not_reached(cells, tried)
    left = [contestants.get(model) for model in absent(found.request)]
    if left:
        words = tuple(f"{each.title}: no model `{each.variant}` is registered." for each in left)
        yield Section("What was left out", (Bullets(words),))


def _cells(graph: GraphResults, model: str, judged: Judgement) -> list[Comparison]:
    able = predicts_confidence(model)
    return [
        compared(graph, model, column) if able or column.ranks else Comparison(column, None, None)
        for column in judged.columns
    ]


def _table(graph: GraphResults, models: list[str], judged: Judgement) -> Block | None:
    rows: list[list[Cell | str]] = []
    for model in models:
        cells = _cells(graph, model, judged)
        if any(cell.ours is not None or cell.published is not None for cell in cells):
            rows.append([contestants.get(model).title, *map(shown, cells)])
    if not any(graph.of(model, MAIN) for model in models):
        return None
    for name in graph.trivial.figures:
        texts = [_text(graph.trivial_figure(name, column), column) for column in judged.columns]
        if set(texts) != {NOTHING}:  # some stand beside negative links only
            rows.append([Cell(name, soft=True), *(Cell(text, soft=True) for text in texts)])
    rows += _over(graph, judged)
    return grid((graph.name, *(column.header for column in judged.columns)), rows)


def _over(graph: GraphResults, judged: Judgement) -> Iterator[list[Cell | str]]:
    """Yield the row of the evidence, which says what it rests upon."""
    fitted = graph.of(EVIDENCE, MAIN)
    if fitted:
        bases = ", ".join(dict.fromkeys(contestants.get(each.settings["over"]).title for each in fitted))
        yield [f"evidence over {bases}", *(_text(graph.figure(EVIDENCE, column), column) for column in judged.columns)]


def _text(figure: Summary | None, column: Column) -> str:
    return NOTHING if figure is None else figure.text(column)
