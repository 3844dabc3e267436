"""The index of facts against brute force over the rows, with repeats, loops and undirected relations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.graph.index import FactIndex
from ukge.graph.queries import SIDES, Queries
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import find_undirected, without_direction

FACT = st.tuples(
    st.sampled_from("abcde"),
    st.sampled_from(["likes", "near"]),
    st.sampled_from("abcde"),
    st.sampled_from([0.2, 0.5, 1.0]),
)


def meanings(graph: UncertainGraph) -> dict[tuple[str, str, str], float]:
    """What each directed triple means, by brute force: the mean of the rows that say it, in either direction if so."""
    said: dict[tuple[str, str, str], list[float]] = {}
    for fact in graph:
        ways = {(fact.head, fact.relation, fact.tail)}
        if fact.relation in graph.undirected:
            ways.add((fact.tail, fact.relation, fact.head))
        for way in ways:
            said.setdefault(way, []).append(fact.confidence)
    return {triple: float(np.mean(values)) for triple, values in said.items()}


@given(st.lists(FACT, min_size=1, max_size=25), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_look_up_says_what_the_rows_say(facts: list[tuple[str, str, str, float]], undirected: bool) -> None:
    graph = UncertainGraph.from_facts(facts)
    if undirected and "near" in graph.relations:
        graph = without_direction(graph, ["near"])
    index, meant = FactIndex(graph), meanings(graph)
    names = list(graph.entities)
    for r, relation in enumerate(graph.relations):
        for h, head in enumerate(names):
            stored = index.stored(np.full(len(names), h), np.full(len(names), r), np.arange(len(names)))
            expected = [meant.get((head, relation, tail), np.nan) for tail in names]
            assert stored == pytest.approx(expected, nan_ok=True)
            for side in SIDES:
                answers = index.answers(Queries.of(side, h, r))
                found = {names[e]: c for e, c in zip(answers.entity, answers.confidence, strict=True)}
                asked = {
                    (t if side == "tail" else s): c
                    for (s, p, t), c in meant.items()
                    if p == relation and (s if side == "tail" else t) == head
                }
                assert found == pytest.approx(asked)
    for h, head in enumerate(names):
        for facts_of, end in ((index.as_head(h), 0), (index.as_tail(h), 2)):
            listed = {(names[a], graph.relations[int(r)], names[b]): c for a, r, b, c in zip(*facts_of, strict=True)}
            assert listed == pytest.approx({triple: c for triple, c in meant.items() if triple[end] == head})


def test_repeats_and_mirrors_are_one_fact() -> None:
    graph = without_direction(
        UncertainGraph.from_facts(
            [("b", "near", "a", 0.4), ("a", "near", "b", 0.8), ("b", "likes", "a", 0.1), ("b", "likes", "a", 0.3)]
        ),
        ["near"],
    )
    index = FactIndex(graph)
    assert len(index) == 2
    (fact,) = graph.where(relation="near")
    assert (fact.head, fact.tail) == ("a", "b")
    assert fact.confidence == pytest.approx(0.6)
    likes, near = graph.relations.index["likes"], graph.relations.index["near"]
    head, tail = np.array([1, 1, 0]), np.array([0, 0, 1])
    assert index.stored(head, np.array([likes, near, near]), tail).tolist() == pytest.approx([0.2, 0.6, 0.6])
    assert np.isnan(index.stored(np.array([0]), np.array([likes]), np.array([1]))[0])


def pairs(n: int) -> list[tuple[str, str]]:
    rng = np.random.default_rng(n)
    drawn = {tuple(sorted(rng.choice(40, 2, replace=False).tolist())) for _ in range(n)}
    return [(f"p{a:02}", f"p{b:02}") for a, b in sorted(drawn)]


def test_one_direction_both_and_any_order_give_the_same_graph() -> None:
    confidences = np.random.default_rng(0).random(500).round(3)
    once = [(a, "binds", b, c) for (a, b), c in zip(pairs(150), confidences, strict=False)]
    twice = [fact for a, r, b, c in once for fact in ((b, r, a, c), (a, r, b, c))]
    shuffled = [twice[i] for i in np.random.default_rng(1).permutation(len(twice))]
    made = []
    for facts in (once, twice, shuffled):
        graph = UncertainGraph.from_facts(facts)
        assert find_undirected(graph) == ("binds",)
        made.append(without_direction(graph, ["binds"]))
    assert len(made[0]) == len(once)
    assert made[0].fingerprint == made[1].fingerprint == made[2].fingerprint
    assert made[0].entities == made[1].entities == made[2].entities


def test_directed_relations_are_left_alone() -> None:
    rng = np.random.default_rng(3)
    parents = [(f"x{a:02}", "parentOf", f"x{b:02}", 0.9) for a, b in rng.integers(40, size=(200, 2)) if a != b]
    lives = [(f"a{i:02}", "livesIn", f"town{i % 5}", 0.8) for i in range(60)]
    assert find_undirected(UncertainGraph.from_facts([*parents, *lives])) == ()
