"""The report as one HTML page that needs nothing else: tables, pictures and cases are inside it, and no scripts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from ukge.errors import Wording, in_python
from ukge.evaluation.case_study import Case
from ukge.evaluation.evaluate import Evaluation
from ukge.evaluation.tables import columns, half_width, header, is_best
from ukge.html import render as fill


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of the page: the stem of its file, its PNG, what it shows, and whether it takes the whole width."""

    name: str
    title: str
    note: str
    png: bytes
    wide: bool = False

    @property
    def base64(self) -> str:
        """The PNG as text, for the page."""
        return b64encode(self.png).decode("ascii")


def render(
    evaluation: Evaluation,
    pictures: Sequence[Picture],
    cases: Sequence[Case],
    name: str,
    wording: Wording = in_python,
) -> str:
    """Return the report as the text of an HTML page, in the words of a surface."""
    shown = {"evaluation": evaluation, "pictures": pictures, "cases": cases, "name": name, "wording": wording}
    return fill("report.html", columns=columns, half_width=half_width, header=header, is_best=is_best, **shown)
