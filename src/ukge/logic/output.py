"""Files of rules are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from ukge.graph.files import check_target
from ukge.storage.files import write_atomically


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file."""
    check_target(Path(path))
    write_atomically(Path(path), text.encode())
