"""Queries to look at (the paper's Table 5): the best tails a predictor finds beside the true ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ukge.errors import ConfigError
from ukge.evaluation.tasks import Predictor
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.keys import times_before
from ukge.graph.queries import Answers, Queries

SHOWN = 5
CASES = 6
FEWEST_TAILS, MOST_TAILS = 4, 60


@dataclass(frozen=True, slots=True)
class Tail:
    """A tail with its predicted and its true confidence (None: not observed), and the parts that hold the fact."""

    entity: str
    predicted: float
    observed: float | None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One query (head, relation, ?): the tails with the highest scores, and those with the highest true confidence."""

    head: str
    relation: str
    predicted: tuple[Tail, ...]
    true: tuple[Tail, ...] = ()
    known: int = 0


def parse_query(text: str, dataset: Dataset) -> tuple[int, int]:
    """Return the ids of a query written 'head,relation'; a name that itself holds commas is understood."""
    cuts = [at for at, letter in enumerate(text) if letter == ","]
    if not cuts:
        raise ConfigError(f"{text!r} is no query", hint="Write a head and a relation: ‹query='hotel,usedfor'›.")
    splits = [(text[:at].strip(), text[at + 1 :].strip()) for at in cuts]
    for head, relation in splits:
        if head in dataset.entities and relation in dataset.relations:
            return dataset.entities.id(head), dataset.relations.id(relation)
    head, relation = splits[-1]
    return dataset.entities.id(head), dataset.relations.id(relation)


def informative_queries(dataset: Dataset, n: int = CASES) -> list[tuple[int, int]]:
    """Return queries that show something: held-out tails among a readable number of known ones, of many relations.

    Of each relation, the most frequent first, the query is taken that has most test tails (three are enough) and, among
    those, whose known tails differ most in confidence. What a predictor answers plays no part in the choice.
    """
    test = FactIndex(dataset.test)
    queries = test.queries()
    known = FactIndex(dataset.whole()).answers(queries)
    held_out = np.diff(test.answers(queries).offsets)
    size = np.diff(known.offsets)
    readable = np.flatnonzero((size >= FEWEST_TAILS) & (size <= MOST_TAILS))
    if len(readable) == 0:
        readable = np.arange(len(queries))
    spread = _spread(known, size)
    order = readable[np.lexsort((-spread[readable], -np.minimum(held_out, 3)[readable]))]
    frequency = np.bincount(dataset.test.relation, minlength=len(dataset.relations))
    nth = times_before(queries.relation[order])
    chosen = order[np.lexsort((-frequency[queries.relation[order]], nth))][:n]
    return [(int(queries.given[q]), int(queries.relation[q])) for q in chosen]


def study(
    dataset: Dataset, predictor: Predictor, queries: Iterable[tuple[int, int]], k: int = SHOWN
) -> tuple[Case, ...]:
    """Return the cases of some queries, with k tails of either kind."""
    asked = list(queries)
    whole = FactIndex(dataset.whole())
    parts = {name: FactIndex(part) for name, part in dataset.parts.items()}
    return tuple(_case(dataset, predictor, head, relation, whole, parts, k) for head, relation in asked)


def _case(
    dataset: Dataset,
    predictor: Predictor,
    head: int,
    relation: int,
    whole: FactIndex,
    parts: dict[str, FactIndex],
    k: int,
) -> Case:
    query = Queries.of("tail", head, relation)
    scores = np.asarray(predictor.tail_scores(query.given, query.relation))[0]
    best = np.lexsort((np.arange(len(scores)), -scores))[:k]
    known = whole.answers(query)
    true = known.entity[np.lexsort((known.entity, -known.confidence))[:k]]
    observed = dict(zip(known.entity.tolist(), known.confidence.tolist(), strict=True))
    holders = {name: set(part.answers(query).entity.tolist()) for name, part in parts.items()}

    def tails(entities: Sequence[int]) -> tuple[Tail, ...]:
        ids = np.asarray(entities)
        predicted = predictor.confidence(np.full(len(ids), head), np.full(len(ids), relation), ids)
        return tuple(
            Tail(
                dataset.entities[entity],
                float(value),
                observed.get(entity),
                tuple(name for name, holding in holders.items() if entity in holding),
            )
            for entity, value in zip(ids.tolist(), predicted, strict=True)
        )

    return Case(
        dataset.entities[head], dataset.relations[relation], tails(best.tolist()), tails(true.tolist()), len(observed)
    )


def _spread(known: Answers, size: np.ndarray) -> np.ndarray:
    """Return the deviation of the known confidences of each query."""
    count = np.maximum(size, 1)
    mean = np.bincount(known.query, weights=known.confidence, minlength=len(size)) / count
    square = np.bincount(known.query, weights=known.confidence**2, minlength=len(size)) / count
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
