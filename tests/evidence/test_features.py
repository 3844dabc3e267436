"""Evidence columns: hand-computed on few facts, and equal to those of a graph that never held the fact."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ukge.evidence.backbones import Backbone
from ukge.evidence.features import Features
from ukge.evidence.paths import PathRules, walk_key
from ukge.evidence.tables import UNIT, Tables
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.engine import connect
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.syntax import parse_rule
from ukge.logic.weights import Prior
from ukge.models.parameters import Parameters

NO_RULES = PathRules(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), Prior(0.5, 1.0), 0.5)
FACTS = [
    ("a", "r", "b", 0.8),
    ("a", "r", "b", 0.4),
    ("b", "r", "a", 0.6),
    ("a", "s", "b", 0.9),
    ("b", "s", "c", 1.0),
    ("a", "s", "c", 0.7),
    ("d", "r", "c", 0.5),
]


ENGINE = connect("duckdb", threads=1)


def features_of(graph: UncertainGraph, rules: PathRules = NO_RULES, backbones: tuple[Backbone, ...] = ()) -> Features:
    index = FactIndex(graph)
    return Features.of(index, Tables.of(index, ENGINE), rules, backbones)


def about(
    features: Features, graph: UncertainGraph, fact: tuple[str, str, str], *, count_itself: bool = True
) -> dict[str, float]:
    head, relation = np.array([graph.entities.id(fact[0])]), np.array([graph.relations.id(fact[1])])
    tail = np.array([graph.entities.id(fact[2])])
    own = None if count_itself else features.index.find(head, relation, tail)
    row = features.columns(head, relation, tail, own)[0]
    return dict(zip(features.names, map(float, row), strict=True))


def test_columns_of_a_pair_by_hand() -> None:
    graph = UncertainGraph.from_facts(FACTS)
    found = about(features_of(graph), graph, ("a", "r", "b"))
    assert found["twins"] == 2
    assert found["twin_confidence"] == pytest.approx(0.6)
    assert found["inverse_twins"] == 1
    assert found["inverse_confidence"] == found["inverse_lowest"] == found["inverse_highest"] == pytest.approx(0.6)
    assert math.isnan(found["inverse_unmatched"])
    assert (found["pair_facts"], found["pair_facts_inverse"]) == (1, 0)
    assert found["pair_confidence"] == pytest.approx(0.9)
    assert found["relation_facts"] == 4
    assert found["relation_confidence"] == pytest.approx(2.3 / 4)
    assert (found["query_facts"], found["inverse_query_facts"]) == (2, 2)
    assert found["head_facts"] == 4
    assert found["head_confidence"] == pytest.approx(2.8 / 4)
    assert found["head_as_tail"] == 1
    # c is linked to both; it has three neighbours: a, b and d
    assert found["common_neighbours"] == 1
    assert found["common_neighbours_rare"] == pytest.approx(1 / math.log(4))
    assert found["neighbours_shared"] == 1.0
    assert found["best_path"] == pytest.approx(0.7)


def test_no_row_of_the_fact_itself_counts() -> None:
    graph = UncertainGraph.from_facts(FACTS)
    found = about(features_of(graph), graph, ("a", "r", "b"), count_itself=False)
    assert found["twins"] == 0
    assert math.isnan(found["twin_confidence"])
    assert found["inverse_confidence"] == pytest.approx(0.6)
    assert found["relation_confidence"] == pytest.approx(1.1 / 2)
    assert (found["query_facts"], found["head_facts"]) == (0, 2)
    # no fact r is left beside a fact s, so s tells nothing of r
    assert (found["pair_facts"], found["implied_share"]) == (1, 0)


def test_what_a_repeat_leaves_of_the_inverse_facts() -> None:
    graph = UncertainGraph.from_facts([("a", "r", "b", 0.3), ("b", "r", "a", 0.3), ("b", "r", "a", 0.8)])
    found = about(features_of(graph), graph, ("a", "r", "b"))
    assert found["inverse_lowest"] == pytest.approx(0.3)
    assert found["inverse_highest"] == pytest.approx(0.8)
    assert found["inverse_unmatched"] == pytest.approx(0.8)


def test_what_is_not_known_is_not_a_number() -> None:
    graph = UncertainGraph.from_facts(FACTS)
    found = about(features_of(graph), graph, ("c", "r", "d"))
    assert found["twins"] == 0
    assert math.isnan(found["twin_confidence"])
    assert found["inverse_confidence"] == pytest.approx(0.5)
    assert found["query_facts"] == 0
    assert math.isnan(found["query_confidence"])


def test_implications_count_pairs_of_facts_about_the_same_entities() -> None:
    graph = UncertainGraph.from_facts(FACTS)
    table = Tables.of(FactIndex(graph)).implications
    r, s, n = graph.relations.id("r"), graph.relations.id("s"), graph.n_relations
    sums = {int(key): [int(each) for each in row] for key, row in zip(table.key, table.sums, strict=True)}
    # two facts r(a, b) beside s(a, b), and one r(b, a) whose inverse pair has it
    assert sums[r * 2 * n + s][:3] == [2, round(1.8 * UNIT), round(1.2 * UNIT)]
    assert sums[r * 2 * n + s + n][:3] == [1, round(0.9 * UNIT), round(0.6 * UNIT)]
    assert sums[r * 2 * n + r][:1] == [2]
    assert sums[r * 2 * n + r + n][:3] == [4, round(2.4 * UNIT), round(2.4 * UNIT)]
    assert s * 2 * n + s not in sums


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1: r(A, Z) & s(Z, B) -> r(A, B)", (0, 1)),
        ("1: s(Z, B) & r(A, Z) -> r(A, B)", (0, 1)),
        ("1: r(Z, A) & s(B, Z) -> r(A, B)", (2, 3)),
        ("1: s(A, B) -> r(A, B)", None),
        ("1: r(A, B) & s(A, B) -> r(A, B)", None),
    ],
)
def test_rules_become_walks_from_subject_to_object(text: str, steps: tuple[int, int] | None) -> None:
    relations = Vocabulary(["r", "s"], kind="relation")
    key = walk_key(parse_rule(text), relations)
    assert key == (None if steps is None else (0 * 4 + steps[0]) * 4 + steps[1])


def test_a_rule_fires_with_the_truth_of_its_best_body() -> None:
    facts = [
        ("a", "p", "z", 0.9),
        ("z", "q", "b", 0.8),
        ("a", "p", "y", 1.0),
        ("b", "q", "y", 1.0),
        ("c", "r", "c", 0.5),
    ]
    graph = UncertainGraph.from_facts(facts)
    relations = graph.relations
    rule = walk_key(parse_rule("1: p(A, Z) & q(Z, B) -> r(A, B)"), relations)
    rules = PathRules(np.array([rule]), np.array([3.0]), np.array([5.0]), Prior(0.5, 2.0), 0.5)
    found = about(features_of(graph, rules), graph, ("a", "r", "b"))
    weight = (3.0 + 1.0) / (5.0 + 2.0)
    assert found["rules"] == 1
    assert found["rule_body"] == pytest.approx(0.7)
    assert found["rule_best"] == pytest.approx(0.7 * weight)
    assert found["rule_or"] == pytest.approx(0.7 * weight)
    assert about(features_of(graph, rules), graph, ("b", "r", "a"))["rules"] == 0


def test_bodies_of_mined_rules_are_those_that_grounding_finds() -> None:
    from ukge.graph.synthetic import generate
    from ukge.logic.grounding import GroundingSettings, ground

    graph = generate(n_entities=300, n_facts=3000, seed=5).graph
    mined = mine(graph, MiningSettings(strong=0.5, min_hit_ratio=0.1))
    rules = PathRules.of(mined.scored, mined.prior, 0.5, graph.relations)
    assert len(rules) > 0
    walks = [one.rule for one in mined.scored if walk_key(one.rule, graph.relations) is not None]
    chosen = GroundingSettings(strong=0.5, unseen_only=False, best_only=True)
    table = ground(graph, walks, chosen).read(["head", "relation", "tail", "rule", "body"]).to_pandas()
    truth = table.groupby(["head", "relation", "tail"]).agg(rules=("rule", "nunique"), body=("body", "max"))
    asked = truth.sample(min(300, len(truth)), random_state=0).reset_index()
    ids = [asked[name].to_numpy().astype(np.int32) for name in ("head", "relation", "tail")]
    features = features_of(graph, rules)
    columns = features.columns(*ids)
    np.testing.assert_array_equal(columns[:, features.names.index("rules")], asked["rules"])
    np.testing.assert_allclose(columns[:, features.names.index("rule_body")], asked["body"], rtol=1e-5)


ENTITIES, RELATIONS = Vocabulary(list("abcdef")), Vocabulary(["r", "s", "p"], kind="relation")
FACT = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5), st.integers(0, 100).map(lambda c: c / 100))
UNDIRECTED = st.sampled_from([(), ("s",), ("r", "s"), ("r", "s", "p")])
Facts = list[tuple[int, int, int, float]]


def world(facts: Facts, undirected: Sequence[str]) -> UncertainGraph:
    """Facts of six entities and three relations, of which some have no direction."""
    none: Facts = []
    columns = [np.array(column) for column in zip(*facts, strict=True)] or [np.zeros(0) for _ in range(4)]
    names = UncertainGraph.from_ids([], [], [], none, ENTITIES, RELATIONS).taken_as_undirected(undirected)
    return names.with_facts(*columns)


def some_backbone(seed: int) -> Backbone:
    vectors = np.random.default_rng(seed).normal(size=(6, 4)).astype(np.float32)
    return Backbone("m", "transe", "rectifier", Parameters(vectors, vectors[:3]))


@given(facts=st.lists(FACT, min_size=2, max_size=30), undirected=UNDIRECTED, seed=st.integers(0, 100))
@example(facts=[(0, 0, 1, 0.5), (1, 0, 0, 0.7), (0, 0, 1, 0.1), (0, 1, 1, 0.4), (1, 1, 0, 1.0)], undirected=(), seed=0)
@example(facts=[(0, 0, 1, 0.5), (1, 0, 0, 0.7), (0, 1, 1, 0.4), (2, 0, 2, 1.0)], undirected=("r", "s"), seed=0)
@settings(deadline=None, max_examples=60)
def test_leaving_a_fact_out_is_the_same_as_never_having_had_it(
    facts: Facts, undirected: Sequence[str], seed: int
) -> None:
    graph, backbone = world(facts, undirected), some_backbone(seed)
    whole = features_of(graph, backbones=(backbone,))
    at = slice(1, None)  # which relations share a category depends on all facts
    for row in range(min(len(graph), 3)):
        ids = [np.array([column[row]]) for column in (graph.head, graph.relation, graph.tail)]
        own = whole.index.find(*ids)
        rest = graph[np.flatnonzero(graph.keys() != graph.keys()[row])]
        never = features_of(rest, backbones=(backbone,)).columns(*ids)
        np.testing.assert_allclose(whole.columns(*ids, own)[:, at], never[:, at], atol=2e-5, equal_nan=True)
        if undirected and graph.relations[int(ids[1][0])] in undirected:
            turned = whole.columns(ids[2], ids[1], ids[0], own)
            np.testing.assert_array_equal(turned, whole.columns(*ids, own))
