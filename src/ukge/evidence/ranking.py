"""Ranking with evidence: candidates for a missing entity, and trees that were fitted to those of validation queries.

Candidates are what models rank high, and what the graph's own links propose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

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

HELD_OUT = 5
"""One validation fact in so many, at most, is held out from the ranking, for answer sets to be calibrated on."""

SET_FACTS = 3_000
"""Validation facts that are held out at most."""

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
            found, columns, standing, tied = self._judged(features, queries[block])
            score = self.chance(columns) * regressor.predict(columns, assume_holds=True)
            rows = out[block]
            rows[:] = BENEATH * (1.0 - standing)
            n = len(score)
            rows[found.query, found.entity] = score + tied[:n]
            rows[found.known.query, found.known.entity] = found.known.confidence + tied[n:]
        return out

    def scores_of(self, features: Features, queries: Queries, answer: AnyIds, level: Floats) -> Floats:
        """Return the score that `scores` gives one entity of each query, none a known answer, given its confidence."""
        out = np.empty(len(queries), dtype=np.float32)
        for block in blocks(len(queries)):
            own, rows = answer[block], out[block]
            found, columns, standing, tied = self._judged(features, queries[block], own)
            rows[:] = BENEATH * (1.0 - standing[np.arange(len(own)), own])
            asked = np.flatnonzero(found.entity == own[found.query])
            query = found.query[asked]
            rows[query] = self.chance(columns) * level[block][query] + tied[asked]
        return out.astype(np.float64)

    def chance(self, columns: Matrix) -> Floats:
        """Return the chance of candidates to be an answer."""
        odds = HELD_BACK * np.exp(self.trees.predict(columns))
        chance: Floats = odds / (1.0 + odds)
        return chance

    def _judged(
        self, features: Features, queries: Queries, only: AnyIds | None = None
    ) -> tuple[Candidates, Matrix, Floats, Floats]:
        """Return candidates, what they are judged by, the first model's order, and what that adds to a score.

        The last is of the candidates and of the known answers after them.
        """
        models = model_scores(features, queries)
        standing = _standing(models[0]) if models else np.zeros((len(queries), features.index.n_entities))
        found, columns = judged_candidates(features, queries, models, self.top, only)
        query = np.concatenate([found.query, found.known.query])
        entity = np.concatenate([found.entity, found.known.entity])
        return found, columns, standing, TIED * _places(query, standing[query, entity])


def fit_ranker(
    features: Features,
    val: UncertainGraph,
    settings: EvidenceSettings,
    on_share: Callable[[float], None] = lambda _: None,
) -> CandidateRanker | None:
    """Fit trees to the candidates of validation queries of both sides; None without queries, or without answers.

    The held-out facts are as unknown to them as test facts will be, not even the answers of a query that others have.
    """
    if settings.rank_queries == 0:
        return None
    learnt = val[np.flatnonzero(~held_out(val, settings))]
    index = FactIndex(learnt)
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
    missing = np.log(len(val) / len(learnt))  # held-out facts are missing as well
    return CandidateRanker(replace(trees, baseline=trees.baseline + missing), settings.rank_candidates)


def learnt_queries(index: FactIndex, side: Side, settings: EvidenceSettings) -> Queries:
    """Return the validation queries of a side that the trees learn from."""
    given, relation = _queries(index, side)
    order = np.random.default_rng([settings.seed, SIDES.index(side)]).permutation(len(given))
    chosen = np.sort(order[: settings.rank_queries])
    return Queries.of(side, given[chosen], relation[chosen])


def held_out(val: UncertainGraph, settings: EvidenceSettings) -> npt.NDArray[np.bool_]:
    """Return which validation facts the trees for ranking do not see, at random; the rows of one fact stay together.

    They are drawn fact by fact, as the test facts were. Were they drawn query by query, a query with many answers would
    be among them with all or with none, and a share of them would say little about that of other facts.
    """
    distinct, fact = np.unique(val.keys(), return_inverse=True)
    order = np.random.default_rng([settings.seed, len(SIDES)]).permutation(len(distinct))
    return np.isin(fact, order[: min(SET_FACTS, len(distinct) // HELD_OUT)])


def fit_answer_sets(
    ranker: CandidateRanker, features: Features, val: UncertainGraph, settings: EvidenceSettings, level: Floats
) -> AnswerSets | None:
    """Calibrate answer sets on the held-out validation facts; None without any.

    `level` is how confident each validation fact is if it holds, said by trees that did not see it.
    """
    known = features.index.known(val.head, val.relation, val.tail)
    rows = np.flatnonzero(held_out(val, settings) & ~known)
    if not len(rows):
        return None
    ends = {"tail": (val.head[rows], val.tail[rows]), "head": (val.tail[rows], val.head[rows])}
    relation = np.asarray(val.relation[rows], dtype=np.int32)
    score = [
        ranker.scores_of(features, Queries.of(side, ends[side][0], relation), ends[side][1], level[rows])
        for side in SIDES
    ]
    side = np.repeat(np.arange(len(SIDES), dtype=np.uint8), len(rows))
    return AnswerSets(np.concatenate(score), np.tile(relation, len(SIDES)), side)


def _queries(index: FactIndex, side: Side) -> tuple[Places, Places]:
    """Return entity and relation of the queries that known facts answer; without a direction, of one side only."""
    keys = index.by_query.keys if side == "tail" else index.by_inverse_query.keys
    relation, given = np.divmod(keys, index.n_entities)
    kept = ~index.graph.undirected_relations[relation] if side == "head" else slice(None)
    return given[kept], relation[kept]


def judged_candidates(
    features: Features,
    queries: Queries,
    scores: list[npt.NDArray[np.float32]],
    top: int,
    only: AnyIds | None = None,
) -> tuple[Candidates, Matrix]:
    """Return candidates, and what there is to judge them by; the scores of known answers are overwritten.

    If there is `only` one entity of each query to be judged, there are no rows of the others.

    Beside the evidence that is how each model sees a candidate among all entities: its rank, how far its score is
    behind that of the best unknown entity, and how many deviations above the mean. The last column is the side: without
    a direction there is only one.
    """
    moments = [(each.mean(axis=1), each.std(axis=1)) for each in scores]
    found = propose(features, queries, scores, top)
    rows = np.arange(len(found.query)) if only is None else np.flatnonzero(found.entity == only[found.query])
    query, entity = found.query[rows], found.entity[rows]
    parts = [features.columns(*queries.facts(query, entity)), found.place[rows]]
    for each, (mean, spread) in zip(scores, moments, strict=True):
        score = each[query, entity]
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
