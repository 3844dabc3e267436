"""Where evidence is kept."""

from __future__ import annotations

DIRECTORY = "evidence"
"""Where a run directory keeps its evidence."""
