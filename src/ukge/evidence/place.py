"""Where evidence is kept."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = "evidence"
"""Where a run directory keeps its evidence."""


def keeps_evidence(path: Path) -> bool:
    """Return whether a directory holds evidence or is evidence; a run that has none is neither."""
    return (path / DIRECTORY).is_dir() or not (path / "manifest.json").is_file()
