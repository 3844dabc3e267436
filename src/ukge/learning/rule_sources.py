"""Where the trainer's ground rules come from: the data set's own, mined ones, a file of rules, or a file of heads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ukge.errors import DataError
from ukge.graph.dataset import Dataset
from ukge.graph.readers import read
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.exchange import read_rules_file
from ukge.logic.ground_rules import GroundRules
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.rules import Rule

RULE_FILES = (".psl", ".rules", ".txt", ".json")
OWN, MINED, NONE = "own", "mined", "none"


def rules_for(dataset: Dataset, source: str | Path, tau: float) -> GroundRules | None:
    """Return the ground rules that `source` names, made from the training facts alone.

    `own` are those that come with the data set, `mined` are mined, weighted and grounded here, `none` are none; a file
    ending in .psl, .rules, .txt (AnyBURL) or .json holds rules to ground; any other holds rule heads with the value of
    their bodies as confidence.
    """
    name = str(source)
    if name == NONE:
        return None
    if name == OWN:
        return None if dataset.ground_rules is None else from_heads(dataset.ground_rules)
    if name == MINED:
        mined = mine(dataset.train, MiningSettings(strong=tau))
        return from_rules(dataset.train, mined.weighted(), tau)
    path = Path(source)
    if not path.is_file():
        raise DataError(f"there is no file of rules {path}", hint="Name a file, or one of: own, mined, none.")
    if path.suffix in RULE_FILES:
        return from_rules(dataset.train, read_rules_file(path), tau)
    return from_heads(read(path, entities=dataset.entities, relations=dataset.relations))


def from_rules(train: UncertainGraph, rules: Sequence[Rule], tau: float) -> GroundRules | None:
    """Ground rules on the strong training facts; for each rule and head only its truest body counts."""
    if not rules:
        return None
    found = ground(train, rules, GroundingSettings(strong=tau, best_only=True)).arrays()
    return found if len(found) else None


def from_heads(heads: UncertainGraph, weight: float = 1.0) -> GroundRules:
    """Return rule heads whose confidence is the value of their body as ground rules of one weight."""
    return GroundRules(
        np.ascontiguousarray(heads.head),
        np.ascontiguousarray(heads.relation),
        np.ascontiguousarray(heads.tail),
        heads.confidence.astype(np.float32),
        np.full(len(heads), weight, dtype=np.float32),
    )
