"""Bars in a notebook, drawn again in place: a plain display, without widgets that may not be installed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ukge.html import render

PAUSE = 0.1
"""Seconds between two pictures at least: each is a message to the browser."""

Bar = tuple[float | None, str]
"""How much of the work is done, None while nobody knows, and what there is to tell."""


class NotebookBars:
    """One output of a cell that shows bars while work is done, and nothing afterwards."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = -PAUSE

    def draw(self, bars: Sequence[Bar]) -> None:
        """Show the bars, unless they were shown a moment ago."""
        if time.monotonic() - self._drawn >= PAUSE:
            self._drawn = time.monotonic()
            text = "\n".join(news if share is None else f"{share:>4.0%}  {news}" for share, news in bars)
            self._show({"text/html": render("bars.html", bars=bars), "text/plain": text})

    def clear(self) -> None:
        """Take the bars away."""
        if self._handle is not None:
            self._show({"text/html": "", "text/plain": ""})

    def _show(self, content: dict[str, str]) -> None:
        from IPython.display import display  # type: ignore[import-not-found]  # noqa: PLC0415 — there in a notebook

        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
