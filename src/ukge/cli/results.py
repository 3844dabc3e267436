"""Results that are rows of facts: a table for people, tab-separated lines for a pipe, a file, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import note, out, print_json

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Write to this file instead; an old one is replaced. .tsv, .csv, .jsonl (.gz or .zst may follow), "
        ".parquet.",
        metavar="FILE",
        show_default=False,
    ),
]
RunData = Annotated[
    str | None,
    typer.Option("--data", help="Where the facts are now that a run refers to; most runs keep theirs.", metavar="DIR"),
]
Coverage = Annotated[
    float, typer.Option("--coverage", help="Share of facts whose interval is to hold them.", metavar="SHARE")
]
Reasons = Annotated[bool, typer.Option("--reasons/--no-reasons", help="Whether to tell each one's top reason.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def check_out(out_file: Path | None) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    if out_file is not None:
        from ukge.graph.writers.tables import check_table_path

        check_table_path(out_file)


def to_a_person() -> bool:
    """Return whether results are looked at, and not read by another program."""
    return sys.stdout.isatty()


def deliver(
    table: pa.Table, out_file: Path | None, *, as_json: bool, shown: Callable[[], RenderableType], what: str
) -> None:
    """Hand out rows: to a file, as JSON, to a person, or as tab-separated lines into a pipe.

    `shown` makes what a person sees; `what` is the word for the rows, such as "facts".
    """
    from ukge.graph.writers.tables import plain_rows, table_text, write_table

    if out_file is not None:
        write_table(out_file, table)
        note(f"{len(table):,} {what} were written to {out_file}")
    if as_json:
        print_json(list(plain_rows(table)))
    elif out_file is None:
        if to_a_person():
            out().print(shown())
        else:
            sys.stdout.write(table_text(table))


def facts_table(
    table: pa.Table, coverage: float | None = None, *, title: str | None = None, answer: str | None = None
) -> RenderableType:
    """Return judged facts for people: numbers first, then the fact, and under it why.

    With `answer`, a column's name, only that entity stands for the fact, which the title tells.
    """
    from rich.table import Table
    from rich.text import Text

    rows: list[dict[str, Any]] = table.to_pylist()
    numbers = [(name, header) for name, header in _numbers(table, coverage) if any(name(row) for row in rows)]
    shown = Table(title=title and Text(title), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    if answer:
        shown.add_column("", justify="right", style="dim")
    for _, header in numbers:
        shown.add_column(header, justify="right", no_wrap=True, header_style="dim", vertical="top")
    shown.add_column("answer" if answer else "fact", overflow="fold", header_style="dim")
    for place, row in enumerate(rows, start=1):
        fact = Text(row[answer] if answer else f"{row['head']} — {row['relation']} — {row['tail']}")
        if row.get("reason"):
            fact.append(f"\n{row['reason']}", style="dim")
        if row.get("note"):
            fact.append(f"\n{row['note']}", style="yellow")
        shown.add_row(*([str(place)] if answer else []), *(cell(row) for cell, _ in numbers), fact)
    return shown


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
