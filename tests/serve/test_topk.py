"""Exact search, in blocks and together, finds what sorting all scores finds; the index finds nearly the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.small_run import make_run

from ukge.models.links import links
from ukge.models.scorers import scorers
from ukge.serve.deadlines import Deadline, TimeLimitError
from ukge.serve.index import FOLDER, ApproximateSearch, approximate
from ukge.serve.snapshot import Snapshot
from ukge.serve.topk import ExactSearch, Wanted
from ukge.serve.weights import Weights


def random_weights(scorer: str, n: int = 97, dim: int = 8, weight: float = 1.5) -> Weights:
    draw = torch.Generator().manual_seed(1)
    chosen = scorers.get(scorer)
    entity = torch.randn(n, chosen.entity_width(dim), generator=draw)
    relation = torch.randn(5, chosen.relation_width(dim), generator=draw)
    return Weights(entity, relation, torch.tensor([weight, 0.1]), chosen, links.get("logistic"))


@pytest.mark.parametrize("scorer", scorers.names())
@pytest.mark.parametrize("weight", [1.5, -1.5])
@pytest.mark.parametrize("side", ["tail", "head"])
def test_every_scorer_ranks_by_confidence(scorer: str, weight: float, side: str) -> None:
    weights = random_weights(scorer, weight=weight)
    query = weights.tail_query(3, 2) if side == "tail" else weights.head_query(2, 3)
    found = ExactSearch(weights, block_elements=20).search([Wanted(query, 10)], Deadline(10))[0]
    every, three, two = np.arange(weights.n_entities), np.full(weights.n_entities, 3), np.full(weights.n_entities, 2)
    confidence = weights.confidence(three, two, every) if side == "tail" else weights.confidence(every, two, three)
    assert weights.confidence_of(found.score) == pytest.approx(np.sort(confidence)[::-1][:10], abs=1e-5)
    assert confidence[found.entity] == pytest.approx(weights.confidence_of(found.score), abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(
    block=st.integers(1, 400),
    queries=st.lists(
        st.tuples(
            st.integers(1, 120),
            st.none() | st.lists(st.integers(0, 96), unique=True),
            st.lists(st.integers(0, 96), unique=True),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_queries_answered_together_do_not_mix(
    block: int, queries: list[tuple[int, list[int] | None, list[int]]]
) -> None:
    weights = random_weights("distmult")
    wanted = [
        Wanted(
            weights.tail_query(at, at % 5),
            k,
            None if among is None else np.array(sorted(among), dtype=np.int64),
            np.array(without, dtype=np.int64),
        )
        for at, (k, among, without) in enumerate(queries)
    ]
    found = ExactSearch(weights, block_elements=block).search(wanted, Deadline(10))
    for at, (k, among, without) in enumerate(queries):
        scores = weights.entity.numpy() @ wanted[at].query.numpy()
        allowed = sorted((set(range(97)) if among is None else set(among)) - set(without))
        expected = sorted(allowed, key=lambda each: -scores[each])[:k]
        assert found[at].entity.tolist() == expected


def test_the_search_stops_at_its_deadline() -> None:
    weights = random_weights("distmult")
    with pytest.raises(TimeLimitError):
        ExactSearch(weights).search([Wanted(weights.tail_query(0, 0), 1)], Deadline(-1))


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Path:
    """A copy of the run that an index may be put into."""
    return Path(shutil.copytree(run, tmp_path / "own"))


def test_the_index_is_built_kept_and_its_recall_told(own: Path) -> None:
    snapshot = Snapshot.open(own, index_above=100)
    assert snapshot.searcher is snapshot.exact
    snapshot.warm()
    assert snapshot.index is not None
    searcher = snapshot.index.get(Deadline(60))
    assert snapshot.searcher is searcher
    told = searcher.describe()
    assert told["kind"] == "approximate"
    assert told["recall"] == pytest.approx(1.0, abs=0.05)
    assert sorted(file.name for file in (own / FOLDER).iterdir()) == ["entities.usearch", "manifest.json"]
    written = (own / FOLDER / "entities.usearch").stat().st_mtime_ns
    again = approximate(own, snapshot.weights, snapshot.observed, snapshot.exact)
    assert (own / FOLDER / "entities.usearch").stat().st_mtime_ns == written
    query = snapshot.weights.tail_query(5, 1)
    known = np.array([0, 1, 2, 3])
    exact = snapshot.exact.search([Wanted(query, 10, without=known)], Deadline(10))[0]
    near = again.search([Wanted(query, 10, without=known)], Deadline(10))[0]
    assert len(np.intersect1d(exact.entity, near.entity)) >= 9
    assert not np.isin(near.entity, known).any()
    some = np.arange(40, 60)
    assert again.search([Wanted(query, 5, some)], Deadline(10))[0].entity.tolist() == (
        snapshot.exact.search([Wanted(query, 5, some)], Deadline(10))[0].entity.tolist()
    )


def test_a_damaged_or_foreign_index_is_built_again(own: Path) -> None:
    snapshot = Snapshot.open(own)
    arguments = (own, snapshot.weights, snapshot.observed, snapshot.exact)
    approximate(*arguments)
    file = own / FOLDER / "entities.usearch"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert isinstance(approximate(*arguments), ApproximateSearch)
    assert len(file.read_bytes()) == len(content)


def test_small_graphs_and_distances_have_no_index(run: Path, tmp_path: Path) -> None:
    assert Snapshot.open(run, index_above=1_000_000).index is None
    assert Snapshot.open(make_run(tmp_path, scorer="transe"), index_above=10).index is None
