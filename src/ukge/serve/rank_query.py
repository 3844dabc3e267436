"""Rank queries as a request has them, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from ukge.asking.judges import COVERAGE
from ukge.asking.rank import Query, Ranking, Seen
from ukge.asking.search import Ids
from ukge.graph.queries import Side
from ukge.serve.problems import invalid
from ukge.serve.snapshot import Snapshot

TYPES = re.compile(r"any|fitting|(?:heads|tails):.+", re.DOTALL)


@dataclass(frozen=True)
class RankQuery:
    """(head, relation, ?) or (?, relation, tail), and which answers are wanted."""

    relation: str
    head: str | None = None
    tail: str | None = None
    k: int = 10
    type: str = "any"
    prefix: str = ""
    min_confidence: float = 0.0
    observed: Seen = "include"
    exact: bool = False
    coverage: float = COVERAGE


def ranking_of(snapshot: Snapshot, query: RankQuery) -> Ranking:
    """Return the query by ids, checked."""
    if (query.head is None) == (query.tail is None):
        raise invalid([("query", "give either a head or a tail")])
    if not TYPES.fullmatch(query.type):
        raise invalid([("query.type", "expected any, fitting, heads:RELATION or tails:RELATION")])
    relation = snapshot.relation(query.relation)
    given = snapshot.entity(query.head if query.head is not None else str(query.tail))
    side: Side = "tail" if query.head is not None else "head"
    among = _among(snapshot, query, relation, side)
    asked = Query(side, given, relation, query.k, query.observed, among, query.min_confidence, query.coverage)
    return Ranking(snapshot.predictor, asked)


def _among(snapshot: Snapshot, query: RankQuery, relation: int, side: Side) -> Ids | None:
    """Return the entities that may be answers, None for all."""
    kinds: list[Ids] = []
    if query.type == "fitting":
        kinds.append(snapshot.kind(relation, side))
    elif query.type != "any":
        end, _, name = query.type.partition(":")
        kinds.append(snapshot.kind(snapshot.relation(name), "head" if end == "heads" else "tail"))
    if query.prefix:
        starts = pc.starts_with(snapshot.entities.names, query.prefix).to_numpy(zero_copy_only=False)
        kinds.append(np.flatnonzero(starts))
    if not kinds:
        return None
    common = kinds[0]
    for each in kinds[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    return common
