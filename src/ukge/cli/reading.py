"""The flags by which every command that reads a file of facts lets its user say how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import note
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

Format = Annotated[
    str | None, typer.Option("--format", help="Format of the input; by default its extension says it.", metavar="NAME")
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Which column is which, by header name or position from 0: head=0,relation=2,tail=1,confidence=score.",
        metavar="ROLE=COLUMN,…",
    ),
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns; else guessed.")
]
Normalise = Annotated[
    str | None,
    typer.Option(
        "--normalise",
        help="Turn weights into confidences: conceptnet, nell, or scales such as 'clip:0.1,3 log minmax:0.1,1'.",
        metavar="SCALE",
    ),
]
Language = Annotated[
    str | None, typer.Option("--language", help="ConceptNet: keep this language (else en), or 'all'.", metavar="CODE")
]
Channels = Annotated[
    str | None,
    typer.Option("--channels", help="STRING: the evidence channels to read, comma-separated.", metavar="NAME,…"),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What separates the columns of a text file.", metavar="CHARACTER")
]


@dataclass(frozen=True)
class Reading:
    """What the flags said."""

    format: str | None = None
    columns: str | None = None
    header: bool | None = None
    normalise: str | None = None
    language: str | None = None
    channels: str | None = None
    delimiter: str | None = None

    def read(self, path: Path) -> UncertainGraph:
        """Read the file, and tell on standard error which rows were skipped."""
        from ukge.graph.readers import read_with_report

        graph, report = read_with_report(
            path,
            format=self.format,
            columns=parse_columns(self.columns) if self.columns else None,
            header=self.header,
            delimiter=self.delimiter,
            scale=self.normalise,
            **self._options(),
        )
        for why, count in report.skipped.items():
            note(f"{path}: {count:,} rows skipped: {why}")
        if report.ignored_columns:
            note(f"{path}: columns not read: {', '.join(report.ignored_columns)}")
        return graph

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.language:
            options["language"] = None if self.language == "all" else self.language
        if self.channels:
            options["channels"] = tuple(self.channels.split(","))
        return options


def parse_columns(text: str) -> dict[str, str | int]:
    """Return the columns that `ROLE=COLUMN,…` says."""
    columns: dict[str, str | int] = {}
    for part in text.split(","):
        role, equals, column = (word.strip() for word in part.partition("="))
        if not equals or not role or not column:
            raise ConfigError(
                f"--columns {text!r}: {part!r} is not ROLE=COLUMN",
                hint="For example --columns head=0,relation=1,tail=2,confidence=score.",
            )
        columns[role] = int(column) if column.isdecimal() else column
    return columns
