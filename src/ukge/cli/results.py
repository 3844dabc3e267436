"""Asking a run and handing out what it says: a table for people, tab-separated lines for a pipe, a file, or JSON.

Nothing is loaded that the answer does not need.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ukge.cli.console import err, note, out, print_json
from ukge.errors import ConfigError, known_names

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType
    from rich.text import Text

    from ukge.asking import Predictor
    from ukge.graph.nodes import Nodes
    from ukge.settings.config import Config

BLAS = "scipy.linalg"


def check_out(out_file: Path | None, to: str | None = None, *, networks: bool = False) -> None:
    """Refuse a file that cannot be written before the work, not after it; `networks` can be, besides tables."""
    if out_file is None:
        if to is not None:
            raise ConfigError("‹to› says the format of a file", hint="Name the file: ‹out=FILE›.")
        return
    from ukge.graph.files import check_target
    from ukge.graph.writers.tables import check_table_path

    if networks and is_network(out_file, to):
        check_target(out_file)
    elif to is None:
        check_table_path(out_file)


def is_network(out_file: Path, to: str | None) -> bool:
    """Return whether a file is to be a network; a format that is none is an error."""
    if to is None and out_file.suffix in (".tsv", ".csv", ".jsonl", ".parquet"):
        return False
    from ukge.graph.writers import network_format, writers

    if to is None:
        return network_format(out_file) is not None
    if network_format(out_file, to) is None:
        known = [name for name in writers if writers.get(name).network is not None]
        raise ConfigError(f"predictions are not written as ‹to={to}›", hint=known_names(to, known))
    return True


def to_a_person() -> bool:
    """Return whether results are looked at, and not read by another program."""
    return sys.stdout.isatty()


def deliver(
    table: pa.Table,
    out_file: Path | None,
    *,
    as_json: bool,
    shown: Callable[[], RenderableType],
    what: str,
    safe: bool = False,
    network: Callable[[], tuple[pa.Table, Nodes]] | None = None,
    to: str | None = None,
) -> None:
    """Hand out rows: to a file, as JSON, to a person, or as tab-separated lines into a pipe.

    `shown` makes what a person sees; `what` is the word for the rows, such as "facts". `safe` text starts no formula.
    `network` makes what a network of the rows holds, for a file that is to be one.
    """
    from ukge.graph.writers.tables import plain_rows, table_text, write_table

    if out_file is not None and network is not None and is_network(out_file, to):
        _write_network(out_file, *network(), what=what, to=to)
    elif out_file is not None:
        write_table(out_file, table, spreadsheet_safe=safe)
        note(f"{len(table):,} {what} were written to {out_file}")
    if as_json:
        print_json(list(plain_rows(table)))
    elif out_file is None:
        if to_a_person():
            if len(table):  # column names over nothing tell a person nothing
                out().print(shown())
        else:
            sys.stdout.write(table_text(table, spreadsheet_safe=safe))


def _write_network(out_file: Path, table: pa.Table, nodes: Nodes, *, what: str, to: str | None) -> None:
    """Write judged facts as a network; rows without a confidence are none of its edges."""
    import pyarrow.compute as pc

    from ukge.graph.writers import write_network

    judged = table.filter(pc.is_valid(table["confidence"]))
    if len(judged):
        write_network(out_file, judged, nodes, format=to)
        left = f"; {len(table) - len(judged):,} without a confidence were left out" if len(judged) < len(table) else ""
        beside = " and beside it" if (to or out_file.suffix.removeprefix(".")) in ("kgx", "sif") else ""
        note(f"{len(judged):,} {what} were written to {out_file}{beside}{left}")
    else:
        note(f"there are no {what} to write: {out_file} was not written")


def labelled(table: pa.Table, nodes: Nodes) -> pa.Table:
    """Return judged facts with the labels of their entities beside their names, where any has one."""
    from ukge.graph.arrow import from_names

    for role in ("tail", "head"):
        labels = nodes.labels(table[role]) if len(nodes) else []
        if any(label is not None for label in labels) and f"{role}_label" not in table.column_names:
            table = table.add_column(table.column_names.index("tail") + 1, f"{role}_label", from_names(labels))
    return table


def facts_table(
    table: pa.Table, coverage: float | None = None, *, title: str | None = None, answer: str | None = None
) -> RenderableType:
    """Return judged facts for people: numbers first, then the fact, and under it why.

    With `answer`, a column's name, only that entity stands for the fact, which the title tells.
    """
    from rich.table import Table
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    rows: list[dict[str, Any]] = table.to_pylist()
    numbers = [(name, header) for name, header in _numbers(table, coverage) if any(name(row) for row in rows)]
    shown = Table(
        title=title and Text(one_line(title)), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    if answer:
        shown.add_column("", justify="right", style="dim")
    for _, header in numbers:
        shown.add_column(header, justify="right", no_wrap=True, header_style="dim", vertical="top")
    shown.add_column("answer" if answer else "fact", overflow="fold", header_style="dim")
    for place, row in enumerate(rows, start=1):
        fact = _shown(row, answer) if answer else _shown(row, "head").append(f" — {one_line(row['relation'])} — ")
        if not answer:
            fact.append_text(_shown(row, "tail"))
        if row.get("reason"):
            fact.append(f"\n{one_line(row['reason'])}", style="dim")
        if row.get("note"):
            fact.append(f"\n{one_line(row['note'])}", style="yellow")
        shown.add_row(*([str(place)] if answer else []), *(cell(row) for cell, _ in numbers), fact)
    return shown


def _shown(row: dict[str, Any], role: str) -> Text:
    """Return an entity for people: its label and, behind it, its name."""
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    label = row.get(f"{role}_label")
    if label is None:
        return Text(one_line(row[role]))
    return Text(one_line(label)).append(f" ({one_line(row[role])})", style="dim")


def _numbers(table: pa.Table, coverage: float | None) -> list[tuple[Callable[[dict[str, Any]], str], str]]:
    """Return the columns of numbers that a table may have: what stands in a row, and the header."""

    def number(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: "" if row[name] is None else f"{row[name]:.2f}"

    def interval(row: dict[str, Any]) -> str:
        return "" if row["low"] is None else f"{row['low']:.2f} – {row['high']:.2f}"

    headers = {"confidence": "confidence", "extractor": "extractor", "graph": "graph", "stored": "in the\ngraph"}
    found = [(number(name), header) for name, header in headers.items() if name in table.column_names]
    if "low" in table.column_names and coverage is not None:
        found.insert(1, (interval, f"{coverage:.0%}\ninterval"))
    return found


@contextmanager
def open_predictor(
    run: Path, console: Console | None = None, prior: float | None = None, negatives: str | None = None
) -> Iterator[Predictor]:
    """Open a run to be asked; the first question on a machine has to wait for the compiler."""
    from ukge.asking import Predictor
    from ukge.evidence.kernels import before_compiler
    from ukge.progress.bars import when_compiling

    with ExitStack() as stack:

        def ready() -> None:
            _ready_kernels()
            stack.enter_context(when_compiling(lambda said: (console or err()).print(said, style="dim")))

        stack.enter_context(before_compiler(ready))
        yield Predictor.open(run, prior=prior, negatives=negatives)


def tell_of_judge(predictor: Predictor, run: Path) -> None:
    """Say what the answers of a run without evidence are not."""
    if predictor.evidence is not None:
        return
    for text in order_only(predictor.config, run):
        note(text)
    note(
        f"{run} has no evidence: confidences are those of its model, bounds by what it said of validation facts "
        f"(ukge evidence fit {run} fits some)"
    )


def order_only(config: Config, run: Path | str) -> list[str]:
    """Return a sentence on a model that learnt an order; nothing where it learnt confidences."""
    if config.objective.learns_confidence:
        return []
    return [
        f"{run} learnt an order, not confidences ({config.objective.loss} loss): its numbers compare facts and mean "
        f"nothing else (ukge evidence fit {run} makes confidences of them)"
    ]


def _ready_kernels() -> None:
    """Have Numba set itself up without SciPy's linear algebra, which it looks for in case a kernel multiplies matrices.

    None of evidence does, and loading it takes as long as everything that is asked. Numba does so once and for all
    kernels of a process, so this is for commands alone, whose process has no others.
    """
    modules: dict[str, Any] = sys.modules
    if BLAS in modules:
        return
    modules[BLAS] = None  # an import of it fails
    try:
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()
    finally:
        del modules[BLAS]
