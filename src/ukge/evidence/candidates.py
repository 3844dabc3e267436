"""Candidates for the missing entity of a query: what models rank high, and what the graph's own links propose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.engines.compiled import kernel
from ukge.evidence.features import Features
from ukge.evidence.index import Places
from ukge.evidence.paths import rule_at
from ukge.evidence.tables import UNIT
from ukge.graph.vocabulary import Ids
from ukge.model import best

Side = Literal["tail", "head"]

WALKS = 20_000
"""Second steps that are looked at for one query; hubs have more than could change the answer."""


@dataclass(frozen=True, eq=False)
class Asking:
    """Queries of one side: `given` is the head where tails are asked for, and the tail otherwise."""

    side: Side
    given: Ids
    relation: Ids

    def __len__(self) -> int:
        return len(self.given)

    def facts(self, query: Places, entity: Ids) -> tuple[Ids, Ids, Ids]:
        """Return queries filled with an entity, as facts by ids."""
        given, relation = self.given[query], self.relation[query]
        return (given, relation, entity) if self.side == "tail" else (entity, relation, given)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of queries, ordered by query: `place[i, b]` is the rank that model b gives candidate i.

    Known answers are no candidates; they stand apart in `known_query`, `known_entity` and, from the graph, the mean of
    their confidences.
    """

    query: Places
    entity: Ids
    place: npt.NDArray[np.float32]
    known_query: Places
    known_entity: Ids
    known_confidence: npt.NDArray[np.float64]


def known_answers(features: Features, asking: Asking) -> tuple[Places, Ids, npt.NDArray[np.float64]]:
    """Return query, entity and mean confidence of the answers that the known facts give, each once."""
    index = features.index
    graph = index.graph
    groups, answers = (index.by_query, graph.tail) if asking.side == "tail" else (index.by_inverse_query, graph.head)
    begin, end = groups.find(index.query_keys(asking.given, asking.relation))
    size = end - begin
    query = np.repeat(np.arange(len(asking)), size)
    place = np.arange(len(query)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(begin, size)
    rows = groups.rows[place]
    key = query * index.n_entities + answers[rows]
    distinct, at = np.unique(key, return_inverse=True)
    confidence = np.bincount(at, weights=index.confidence[rows]) / np.maximum(np.bincount(at), 1)
    found, entity = np.divmod(distinct, index.n_entities)
    return found, entity.astype(np.int32), confidence[: len(distinct)]


def propose(features: Features, asking: Asking, scores: list[npt.NDArray[np.float32]], top: int) -> Candidates:
    """Return the `top` candidates of each model and of the graph, without the known answers.

    `scores` are all-entity scores of the queries by each model; those of known answers are overwritten.
    """
    n, n_entities = len(asking), features.index.n_entities
    known_query, known_entity, confidence = known_answers(features, asking)
    keys = []
    ranked: list[npt.NDArray[np.int64]] = []
    for each in scores:
        each[known_query, known_entity] = -np.inf
        ranked.append(best(each, top))
        keys.append((np.arange(n)[:, None] * n_entities + ranked[-1]).ravel())
    linked = linked_candidates(features, asking, top)
    query, place = np.nonzero(linked >= 0)
    keys.append(query * n_entities + linked[query, place])
    every = np.unique(np.concatenate(keys))
    every = every[~np.isin(every, known_query * n_entities + known_entity, assume_unique=True)]
    query, entity = np.divmod(every, n_entities)
    places = np.full((len(every), len(scores)), top + 1, dtype=np.float32)
    for number, chosen in enumerate(ranked):
        own = keys[number]
        at = np.searchsorted(every, own)
        at[at == len(every)] = 0
        found = every[at] == own
        places[at[found], number] = np.tile(np.arange(1, chosen.shape[1] + 1), n)[found]
    return Candidates(query, entity.astype(np.int32), places, known_query, known_entity, confidence)


def linked_candidates(features: Features, asking: Asking, top: int) -> npt.NDArray[np.int32]:
    """Return up to `top` entities per query whose links to the given one speak most for the fact, −1 for no more."""
    index, tables, rules = features.index, features.tables, features.rules
    near = index.neighbours
    count = np.zeros(index.n_relations, dtype=np.int64)
    count[tables.by_relation.key] = tables.by_relation.count
    implied = tables.implications
    out = np.full((len(asking), top), -1, dtype=np.int32)
    _propose(
        asking.given.astype(np.int32),
        asking.relation.astype(np.int32),
        asking.side == "head",
        index.n_entities,
        index.n_relations,
        near.start,
        near.entity,
        near.step,
        near.row,
        index.confidence,
        implied.key,
        implied.sums,
        count,
        features.rule_table,
        rules.key,
        rules.weight,
        rules.strong,
        out,
    )
    return out


@kernel(nogil=True)
def _turned(step, n_relations):  # type: ignore[no-untyped-def]
    return step + n_relations if step < n_relations else step - n_relations


@kernel(nogil=True, parallel=True)
def _propose(  # type: ignore[no-untyped-def] # noqa: PLR0912
    given, relation, backwards, n_entities, n_relations,
    start, entity, step, row, confidence,
    implied_key, implied_sums, count, table, rule_key, weight, strong, out,
):  # fmt: skip
    n, top, wide, chunks = len(given), out.shape[1], 2 * n_relations, 8
    for chunk in nb.prange(chunks):
        missed = np.ones(n_entities)
        touched = np.empty(n_entities, dtype=np.int32)
        for q in range(chunk * n // chunks, (chunk + 1) * n // chunks):
            g, r = given[q], np.int64(relation[q])
            n_touched, walks = 0, 0
            for i in range(start[g], start[g + 1]):
                near, first, c = entity[i], step[i], confidence[row[i]]
                seen = _turned(first, n_relations) if backwards else first
                wanted = r * wide + seen
                at = np.searchsorted(implied_key, wanted)
                if at < len(implied_key) and implied_key[at] == wanted:
                    share = min(implied_sums[at, 2] / UNIT / max(count[seen % n_relations], 1), 0.999)
                    if missed[near] == 1.0:
                        touched[n_touched] = near
                        n_touched += 1
                    missed[near] *= 1.0 - share * c
                if c <= strong or walks > WALKS:
                    continue
                for j in range(start[near], start[near + 1]):
                    far, d = entity[j], confidence[row[j]]
                    walks += 1
                    body = c + d - 1.0
                    if far == g or d <= strong or body <= 0.0:
                        continue
                    if backwards:
                        key = (r * wide + _turned(step[j], n_relations)) * wide + _turned(first, n_relations)
                    else:
                        key = (r * wide + first) * wide + step[j]
                    rule = rule_at(table, rule_key, key)
                    if rule >= 0:
                        if missed[far] == 1.0:
                            touched[n_touched] = far
                            n_touched += 1
                        missed[far] *= max(1.0 - weight[rule] * body, 1e-9)
            order = np.argsort(missed[touched[:n_touched]])
            for k in range(min(top, n_touched)):
                out[q, k] = touched[order[k]]
            for k in range(n_touched):
                missed[touched[k]] = 1.0
