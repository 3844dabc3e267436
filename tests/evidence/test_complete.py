"""Completion, against judging every pair."""

from __future__ import annotations

import numpy as np
import pytest

from ukge.errors import ConfigError, DataError
from ukge.evidence import Evidence
from ukge.evidence import complete as module
from ukge.evidence.complete import complete
from ukge.graph.dataset import Dataset


def _every_pair(evidence: Evidence, relation: int, *, typed: bool = True) -> dict[tuple[int, int], float]:
    graph = evidence.known
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
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(module, "HEADS", block)
    relation = evidence.relations[0]
    pairs = _every_pair(evidence, 0)
    found = complete(evidence, relations=[relation], min_confidence=0.0, k=40, candidates=evidence.n_entities)
    assert len(found) == 40
    assert found.confidence == pytest.approx(sorted(pairs.values(), reverse=True)[:40])
    for head, tail, confidence in zip(found.head, found.tail, found.confidence, strict=True):
        assert pairs[int(head), int(tail)] == confidence


@pytest.mark.parametrize("ends", [("heads",), ("tails",), ("heads", "tails")])
def test_facts_about_some_entities_are_the_best_of_their_pairs(evidence: Evidence, ends: tuple[str, ...]) -> None:
    rows = evidence.known.relation == 0
    columns = {"heads": evidence.known.head, "tails": evidence.known.tail}
    asked = {end: np.unique(columns[end][rows])[1:4].tolist() for end in ends}
    pairs = {
        pair: confidence
        for pair, confidence in _every_pair(evidence, 0).items()
        if all(pair[end == "tails"] in chosen for end, chosen in asked.items())
    }
    found = complete(
        evidence,
        relations=[evidence.relations[0]],
        min_confidence=0.0,
        k=10**6,
        candidates=evidence.n_entities,
        **{end: [evidence.entities[entity] for entity in chosen] for end, chosen in asked.items()},  # type: ignore[arg-type]
    )
    ids = zip(found.head.tolist(), found.tail.tolist(), strict=True)
    assert dict(zip(ids, found.confidence.tolist(), strict=True)) == pytest.approx(pairs)


def test_few_candidates_find_known_types_only(evidence: Evidence) -> None:
    found = complete(evidence, min_confidence=0.0, k=200, candidates=5)
    graph = evidence.known
    assert not set(found.keys().tolist()) & set(graph.keys().tolist())
    assert len(np.unique(found.keys())) == len(found) == 200
    assert (np.diff(found.confidence) <= 0).all()
    for relation in np.unique(found.relation):
        rows, own = found.relation == relation, graph.relation == relation
        assert np.isin(found.head[rows], graph.head[own]).all()
        assert np.isin(found.tail[rows], graph.tail[own]).all()


def test_without_types_more_entities_are_allowed(evidence: Evidence) -> None:
    few = [evidence.relations[int(np.argmin(np.bincount(evidence.known.relation)))]]
    typed = complete(evidence, relations=few, min_confidence=0.0, k=10**6, candidates=3)
    free = complete(evidence, relations=few, min_confidence=0.0, k=10**6, candidates=3, typed=False)
    assert len(free) > len(typed)


def test_the_least_confidence_and_seen_facts_are_heeded(evidence: Evidence, dataset: Dataset) -> None:
    every = complete(evidence, min_confidence=0.0, k=50, candidates=5)
    least = float(np.median(every.confidence))
    sure = complete(evidence, min_confidence=least, k=50, candidates=5)
    assert set(sure.keys().tolist()) == set(every[every.confidence >= least].keys().tolist())
    told = complete(evidence, min_confidence=0.0, k=50, candidates=5, seen=[every[:10], dataset.val])
    assert not set(told.keys().tolist()) & set(every[:10].keys().tolist())
    assert not set(told.keys().tolist()) & set(dataset.val.keys().tolist())


def test_mistakes_are_named(evidence: Evidence) -> None:
    with pytest.raises(DataError, match="unknown relation 'nothing'"):
        complete(evidence, relations=["nothing"])
    with pytest.raises(ConfigError, match="least confidence"):
        complete(evidence, min_confidence=2.0)
    with pytest.raises(ConfigError, match="1 or more"):
        complete(evidence, k=0)
