"""Files that commands write: whole or not at all."""

from __future__ import annotations

from pathlib import Path

from ukge.storage.files import write_atomically


def write_text(path: Path, text: str) -> None:
    """Write a text file, and the directories above it; until it is complete, the path holds what it held before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
