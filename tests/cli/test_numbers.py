"""Numbers on the command line: whatever is typed, it is taken, or refused with flag, value and range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from ukge.cli import app, run
from ukge.cli.flags import Number
from ukge.settings.config import knobs

WILD = ("-1", "0", "1e400", "nan", "inf", "-inf", str(2**63), str(2**200), "", "0_1", "0x10", "1,5", "٣", " 7")
RANGE = ("from ", "between ", "at least ", "above ", "at most ", "below ", "finite")
SETTINGS = {"--" + knob.name.replace("_", "-") for knob in knobs() if knob.type in (int, float)}


def commands() -> Iterator[tuple[list[str], Any]]:
    """Yield every command that Typer knows, with the words that name it."""
    root: Any = typer.main.get_command(app)
    for name in root.commands:
        command = root.get_command(None, name)
        for part, each in getattr(command, "commands", {"": command}).items():
            yield [word for word in (name, part) if word], each


def bounds_of(option: Any) -> Number | None:
    """Return what reads the number of an option, if it is one of ours."""
    read = option.type_descriptor.parameter_info.parser
    return read if isinstance(read, Number) else None


def numbers(command: Any) -> Iterator[Any]:
    """Yield the options of a command that take a number."""
    for each in command.params:
        if bounds_of(each) or each.opts[0] in SETTINGS:
            yield each


def asked(words: list[str], command: Any, option: Any, value: str) -> list[str]:
    """Return a command that gives an option a value, and names nothing that exists."""
    given = [*words]
    for each in command.params:
        if each.required and each.param_type_name == "argument":
            given.append("nowhere")
        elif each.required:
            given += [each.opts[0], "nowhere.tsv"]
    return [*given, option.opts[0], value]


HAND_WRITTEN = [
    pytest.param(words, command, id=" ".join(words))
    for words, command in commands()
    if any(map(bounds_of, command.params))
]


def test_they_are_found() -> None:
    found = {option.opts[0] for _, command in commands() for option in numbers(command)}
    named = "-k --coverage --min-confidence --trials --timeout --port --entities --seed --prior --tau --trees --val"
    assert found >= {*named.split(), *SETTINGS}


def test_no_number_is_left_without_bounds() -> None:
    """A new option that takes a number is declared with its range."""
    for words, command in commands():
        for each in command.params:
            kinds = {each.type_descriptor.annotation, *get_args(each.type_descriptor.annotation)}
            assert bounds_of(each) or each.opts[0] in SETTINGS or not kinds & {int, float}, f"{words} {each.opts}"


@pytest.mark.parametrize(("words", "command"), HAND_WRITTEN)
def test_a_wild_number_is_refused_with_its_name_and_range(
    words: list[str], command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for option in numbers(command):
        bounds = bounds_of(option)
        for value in WILD:
            if bounds is None or _fits(bounds, value):  # settings have a test of their own
                continue
            code = run(asked(words, command, option, value))
            told = capsys.readouterr()
            assert code == 2, f"{words} {option.opts[0]} {value!r}: {told.err}"
            assert told.out == ""
            assert "Traceback" not in told.err
            assert option.opts[0] in told.err, told.err
            assert repr(value) in told.err, told.err
            assert str(bounds) in told.err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_wild_setting_is_refused_with_its_name_and_range(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in ("-1", "nan", str(2**200), "", "0_1"):
        assert run(["train", "nowhere", f"{name}={value}"]) == 2
        told = capsys.readouterr().err
        assert "Traceback" not in told
        if name in told:
            assert any(words in told for words in RANGE), told
        else:
            assert "nowhere" in told, f"{name}={value}: {told}"


def _fits(bounds: Number, value: str) -> bool:
    try:
        bounds(value)
    except typer.BadParameter:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "low", "high", "inside", "taken", "refused"),
    [
        (int, 1, 10, False, ["1", "10"], ["0", "11", "1.0", "0_1", "1e0", "²"]),
        (float, 0.0, 1.0, False, ["0", "1", "1e-3"], ["-0.1", "1.1", "nan", "inf", "1_0"]),
        (float, 0.0, 1.0, True, ["0.5"], ["0", "1", "nan"]),
    ],
)
def test_bounds_by_hand(
    kind: type[int] | type[float], low: float, high: float, inside: bool, taken: list[str], refused: list[str]
) -> None:
    bounds = Number(kind, low, high, inside)
    assert [bounds(text) for text in taken] == [kind(text) for text in taken]
    assert not any(_fits(bounds, text) for text in refused)
