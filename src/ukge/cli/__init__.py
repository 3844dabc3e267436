"""The command `ukge`. Each command group is one small file; heavy imports wait until a command runs."""

from __future__ import annotations

import sys

import typer

from ukge.cli.console import fail
from ukge.errors import UkgeError

app = typer.Typer(
    name="ukge",
    help="Knowledge graphs whose facts carry a confidence: check them, embed them, ask them.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from ukge._version import __version__

        typer.echo(f"ukge {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake becomes a message and exit code 2, never a traceback."""
    try:
        app()
    except UkgeError as error:
        fail(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
