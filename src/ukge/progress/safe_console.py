"""The console that all our output passes: no name can command a terminal.

Names come from files that others wrote. One with an escape sequence could repaint or retitle a terminal, overwrite a
line or fill the clipboard; one with a bidirectional override would show other text than it holds. Such characters are
made visible, and a string is never taken for Rich's markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

UNWRITABLE = "\ud800-\udfff"
"""Halves of characters, as names of files have that are no text: UTF-8 does not have them."""

COMMANDING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff{UNWRITABLE}]")
"""Control characters but for tab and line end, what turns the direction of text, and what cannot be written."""

BREAKING = re.compile("[\t\n]")
"""What may stand in a text, but not within a name: it would break the line that the name is on."""

PICTURES = 0x2400
"""Where Unicode has its pictures of control characters: ␛ stands for escape."""


def harmless(text: str) -> str:
    """Return a text with a picture for each character that would command a terminal."""
    return COMMANDING.sub(lambda found: _picture(ord(found[0])), text)


def one_line(text: str) -> str:
    """Return a name, or a sentence that holds some, as one line: a tab or line end within is shown, and breaks nothing.

    Names go through here before a table or a list has them; the console cannot tell their line ends from its own.
    """
    return harmless(BREAKING.sub(lambda found: _picture(ord(found[0])), text))


def harmless_json(text: str, *, terminal: bool) -> str:
    """Return JSON that means the same, can be written and, on a terminal, commands nothing."""
    escaped = COMMANDING if terminal else re.compile(f"[{UNWRITABLE}]")
    return escaped.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(PICTURES + code)
    return "␡" if code == 0x7F else "�"


class SafeConsole(Console):
    """A console on which text is text: pictures for what commands a terminal, no markup, no emoji codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **settings})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is shown; all that is printed comes by here, parts of tables and bars too."""
        for segment in super().render(renderable, options):
            if segment.control or not COMMANDING.search(segment.text):
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)
