"""An evaluation for a terminal: one table per task, each naming its protocol, trivial baselines first, best in bold."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ukge.evaluation.evaluate import Evaluation, Row
from ukge.evaluation.metric import Figure, Metric
from ukge.evaluation.tasks import Table


def render(evaluation: Evaluation) -> RenderableType:
    """Return the evaluation as something a Rich console can print."""
    return Group(*_blocks(evaluation))


def columns(evaluation: Evaluation, table: Table) -> tuple[Metric, ...]:
    """Return the metrics that a table shows, in order."""
    known = [figure.metric for figure in evaluation.rows[0].figures[table.name]]
    return tuple(metric for metric in known if not table.columns or metric.name in table.columns)


def header(metric: Metric) -> str:
    """Return the title of a column, with an arrow towards better."""
    return f"{metric.title} {'↑' if metric.higher_is_better else '↓'}"


def is_best(figure: Figure, evaluation: Evaluation, table: Table) -> bool:
    """Return whether no row of the table prints a better value."""
    metric = figure.metric
    values = [row.figure(table.name, metric.name).value for row in evaluation.rows]
    return metric.text(figure.value) == metric.text(metric.best(values)) != metric.text(float("nan"))


def half_width(figure: Figure) -> str:
    """Return half the width of the interval, as ±; nothing where there is none."""
    if figure.interval is None:
        return ""
    return f"±{figure.metric.text((figure.interval.high - figure.interval.low) / 2.0)}"


def caption(evaluation: Evaluation) -> str:
    """Return the words that stand above the tables."""
    return f"Protocol {evaluation.protocol} on {evaluation.data}: {evaluation.about}"


def _blocks(evaluation: Evaluation) -> Iterator[RenderableType]:
    yield Text(caption(evaluation), style="bold")
    for note in evaluation.notes:
        yield Text(f"• {note}")
    yield Text("")
    for table in evaluation.tables:
        if table.brief:
            yield Text(f"{evaluation.protocol} · {table.title}", style="bold")
            yield _table(evaluation, table)
    if evaluation.bootstrap.replicates:
        level, replicates = evaluation.bootstrap.level, evaluation.bootstrap.replicates
        yield Text(f"± is half the {level:.0%} interval of {replicates:,} bootstrap draws; best in bold.", style="dim")


def _table(evaluation: Evaluation, table: Table) -> RichTable:
    shown = columns(evaluation, table)
    grid = RichTable(box=None, pad_edge=False, header_style="dim")
    grid.add_column("predictor", no_wrap=True)
    for metric in shown:
        grid.add_column(header(metric), justify="right", no_wrap=True)
    for row in evaluation.rows:
        grid.add_row(Text(row.name, style="dim" if row.trivial else ""), *_cells(evaluation, table, row, shown))
    grid.add_row("")
    return grid


def _cells(evaluation: Evaluation, table: Table, row: Row, shown: tuple[Metric, ...]) -> Iterator[Text]:
    for metric in shown:
        figure = row.figure(table.name, metric.name)
        style = "bold" if is_best(figure, evaluation, table) else "dim" if row.trivial else ""
        cell = Text(metric.text(figure.value), style=style)
        if not row.trivial and figure.interval is not None:
            cell.append(f"\n{half_width(figure)}", style="not bold dim")
        yield cell
