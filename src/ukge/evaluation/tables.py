"""An evaluation for a terminal: one table per task, each naming its protocol, trivial baselines first, best in bold.

Below a table stands in words which models are no better than what needs no model, and what may help. A table that is
wider than the terminal is broken into several of some columns each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ukge.errors import Wording, in_python
from ukge.evaluation.evaluate import Evaluation, Row
from ukge.evaluation.metric import Figure, Metric
from ukge.evaluation.significance import Contestant, Contrast
from ukge.evaluation.tasks import Table
from ukge.progress.safe_console import one_line

GAP = 2
"""Characters between two columns."""

NO_MODEL = "the best that needs no model"


def render(evaluation: Evaluation, wording: Wording = in_python) -> RenderableType:
    """Return the evaluation as something a Rich console can print, in the words of a surface."""
    return Group(*_blocks(evaluation, wording))


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
    if figure.interval is None or math.isnan(figure.value):
        return ""
    return f"±{figure.metric.text((figure.interval.high - figure.interval.low) / 2.0)}"


def caption(evaluation: Evaluation) -> str:
    """Return the words that stand above the tables."""
    return f"Protocol {evaluation.protocol} on {evaluation.data}: {evaluation.about}"


def summary(evaluation: Evaluation) -> RichTable:
    """Return one table of what models are judged by: the best that needs no model, for each metric, then the models."""
    shown = [(table, metric) for table in evaluation.tables if table.brief for metric in table.judged_by]
    trivial = [row for row in evaluation.rows if row.trivial]
    grid = RichTable(box=None, pad_edge=False, header_style="dim")
    grid.add_column("predictor", overflow="fold")
    cells = []
    for table, name in shown:
        metric = evaluation.rows[0].figure(table.name, name).metric
        grid.add_column(f"{table.name.replace('_', ' ')}\n{header(metric)}", justify="right")
        cells.append(metric.text(metric.best([row.figure(table.name, name).value for row in trivial])))
    grid.add_row(NO_MODEL, *cells, style="dim")
    for row in evaluation.rows:
        if not row.trivial:
            figures = [(row.figure(table.name, name), table) for table, name in shown]
            styles = ["bold" if is_best(figure, evaluation, table) else "" for figure, table in figures]
            texts = [figure.metric.text(figure.value) for figure, _ in figures]
            grid.add_row(row.name, *(Text(text, style=style) for text, style in zip(texts, styles, strict=True)))
    return grid


def over_seeds(evaluation: Evaluation, models: Sequence[Contestant]) -> RichTable:
    """Return one table of what models are judged by, as mean and deviation over their seeds."""
    grid = RichTable(
        box=None, pad_edge=False, header_style="dim", title=_title("mean ± deviation over seeds"), title_justify="left"
    )
    grid.add_column("model", overflow="fold")
    shown = [(table, metric) for table in evaluation.tables if table.brief for metric in table.judged_by]
    for table, name in shown:
        metric = evaluation.rows[0].figure(table.name, name).metric
        grid.add_column(f"{table.name.replace('_', ' ')}\n{header(metric)}", justify="right")
    for model in models:
        cells = []
        for table, name in shown:
            metric = evaluation.rows[0].figure(table.name, name).metric
            deviation = model.deviation(table.name, name)
            spread = "" if math.isnan(deviation) else f" ±{metric.text(deviation)}"
            cells.append(f"{metric.text(model.mean(table.name, name))}{spread}")
        grid.add_row(Text(model.name), *cells)
    return grid


def differences(found: Sequence[Contrast]) -> RichTable:
    """Return the contrasts between models, with intervals and chances; what is more than chance in bold."""
    words = f"difference from {found[0].against}, test fact by test fact; bold: more than chance after the correction"
    grid = RichTable(box=None, pad_edge=False, header_style="dim", title=_title(words), title_justify="left")
    grid.add_column("model", overflow="fold")
    for name in ("table", "metric"):
        grid.add_column(name)
    for name in ("difference", "95 % interval", "p", f"Holm, {len(found)}"):
        grid.add_column(name, justify="right", no_wrap=True)
    for each in found:
        low, high = (each.metric.text(limit) for limit in (each.interval.low, each.interval.high))
        grid.add_row(
            Text(each.name),
            each.table.replace("_", " "),
            header(each.metric),
            f"{each.difference:+,.{each.metric.digits}f}",
            f"{low} to {high}",
            f"{each.p:.4f}",
            f"{each.corrected:.4f}",
            style="bold" if each.clear else None,
        )
    return grid


def _title(words: str) -> Text:
    return Text(f"\n{words}", style="bold not italic")


def _blocks(evaluation: Evaluation, wording: Wording) -> Iterator[RenderableType]:
    yield Text(caption(evaluation), style="bold")
    for note in evaluation.notes:
        yield Text(f"• {note}")
    yield Text("")
    told: set[str] = set()
    for table in evaluation.tables:
        if table.brief:
            yield Text(f"{evaluation.protocol} · {table.title}", style="bold")
            yield _Grid(evaluation, table)
            for verdict in evaluation.verdicts:
                if verdict.table is table:
                    hint = verdict.hint(wording)
                    yield Text.assemble((verdict.what(), "yellow"), "" if hint in told else f" {hint}")
                    told.add(hint)
            yield Text("")
    if evaluation.bootstrap.replicates:
        level, replicates = evaluation.bootstrap.level, evaluation.bootstrap.replicates
        words = f"± is half the {100 * level:.0f} % interval of {replicates:,} bootstrap draws; best in bold."
        yield Text(words, style="dim")


@dataclass(frozen=True, eq=False)
class _Grid:
    """One table, in as many pieces as the width of the console asks for."""

    evaluation: Evaluation
    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for number, piece in enumerate(self._pieces(options.max_width)):
            if number:
                yield Text("")
            yield self._piece(piece)

    def _pieces(self, width: int) -> list[tuple[Metric, ...]]:
        """Return the columns in as few pieces as the width allows, about as many in each."""
        shown = columns(self.evaluation, self.table)
        left = width - max(len(row.name) for row in self.evaluation.rows)
        for number in range(1, len(shown) + 1):
            size = -(-len(shown) // number)
            pieces = [shown[at : at + size] for at in range(0, len(shown), size)]
            if all(sum(GAP + self._width(metric) for metric in piece) <= left for piece in pieces):
                return pieces
        return [(metric,) for metric in shown]

    def _width(self, metric: Metric) -> int:
        cells = (self._cell(row, metric).plain for row in self.evaluation.rows)
        return max(len(header(metric)), *(len(line) for cell in cells for line in cell.splitlines()))

    def _piece(self, shown: Sequence[Metric]) -> RichTable:
        grid = RichTable(box=None, pad_edge=False, header_style="dim")
        grid.add_column("predictor", overflow="fold")
        for metric in shown:
            grid.add_column(header(metric), justify="right", no_wrap=True)
        for row in self.evaluation.rows:
            cells = [self._cell(row, metric) for metric in shown]
            grid.add_row(Text(row.name, style="dim" if row.trivial else ""), *cells)
        return grid

    def _cell(self, row: Row, metric: Metric) -> Text:
        figure = row.figure(self.table.name, metric.name)
        best = is_best(figure, self.evaluation, self.table)
        cell = Text(metric.text(figure.value), style="bold" if best else "dim" if row.trivial else "")
        if not row.trivial and half_width(figure):
            cell.append(f"\n{half_width(figure)}", style="not bold dim")
        if figure.note:
            cell.append("".join(f"\n{one_line(line)}" for line in figure.note.split("; ")), style="not bold dim")
        return cell
