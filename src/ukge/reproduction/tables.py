"""The paper's tables with ours beside them: statistics, rules, the three tasks, the case study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ukge.evaluation.case_study import Case, Tail
from ukge.reproduction.bench import WHOLE_STRONG, Outcome
from ukge.reproduction.cells import (
    ACCURACY,
    EXPONENTIAL,
    F1,
    LINEAR,
    MAE,
    MSE,
    NOTHING,
    Column,
    Comparison,
    published,
    ranks,
    swapped,
)
from ukge.reproduction.document import Block, Bullets, Cell, Section, grid
from ukge.reproduction.recipes import ABSOLUTE, MAIN, PAPER_MODELS, RANKING, STRONG, contestants
from ukge.reproduction.reproduce import GraphResults
from ukge.settings.variants import variant

ELSEWHERE = ("beurre",)
"""Models that were published since under the same protocol; the part `field` trains them."""
CASE_MODEL = "ukge-logi"
FACTS = Column("facts", "facts", "", 1.0, 0, True)
SHARE = Column("hit_ratio", "hit ratio", "", 1.0, 1, True)
CONFIDENCE = Column("confidence", "confidence", "", 1.0, 3, True)


@dataclass(frozen=True, slots=True)
class Task:
    """One of the paper's three tasks: the title of its table and its two columns."""

    title: str
    columns: tuple[Column, ...]
    predicts_confidence: bool = False


TASKS = (
    Task("Confidence prediction (MSE, MAE × 100)", (MSE, MAE), predicts_confidence=True),
    Task("Fact ranking (mean nDCG)", (LINEAR, EXPONENTIAL)),
    Task("Strong facts (F1, accuracy in %)", (F1, ACCURACY)),
)


def predicts_confidence(model: str) -> bool:
    """Return whether a model learns confidences, and not only an order."""
    return variant(contestants.get(model).variant).objective.learns_confidence


def task_of(graph: GraphResults, model: str, column: Column) -> str:
    """Return the training whose figure stands in a column: that for its metric, where the model has one."""
    wanted = RANKING if column.ranks else {MAE: ABSOLUTE, F1: STRONG, ACCURACY: STRONG}.get(column, MAIN)
    return wanted if graph.of(model, wanted) else MAIN


def compared(graph: GraphResults, model: str, column: Column) -> Comparison:
    """Return a cell of the paper's tables."""
    known = published().value(graph.name, model, column.known_as, column.protocol) if graph.published else None
    ours = graph.figure(model, column, task_of(graph, model, column))
    return Comparison(column, known, ours)


def statistics(graphs: Sequence[GraphResults]) -> Section:
    """Return table 1."""
    rows = []
    for graph in graphs:
        known = published().statistics.get(graph.name) if graph.published else None
        cells: list[Cell | str] = [graph.name]
        for name, column in (("entities", FACTS), ("relations", FACTS), ("facts", FACTS), ("mean", CONFIDENCE)):
            cells.append(_statistic(graph, name, column, None if known is None else getattr(known, name)))
        cells.append(_statistic(graph, "deviation", CONFIDENCE, None if known is None else known.deviation))
        cells.append(f"{graph.findings.statistics['distinct']:,}")
        rows.append(cells)
    header = ("graph", "entities", "relations", "facts", "mean confidence", "deviation", "distinct facts")
    return Section("Graphs", (grid(header, rows),))


def _statistic(graph: GraphResults, name: str, column: Column, known: float | None) -> Cell:
    value = graph.findings.statistics[name]
    text = f"{value:,.{column.digits}f}"
    if known is None:
        return Cell(text)
    return Cell(text, f"{known:,.{column.digits}f} ({column.signed(round(value, column.digits) - known)})")


def rules(graphs: Sequence[GraphResults]) -> Section:
    """Return table 2."""
    rows: list[list[Cell | str]] = []
    for graph in graphs:
        for rule in graph.findings.rules:
            known = rule["published"]
            rows.append([graph.name, f"`{rule['rule']}`", NOTHING if known is None else SHARE.text(known)])
            for which in ("train", "whole"):
                found = rule[which]
                below = f"{found['support']:,} of {found['implied']:,}"
                if known is not None:
                    below = f"{SHARE.signed(round(found['hit_ratio'], SHARE.digits) - known)}, {below}"
                rows[-1].append(Cell(SHARE.text(found["hit_ratio"]), below))
    header = ("graph", "rule", "published", "training facts, τ of the graph", f"all facts, τ = {WHOLE_STRONG:g}")
    mined = ", ".join(f"{graph.findings.mined:,} from {graph.name}" for graph in graphs)
    note = f"Hit ratios in %. By itself the miner keeps, at a hit ratio of 30 % or more, {mined}."
    return Section("Rules with hit ratios", (grid(header, rows, words=True), note))


def tasks(graphs: Sequence[GraphResults], models: Sequence[str]) -> Iterator[Section]:
    """Yield the tables 3, 4 and 6, each with the trivial baselines below the models."""
    for task in TASKS:
        header = ("model", *(f"{graph.name} {column.header}" for graph in graphs for column in task.columns))
        shown = [model for model in models if not task.predicts_confidence or predicts_confidence(model)]
        rows: list[list[Cell | str]] = [_model_row(graphs, model, task) for model in shown]
        rows += [
            _model_row(graphs, model, task)
            for model in ELSEWHERE
            if model not in models
            and any(compared(graph, model, task.columns[0]).published is not None for graph in graphs)
        ]
        for name in dict.fromkeys(name for graph in graphs for name in graph.trivial.figures):
            rows.append(_trivial_row(graphs, name, task))
        blocks: list[Block] = [grid(header, rows)]
        apart = [
            f"{_title(model)} on {graph.name}{'' if column.ranks else f' for {column.title}'}"
            for graph in graphs
            for model in shown
            for column in task.columns[task.predicts_confidence :]
            if column not in (EXPONENTIAL, ACCURACY) and task_of(graph, model, column) != MAIN
        ]
        if apart:
            blocks.append(f"Trained once more for this table, stopping by its own metric: {', '.join(apart)}.")
        yield Section(f"{task.title}, protocol `paper`", tuple(blocks))


def _model_row(graphs: Sequence[GraphResults], model: str, task: Task) -> list[Cell | str]:
    row: list[Cell | str] = [_title(model)]
    return row + [shown(compared(graph, model, column)) for graph in graphs for column in task.columns]


def shown(cell: Comparison) -> Cell:
    """Return ours above what was published."""
    return Cell(cell.first, cell.second, strong=cell.reached is True, soft=cell.ours is None)


def _trivial_row(graphs: Sequence[GraphResults], name: str, task: Task) -> list[Cell | str]:
    row: list[Cell | str] = [Cell(name, soft=True)]
    for graph in graphs:
        for column in task.columns:
            found = graph.trivial_figure(name, column)
            row.append(Cell(NOTHING if found is None else found.text(column), soft=True))
    return row


def missed(graphs: Sequence[GraphResults], models: Sequence[str]) -> Section | None:
    """Return how many cells of the paper are reached, and which of them are not."""
    columns = [column for task in TASKS for column in task.columns]
    cells = [(g, model, compared(g, model, column)) for g in graphs for model in models for column in columns]
    return not_reached(cells, [f"{graph.name}: {sentence}" for graph in graphs for sentence in graph.recipes.tried])


def not_reached(cells: Sequence[tuple[GraphResults, str, Comparison]], tried: Sequence[str]) -> Section | None:
    """Return how many cells are reached, which are not, and what was tried; None where nothing can be compared."""
    known = [each for each in cells if each[2].reached is not None]
    if not known:
        return None
    below = [
        f"{_title(model)} on {graph.name}, {cell.column.title}: {cell.first} where {cell.second.split(' (')[0]} was "
        "published."
        for graph, model, cell in known
        if not cell.reached
    ]
    reached = (
        f"{len(known) - len(below)} of {len(known)} cells are reached: as good as published or within the deviation."
    )
    blocks: list[Block] = [reached]
    if below:
        blocks.append(Bullets(tuple(below)))
    if tried:
        blocks += ["What was tried:", Bullets(tuple(tried))]
    return Section("What was not reached", tuple(blocks))


def orders(graphs: Sequence[GraphResults], models: Sequence[str]) -> Section | None:
    """Return how our order of the models differs from the published one."""
    rows: list[list[Cell | str]] = []
    for graph in graphs:
        for task in TASKS:
            for column in task.columns:
                theirs, ours = _both(graph, models, column)
                if len(ours) < 2:
                    continue
                pairs = swapped(ranks(theirs, column), ranks(ours, column))
                words = "; ".join(f"{_title(b)} before {_title(a)}" for a, b in pairs)
                count = len(ours) * (len(ours) - 1) // 2
                rows.append([graph.name, column.title, f"{count - len(pairs)} of {count}", words or "as published"])
    if not rows:
        return None
    remarks = tuple(f"{graph.name}: {sentence}" for graph in graphs for sentence in graph.recipes.remarks)
    table = grid(("graph", "by", "pairs in the published order", "what changed places"), rows, words=True)
    return Section("The order of the models", (table, *([Bullets(remarks)] if remarks else [])))


def _both(graph: GraphResults, models: Sequence[str], column: Column) -> tuple[dict[str, float], dict[str, float]]:
    """Return the published and our values of the models that have both."""
    cells = {model: compared(graph, model, column) for model in models}
    both = {m: (c.published, c.ours.mean) for m, c in cells.items() if c.published is not None and c.ours is not None}
    return {m: pair[0] for m, pair in both.items()}, {m: pair[1] for m, pair in both.items()}


def cases(graphs: Sequence[GraphResults]) -> Section | None:
    """Return table 5: the best tails of some queries, with predicted and true confidence."""
    rows: list[list[Cell | str]] = []
    models: dict[str, None] = {}
    for graph in graphs:
        chosen = _case_outcome(graph)
        if chosen is None:
            continue
        models[_title(chosen.model)] = None
        known = {(case.head, case.relation): case for case in published().cases.get(graph.name, ()) if graph.published}
        for case in chosen.cases:
            rows += _case_rows(graph.name, case, known.get((case.head, case.relation)))
    if not rows:
        return None
    header = ("graph", "query", "published tail", "our tail", "predicted", "true")
    note = f"Best tails of {', '.join(models)}, first seed. N/A: a fact that neither train, validation nor test holds."
    return Section("Case study", (grid(header, rows, words=True), note))


def _case_outcome(graph: GraphResults) -> Outcome | None:
    first = [each for each in graph.outcomes if each.cases and each.seed == 0]
    wanted = [each for each in first if each.model == CASE_MODEL] or first[-1:]
    return next((each for each in wanted if each.task == RANKING), wanted[0] if wanted else None)


def _case_rows(graph: str, case: Case, known: Case | None) -> Iterator[list[Cell | str]]:
    theirs: Sequence[Tail | None] = known.predicted if known is not None else [None] * len(case.predicted)
    for number, (before, tail) in enumerate(zip(theirs, case.predicted, strict=False)):
        name: list[Cell | str] = [graph, f"({case.head}, {case.relation}, ?)"] if number == 0 else ["", ""]
        words = NOTHING
        if before is not None:
            words = f"{before.entity} {CONFIDENCE.text(before.predicted)} / {_observed(before)}"
        yield [*name, words, tail.entity, CONFIDENCE.text(tail.predicted), _observed(tail)]


def _observed(tail: Tail) -> str:
    return "N/A" if tail.observed is None else CONFIDENCE.text(tail.observed)


def _title(model: str) -> str:
    return contestants.get(model).title


def in_order(models: Sequence[str]) -> list[str]:
    """Return models in the order of the paper's tables."""
    return [model for model in PAPER_MODELS if model in models] + [m for m in models if m not in PAPER_MODELS]
