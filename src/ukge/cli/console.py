"""How the command line speaks: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ukge.errors import UkgeError

if TYPE_CHECKING:
    from rich.console import Console


def out() -> Console:
    """Return the console for results."""
    from rich.console import Console

    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False)


def err() -> Console:
    """Return the console for messages, warnings and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


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
