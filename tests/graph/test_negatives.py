"""Negative links: true, unrepeated, like the test facts, of the promised kind; or an error that names what lacks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import ConfigError, DataError
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import KINDS, Pool, Slots, negative_links, with_negatives
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

EVERY_KIND = ["corruption", "degree", "fitting", "mixture", "other-relation", "paper", "range", "uniform"]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=300, n_facts=3_000).graph)


def triples(graph: UncertainGraph) -> list[tuple[int, int, int]]:
    return list(zip(graph.head.tolist(), graph.relation.tolist(), graph.tail.tolist(), strict=True))


def test_every_kind_is_tested_here() -> None:
    assert KINDS.names() == EVERY_KIND


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_links_are_true_new_and_like_the_test_facts(dataset: Dataset, kind: str) -> None:
    links = negative_links(dataset, kind=kind)
    found = triples(links)
    assert links.relation.tolist() == dataset.test.relation.tolist()
    assert links.confidence.tolist() == [0.0] * len(dataset.test)
    assert not set(found) & set(triples(dataset.whole()))
    assert len(set(found)) == len(found)
    assert all(head != tail for head, _, tail in found)
    assert negative_links(dataset, kind=kind) == links
    assert negative_links(dataset, kind=kind, seed=1) != links


def test_range_tails_come_from_the_relation_in_train(dataset: Dataset) -> None:
    known = set(zip(dataset.train.relation.tolist(), dataset.train.tail.tolist(), strict=True))
    for kind in ("range", "paper"):
        links = negative_links(dataset, kind=kind)
        assert set(zip(links.relation.tolist(), links.tail.tolist(), strict=True)) <= known
    links = negative_links(dataset, kind="uniform")
    assert not set(zip(links.relation.tolist(), links.tail.tolist(), strict=True)) <= known


def test_other_relation_takes_pairs_of_train(dataset: Dataset) -> None:
    pairs = {(h, t): set[int]() for h, _, t in triples(dataset.train)}
    for head, relation, tail in triples(dataset.train):
        pairs[head, tail].add(relation)
    for true_negatives in (True, False):
        links = negative_links(dataset, kind="other-relation", true_negatives=true_negatives)
        assert all(pairs[head, tail] - {relation} for head, relation, tail in triples(links))


@pytest.mark.parametrize("kind", ["degree", "corruption"])
def test_a_corruption_keeps_one_end_of_a_test_fact(dataset: Dataset, kind: str) -> None:
    heads = {(h, r) for h, r, _ in triples(dataset.test)}
    tails = {(r, t) for _, r, t in triples(dataset.test)}
    links = triples(negative_links(dataset, kind=kind))
    assert all((head, relation) in heads or (relation, tail) in tails for head, relation, tail in links)


def test_weights_of_the_draws() -> None:
    """A hub with 90 of 100 facts is drawn by degree half as often as all others together, uniformly hardly ever."""
    facts = [("hub", "r", f"e{i}", 1.0) for i in range(90)] + [(f"e{i}", "s", f"e{i + 1}", 1.0) for i in range(10)]
    graph = UncertainGraph.from_facts(facts)
    rng = np.random.default_rng(0)
    slots = Slots(graph.head[:1].repeat(20_000), graph.relation[90:91].repeat(20_000), graph.tail[:1].repeat(20_000))
    hub = graph.entities.id("hub")
    by_degree, tails = KINDS.get("paper")(Pool(graph), slots, rng)
    assert np.mean(by_degree == hub) == pytest.approx(90 / 200, abs=0.02)
    assert set(graph.entities.decode(tails).to_pylist()) == {f"e{i + 1}" for i in range(10)}
    uniform, _ = KINDS.get("range")(Pool(graph), slots, rng)
    assert np.mean(uniform == hub) == pytest.approx(1 / graph.n_entities, abs=0.005)
    corrupted = KINDS.get("degree")(Pool(graph), slots, rng)
    assert np.mean(corrupted[0] != slots.head) == pytest.approx(0.5 * 110 / 200, abs=0.02)
    corrupted = KINDS.get("corruption")(Pool(graph), slots, rng)
    assert np.mean(corrupted[0] != slots.head) == pytest.approx(0.5 * (1 - 1 / graph.n_entities), abs=0.02)
    counts = np.bincount(corrupted[0][corrupted[0] != slots.head], minlength=graph.n_entities)
    assert np.delete(counts, hub).min() > 60  # each of the 90 others about 110 times


def test_another_number_of_links_follows_the_relations(dataset: Dataset) -> None:
    wanted = Counter(dataset.test.relation.tolist())
    found = Counter(negative_links(dataset, n=3 * len(dataset.test), kind="uniform").relation.tolist())
    assert found == {relation: 3 * count for relation, count in wanted.items()}
    assert len(negative_links(dataset, n=7, kind="uniform")) == 7
    like = dataset.val[:10]
    assert negative_links(dataset, like, kind="uniform").relation.tolist() == like.relation.tolist()
    with pytest.raises(ConfigError, match="n must be at least 1"):
        negative_links(dataset, n=0)


def test_with_negatives_fills_the_data_set(dataset: Dataset) -> None:
    filled = with_negatives(dataset, "mixture", seed=3)
    assert filled.negatives is not None
    assert filled.test_with_negatives()[: len(dataset.test)] == dataset.test
    assert len(filled.test_with_negatives()) == 2 * len(dataset.test)
    assert filled.train == dataset.train
    assert dataset.negatives is None


def dense(missing: set[tuple[int, int]]) -> UncertainGraph:
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j and (i, j) not in missing]
    entities = Vocabulary([f"e{i}" for i in range(6)])
    head, tail = zip(*pairs, strict=True)
    relations = Vocabulary(["likes"], kind="relation")
    return UncertainGraph.from_ids(head, [0] * len(pairs), tail, [1.0] * len(pairs), entities, relations)


@settings(deadline=None, max_examples=20)
@given(
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda p: p[0] != p[1]), min_size=1, max_size=6),
    st.sampled_from(["uniform", "range", "mixture", "paper"]),
)
def test_a_dense_relation_gives_all_it_has_and_no_more(missing: set[tuple[int, int]], kind: str) -> None:
    graph = dense(missing)
    reachable = {pair for pair in missing if pair[1] in graph.tail or kind in ("uniform", "mixture")}
    if not reachable:
        return
    links = negative_links(graph, kind=kind, n=len(reachable))
    assert set(zip(links.head.tolist(), links.tail.tolist(), strict=True)) == reachable
    with pytest.raises(DataError) as error:
        negative_links(graph, kind=kind, n=len(missing) + 1)
    assert f"of {len(missing) + 1:,} negative links" in str(error.value)
    assert "relation 'likes'" in str(error.value)
    assert "fewer links" in str(error.value)


def test_what_a_kind_cannot_do_is_told() -> None:
    graph = dense({(0, 1)})
    with pytest.raises(DataError, match=r"'other-relation' found only 0 of 1(.|\n)*'likes': 1 of 1 links not found"):
        negative_links(graph, kind="other-relation", n=1)
    assert len(negative_links(graph, kind="uniform", true_negatives=False)) == len(graph)
    with pytest.raises(ConfigError, match="Did you mean 'uniform'"):
        negative_links(graph, kind="unifrom")


def test_facts_of_another_graph_are_refused(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="do not share the vocabularies"):
        negative_links(dataset, dense(set()))
    with pytest.raises(DataError, match="need training facts"):
        negative_links(dataset, dataset.test[:0])


def test_the_paper_kind_is_distributed_like_the_published_links(benchmark_data: Path) -> None:
    """Mean log degree of heads and of tails within their relation: uniform heads would be at 2.2, not at 3.2."""
    folder = benchmark_data / "cn15k"
    train, test = (np.loadtxt(folder / f"{part}.tsv") for part in ("train", "test"))
    published = np.loadtxt(folder / "test_with_neg.tsv")[len(test) :]
    both = (Vocabulary([str(i) for i in range(15_000)]), Vocabulary([str(i) for i in range(36)], kind="relation"))
    facts, test_facts = (
        UncertainGraph.from_ids(
            part[:, 0].astype(int), part[:, 1].astype(int), part[:, 2].astype(int), part[:, 3], *both
        )
        for part in (train, test)
    )
    dataset = Dataset("cn15k", facts, test_facts[:0], test_facts)
    degree = np.bincount(dataset.train.head, minlength=15_000)
    theirs = np.log1p(degree[published[:, 0].astype(int)]).mean()
    means = {k: np.log1p(degree[negative_links(dataset, kind=k).head]).mean() for k in ("paper", "range")}
    assert means["paper"] == pytest.approx(theirs, abs=0.05)
    assert abs(means["range"] - theirs) > 0.5
