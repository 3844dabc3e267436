"""A synthetic world with planted rules, whose every triple has a known true confidence."""

from ukge.graph.synthetic.stream import stream_parquet
from ukge.graph.synthetic.world import Blueprint, World, generate

__all__ = ["Blueprint", "World", "generate", "stream_parquet"]
