"""Splits: nothing lost, everything covered, the same by seed, leak-safe when asked, and told when short."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import ConfigError, DataError, UkgeWarning
from ukge.graph.dataset import Dataset
from ukge.graph.split import random_cover, split, thrifty_cover
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph

Row = tuple[str, str, str, float]

entities = st.integers(0, 9).map(lambda i: f"e{i}")
graphs = st.lists(
    st.tuples(entities, st.sampled_from("rst"), entities, st.sampled_from([0.2, 0.9])), min_size=1, max_size=60
).map(UncertainGraph.from_facts)
fractions = st.sampled_from([0.0, 0.07, 0.1, 0.25, 0.4])


def quiet_split(graph: UncertainGraph, **options: object) -> tuple[Dataset, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = split(graph, **options)  # type: ignore[arg-type]
    return dataset, [str(warning.message) for warning in caught]


def assert_covered(dataset: Dataset) -> None:
    train = dataset.train
    known = set(train.head.tolist()) | set(train.tail.tolist())
    for part in (dataset.val, dataset.test):
        assert set(part.head.tolist()) | set(part.tail.tolist()) <= known
        assert set(part.relation.tolist()) <= set(train.relation.tolist())


@settings(deadline=None, max_examples=60)
@given(graphs, fractions, fractions, st.integers(0, 5), st.booleans())
def test_partition_coverage_and_sizes(
    graph: UncertainGraph, val: float, test: float, seed: int, leak_safe: bool
) -> None:
    dataset, messages = quiet_split(graph, val=val, test=test, seed=seed, leak_safe=leak_safe)
    assert Counter(dataset.whole()) == Counter(graph)
    assert_covered(dataset)
    asked = {"val": round(val * len(graph)), "test": round(test * len(graph))}
    short = {part: asked[part] - len(dataset.parts[part]) for part in asked}
    assert min(short.values()) >= 0
    if not leak_safe:
        assert bool(messages) == any(short.values())
    if messages:
        assert f"asked for {asked['val']:,} validation and {asked['test']:,} test facts" in messages[0]


@settings(deadline=None, max_examples=60)
@given(graphs, st.integers(0, 5))
def test_leak_safe_keeps_pairs_together(graph: UncertainGraph, seed: int) -> None:
    dataset, messages = quiet_split(graph, val=0.2, test=0.2, seed=seed, leak_safe=True)
    pairs = {name: {frozenset((fact.head, fact.tail)) for fact in part} for name, part in dataset.parts.items()}
    assert not pairs["train"] & pairs["val"]
    assert not pairs["train"] & pairs["test"]
    assert not pairs["val"] & pairs["test"]
    largest = max(Counter(frozenset((fact.head, fact.tail)) for fact in graph).values())
    for part in ("val", "test"):
        assert messages or round(0.2 * len(graph)) - len(dataset.parts[part]) < largest


@settings(deadline=None, max_examples=30)
@given(graphs, st.integers(0, 3), st.booleans())
def test_the_seed_decides(graph: UncertainGraph, seed: int, leak_safe: bool) -> None:
    first, _ = quiet_split(graph, seed=seed, val=0.2, test=0.2, leak_safe=leak_safe)
    second, _ = quiet_split(graph, seed=seed, val=0.2, test=0.2, leak_safe=leak_safe)
    assert first.parts == second.parts


def test_sizes_are_exact_and_seeds_differ() -> None:
    graph = generate(n_entities=300, n_facts=3_000).graph
    for leak_safe in (False, True):
        dataset = split(graph, leak_safe=leak_safe, name="small")
        assert (len(dataset.train), len(dataset.val), len(dataset.test)) == (2_550, 210, 240)
        assert dataset.name == "small"
        assert split(graph, seed=1, leak_safe=leak_safe).test != dataset.test
        assert_covered(dataset)


def test_parts_keep_the_order_of_the_graph() -> None:
    graph = generate(n_entities=300, n_facts=3_000).graph
    place = {fact: row for row, fact in enumerate(graph)}
    for part in split(graph).parts.values():
        rows = [place[fact] for fact in part]
        assert rows == sorted(rows)


def test_every_free_fact_can_be_held_out() -> None:
    """Over many seeds, each fact of a clique lands in test about as often as the next."""
    graph = UncertainGraph.from_facts([(f"e{i}", "r", f"e{j}", 1.0) for i in range(8) for j in range(8) if i != j])
    place = {fact: row for row, fact in enumerate(graph)}
    counts = np.zeros(len(graph))
    for seed in range(200):
        for fact in split(graph, test=0.25, val=0.0, seed=seed, undirected="none").test:
            counts[place[fact]] += 1
    assert counts.sum() == 200 * 14
    assert counts.min() > 25
    assert counts.max() < 80


def test_leak_safe_on_twins_inverses_and_other_relations() -> None:
    facts: list[Row] = []
    for i in range(30):
        for j in range(i + 1, 30):
            facts += [(f"e{i}", "r", f"e{j}", 0.5), (f"e{i}", "r", f"e{j}", 0.6), (f"e{j}", "r", f"e{i}", 0.7)]
            facts += [(f"e{i}", "s", f"e{j}", 0.8)]
    graph = UncertainGraph.from_facts(facts)
    dataset = split(graph, leak_safe=True)
    assert abs(len(dataset.test) - 0.08 * len(graph)) < 4
    assert abs(len(dataset.val) - 0.07 * len(graph)) < 4
    seen = {frozenset((fact.head, fact.tail)) for fact in dataset.train}
    assert not any(frozenset((fact.head, fact.tail)) in seen for fact in dataset.test)
    leaky = split(graph)
    seen = {frozenset((fact.head, fact.tail)) for fact in leaky.train}
    assert any(frozenset((fact.head, fact.tail)) in seen for fact in leaky.test)


def test_a_star_cannot_spare_a_fact() -> None:
    star = UncertainGraph.from_facts([("hub", "r", f"leaf{i}", 1.0) for i in range(20)])
    with pytest.warns(
        UkgeWarning, match=r"asked for 1 validation and 2 test facts of 20, got 0 and 0: train needs all"
    ):
        dataset = split(star)
    assert len(dataset.train) == 20


def test_a_path_gives_up_every_other_fact() -> None:
    """The smallest cover of a path of 2n entities is a perfect matching, which leaves n − 1 facts."""
    path = UncertainGraph.from_facts([(f"e{i:02}", "r", f"e{i + 1:02}", 1.0) for i in range(39)])
    dataset = split(path, val=0.2, test=0.28)
    assert (len(dataset.val), len(dataset.test)) == (8, 11)
    assert_covered(dataset)
    with pytest.warns(UkgeWarning, match="got 9 and 10"):
        split(path, val=0.4, test=0.45)


def test_pairs_too_large_to_fit_are_told() -> None:
    facts = [(f"e{i}", f"r{k}", f"e{j}", 1.0) for i in range(6) for j in range(i) for k in range(20)]
    with pytest.warns(UkgeWarning, match=r"got 20 and 20: the facts of one entity pair stay together"):
        split(UncertainGraph.from_facts(facts), val=0.1, test=0.1, leak_safe=True)


def test_relations_of_one_fact_stay_in_train() -> None:
    clique = [(f"e{i}", "r", f"e{j}", 1.0) for i in range(10) for j in range(10) if i != j]
    rare = [(f"e{i}", f"rare{i}", f"e{i + 1}", 1.0) for i in range(9)]
    dataset = split(UncertainGraph.from_facts(clique + rare), val=0.3, test=0.3, undirected="none")
    assert {fact.relation for fact in dataset.train} >= {f"rare{i}" for i in range(9)}
    assert len(dataset.test) == 30


@settings(deadline=None, max_examples=60)
@given(graphs, st.integers(0, 3))
def test_covers_mention_every_entity_and_relation(graph: UncertainGraph, seed: int) -> None:
    unit = np.arange(len(graph))
    rank = np.random.default_rng(seed).permutation(len(graph))
    for cover in (random_cover(graph, unit, rank), thrifty_cover(graph, unit, np.ones(len(graph), dtype=np.int64))):
        inside = graph[cover]
        assert {*inside.head.tolist(), *inside.tail.tolist()} == {*graph.head.tolist(), *graph.tail.tolist()}
        assert set(inside.relation.tolist()) == set(graph.relation.tolist())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
def test_the_thrifty_cover_of_a_tree_is_the_smallest(parents: list[int]) -> None:
    """Each entity hangs below an earlier one; the smallest edge cover of a tree is found from the leaves."""
    edges = [(parent % (child + 1), child + 1) for child, parent in enumerate(parents)]
    graph = UncertainGraph.from_facts([(f"e{a}", "r", f"e{b}", 1.0) for a, b in edges])
    covered: set[int] = set()
    smallest = 0
    for parent, child in reversed(edges):
        if child not in covered:
            covered |= {parent, child}
            smallest += 1
    smallest += 0 not in covered
    cover = thrifty_cover(graph, np.arange(len(graph)), np.ones(len(graph), dtype=np.int64))
    assert int(cover.sum()) == smallest


def test_fractions_that_make_no_sense_are_refused() -> None:
    graph = UncertainGraph.from_facts([("a", "r", "b", 1.0)])
    for val, test in ((0.5, 0.5), (-0.1, 0.1), (float("nan"), 0.1)):
        with pytest.raises(ConfigError, match="leave nothing to learn from"):
            split(graph, val=val, test=test)
    with pytest.raises(DataError, match="without facts"):
        split(UncertainGraph.from_facts([]))
