"""What ukge raises for a user's mistake: what is wrong, where it is, and what to do about it.

The command line prints these without a traceback; anything else that escapes is a bug of ours.

A text names an argument as ‹lr› or ‹lr=0.01›. Python reads `lr` and `lr=0.01`; the command line, which catches the
same error, `--lr` and `--lr 0.01`. So nobody is told to set a thing that the surface they are on does not have.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

SHOWN = 10
_ARGUMENT = re.compile(r"‹(\w+)(?:=([^›]*))?›")

Wording = Callable[[str, str | None], str]
"""How a surface writes an argument: its name, and a value where one is meant."""


def worded(text: str, wording: Wording) -> str:
    """Return a text with its arguments in the words of one surface."""
    return _ARGUMENT.sub(lambda found: wording(found[1], found[2]), text)


def in_python(name: str, value: str | None) -> str:
    """Write an argument as Python does."""
    return name if value is None else f"{name}={value}"


def known_names(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: the nearest of the known ones, and all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    start = f"Did you mean '{near[0]}'? " if near else ""
    return f"{start}Known: {', '.join(names)}."


def refuse_unknown_keywords(caller: str, given: Iterable[str], known: Iterable[str], hint: str = "") -> None:
    """Refuse keywords that a function does not have: those that are taken as a group, Python takes unseen."""
    for name in given:
        if name not in known:
            raise ConfigError(f"{caller} has no keyword '{name}'", hint=f"{known_names(name, known)} {hint}".rstrip())


def as_written(name: str, value: str | None) -> str:
    """Leave an argument to be written by whoever tells the error in the end."""
    return f"‹{name}›" if value is None else f"‹{name}={value}›"


class UkgeError(Exception):
    """Base of every error a user can mend. `what` says what is wrong, `hint` what to do, both in Python's words."""

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        self._what, self._hint = what, hint
        self.what, self.hint = self.worded(in_python)
        super().__init__(self.what if self.hint is None else f"{self.what}\nWhat to do: {self.hint}")

    def worded(self, wording: Wording) -> tuple[str, str | None]:
        """Return what is wrong and what to do, in the words of a surface."""
        return worded(self._what, wording), None if self._hint is None else worded(self._hint, wording)


@dataclass(frozen=True, slots=True)
class Problem:
    """One offending place in the data. `line` counts from 1; the row of a frame counts from 0 and is named so."""

    what: str
    line: int | None = None
    column: str | None = None
    value: str | None = None
    place: str = "line"

    def __str__(self) -> str:
        where = []
        if self.line is not None:
            where.append(f"{self.place} {self.line}")
        if self.column is not None:
            where.append(f"column {self.column}")
        prefix = ", ".join(where)
        shown = "" if self.value is None else f" (found {_shorten(self.value)})"
        return f"{prefix}: {self.what}{shown}" if prefix else f"{self.what}{shown}"


class DataError(UkgeError):
    """Facts that cannot be taken in as they are. Carries the first offenders and how many there are in all."""

    def __init__(
        self,
        what: str,
        *,
        source: str | None = None,
        problems: Sequence[Problem] = (),
        count: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.source = source
        self.problems = tuple(problems[:SHOWN])
        self.count = len(problems) if count is None else count
        self.rows: Sequence[int] = ()
        """all rows that are wrong, where they are known"""
        lines = [what if source is None else f"{source}: {what}"]
        lines += [f"  {problem}" for problem in self.problems]
        if self.count > len(self.problems) > 0:
            lines.append(f"  … and {self.count - len(self.problems):,} more")
        super().__init__("\n".join(lines), hint=hint)


class TooManyBadRowsError(DataError):
    """More rows of a source are bad than was allowed: nothing is made of it."""


class KindError(DataError, TypeError):
    """An argument of a type that is not taken."""

    def __init__(self, caller: str, takes: str, given: object, *, hint: str | None = None) -> None:
        kind = type(given).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        super().__init__(f"{caller} takes {takes}, not {article} {kind}", hint=hint)


class RuleError(UkgeError):
    """A rule that cannot be read or used."""


class ConfigError(UkgeError):
    """A setting, a name or a flag that does not exist or does not fit."""


class RunError(UkgeError):
    """A run directory that is missing, damaged, or of another graph."""


class InUseError(RunError):
    """A directory that somebody else writes just now."""


class UkgeWarning(UserWarning):
    """Something the user asked for came out other than asked; the message says how and why, in Python's words."""

    def __init__(self, what: str) -> None:
        self._what = what
        super().__init__(worded(what, in_python))

    def worded(self, wording: Wording) -> str:
        """Return the message in the words of a surface."""
        return worded(self._what, wording)


class CollapseWarning(UkgeWarning):
    """A model predicts the same for everything."""


def _shorten(value: str, width: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= width else text[: width - 2] + "…" + text[-1]
