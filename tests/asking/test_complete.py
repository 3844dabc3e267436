"""Completion, against judging every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ukge.asking import Predictor
from ukge.asking import complete as module
from ukge.asking.complete import Completion
from ukge.asking.complete import complete as completed
from ukge.errors import ConfigError, DataError
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph


def complete(predictor: Predictor, **asked: Any) -> UncertainGraph:
    """Complete without a limit of time."""
    found = completed(predictor, Completion(**asked))
    assert found.share == 1.0
    return found.facts


def _every_pair(evidence: Evidence, relation: int, *, typed: bool = True) -> dict[tuple[int, int], float]:
    graph = evidence.dataset.whole()
    rows = graph.relation == relation
    everyone = np.arange(graph.n_entities)
    heads, tails = (np.unique(graph.head[rows]), np.unique(graph.tail[rows])) if typed else (everyone, everyone)
    known = set(zip(graph.head[rows].tolist(), graph.tail[rows].tolist(), strict=True))
    loops = any(head == tail for head, tail in known)
    pairs = [(h, t) for h in heads.tolist() for t in tails.tolist() if (h, t) not in known and (loops or h != t)]
    head, tail = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    values = evidence.predict_ids(head, np.full(len(head), relation, dtype=np.int32), tail)
    return dict(zip(pairs, values.tolist(), strict=True))


@pytest.mark.parametrize("block", [7, 512])
def test_with_all_candidates_it_is_the_best_of_all_pairs(
    evidence: Evidence, predictor: Predictor, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(module, "HEADS", block)
    relation = evidence.relations[0]
    pairs = _every_pair(evidence, 0)
    found = complete(predictor, relations=[relation], min_confidence=0.0, k=40, candidates=evidence.n_entities)
    assert len(found) == 40
    assert found.confidence == pytest.approx(sorted(pairs.values(), reverse=True)[:40])
    for head, tail, confidence in zip(found.head, found.tail, found.confidence, strict=True):
        assert pairs[int(head), int(tail)] == confidence


@pytest.mark.parametrize("ends", [("heads",), ("tails",), ("heads", "tails")])
def test_facts_about_some_entities_are_the_best_of_their_pairs(
    evidence: Evidence, predictor: Predictor, ends: tuple[str, ...]
) -> None:
    whole = evidence.dataset.whole()
    rows = whole.relation == 0
    columns = {"heads": whole.head, "tails": whole.tail}
    asked = {end: np.unique(columns[end][rows])[1:4].tolist() for end in ends}
    pairs = {
        pair: confidence
        for pair, confidence in _every_pair(evidence, 0).items()
        if all(pair[end == "tails"] in chosen for end, chosen in asked.items())
    }
    found = complete(
        predictor,
        relations=[evidence.relations[0]],
        min_confidence=0.0,
        k=10**6,
        candidates=evidence.n_entities,
        **{end: [evidence.entities[entity] for entity in chosen] for end, chosen in asked.items()},
    )
    ids = zip(found.head.tolist(), found.tail.tolist(), strict=True)
    assert dict(zip(ids, found.confidence.tolist(), strict=True)) == pytest.approx(pairs)


def test_few_candidates_find_known_types_only(evidence: Evidence, predictor: Predictor) -> None:
    found = complete(predictor, min_confidence=0.0, k=200, candidates=5)
    graph = evidence.dataset.whole()
    assert not set(found.keys().tolist()) & set(graph.keys().tolist())
    assert len(np.unique(found.keys())) == len(found) == 200
    assert (np.diff(found.confidence) <= 0).all()
    for relation in np.unique(found.relation):
        rows, own = found.relation == relation, graph.relation == relation
        assert np.isin(found.head[rows], graph.head[own]).all()
        assert np.isin(found.tail[rows], graph.tail[own]).all()


def test_without_types_more_entities_are_allowed(evidence: Evidence, predictor: Predictor) -> None:
    few = [evidence.relations[int(np.argmin(np.bincount(evidence.dataset.whole().relation)))]]
    typed = complete(predictor, relations=few, min_confidence=0.0, k=10**6, candidates=3)
    free = complete(predictor, relations=few, min_confidence=0.0, k=10**6, candidates=3, typed=False)
    assert len(free) > len(typed)


def test_the_least_confidence_and_seen_facts_are_heeded(predictor: Predictor, dataset: Dataset) -> None:
    every = complete(predictor, min_confidence=0.0, k=50, candidates=5)
    least = float(np.median(every.confidence))
    sure = complete(predictor, min_confidence=least, k=50, candidates=5)
    assert set(sure.keys().tolist()) == set(every[every.confidence >= least].keys().tolist())
    told = complete(predictor, min_confidence=0.0, k=50, candidates=5, seen=[every[:10]])
    assert not set(told.keys().tolist()) & set(every[:10].keys().tolist())
    assert not set(told.keys().tolist()) & set(dataset.whole().keys().tolist())


def test_mistakes_are_named(predictor: Predictor) -> None:
    with pytest.raises(DataError, match="unknown relation 'nothing'"):
        complete(predictor, relations=["nothing"])
    with pytest.raises(ConfigError, match="least confidence"):
        complete(predictor, min_confidence=2.0)
    with pytest.raises(ConfigError, match="1 or more"):
        complete(predictor, k=0)


def test_it_ends_early_with_what_there_is(predictor: Predictor) -> None:
    blocks = iter([False] * 3 + [True] * 99)
    found = completed(predictor, Completion(min_confidence=0.0, k=20, candidates=5), enough=lambda: next(blocks))
    assert 0.0 < found.share < 1.0
    assert len(found.facts) == 20


def test_completions_do_not_tie_by_the_dozen(predictor: Predictor) -> None:
    """Calibration was a step function: the first fifty had three different confidences."""
    found = complete(predictor, min_confidence=0.0, k=50)
    judged = predictor.judge(found.head, found.relation, found.tail)
    assert judged.confidence == pytest.approx(found.confidence)
    # Trees may tie by themselves; calibration adds no ties to that.
    assert len(np.unique(judged.confidence)) >= len(np.unique(judged.strength)) - 1
