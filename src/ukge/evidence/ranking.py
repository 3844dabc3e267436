"""Ranking with evidence: candidates for a missing entity, and trees that were fitted to those of validation queries.

Candidates are what models rank high, and what the graph's own links propose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.evaluation.answer_sets import AnswerSets
from ukge.evidence.features import Features
from ukge.evidence.kernels import kernel, prange
from ukge.evidence.lookup import find
from ukge.evidence.paths import rule_at, rule_key
from ukge.evidence.regressor import ConfidenceRegressor
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import UNIT
from ukge.evidence.trees import Floats, Matrix, Trees, grow
from ukge.graph.index import FactIndex
from ukge.graph.keys import contains
from ukge.graph.queries import SIDES, Answers, AnyIds, Places, Queries, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids
from ukge.models.tables import best

QUERIES = 128
"""Queries whose all-entity scores are held at once."""

HELD_BACK = 2.0
"""Facts that are missing from the known ones for each validation fact: it stands for itself and for an unseen one."""

BENEATH = -1.0
"""Scores of entities that are no candidates lie between this and 0, in the order of the first model."""

TIED = 1e-4
"""What the first model's order adds to a score at most: many known answers have the same confidence, 1 above all."""

LEFT = 5
"""One validation query in so many, at least, is not learnt from."""

SET_FACTS = 1_000
"""Validation facts of each side that answer sets are calibrated on at most."""

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


@dataclass(frozen=True, eq=False)
class CandidateRanker:
    """How likely a candidate is an answer among candidates that all look likely.

    The negatives of trees for confidences are mostly easy; among the best candidates of a query nearly all are false,
    and only trees that saw such candidates tell them apart.
    """

    trees: Trees
    top: int

    def scores(self, features: Features, queries: Queries, regressor: ConfidenceRegressor) -> npt.NDArray[np.float32]:
        """Return for each query a score of every entity; `regressor` says how confident an answer is if it is one.

        A known answer has the mean of its confidences, a candidate its expected confidence, and the others are below;
        answers with the same score are in the order of the first model.
        """
        out = np.empty((len(queries), features.index.n_entities), dtype=np.float32)
        for block in blocks(len(queries)):
            part = queries[block]
            models = model_scores(features, part)
            standing = _standing(models[0]) if models else np.zeros((len(part), features.index.n_entities))
            found, columns = judged_candidates(features, part, models, self.top)
            query = np.concatenate([found.query, found.known.query])
            entity = np.concatenate([found.entity, found.known.entity])
            score = np.concatenate([self.judge(columns, regressor), found.known.confidence])
            rows = out[block]
            rows[:] = BENEATH * (1.0 - standing)
            rows[query, entity] = score + TIED * _places(query, standing[query, entity])
        return out

    def judge(self, columns: Matrix, regressor: ConfidenceRegressor) -> Floats:
        """Return the expected confidence of candidates: that of an answer × the chance of being one."""
        odds = HELD_BACK * np.exp(self.trees.predict(columns))
        return odds / (1.0 + odds) * regressor.predict(columns, assume_holds=True)


def fit_ranker(
    features: Features,
    val: UncertainGraph,
    settings: EvidenceSettings,
    on_share: Callable[[float], None] = lambda _: None,
) -> CandidateRanker | None:
    """Fit trees to the candidates of validation queries of both sides; None without queries, or without answers."""
    if settings.rank_queries == 0:
        return None
    index = FactIndex(val)
    parts: list[Matrix] = []
    truth: list[npt.NDArray[np.bool_]] = []
    for side in SIDES:
        queries = learnt_queries(index, side, settings)
        for block in blocks(len(queries)):
            part = queries[block]
            found, columns = judged_candidates(features, part, model_scores(features, part), settings.rank_candidates)
            parts.append(columns)
            answers = index.answers(part)
            asked, answered = (each.query * val.n_entities + each.entity for each in (found, answers))
            truth.append(contains(answered[answers.confidence > 0], asked))
            on_share(0.3 * (SIDES.index(side) + block.stop / len(queries)) / len(SIDES))
    every, true = np.concatenate(parts), np.concatenate(truth)
    if not true.any() or true.all():
        return None
    trees = grow("log_loss", every, true, settings, on_share=lambda share: on_share(0.3 + 0.7 * share))
    return CandidateRanker(trees, settings.rank_candidates)


def learnt_queries(index: FactIndex, side: Side, settings: EvidenceSettings) -> Queries:
    """Return the validation queries of a side that the trees learn from; a fifth at least is left to judge them by."""
    given, relation = _queries(index, side)
    order = np.random.default_rng([settings.seed, SIDES.index(side)]).permutation(len(given))
    chosen = np.sort(order[: min(settings.rank_queries, len(given) - len(given) // LEFT)])
    return Queries.of(side, given[chosen], relation[chosen])


def fit_answer_sets(
    ranker: CandidateRanker,
    features: Features,
    val: UncertainGraph,
    settings: EvidenceSettings,
    regressor: ConfidenceRegressor,
) -> AnswerSets | None:
    """Calibrate answer sets on the validation facts whose queries the trees for ranking did not see; None without any.

    The query of a fact without a direction is one of tails, whichever of its ends is given.
    """
    index = FactIndex(val)
    seen = {
        side: index.query_keys(queries.given, queries.relation)
        for side in SIDES
        for queries in (learnt_queries(index, side, settings),)
    }
    undirected = val.undirected_relations[val.relation]
    from_tail = index.query_keys(val.tail, val.relation)
    unseen: dict[Side, npt.NDArray[np.bool_]] = {
        "tail": ~np.isin(index.query_keys(val.head, val.relation), seen["tail"]),
        "head": ~np.where(undirected, np.isin(from_tail, seen["tail"]), np.isin(from_tail, seen["head"])),
    }
    asked = _Asked(ranker, features, regressor)
    facts = {side: val[np.flatnonzero(rows)] for side, rows in unseen.items()}
    return AnswerSets.fit(asked, facts, features.index, SET_FACTS) if any(map(len, facts.values())) else None


@dataclass(frozen=True, eq=False)
class _Asked:
    """A ranker with what it judges by: scores every entity, as `Evidence` does."""

    ranker: CandidateRanker
    features: Features
    regressor: ConfidenceRegressor

    @property
    def n_entities(self) -> int:
        return self.features.index.n_entities

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> npt.NDArray[np.float32]:
        return self.ranker.scores(self.features, Queries.of("tail", head, relation), self.regressor)

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> npt.NDArray[np.float32]:
        return self.ranker.scores(self.features, Queries.of("head", tail, relation), self.regressor)


def _queries(index: FactIndex, side: Side) -> tuple[Places, Places]:
    """Return entity and relation of the queries that known facts answer; without a direction, of one side only."""
    keys = index.by_query.keys if side == "tail" else index.by_inverse_query.keys
    relation, given = np.divmod(keys, index.n_entities)
    kept = ~index.graph.undirected_relations[relation] if side == "head" else slice(None)
    return given[kept], relation[kept]


def judged_candidates(
    features: Features, queries: Queries, scores: list[npt.NDArray[np.float32]], top: int
) -> tuple[Candidates, Matrix]:
    """Return candidates, and what there is to judge them by; the scores of known answers are overwritten.

    Beside the evidence that is how each model sees a candidate among all entities: its rank, how far its score is
    behind that of the best unknown entity, and how many deviations above the mean. The last column is the side: without
    a direction there is only one.
    """
    moments = [(each.mean(axis=1), each.std(axis=1)) for each in scores]
    found = propose(features, queries, scores, top)
    query, parts = found.query, [features.columns(*queries.facts(found.query, found.entity)), found.place]
    for each, (mean, spread) in zip(scores, moments, strict=True):
        score = each[query, found.entity]
        parts.append(
            np.stack([each.max(axis=1)[query] - score, (score - mean[query]) / (spread[query] + 1e-9)], axis=1)
        )
    from_tail = np.full(len(query), queries.side == "head")
    from_tail &= ~features.index.graph.undirected_relations[queries.relation[query]]
    parts.append(from_tail[:, None].astype(np.float32))
    return found, np.concatenate(parts, axis=1, dtype=np.float32)


def model_scores(features: Features, queries: Queries) -> list[npt.NDArray[np.float32]]:
    """Return the scores of every entity by each model; facts without a direction are scored as they are stored."""
    given, relation = queries.given.astype(np.int64), queries.relation.astype(np.int64)
    models = [each.model for each in features.backbones]
    if queries.side == "tail":
        found = [model.tail_scores(given, relation) for model in models]
    else:
        found = [model.head_scores(relation, given) for model in models]
    turned = np.flatnonzero(features.index.graph.undirected_relations[relation])
    if len(turned):
        below = np.arange(features.index.n_entities) < given[turned, None]
        for model, scores in zip(models, found, strict=True):
            as_tail = model.tail_scores(given[turned], relation[turned])
            scores[turned] = np.where(below, model.head_scores(relation[turned], given[turned]), as_tail)
    return found


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of queries that are answered at once."""
    for begin in range(0, n, QUERIES):
        yield slice(begin, min(begin + QUERIES, n))


def _standing(scores: npt.NDArray[np.float32]) -> Floats:
    """Return a number from 0 to 1 for every entity of each query, in the order of a model's scores."""
    mean, spread = scores.mean(axis=1, keepdims=True), scores.std(axis=1, keepdims=True)
    standing: Floats = 1.0 / (1.0 + np.exp(np.clip((mean - scores) / (spread + 1e-9), -30, 30)))
    return standing


def _places(query: npt.NDArray[np.int64], standing: Floats) -> Floats:
    """Return the place of each answer among those of its query, from the worst at 0 to just below 1."""
    order = np.lexsort((standing, query))
    size = np.bincount(query)
    place = np.empty(len(query))
    place[order] = np.arange(len(query)) - np.repeat(np.cumsum(size) - size, size)
    return place / size[query]
