"""What can become of an input."""

from __future__ import annotations

from dataclasses import dataclass

ACCEPTED, REFUSED, UNCAUGHT, MISREAD = "accepted", "refused", "uncaught", "misread"
UNCHECKED = "unchecked"
"""Read, and nothing can say whether that is right: there is no other reader, or it does not know this form."""


@dataclass(frozen=True)
class Outcome:
    """What became of an input, and what is wrong with that, if anything is."""

    kind: str
    detail: str = ""
