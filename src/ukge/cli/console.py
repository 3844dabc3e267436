"""How the command line speaks: results to standard output, everything else to standard error."""

from __future__ import annotations

import ast
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from ukge.errors import UkgeError

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 140

FLAGS = {"scale": "normalise", "overwrite": "force", "directory": "out"}
"""Arguments whose flag has another name."""

OPTIONS = frozenset(
    {"base", "confidence_predicate", "default_confidence", "name", "names", "per_channel", "source_predicate"}
    | {"sources", "syntax"}
)
"""Arguments of single formats, which have no flag of their own: they are given as --option NAME=VALUE."""


def out() -> Console:
    """Return the console for results. Into a file or a pipe, tables get room enough for long names."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, soft_wrap=True, width=PIPE_WIDTH)


def err() -> Console:
    """Return the console for messages, warnings and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def note(text: str, console: Console | None = None) -> None:
    """Tell the user something that is no result and no error."""
    from rich.text import Text

    (console or err()).print(Text("Note: ", style="bold yellow") + Text(text), soft_wrap=True)


def fail(error: UkgeError) -> None:
    """Print an error as what is wrong and what to do, without a traceback."""
    from rich.text import Text

    console = err()
    what, hint = error.worded(as_flag)
    console.print(Text("Error: ", style="bold red") + Text(what), soft_wrap=True)
    if hint:
        console.print(Text("What to do: ", style="bold") + Text(hint), soft_wrap=True)


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
    """Print `value` as JSON to standard output, for another program to read."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
