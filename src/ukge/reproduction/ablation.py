"""Do rules help? The same model without rules, with the authors' and with mined ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ukge.reproduction.cells import ACCURACY, F1, LINEAR, MAE, MSE, NOTHING, Column, Summary, summary
from ukge.reproduction.document import Block, Bullets, Cell, Section, grid
from ukge.reproduction.recipes import ABLATION, MAIN
from ukge.reproduction.reproduce import GraphResults

COLUMNS = (MSE, MAE, LINEAR, F1, ACCURACY)
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


def section(graphs: Sequence[GraphResults]) -> Section | None:
    """Return the table of the ablation with its sentences, None where nothing was trained for it."""
    rows: list[list[Cell | str]] = []
    said: list[str] = []
    for graph in graphs:
        found = {model: _summaries(graph, model) for model in ABLATION}
        if not any(any(each) for model, each in found.items() if model != WITHOUT) or not any(found[WITHOUT]):
            continue
        for model, summaries in found.items():
            cells = [
                NOTHING if each is None else each.text(column) for each, column in zip(summaries, COLUMNS, strict=True)
            ]
            rows.append([f"{graph.name}, {source(graph, model)}", *cells])
        for model in (OWN, MINED):
            pairs = [
                (column, ours, without)
                for column, ours, without in zip(COLUMNS, found[model], found[WITHOUT], strict=True)
                if ours is not None and without is not None
            ]
            if pairs:
                said.append(sentence(graph.name, source(graph, model), pairs) + _unlike(graph, model))
    if not rows:
        return None
    header = ("rules", *(column.header for column in COLUMNS))
    note = (
        "UKGE rect with the same settings in all three rows of a graph but for the rules; protocol `paper`, mean ± "
        "deviation over seeds. A difference counts if it is larger than the root of the two squared deviations' sum."
    )
    blocks: tuple[Block, ...] = (note, grid(header, rows), Bullets(tuple(said)))
    return Section("Do rules help?", blocks)


def _summaries(graph: GraphResults, model: str) -> list[Summary | None]:
    outcomes = graph.of(model, MAIN)
    return [summary((o.value(c.table, c.metric) for o in outcomes), c.scale) for c in COLUMNS]


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
