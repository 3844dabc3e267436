"""The command line as tests use it: an answer, or the error that the user is told."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from ukge.cli import app
from ukge.errors import UkgeError

RUNNER = CliRunner()


def answered(*arguments: object, given: str | None = None) -> Result:
    """Run a command that is to succeed, with standard input if any is `given`."""
    result = RUNNER.invoke(app, [str(each) for each in arguments], input=given)
    assert result.exit_code == 0, result.output
    return result


def on_a_terminal(*arguments: object, width: int = 80) -> str:
    """Run a command as if a person looked at its results, and return these without colours."""
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ukge.cli.results.to_a_person", lambda: True)
        patched.setattr("ukge.cli.results.out", lambda: Console(file=shown, width=width, highlight=False))
        answered(*arguments)
    return shown.getvalue()


def refused(*arguments: object, given: str | None = None) -> UkgeError:
    """Run a command that is to be refused, and return why it was."""
    error = RUNNER.invoke(app, [str(each) for each in arguments], input=given).exception
    assert isinstance(error, UkgeError)
    return error
