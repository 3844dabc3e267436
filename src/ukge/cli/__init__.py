"""The command `ukge`. Each command group is one small file, loaded when it is asked for; so are heavy imports."""

from __future__ import annotations

import inspect
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from ukge._version import __version__
from ukge.cli.console import fail, note
from ukge.errors import UkgeError, UkgeWarning

if TYPE_CHECKING:
    from collections.abc import MutableMapping

COMMANDS = (
    *("audit", "compare", "complete", "demo", "doubt", "evaluate", "explain", "fuse", "predict", "rank", "reproduce"),
    *("serve", "train", "tune"),
)
"""Commands: the function of this name in the file of this name."""

GROUPS = {"data": "app", "evidence": "evidence_app", "rules": "rules_app"}
"""Files with several commands, and what they call them together."""

WITH_KNOBS = ("reproduce", "train", "tune")
"""Commands with a flag for every setting."""

SETTINGS: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


class Commands(TyperGroup):
    """All commands by name; `ukge rank` need not load what `ukge train` says of itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: MutableMapping[str, Any] = dict.fromkeys((*COMMANDS, *GROUPS))
        self.commands = names
        self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Load a command; None if there is none of this name."""
        if cmd_name not in self.commands:
            return None
        return TyperCommand(cmd_name, help=_help(cmd_name)) if self._listing else _command(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands; of their flags nothing is told here, so these are not made."""
        self._listing = True
        super().format_help(ctx, formatter)
        self._listing = False


app = typer.Typer(
    name="ukge",
    cls=Commands,
    help="Knowledge graphs whose facts carry a confidence: check them, embed them, ask them.",
    no_args_is_help=True,
    add_completion=True,
    **SETTINGS,
)


def _command(name: str) -> Any:
    own = _loaded(name)
    if not isinstance(own, typer.Typer):
        if name in WITH_KNOBS:
            from ukge.cli.knobs import with_knobs

            own = with_knobs(own)
        alone = typer.Typer(add_completion=False, **SETTINGS)
        alone.command(name)(own)
        own = alone
    command = typer.main.get_command(own)
    command.name = name
    return command


def _help(name: str) -> str | None:
    own = _loaded(name)
    return own.info.help if isinstance(own, typer.Typer) else inspect.getdoc(own)


def _loaded(name: str) -> Any:
    """Return the function of a command, or the group of commands of this name."""
    return getattr(import_module(f"ukge.cli.{name}"), GROUPS.get(name, name))


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ukge {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_tell_version, is_eager=True
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; a user's mistake becomes a message and exit code 2, never a traceback."""
    warnings.showwarning = _tell
    try:
        app()
    except UkgeError as error:
        fail(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fail(UkgeError(f"{where}{error.strerror or error}", hint="Check the path, its permissions and the disk."))
        sys.exit(2)


def _tell(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show our own warnings as notes to the user, and those of others as Python does."""
    if issubclass(category, UkgeWarning):
        note(str(message))
    else:
        (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))
