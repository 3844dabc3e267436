"""How the command line speaks: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ukge.errors import UkgeError

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 140


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


def note(text: str) -> None:
    """Tell the user something that is no result and no error."""
    from rich.text import Text

    err().print(Text("Note: ", style="bold yellow") + Text(text), soft_wrap=True)


def fail(error: UkgeError) -> None:
    """Print an error as what is wrong and what to do, without a traceback."""
    from rich.text import Text

    console = err()
    console.print(Text("Error: ", style="bold red") + Text(error.what), soft_wrap=True)
    if error.hint:
        console.print(Text("What to do: ", style="bold") + Text(error.hint), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print `value` as JSON to standard output, for another program to read."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
