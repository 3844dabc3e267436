"""The command line as tests use it: an answer, or the error that the user is told."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from ukge.cli import app
from ukge.errors import UkgeError

RUNNER = CliRunner()


def answered(*arguments: object) -> Result:
    """Run a command that is to succeed."""
    result = RUNNER.invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: object) -> UkgeError:
    """Run a command that is to be refused, and return why it was."""
    error = RUNNER.invoke(app, [str(each) for each in arguments]).exception
    assert isinstance(error, UkgeError)
    return error
