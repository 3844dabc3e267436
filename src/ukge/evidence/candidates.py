"""Candidates for the missing entity of a query: what models rank high, and what the graph's own links propose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.evidence.features import Features
from ukge.evidence.kernels import kernel, prange
from ukge.evidence.lookup import find
from ukge.evidence.paths import rule_at, rule_key
from ukge.evidence.tables import UNIT
from ukge.graph.queries import Answers, Places, Queries
from ukge.graph.vocabulary import Ids
from ukge.models.tables import best

WALKS = 20_000
"""Second steps that are looked at for one query; hubs have more than could change the answer."""

WALK = 5e-6
"""Seconds that a second step takes without the compiler."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of queries, ordered by query: `place[i, b]` is the rank that model b gives candidate i.

    Known answers are no candidates; they stand apart.
    """

    query: Places
    entity: Ids
    place: npt.NDArray[np.float32]
    known: Answers


def propose(features: Features, queries: Queries, scores: list[npt.NDArray[np.float32]], top: int) -> Candidates:
    """Return the `top` candidates of each model and of the graph, without the known answers.

    `scores` are all-entity scores of the queries by each model; those of known answers are overwritten.
    """
    n, n_entities = len(queries), features.index.n_entities
    known = features.index.answers(queries)
    known_query = known.query
    keys = []
    ranked: list[npt.NDArray[np.int64]] = []
    for each in scores:
        each[known_query, known.entity] = -np.inf
        ranked.append(best(each, top))
        keys.append((np.arange(n)[:, None] * n_entities + ranked[-1]).ravel())
    linked = linked_candidates(features, queries, top)
    query, place = np.nonzero(linked >= 0)
    keys.append(query * n_entities + linked[query, place])
    every = np.unique(np.concatenate(keys))
    every = every[~np.isin(every, known_query * n_entities + known.entity, assume_unique=True)]
    query, entity = np.divmod(every, n_entities)
    places = np.full((len(every), len(scores)), top + 1, dtype=np.float32)
    for number, chosen in enumerate(ranked):
        at = find(every, keys[number])
        places[at[at >= 0], number] = np.tile(np.arange(1, chosen.shape[1] + 1), n)[at >= 0]
    return Candidates(query, entity.astype(np.int32), places, known)


def linked_candidates(features: Features, queries: Queries, top: int) -> npt.NDArray[np.int32]:
    """Return up to `top` entities per query whose links to the given one speak most for the fact, −1 for no more."""
    index, tables, rules = features.index, features.tables, features.rules
    near = index.neighbours
    implied = tables.implications
    out = np.full((len(queries), top), -1, dtype=np.int32)
    _propose.within(WALK * WALKS * len(queries))(
        queries.given.astype(np.int32),
        queries.relation.astype(np.int32),
        queries.side == "head",
        index.graph.undirected_relations,
        features.inverse_step,
        index.n_entities,
        index.n_relations,
        near.start,
        near.entity,
        near.step,
        near.confidence,
        implied.key,
        implied.sums,
        features.rows_of_relation,
        features.rule_table,
        rules.key,
        rules.weight,
        rules.strong,
        out,
    )
    return out


@kernel(parallel=True)
def _propose(  # type: ignore[no-untyped-def]
    given, relation, backwards, undirected, inverse, n_entities, n_relations,
    start, entity, step, confidence,
    implied_key, implied_sums, count, table, keys, weight, strong, out,
):  # fmt: skip
    n, top, wide, chunks = len(given), out.shape[1], 2 * n_relations, 8
    for chunk in prange(chunks):
        missed = np.ones(n_entities)
        touched = np.empty(n_entities, dtype=np.int32)
        for q in range(chunk * n // chunks, (chunk + 1) * n // chunks):
            g, r = given[q], np.int64(relation[q])
            n_touched, walks = 0, 0
            for i in range(start[g], start[g + 1]):
                near, first, c = entity[i], step[i], confidence[i]
                seen = inverse[first] if backwards else first
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
                    far, d = entity[j], confidence[j]
                    walks += 1
                    body = c + d - 1.0
                    if far == g or d <= strong or body <= 0.0:
                        continue
                    begun, ended = (inverse[step[j]], inverse[first]) if backwards else (first, step[j])
                    rule = rule_at(table, keys, rule_key(r, begun, ended, inverse, undirected[r], wide))
                    if rule >= 0:
                        if missed[far] == 1.0:
                            touched[n_touched] = far
                            n_touched += 1
                        missed[far] *= max(1.0 - weight[rule] * body, 1e-9)
            order = np.argsort(missed[touched[:n_touched]], kind="mergesort")
            for k in range(min(top, n_touched)):
                out[q, k] = touched[order[k]]
            for k in range(n_touched):
                missed[touched[k]] = 1.0
