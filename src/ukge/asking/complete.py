"""The most confident unseen facts: candidates block by block, each judged, never all pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.evidence.features import Features
from ukge.evidence.ranking import model_scores, propose
from ukge.graph.index import FactIndex
from ukge.graph.queries import Queries, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids
from ukge.progress.steps import Tell

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor

ELEMENTS = 1 << 22
"""Scores of entities that are held at once, for each model."""

HEADS = 512
"""Heads whose candidates are judged at once at most."""

CANDIDATES = 50
"""Tails that each model, and the graph's own links, propose for a head."""


@dataclass(eq=False)
class _Best:
    """The best facts so far; ties of the confidence, which calibration makes, are settled by the head's own order."""

    k: int
    confidence: npt.NDArray[np.float64]
    order: npt.NDArray[np.float64]
    triple: npt.NDArray[np.int64]

    def add(
        self,
        confidence: npt.NDArray[np.float64],
        order: npt.NDArray[np.float64],
        triple: npt.NDArray[np.int64],
    ) -> None:
        """Take in more facts, and forget what is not among the best."""
        confidence = np.concatenate([self.confidence, confidence])
        order = np.concatenate([self.order, order])
        triple = np.concatenate([self.triple, triple])
        kept = np.lexsort((triple[:, 2], triple[:, 0], triple[:, 1], -order, -confidence))[: 2 * self.k]
        _, first = np.unique(triple[kept], axis=0, return_index=True)
        kept = kept[np.sort(first)][: self.k]
        self.confidence, self.order, self.triple = confidence[kept], order[kept], triple[kept]

    def facts(self, like: UncertainGraph) -> UncertainGraph:
        """Return the best facts over the names of a graph."""
        head, relation, tail = self.triple.T
        return like.with_facts(head, relation, tail, self.confidence)


@dataclass(frozen=True, eq=False)
class Completed:
    """Unseen facts, best first, and how much of the heads (or tails) was looked at before time was up, from 0 to 1."""

    facts: UncertainGraph
    share: float


@dataclass(frozen=True)
class Completion:
    """Which unseen facts are asked for: the k of the highest confidence, each at least `min_confidence` sure.

    For every relation (or those of `relations`) and every block of heads, the models and the links of the graph propose
    `candidates` tails per head, which are then judged. With `heads` or `tails`, only facts of these entities are told;
    with tails alone, heads are proposed for each of them. `head_type` and `tail_type` say of which types of the node
    data these entities are. If `typed`, an entity may only stand where the known facts of the relation have it: a head
    must be one of its heads, a tail one of its tails. Facts that any part of the data holds, or one of the graphs
    `seen`, are not told; nor are facts of an entity with itself, unless the relation has such.
    """

    relations: Sequence[str] | None = None
    heads: Sequence[str] | None = None
    tails: Sequence[str] | None = None
    min_confidence: float = 0.5
    k: int = 100
    typed: bool = True
    seen: Sequence[UncertainGraph] = ()
    candidates: int = CANDIDATES
    head_type: str | Sequence[str] | None = None
    tail_type: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.min_confidence <= 1.0:
            raise ConfigError(f"a least confidence is a number from 0 to 1, not {self.min_confidence:g}")
        if self.k < 1 or self.candidates < 1:
            raise ConfigError("the numbers of facts and of candidates are 1 or more")


def complete(
    predictor: Predictor,
    wanted: Completion,
    tell: Tell | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Completed:
    """Return the unseen facts that are asked for, best first; it ends early, with what there is, when `enough`."""
    features, known = predictor.features(), predictor.known
    graph = features.index.graph
    names = list(graph.relations if wanted.relations is None else dict.fromkeys(wanted.relations))
    asked = np.array([graph.relations.id(name) for name in names], dtype=np.int32)
    others = [_placed(each, graph) for each in wanted.seen]
    best = _Best(wanted.k, np.zeros(0), np.zeros(0), np.zeros((0, 3), dtype=np.int64))
    everyone = np.arange(graph.n_entities, dtype=np.int32)
    only = [_only(predictor, wanted.heads, wanted.head_type), _only(predictor, wanted.tails, wanted.tail_type)]
    side: Side = "head" if only[0] is None and only[1] is not None else "tail"
    step = max(1, min(HEADS, ELEMENTS // max(graph.n_entities, 1)))
    share = 0.0
    for number, (name, relation) in enumerate(zip(names, asked, strict=True)):
        sides = (
            [known.of_relation(int(relation), end) for end in ("head", "tail")]
            if wanted.typed
            else [everyone, everyone]
        )
        ends = [each if own is None else np.intersect1d(each, own) for each, own in zip(sides, only, strict=True)]
        given, answers = ends if side == "tail" else reversed(ends)
        rows = graph.relation == relation
        loops = bool((graph.head[rows] == graph.tail[rows]).any())
        for begin in range(0, len(given), step):
            share = (number + begin / len(given)) / len(names)
            if enough():
                return Completed(best.facts(graph), share)
            if tell is not None:
                tell(f"completing {name}", share)
            block = given[begin : begin + step].astype(np.int32)
            queries = Queries(side, block, np.full(len(block), relation, dtype=np.int32))
            found = _proposed(features, queries, answers, wanted.candidates, loops=loops)
            _judge(predictor, found, others, wanted.min_confidence, best)
    return Completed(best.facts(graph), 1.0)


def _only(predictor: Predictor, names: Sequence[str] | None, types: str | Sequence[str] | None) -> Ids | None:
    """Return the entities that are asked for by their names or labels, of some types; None for all."""
    naming = predictor.naming
    found = None if names is None else np.array([naming.id(name) for name in names], dtype=np.int32)
    if types is None:
        return found
    typed = naming.of_type(types).astype(np.int32)
    return typed if found is None else np.intersect1d(found, typed)


def _placed(graph: UncertainGraph, like: UncertainGraph) -> FactIndex:
    """Return the facts of a graph by the ids of another; a fact with an unknown name cannot be told anyway."""
    table = graph.facts()
    head, tail = (like.entities.encode(table[column]) for column in ("head", "tail"))
    relation = like.relations.encode(table["relation"])
    known = (head >= 0) & (relation >= 0) & (tail >= 0)
    return FactIndex(like.with_facts(head[known], relation[known], tail[known], graph.confidence[known]))


def _proposed(
    features: Features, queries: Queries, answers: Ids, candidates: int, *, loops: bool
) -> tuple[Ids, Ids, Ids]:
    """Return unseen facts that answer queries with some of the entities."""
    allowed = np.zeros(features.index.n_entities, dtype=np.bool_)
    allowed[answers] = True
    scores = model_scores(features, queries)
    for each in scores:
        each[:, ~allowed] = -np.inf
    found = propose(features, queries, scores, candidates)
    head, kinds, tail = queries.facts(found.query, found.entity)
    kept = allowed[found.entity] & (loops | (head != tail))
    return head[kept], kinds[kept], tail[kept]


def _judge(
    predictor: Predictor, facts: tuple[Ids, Ids, Ids], seen: Sequence[FactIndex], least: float, best: _Best
) -> None:
    new = ~predictor.is_known(*facts)
    for other in seen:
        new &= ~other.known(*facts)
    # A fact without a direction is proposed from both its ends, and told once.
    stored = predictor.features().index.graph.as_stored(*(column[new] for column in facts))
    triple = np.unique(np.stack(stored, axis=1).astype(np.int64), axis=0)
    head, relation, tail = triple.T
    judged = predictor.judge(head, relation, tail)
    sure = judged.confidence >= least
    best.add(judged.confidence[sure], judged.strength[sure], triple[sure])
