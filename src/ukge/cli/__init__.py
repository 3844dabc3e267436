"""The command `ukge`. Each command group is one small file, loaded when it is asked for; so are heavy imports."""

from __future__ import annotations

import inspect
import logging
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from ukge._version import __version__
from ukge.cli.console import EPILOG, ExitCode, as_flag, complain, fail, note
from ukge.errors import TooManyBadRowsError, UkgeError, UkgeWarning

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

START, DATA, LEARN, ASK, JUDGE = "Begin here", "Data", "Learn", "Ask", "Judge"
COMMANDS = {
    "demo": ("demo", START),
    "data": ("data", DATA),
    "audit": ("data", DATA),
    "fit": ("fit", LEARN),
    "train": ("train", LEARN),
    "tune": ("tune", LEARN),
    "rules": ("rules", LEARN),
    "evidence": ("evidence", LEARN),
    "add": ("additions", LEARN),
    "undo": ("additions", LEARN),
    "refresh": ("additions", LEARN),
    "predict": ("predict", ASK),
    "rank": ("ask", ASK),
    "explain": ("ask", ASK),
    "complete": ("ask", ASK),
    "doubt": ("doubt", ASK),
    "labels": ("doubt", ASK),
    "fuse": ("fuse", ASK),
    "calibrate": ("fuse", ASK),
    "draw": ("draw", ASK),
    "serve": ("serve", ASK),
    "mcp": ("mcp", ASK),
    "evaluate": ("evaluate", JUDGE),
    "compare": ("evaluate", JUDGE),
    "card": ("card", JUDGE),
    "reproduce": ("reproduce", JUDGE),
}
"""The file that a command stands in, and its panel of the help; several commands together are called NAME_app there."""

WITH_KNOBS = ("reproduce", "train", "tune")
"""Commands with a flag for every setting."""

READS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("fit", "train", "tune")},
    **{name: {"without": ("nodes",)} for name in ("add", "audit", "predict", "fuse", "calibrate")},
    "complete": {
        "without": ("nodes", "min_confidence"),
        "relation": "exclude-relation",
        "panel": "How the files of --exclude are read",
    },
}
"""Commands with flags that say how their files of facts are read, and what is said otherwise there."""

SETTINGS: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


class Commands(TyperGroup):
    """All commands by name; `ukge rank` need not load what `ukge train` says of itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: MutableMapping[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names
        self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Load a command; None if there is none of this name."""
        if cmd_name not in self.commands:
            return None
        if not self._listing:
            return _command(cmd_name)
        return TyperCommand(cmd_name, help=_help(cmd_name), rich_help_panel=COMMANDS[cmd_name][1])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Typer itself would end with 1 where nobody reads the output any more."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(ExitCode.PIPE) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands; of their flags nothing is told here, so these are not made."""
        self._listing = True
        super().format_help(ctx, formatter)
        self._listing = False


app = typer.Typer(
    name="ukge",
    cls=Commands,
    help="Knowledge graphs whose facts carry a confidence: check them, embed them, ask them.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    **SETTINGS,
)


def _command(name: str) -> Any:
    own = _loaded(name)
    if not isinstance(own, typer.Typer):
        alone = typer.Typer(add_completion=False, **SETTINGS)
        alone.command(name)(_with_flags(name, own))
        own = alone
    for each in own.registered_commands:  # paragraphs flow: line ends of the source are none on the screen
        text = inspect.getdoc(each.callback) or ""
        each.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    command = typer.main.get_command(own)
    command.name = name
    return command


def _with_flags(name: str, own: Any) -> Any:
    """Add the flags that several commands share: how files are read, and a flag for every setting."""
    from ukge.cli.flags import with_knobs
    from ukge.cli.reading import with_reading

    if name in READS:
        own = with_reading(own, **READS[name])
    return with_knobs(own) if name in WITH_KNOBS else own


def _help(name: str) -> str | None:
    own = _loaded(name)
    return own.info.help if isinstance(own, typer.Typer) else inspect.getdoc(own)


def _loaded(name: str) -> Any:
    """Return the function of a command, or the group of commands of this name."""
    file = import_module(f"ukge.cli.{COMMANDS[name][0]}")
    return getattr(file, f"{name}_app", None) or getattr(file, name)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ukge {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_tell_version, is_eager=True
    ),
    plugin: list[str] = typer.Option(
        [], "--plugin", metavar="FILE", help="Load a scorer, link, loss or model of your own; may stand anywhere."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line and end with its exit code."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default that of this process, and return its exit code.

    A user's mistake becomes a message and exit code 2, never a traceback.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us; files opened later must not take its place
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    warnings.showwarning = _tell
    logging.getLogger("ukge").handlers = [_Log()]
    try:
        code = app(_without_plugins(sys.argv[1:] if arguments is None else list(arguments)), standalone_mode=False)
        sys.stdout.flush()
    except UkgeError as error:
        fail(error)
        if isinstance(error, TooManyBadRowsError):
            return ExitCode.BAD_ROWS
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except UnicodeEncodeError as error:
        what = f"the output has characters that {error.encoding} does not have, such as {error.object[error.start]!a}"
        fail(UkgeError(what, hint="Set PYTHONUTF8=1 in the environment, or write to a file with --out."))
    except MemoryError as error:
        hint = "Ask for less at a time, or give the machine more memory."
        fail(UkgeError(f"there is not enough memory{f': {error}' if str(error) else ''}", hint=hint))
    except OSError as error:
        _forget_output()
        if isinstance(error, BrokenPipeError):
            return ExitCode.PIPE
        where = f"{error.filename}: " if error.filename else ""
        fail(UkgeError(f"{where}{error.strerror or error}", hint="Check the path, its permissions and the disk."))
    except Exception as error:
        if not hasattr(error, "format_message"):  # how Typer tells of a command line that is none
            raise
        _refuse(error)
    else:
        return code if isinstance(code, int) else ExitCode.OK
    return ExitCode.MISTAKE


def _without_plugins(arguments: list[str]) -> list[str]:
    """Load the files of `--plugin`, which every command takes, and return what else was said."""
    stop = arguments.index("--") if "--" in arguments else len(arguments)
    kept, files, at = arguments[stop:], list[str](), 0
    rest: list[str] = []
    while at < stop:
        word, at = arguments[at], at + 1
        if word.startswith("--plugin="):
            files.append(word.removeprefix("--plugin="))
        elif word == "--plugin":
            if at == stop:
                raise UkgeError("--plugin names no file", hint="Give one: --plugin FILE.")
            files, at = [*files, arguments[at]], at + 1
        else:
            rest.append(word)
    if files:
        from ukge.registry import PLUGIN, load_plugins

        before = filter(None, [os.environ.get(PLUGIN)])
        os.environ[PLUGIN] = os.pathsep.join([*before, *(os.path.abspath(file) for file in files)])
        load_plugins()
    return rest + kept


def _forget_output() -> None:
    """Let nothing more be written where nothing can be: Python would try once more when it ends, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(error: Any) -> None:
    """Say what is wrong with a command line, and which command tells what is right."""
    what, context = error.format_message(), getattr(error, "ctx", None)
    if what:  # nothing: the help was asked for by giving no command, and was shown
        complain("Error", what, f"`{context.command_path if context else 'ukge'} --help` tells what it takes.")


class _Log(logging.Handler):
    """Shows what is logged where everything else is told."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a line."""
        note(self.format(record))


def _tell(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show our own warnings as notes to the user, and those of others as Python does."""
    if isinstance(message, UkgeWarning):
        note(message.worded(as_flag))
    else:
        from ukge.progress.safe_console import harmless

        (file or sys.stderr).write(harmless(warnings.formatwarning(message, category, filename, lineno, line)))
