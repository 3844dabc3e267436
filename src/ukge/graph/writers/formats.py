"""The registry of formats that can be written."""

from __future__ import annotations

from ukge.graph.formats import Format
from ukge.registry import Registry

writers: Registry[Format[None]] = Registry("writer", "ukge.writers")
