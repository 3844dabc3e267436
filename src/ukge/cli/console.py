"""How the command line speaks: results to standard output, everything else to standard error, and how it ends."""

from __future__ import annotations

import ast
import json
import shlex
import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ukge.errors import UkgeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ukge.graph.audit.leaks import Leaks

GAP = 2
PIPE_WIDTH = 140

FLAGS = {"scale": "normalise", "overwrite": "force", "directory": "out"}
"""Arguments whose flag has another name."""

OPTIONS = frozenset(
    {
        "base",
        "confidence_predicate",
        "default_confidence",
        "name",
        "names",
        "per_channel",
        "source_predicate",
        "spreadsheet_safe",
    }
    | {"aliases", "ids", "mirrors", "score", "sources", "syntax"}
)
"""Arguments of single formats, which have no flag of their own: they are given as --option NAME=VALUE."""


class ExitCode(IntEnum):
    """How a command ends, for the scripts that call it."""

    OK = 0
    FAILED = 1
    MISTAKE = 2
    DEAD = 3
    BAD_ROWS = 4
    INTERRUPTED = 130
    PIPE = 141


MEANING = {
    ExitCode.OK: "all is well",
    ExitCode.FAILED: "part of the work failed, or a fault of ukge's own",
    ExitCode.MISTAKE: "a mistake in the command, a file or a setting; the message says what to do",
    ExitCode.DEAD: "training ended, but the model learnt nothing",
    ExitCode.BAD_ROWS: "more rows of a file are bad than --most-bad allows; nothing was made of it",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
    ExitCode.PIPE: "whoever read the output stopped reading",
}

EPILOG = "Exit codes: " + "; ".join(f"{code.value} {meaning}" for code, meaning in MEANING.items()) + "."


def out() -> Console:
    """Return the console for results. Into a file or a pipe, tables get room enough for long names."""
    from ukge.progress.safe_console import SafeConsole

    return SafeConsole() if sys.stdout.isatty() else SafeConsole(soft_wrap=True, width=PIPE_WIDTH)


def plain_table(title: str = "") -> Table:
    """Return a table without lines: columns with two blanks between them, under dim names."""
    from rich.table import Table

    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )


def err() -> Console:
    """Return the console for messages, warnings and progress."""
    from ukge.progress.safe_console import SafeConsole

    return SafeConsole(stderr=True)


def bold_every_other(*parts: str) -> Text:
    """Return a sentence of parts of which the second, the fourth, … stand out."""
    from rich.text import Text

    return Text.assemble(*((part, "bold" if number % 2 else "") for number, part in enumerate(parts)))


def note(text: str, console: Console | None = None) -> None:
    """Tell the user something that is no result and no error."""
    from rich.text import Text

    _speak(console or err(), Text.assemble(("Note: ", "bold yellow"), text))


def fail(error: UkgeError) -> None:
    """Print an error as what is wrong and what to do, without a traceback."""
    complain("Error", *error.worded(as_flag))


def complain(kind: str, what: str, hint: str | None) -> None:
    """Print what is wrong and what to do."""
    from rich.text import Text

    console = err()
    _speak(console, Text.assemble((f"{kind}: ", "bold red"), what))
    if hint:
        _speak(console, Text.assemble(("What to do: ", "bold"), hint))


def _speak(console: Console, text: Text) -> None:
    """Print a sentence: on a terminal its lines end between words, elsewhere it is one line, for tools that search."""
    if console.is_terminal:
        console.print(text, overflow="fold")
    else:
        console.print(text, soft_wrap=True)


def tell_leaks(leaks: Leaks, console: Console) -> None:
    """Print what train gives away of the held-out facts, and what to do about it."""
    from rich.text import Text

    for line in leaks.lines():
        _speak(console, Text(line))
    if hint := leaks.hint(as_flag):
        _speak(console, Text.assemble(("What to do: ", "bold"), hint))


def as_flag(name: str, value: str | None) -> str:
    """Write an argument as the command line does; a value that Python writes otherwise changes its shape, too."""
    flag = f"--{FLAGS.get(name, name).replace('_', '-')}"
    if name in OPTIONS:
        return f"--option {name}={'…' if value in (None, '...') else _in_shell(str(value))}"
    if value in ("True", "False"):
        return flag if value == "True" else f"--no-{flag[2:]}"
    return flag if value in (None, "...") else f"{flag} {_in_shell(str(value))}"


def _in_shell(value: str) -> str:
    """Return a Python value as one types it: `{'head': 0}` is head=0, and only text that needs quotes has any."""
    try:
        meant = ast.literal_eval(value)
    except (ValueError, SyntaxError):  # a word such as FILE
        return value
    if isinstance(meant, dict):
        meant = ",".join(f"{key}={each}" for key, each in meant.items())
    elif isinstance(meant, (list, tuple)):
        meant = ",".join(map(str, meant))
    return shlex.quote(meant) if isinstance(meant, str) else value


def print_json(value: Any) -> None:
    """Print `value` as JSON to standard output, for another program to read; a terminal is not commanded by it."""
    from ukge.progress.safe_console import harmless_json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    sys.stdout.write(harmless_json(text, terminal=sys.stdout.isatty()) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, and the directories above it; until it is complete, the path holds what it held before."""
    from ukge.storage.files import write_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
