"""The command `ukge`. Each command group is one small file; heavy imports wait until a command runs."""

from __future__ import annotations

import sys
import warnings
from typing import TextIO

import typer

from ukge.cli.audit import audit
from ukge.cli.compare import compare
from ukge.cli.complete import EXCLUDED, complete
from ukge.cli.console import as_flag, fail, note
from ukge.cli.data import app as data_app
from ukge.cli.demo import demo
from ukge.cli.doubt import doubt
from ukge.cli.evaluate import evaluate
from ukge.cli.evidence import evidence_app
from ukge.cli.exit_codes import EPILOG, ExitCode
from ukge.cli.explain import explain
from ukge.cli.fuse import fuse
from ukge.cli.help import reflow
from ukge.cli.knobs import with_knobs
from ukge.cli.predict import predict
from ukge.cli.rank import rank
from ukge.cli.reading import RUN_DATA, with_reading
from ukge.cli.reproduce import reproduce
from ukge.cli.rules import rules_app
from ukge.cli.serve import serve
from ukge.cli.train import train
from ukge.cli.tune import tune
from ukge.errors import UkgeError, UkgeWarning

app = typer.Typer(
    name="ukge",
    help="Knowledge graphs whose facts carry a confidence: check them, embed them, ask them.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
START, DATA, LEARN, ASK, JUDGE = "Begin here", "Data", "Learn", "Ask", "Judge"
app.command("demo", rich_help_panel=START)(demo)
app.add_typer(data_app, name="data", rich_help_panel=DATA)
app.command("audit", rich_help_panel=DATA)(with_reading(audit))
app.command("train", rich_help_panel=LEARN)(with_knobs(with_reading(train)))
app.command("tune", rich_help_panel=LEARN)(with_knobs(with_reading(tune)))
app.add_typer(rules_app, name="rules", rich_help_panel=LEARN)
app.add_typer(
    evidence_app,
    name="evidence",
    help="What the graph says beside the embedding: fit it to a run.",
    rich_help_panel=LEARN,
)
app.command("predict", rich_help_panel=ASK)(with_reading(predict))
app.command("rank", rich_help_panel=ASK)(rank)
app.command("explain", rich_help_panel=ASK)(explain)
app.command("complete", rich_help_panel=ASK)(with_reading(complete, relation="exclude-relation", panel=EXCLUDED))
app.command("doubt", rich_help_panel=ASK)(doubt)
app.command("fuse", rich_help_panel=ASK)(with_reading(fuse))
app.command("serve", rich_help_panel=ASK)(with_reading(serve, panel=RUN_DATA))
app.command("evaluate", rich_help_panel=JUDGE)(with_reading(evaluate, panel=RUN_DATA))
app.command("compare", rich_help_panel=JUDGE)(with_reading(compare, panel=RUN_DATA))
app.command("reproduce", rich_help_panel=JUDGE)(with_knobs(reproduce))
reflow(app, data_app, rules_app, evidence_app)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from ukge._version import __version__

        typer.echo(f"ukge {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake becomes a message and exit code 2, never a traceback."""
    warnings.showwarning = _tell
    try:
        app()
    except UkgeError as error:
        fail(error)
        sys.exit(ExitCode.MISTAKE)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        sys.exit(ExitCode.PIPE)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fail(UkgeError(f"{where}{error.strerror or error}", hint="Check the path, its permissions and the disk."))
        sys.exit(ExitCode.MISTAKE)


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
        (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))
