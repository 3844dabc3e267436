"""Collects what is wrong with the data: the first offenders, how many there are, and what to do about each kind."""

from __future__ import annotations

from ukge.errors import SHOWN, DataError, Problem


class Findings:
    """Problems found while going through one source."""

    def __init__(self, source: str | None, place: str = "line") -> None:
        self.source = source
        self.place = place
        self.count = 0
        self._shown: list[Problem] = []
        self._hints: dict[str, None] = {}

    def add(self, what: str, line: int | None, column: str | None, value: str | None, *hints: str) -> None:
        """Note one problem, and what may be done about it."""
        self.count += 1
        self._hints.update(dict.fromkeys(hints))
        if len(self._shown) < SHOWN:
            self._shown.append(Problem(what, line, column, value, self.place))

    def stop(self, checked: int) -> None:
        """Raise `DataError` if anything was found in the `checked` lines."""
        if self.count == 0:
            return
        problems = _counted(self.count, "problem")
        raise DataError(
            f"{problems} in {_counted(checked, self.place)}" if checked else problems,
            source=self.source,
            problems=self._shown,
            count=self.count,
            hint=" ".join(self._hints),
        )


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
