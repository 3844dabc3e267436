"""Every error speaks in the words of the surface where it is read: arguments in Python, flags on the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ukge
from ukge.cli.console import OPTIONS, as_flag
from ukge.errors import ConfigError, in_python, worded

SOURCES = Path(ukge.__file__).parent
RAISED = re.compile(r"(Error|Problem|Warning)$|^(add|_complain|_error)$")
CONSTANTS = re.compile(r"HINT|INSTALL|DAMAGED|KNOWN|^hint$|^what$")
COMMAND = re.compile(r"\b(ukge|torchrun|pip) ")
FLAG = re.compile(r"(?<![\w-])--[a-z]")
ARGUMENT = re.compile(r"\b[a-z_]+=(?!=)")


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what errors are told, hints, and constants that are hints; X stands for what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            told = [*node.args, *(each.value for each in node.keywords)] if RAISED.search(name) else []
            parts: list[ast.expr] = told or [each.value for each in node.keywords if each.arg == "hint"]
        elif isinstance(node, ast.Assign) and any(CONSTANTS.search(getattr(at, "id", "")) for at in node.targets):
            parts = [node.value]
        else:
            continue
        for part in parts:
            yield from _strings(part)


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def _all() -> Iterator[tuple[Path, int, str]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for line, text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.relative_to(SOURCES), line, text


def test_the_command_line_is_told_of_flags_and_python_of_arguments() -> None:
    found = list(_all())
    assert len(found) > 500, "the texts are found"
    assert sum("‹" in text for _, _, text in found) > 50
    wrong = []
    for path, line, text in found:
        shown = re.sub(r"--(columns|option) \S+", "", worded(text, as_flag))
        if ARGUMENT.search(shown):
            wrong.append(f"{path}:{line}: on the command line: {shown}")
        shown = worded(text, in_python)
        commands_only = path.parts[0] == "cli"
        if FLAG.search(shown) and not commands_only and not COMMAND.search(shown[: FLAG.search(shown).start()]):  # type: ignore[union-attr]
            wrong.append(f"{path}:{line}: in Python: {shown}")
        if "command line" in text or "in Python" in text:
            wrong.append(f"{path}:{line}: speaks of both surfaces: {text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("written", "flag", "python"),
    [
        ("‹lr›", "--lr", "lr"),
        ("‹lr=0.01›", "--lr 0.01", "lr=0.01"),
        ("‹batch_size=...›", "--batch-size", "batch_size=..."),
        ("‹overwrite=True›", "--force", "overwrite=True"),
        ("‹in_range=False›", "--no-in-range", "in_range=False"),
        ("‹scale='clip:0,3 log'›", "--normalise 'clip:0,3 log'", "scale='clip:0,3 log'"),
        ("‹columns={'head': 0, 'tail': 'to'}›", "--columns head=0,tail=to", "columns={'head': 0, 'tail': 'to'}"),
        ("‹channels=['database', 'fusion']›", "--channels database,fusion", "channels=['database', 'fusion']"),
        ("‹delimiter=';'›", "--delimiter ';'", "delimiter=';'"),
        ("‹relation=NAME›", "--relation NAME", "relation=NAME"),
        ("‹default_confidence=0.5›", "--option default_confidence=0.5", "default_confidence=0.5"),
        ("‹syntax=...›", "--option syntax=…", "syntax=..."),
    ],
)
def test_each_surface_writes_an_argument_its_way(written: str, flag: str, python: str) -> None:
    error = ConfigError("wrong", hint=f"Give {written}.")
    assert error.worded(as_flag)[1] == f"Give {flag}."
    assert error.hint == f"Give {python}."


def test_options_of_formats_have_no_flag_of_their_own() -> None:
    from ukge.cli.reading import Reading
    from ukge.graph.readers import readers

    of_files = [readers.get(name) for name in readers if readers.get(name).module is None]  # no flag is about an object
    taken = {option for reader in of_files for option in reader.options}
    assert taken - set(Reading.__dataclass_fields__) == OPTIONS
