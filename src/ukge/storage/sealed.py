"""Notes in JSON that notice when they were changed: an object with a digest of the rest of it at its end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ukge.errors import RunError
from ukge.storage.files import DAMAGED

DIGEST = "digest"
DIGITS = 16


def sealed(note: Mapping[str, Any]) -> str:
    """Return a note as one line of JSON."""
    return json.dumps({**note, DIGEST: _digest(note)}, ensure_ascii=False)


def unsealed(text: bytes, source: str | Path, *, strict: bool = True) -> dict[str, Any]:
    """Read what `sealed` returned; if not `strict`, a note without a digest is taken, too."""
    try:
        note: dict[str, Any] = json.loads(text)
        digest = note.pop(DIGEST, None)
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise RunError(f"{source} is damaged: it cannot be read", hint=DAMAGED) from None
    # A bit of a long number can change its text and not its value: the text must be the one that was written, too.
    whole = digest == _digest(note) and text.rstrip(b"\n") == sealed(note).encode()
    if not whole and (strict or digest is not None):
        raise RunError(f"{source} is damaged: its content does not match its checksum", hint=DAMAGED)
    return note


def _digest(note: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()[:DIGITS]
