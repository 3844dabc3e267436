"""What is wrong with the rows of a source: an error that shows every kind of fault, or rows that are put aside.

A reader makes its `Findings` by `Request.findings`, tells it of every fault, and leaves the row out. What becomes of
the fault is none of its business: strictly read, the source is refused in the end; with `bad_rows`, reading goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from ukge.errors import SHOWN, DataError, Problem

if TYPE_CHECKING:
    from ukge.graph.bad_rows import BadRows

MANY = 100_000
"""Problems of a source after which it is not worth reading on, if they are not put aside."""
KINDS = 100
"""Kinds of faults that are told apart; a source with more of them has its own words for each."""
OTHER = "other faults"


@dataclass
class _Kind:
    """One kind of fault: how often it was found, and where first."""

    count: int = 0
    shown: list[tuple[int, Problem]] = field(default_factory=list)


class Findings:
    """Faults found while going through one source."""

    def __init__(self, source: str | None, place: str = "line", bad_rows: BadRows | None = None) -> None:
        self.source = source
        self.place = place
        self.bad_rows = bad_rows
        self.count = 0
        """faults"""
        self.rows = 0
        """rows with faults"""
        self.checked = 0
        """lines that were looked at, if the reader counts others than it gives back"""
        self.row: str | None = None
        """the row that is looked at, for whoever puts it aside"""
        self._kinds: dict[str, _Kind] = {}
        self._hints: dict[str, None] = {}
        self._last: int | None = None

    @property
    def lenient(self) -> bool:
        """Whether rows with faults are put aside."""
        return self.bad_rows is not None

    @property
    def kinds(self) -> dict[str, int]:
        """How often each kind of fault was found, the most frequent first."""
        return dict(sorted(((kind, each.count) for kind, each in self._kinds.items()), key=lambda pair: -pair[1]))

    def add(
        self,
        what: str,
        line: int | None,
        column: str | None,
        value: str | None,
        *hints: str,
        kind: str | None = None,
    ) -> None:
        """Note one fault, and what may be done about it; its `kind` is what it is without the details of this row.

        Several faults of one row are told one after another.
        """
        problem = Problem(what, line, column, value, self.place)
        first = line is None or line != self._last
        self.rows += first
        self._last = line
        self.count += 1
        self._hints.update(dict.fromkeys(hints))
        name = kind or what
        if name not in self._kinds and len(self._kinds) >= KINDS:
            name = OTHER
        found = self._kinds.setdefault(name, _Kind())
        found.count += 1
        if len(found.shown) < SHOWN:
            found.shown.append((self.count, problem))
        if self.bad_rows is not None:
            self.bad_rows.take(self.source, problem, name, self.row, first=first)
        elif self.count == MANY:
            self.stop(0)

    def stop(self, checked: int) -> None:
        """Raise `DataError` if anything was found in the `checked` lines, unless such rows are put aside."""
        if self.count and not self.lenient:
            raise self.error(checked)

    def give_up(self, what: str, line: int | None, hint: str, checked: int = 0) -> NoReturn:
        """Raise `DataError`: the source cannot be read any further, whatever was found before."""
        if self.lenient:
            problem = Problem(what, line, place=self.place)
            raise DataError("cannot be read any further", source=self.source, problems=[problem], hint=hint)
        self.add(what, line, None, None, hint)
        raise self.error(checked)

    def error(self, checked: int) -> DataError:
        """Return the error that tells what was found: the first of every kind, and how many there are of each."""
        problems = _counted(self.count, "problem") + (" or more" if self.count == MANY else "")
        what = f"{problems} in {_counted(checked, self.place)}" if checked else problems
        if len(self._kinds) > 1 and self.count > SHOWN:
            what += ": " + ", ".join(f"{count:,} × {kind}" for kind, count in self.kinds.items())
        return DataError(
            what, source=self.source, problems=self._spread(), count=self.count, hint=" ".join(self._hints)
        )

    def _spread(self) -> list[Problem]:
        """Return the first problems of every kind, as they follow each other in the source."""
        ranked = sorted(
            (rank, at, problem) for each in self._kinds.values() for rank, (at, problem) in enumerate(each.shown)
        )
        return [problem for _, _, problem in sorted(ranked[:SHOWN], key=lambda known: known[1])]


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
