"""Gathering: everything that evidence is read from, made of the known facts once."""

from __future__ import annotations

from ukge.evidence.backbones import Backbone
from ukge.evidence.features import Features
from ukge.evidence.paths import PathRules
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Tables
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.mining import MiningSettings, mine


def gather(
    known: UncertainGraph,
    backbones: tuple[Backbone, ...] = (),
    settings: EvidenceSettings | None = None,
    engine: str = "duckdb",
) -> Features:
    """Mine rules from the known facts, sum them up and put them in the orders in which they are looked up."""
    chosen = settings or EvidenceSettings()
    strong = MiningSettings(strong=chosen.strong, min_hit_ratio=chosen.min_hit_ratio)
    mined = mine(known, strong, engine=engine)
    rules = PathRules.of(mined.scored, mined.prior, chosen.strong, known.relations, known.undirected)
    index = FactIndex(known)
    return Features.of(index, Tables.of(index, engine), rules, backbones)
