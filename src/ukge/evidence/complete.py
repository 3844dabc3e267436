"""The most confident unseen facts: candidates block by block, judged by the evidence, never all pairs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.evidence.candidates import propose
from ukge.evidence.ranking import model_scores
from ukge.graph.keys import Keys, contains, triple_keys
from ukge.graph.queries import Queries, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids
from ukge.progress.steps import Tell

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence

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
        kept = np.lexsort((triple[:, 2], triple[:, 0], triple[:, 1], -order, -confidence))[: self.k]
        self.confidence, self.order, self.triple = confidence[kept], order[kept], triple[kept]


def complete(
    evidence: Evidence,
    *,
    relations: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    tails: Sequence[str] | None = None,
    min_confidence: float = 0.5,
    k: int = 100,
    typed: bool = True,
    candidates: int = CANDIDATES,
    seen: Sequence[UncertainGraph] = (),
    tell: Tell | None = None,
) -> UncertainGraph:
    """Return the k unseen facts of the highest confidence, best first, each at least `min_confidence` sure.

    For every relation (or those of `relations`) and every block of heads, the models and the links of the graph propose
    `candidates` tails per head, and the evidence judges them. With `heads` or `tails`, only facts of these entities are
    told; with tails alone, heads are proposed for each of them. If `typed`, an entity may only stand where the known
    facts of the relation have it: a head must be one of its heads, a tail one of its tails. Facts that are known, or
    in one of the graphs `seen`, are not told; nor are facts of an entity with itself, unless the relation has such.
    """
    if not 0.0 <= min_confidence <= 1.0:
        raise ConfigError(f"a least confidence is a number from 0 to 1, not {min_confidence:g}")
    if k < 1 or candidates < 1:
        raise ConfigError("the numbers of facts and of candidates are 1 or more")
    graph = evidence.known
    names = list(graph.relations) if relations is None else list(dict.fromkeys(relations))
    asked = np.array([graph.relations.id(name) for name in names], dtype=np.int32)
    other = _keys_of(evidence, seen)
    best = _Best(k, np.zeros(0), np.zeros(0), np.zeros((0, 3), dtype=np.int64))
    everyone = np.arange(graph.n_entities, dtype=np.int32)
    wanted = [None if each is None else _ids(evidence, each) for each in (heads, tails)]
    side: Side = "head" if heads is None and tails is not None else "tail"
    step = max(1, min(HEADS, ELEMENTS // max(graph.n_entities, 1)))
    for number, (name, relation) in enumerate(zip(names, asked, strict=True)):
        rows = graph.relation == relation
        own = (np.unique(graph.head[rows]), np.unique(graph.tail[rows])) if typed else (everyone, everyone)
        ends = [each if only is None else np.intersect1d(each, only) for each, only in zip(own, wanted, strict=True)]
        given, answers = ends if side == "tail" else reversed(ends)
        loops = bool((graph.head[rows] == graph.tail[rows]).any())
        for begin in range(0, len(given), step):
            if tell is not None:
                tell(f"completing {name}", (number + begin / len(given)) / len(names))
            block = given[begin : begin + step]
            queries = Queries.of(side, block, np.full(len(block), relation))
            found = _proposed(evidence, queries, answers, candidates, loops=loops)
            _judge(evidence, found, other, min_confidence, best)
    head, relation_ids, tail = best.triple.T
    return UncertainGraph.from_ids(head, relation_ids, tail, best.confidence, graph.entities, graph.relations)


def _ids(evidence: Evidence, names: Sequence[str]) -> Ids:
    return np.array([evidence.entities.id(name) for name in names], dtype=np.int32)


def _proposed(
    evidence: Evidence, queries: Queries, answers: Ids, candidates: int, *, loops: bool
) -> tuple[Ids, Ids, Ids]:
    """Return unseen facts that answer queries with some of the entities."""
    allowed = np.zeros(evidence.n_entities, dtype=np.bool_)
    allowed[answers] = True
    scores = model_scores(evidence.evidence, queries)
    for each in scores:
        each[:, ~allowed] = -np.inf
    found = propose(evidence.evidence, queries, scores, candidates)
    head, kinds, tail = queries.facts(found.query, found.entity)
    kept = allowed[found.entity] & (loops | (head != tail))
    return head[kept], kinds[kept], tail[kept]


def _judge(evidence: Evidence, facts: tuple[Ids, Ids, Ids], seen: Keys, least: float, best: _Best) -> None:
    keys = triple_keys(*facts, evidence.n_entities, len(evidence.relations))
    head, relation, tail = (column[~contains(seen, keys)] for column in facts)
    columns = evidence.evidence.columns(head, relation, tail)
    confidence = evidence.head.predict(columns)
    sure = confidence >= least
    triple = np.stack([head, relation, tail], axis=1).astype(np.int64)
    best.add(confidence[sure], evidence.head.score(columns)[sure], triple[sure])


def _keys_of(evidence: Evidence, graphs: Sequence[UncertainGraph]) -> Keys:
    """Return the sorted keys of facts that are not to be told; a fact with an unknown name cannot be told anyway."""
    keys = [np.zeros(0, dtype=np.int64)]
    for graph in graphs:
        table = graph.facts()
        ids = [
            vocabulary.encode(table[column])
            for column, vocabulary in (
                ("head", evidence.entities),
                ("relation", evidence.relations),
                ("tail", evidence.entities),
            )
        ]
        known = (ids[0] >= 0) & (ids[1] >= 0) & (ids[2] >= 0)
        head, relation, tail = (column[known] for column in ids)
        keys.append(triple_keys(head, relation, tail, evidence.n_entities, len(evidence.relations)))
    return np.sort(np.concatenate(keys))
