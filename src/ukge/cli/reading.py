"""How files of facts are read: the same flags on every command that reads one, and standard input as a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import as_flag, note
from ukge.cli.flags import Command, Number, flag, with_flags
from ukge.errors import ConfigError, DataError, TooManyBadRowsError, as_written

if TYPE_CHECKING:
    from ukge.graph.bad_rows import Aside, BadRows
    from ukge.graph.claims import Claims
    from ukge.graph.dataset import Dataset
    from ukge.graph.readers import ReadReport
    from ukge.graph.uncertain import UncertainGraph
    from ukge.graph.undirected import Undirected as UndirectedFacts

DASH = Path("-")
PANEL = "How files of facts are read"
HELP = {
    "format": (
        "NAME",
        "tsv, csv, parquet, jsonl, string, kgx, mitab, …; else what the file holds, or its extension, says it.",
    ),
    "columns": (
        "ROLE=COL,…",
        "Which column is which, by name or position from 0: head=0,confidence=score.",
    ),
    "header": (None, "Whether the first line names the columns; guessed if not said."),
    "delimiter": ("CHARACTER", "What separates columns: a character, or tab, comma, semicolon, space, bar."),
    "relation": ("NAME", "The relation of all facts, for a file without a column of relations."),
    "normalise": ("SCALE", "Make confidences of weights: conceptnet, nell, or e.g. 'clip:0.1,3 log minmax:0.1,1'."),
    "min_confidence": ("NUMBER", "Leave out facts below this confidence, and entities that have no others."),
    "language": ("CODE", "ConceptNet: the language to keep (en if not said), or 'all'."),
    "channels": ("NAME,…", "STRING: the evidence channels to read."),
    "nodes": (
        "FILE",
        "What is known of the entities: a table (.tsv, .csv, .jsonl, .parquet) with the columns id and any of label, "
        "type, description, aliases.",
    ),
    "bad_rows": ("FILE", "Read what can be read, and write the rows that are no facts here, with what is wrong."),
    "most_bad": ("SHARE", "With --bad-rows: end with exit code 4 if more of a file is bad, as 1%, 0.01 or 20 rows."),
    "option": ("NAME=VALUE", "Another option of the format, such as default_confidence=0.5; may be repeated."),
}


@dataclass(frozen=True)
class Reading:
    """What the flags said."""

    format: str | None = None
    columns: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    relation: str | None = None
    normalise: str | None = None
    min_confidence: float | None = None
    language: str | None = None
    channels: str | None = None
    nodes: str | None = None
    bad_rows: str | None = None
    most_bad: str | None = None
    option: list[str] | None = None

    @cached_property
    def aside(self) -> BadRows | None:
        """Where rows that are no facts are put aside, those of all files that a command reads."""
        from ukge.graph.bad_rows import as_bad_rows

        return as_bad_rows(self.bad_rows, self.most_bad)

    @property
    def options(self) -> dict[str, Any]:
        """What `ukge.read` is told: only what the user said."""
        as_they_are = ("format", "header", "delimiter", "relation", "nodes", "min_confidence")
        said = {name: getattr(self, name) for name in as_they_are}
        said["columns"] = None if self.columns is None else parse_columns(self.columns)
        said["scale"] = self.normalise
        said["channels"] = None if self.channels is None else self.channels.split(",")
        options = {name: value for name, value in said.items() if value is not None}
        if self.language is not None:
            options["language"] = None if self.language == "all" else self.language
        if self.aside is not None:
            options["bad_rows"] = self.aside
        return {**options, **dict(_option(each) for each in self.option or ())}

    def read(self, path: Path) -> UncertainGraph:
        """Read a file, and tell on standard error which rows were skipped."""
        from ukge.graph.readers import read_with_report

        graph, report = read_with_report(path, **self.options)
        tell(report)
        return graph

    def read_with_claims(self, path: Path) -> tuple[UncertainGraph, Claims | None]:
        """Read a file, and its rows as claims if they are; tell which rows were skipped."""
        from ukge.graph.catalogue.claims import read_with_claims

        graph, claims, report = read_with_claims(path, **self.options)
        tell(report)
        return graph, claims

    def open(
        self, data: str, *, seed: int = 0, leak_safe: bool = False, undirected: Sequence[str] | None = None
    ) -> Dataset:
        """Open a data set; tell on standard error which rows of its files were skipped, and what has no direction."""
        from ukge.graph.catalogue import open_dataset

        return open_dataset(
            data,
            seed=seed,
            leak_safe=leak_safe,
            undirected=undirected_said(undirected),
            on_report=tell,
            on_undirected=tell_undirected,
            **self.options,
        )


def with_reading(
    command: Command, *, without: Iterable[str] = (), relation: str = "relation", panel: str = PANEL
) -> Command:
    """Add the flags that say how files of facts are read to a command that takes them as `reading`.

    Flags `without` which the command is are left out; `relation` names the flag of a command whose --relation means
    something else.
    """
    left_out = set(without)
    flags = []
    for each in fields(Reading):
        if each.name in left_out:
            continue
        metavar, text = HELP[each.name]
        name = relation if each.name == "relation" else each.name
        declared = f"--{name.replace('_', '-')}" + (f"/--no-{name}" if each.name == "header" else "")
        about: dict[str, Any] = {"help": text, "metavar": metavar, "show_default": False, "rich_help_panel": panel}
        if each.name == "min_confidence":
            about["parser"] = Number(float, 0.0, 1.0)
        option = typer.Option(declared, **about)
        kind: Any = {"header": bool, "option": list[str], "min_confidence": float}.get(each.name, str) | None
        flags.append(flag(f"reading_{each.name}", Annotated[kind, option]))
    return with_flags(command, "reading", flags, _gathered)


def _gathered(given: Mapping[str, Any]) -> Reading:
    return Reading(**{name.removeprefix("reading_"): value for name, value in given.items()})


def _option(text: str) -> tuple[str, Any]:
    """Return an option of a format as its reader takes it: true, false and numbers are such, all else is text."""
    name, equals, value = (word.strip() for word in text.partition("="))
    if not equals or not name:
        raise ConfigError(f"--option {text!r} is not NAME=VALUE", hint="For example --option default_confidence=0.5.")
    if value in ("true", "false"):
        return name, value == "true"
    try:
        return name, float(value)
    except ValueError:
        return name, value


def tell(report: ReadReport) -> None:
    """Tell what of a file was not read."""
    for each in report.notes:
        note(f"{report.source}: {each}")
    tell_skipped(report.source, report.skipped)
    tell_bad(report.source, report.aside)
    if report.ignored_columns:
        note(f"{report.source}: columns not read: {', '.join(report.ignored_columns)}")
    if report.nodes_apart:
        note(f"{report.nodes_apart:,} nodes have no facts: what is known of them is left out")


def undirected_said(names: Sequence[str] | None) -> str | Sequence[str]:
    """Return what the flag says: auto and none stand alone."""
    if not names:
        return "auto"
    return names[0] if len(names) == 1 else names


def tell_undirected(found: UndirectedFacts) -> None:
    """Tell what was taken to have no direction."""
    note(found.line(as_flag))


def tell_skipped(source: str, skipped: Mapping[str, int]) -> None:
    """Tell how many rows of a file are no facts, and why."""
    for why, count in skipped.items():
        note(f"{source}: {count:,} rows skipped: {why}")


def tell_bad(source: str, aside: Aside) -> None:
    """Tell how many rows of a file were put aside, what is wrong with them, and where they are."""
    from ukge.graph.bad_rows import told

    if aside.bad == 0:
        return
    where = "" if aside.path is None else f"; they are in {aside.path}"
    share = f"{100 * aside.bad / aside.rows:.2g} %"
    note(f"{source}: {aside.bad:,} of {aside.rows:,} rows ({share}) are bad and were left out{where}")
    note(f"what is wrong with them: {told(aside.faults, most=20)}")


def parse_columns(text: str) -> dict[str, str | int]:
    """Return the columns that `ROLE=COLUMN,…` says."""
    columns: dict[str, str | int] = {}
    for part in text.split(","):
        role, equals, column = (word.strip() for word in part.partition("="))
        if not equals or not role or not column:
            raise ConfigError(
                f"‹columns› {text!r}: {part!r} is not ROLE=COLUMN",
                hint="For example ‹columns={'head': 0, 'relation': 1, 'tail': 2, 'confidence': 'score'}›.",
            )
        columns[role] = int(column) if column.isdecimal() else column
    return columns


@contextmanager
def file_of(path: Path, form: str | None) -> Iterator[Path]:
    """Give the file of a path; `-` is standard input, whose format has to be said. Errors call it by its name.

    Readers go through a file more than once, to say which line is wrong.
    """
    if path != DASH:
        yield path
        return
    if form is None:
        raise ConfigError("nothing says the format of standard input", hint="Give it, for example ‹format='tsv'›.")
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "standard-input"
        with file.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target)
        try:
            yield file
        except DataError as error:
            what, hint = error.worded(as_written)
            kind = TooManyBadRowsError if isinstance(error, TooManyBadRowsError) else DataError
            raise kind(what.replace(str(file), "standard input"), count=error.count, hint=hint) from None
