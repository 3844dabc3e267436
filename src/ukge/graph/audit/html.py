"""The audit as one HTML page that needs nothing else: style and pictures are inside it, scripts there are none."""

from __future__ import annotations

from ukge.graph.audit.headlines import percent, sizes
from ukge.graph.audit.report import Audit
from ukge.html import render as fill
from ukge.html.pictures import histogram

RELATIONS_SHOWN = 25


def render(found: Audit) -> str:
    """Return the audit as the text of an HTML page."""
    shown = {"sizes": sizes(found), "shown": RELATIONS_SHOWN}
    return fill("audit.html", found=found, percent=percent, histogram=histogram, **shown)
