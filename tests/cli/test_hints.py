"""What a message names exists: every command that a text of ours tells to type is one that Typer understands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import ukge
from ukge.cli import COMMANDS, app

SOURCES = Path(ukge.__file__).parent
COMMAND = re.compile(rf"\bukge (?={'|'.join(COMMANDS)})[^`;()…“”]+")
END = re.compile(r"[.,:](?=\s|$)|   | \(| — ")
"""Where a command that is not in backticks ends, and the sentence goes on."""


def texts() -> Iterator[tuple[str, int, str]]:
    """Yield every text of the sources but docstrings; 7 stands for what is filled in, as a name or a number."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in told or id(node) in inner:
                continue
            if isinstance(node, ast.JoinedStr):
                yield str(path.relative_to(SOURCES)), node.lineno, "".join(map(_filled, node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield str(path.relative_to(SOURCES)), node.lineno, node.value


def _filled(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    named = getattr(part, "value", None)
    return "" if isinstance(named, ast.Name) and named.id == "flags" else "7"


def commands() -> Iterator[Any]:
    for path, line, text in texts():
        for found in COMMAND.finditer(text):
            quoted = text[: found.start()].endswith("`")
            words = found[0] if quoted else END.split(found[0])[0]
            yield pytest.param(words.strip(), id=f"{path}:{line}")


def not_understood(words: list[str]) -> list[str]:
    """Parse a command as Typer does, without running it; one that needs more than is told is completed.

    A wrong name or flag raises; what is left over comes back.
    """
    command: Any = typer.main.get_command(app)
    context = command.make_context("ukge", words[:1], resilient_parsing=True)
    command = command.get_command(context, words[0])
    rest = words[1:]
    while hasattr(command, "commands") and rest:
        command, rest = command.commands[rest[0]], rest[1:]
    if not hasattr(command, "commands"):
        wanted = [each for each in command.params if each.required and each.param_type_name == "argument"]
        named = [] if rest else ["7"] * len(wanted)  # `ukge train` alone names the command
        required = [each.opts[0] for each in command.params if each.required and each.param_type_name == "option"]
        extra = [word for name in required if name not in rest for word in (name, "7")]
        rest = command.make_context(command.name, [*rest, *named, *extra]).args
    return rest


FOUND = list(commands())


def test_they_are_found() -> None:
    assert len(FOUND) > 25


@pytest.mark.parametrize("words", FOUND)
def test_a_command_that_is_told_can_be_typed(words: str) -> None:
    assert not_understood(shlex.split(words)[1:]) == []
