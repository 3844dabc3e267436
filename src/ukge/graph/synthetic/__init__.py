"""A synthetic world with planted rules, whose every triple has a known true confidence."""

from ukge.graph.synthetic.claims import ClaimedWorld, generate_claims
from ukge.graph.synthetic.world import Blueprint, World, generate, stream_parquet

__all__ = ["Blueprint", "ClaimedWorld", "World", "generate", "generate_claims", "stream_parquet"]
