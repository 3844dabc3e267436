"""What a notebook shows of an object: a line that says what it is, pictures, and a small table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ukge.html.render import render

if TYPE_CHECKING:
    from markupsafe import Markup

Figure = tuple[str, str]
"""A caption and the picture below it, rendered; without a picture nothing is shown."""


class Table(NamedTuple):
    """Rows that end with a number, under titles, and a line below them."""

    titles: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    more: str = ""


def card(
    what: str,
    figures: Sequence[Figure] = (),
    table: Table | None = None,
    shares: Sequence[tuple[float | None, str]] = (),
) -> Markup:
    """Return what an object is, in words, with pictures, a table, or what moved a number by how much."""
    largest = max((abs(moved or 0.0) for moved, _ in shares), default=0.0)
    return render("card.html", what=what, figures=figures, shares=shares, largest=largest, table=table)
