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
from ukge.evidence.lookup import FactBatch
from ukge.evidence.paths import PathRules, walk_key
from ukge.evidence.ranking import judged_candidates, linked_candidates, model_scores
from ukge.evidence.reasons import witness
from ukge.evidence.tables import UNIT, Tables
from ukge.graph.index import FactIndex
from ukge.graph.queries import SIDES, Queries
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.engine import connect
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.syntax import parse_rule
from ukge.logic.weights import Prior
from ukge.models.tables import Parameters

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
@settings(deadline=None, max_examples=15)
def test_leaving_a_fact_out_is_the_same_as_never_having_had_it(
    facts: Facts, undirected: Sequence[str], seed: int
) -> None:
    graph, backbone = world(facts, undirected), some_backbone(seed)
    whole = features_of(graph, backbones=(backbone,))
    at = slice(1, None)  # which relations share a category depends on all facts
    for row in range(min(len(graph), 3)):
        head, relation, tail = (np.array([column[row]]) for column in (graph.head, graph.relation, graph.tail))
        own = whole.index.find(head, relation, tail)
        rest = graph[np.flatnonzero(graph.keys() != graph.keys()[row])]
        never = features_of(rest, backbones=(backbone,)).columns(head, relation, tail)
        found = whole.columns(head, relation, tail, own)
        np.testing.assert_allclose(found[:, at], never[:, at], atol=2e-5, equal_nan=True)
        if graph.undirected_relations[relation[0]]:
            np.testing.assert_array_equal(whole.columns(tail, relation, head, own), found)


def test_a_fact_without_a_direction_is_seen_from_both_its_ends() -> None:
    graph = world([(0, 0, 1, 0.8), (1, 0, 2, 0.6), (2, 0, 2, 0.5), (1, 1, 0, 0.9), (3, 0, 1, 0.4)], ("r",))
    features = features_of(graph)
    for fact in (("a", "r", "b"), ("b", "r", "a")):
        found = about(features, graph, fact, count_itself=False)
        assert (found["twins"], found["inverse_twins"]) == (0, 0)  # its mirror is no inverse fact
        assert found["relation_facts"] == 3
        assert (found["query_facts"], found["inverse_query_facts"]) == (0, 2)
        assert found["inverse_query_confidence"] == pytest.approx(0.5)
        assert (found["pair_facts"], found["pair_facts_inverse"]) == (0, 1)
        assert found["implied_share"] == 0  # no other fact s goes with a fact r
    counted = about(features, graph, ("b", "r", "a"))
    assert [counted["twins"], counted["twin_confidence"]] == pytest.approx([1, 0.8])
    assert counted["query_facts"] == 1
    # of the one fact s(b, a), r(b, a) is told by the fact that also is r(a, b)
    assert counted["implied_share"] == pytest.approx(1 / 2)


def test_a_fact_and_its_mirror_do_not_imply_each_other() -> None:
    graph = world([(0, 0, 1, 0.8), (2, 0, 3, 0.6), (0, 1, 1, 0.9)], ("r", "s"))
    table, n = Tables.of(FactIndex(graph)).implications, graph.n_relations
    r, s = graph.relations.id("r"), graph.relations.id("s")
    # r(a, b) beside s(a, b), from both ends and in both orders; no step is the inverse of itself
    assert dict(zip(table.key.tolist(), table.sums[:, 0].tolist(), strict=True)) == {r * 2 * n + s: 2, s * 2 * n + r: 2}


def test_rules_without_a_direction_fire_as_grounding_finds_them() -> None:
    rng = np.random.default_rng(7)
    names = Vocabulary([f"e{i:02}" for i in range(40)]), Vocabulary(["near", "in", "part"], kind="relation")
    empty = UncertainGraph.from_ids([], [], [], np.zeros(0), *names).taken_as_undirected(["near"])
    triples = np.unique(np.stack([rng.integers(0, 40, 700), rng.integers(0, 3, 700), rng.integers(0, 40, 700)]), axis=1)
    graph = empty.with_facts(triples[0], triples[1], triples[2], rng.uniform(0.5, 1.0, triples.shape[1]))
    graph = graph[np.unique(graph.keys(), return_index=True)[1]]
    mined = mine(graph, MiningSettings(strong=0.6, min_hit_ratio=0.0, keep_redundant=True), engine=ENGINE)
    rules = PathRules.of(mined.scored, mined.prior, 0.6, graph.relations, graph.undirected)
    walks = [one.rule for one in mined.scored if walk_key(one.rule, graph.relations) is not None]
    assert len(walks) == len(rules) > 20
    features = features_of(graph, rules)
    told = ground(graph, walks, GroundingSettings(strong=0.6, unseen_only=False), engine=ENGINE).read().to_pandas()
    truth = (
        told.groupby(["head", "relation", "tail"]).agg(rules=("rule", "nunique"), body=("body", "max")).reset_index()
    )
    head, relation, tail = (truth[name].to_numpy().astype(np.int32) for name in ("head", "relation", "tail"))
    columns = features.columns(head, relation, tail)
    np.testing.assert_array_equal(columns[:, features.names.index("rules")], truth["rules"])
    np.testing.assert_allclose(columns[:, features.names.index("rule_body")], truth["body"], rtol=1e-5)
    turned = np.flatnonzero(relation == graph.relations.id("near"))
    mirror = features.columns(tail[turned], relation[turned], head[turned])
    np.testing.assert_array_equal(mirror, columns[turned])


def test_queries_without_a_direction_have_the_same_candidates_from_both_sides() -> None:
    rng = np.random.default_rng(2)
    facts = [tuple(each) for each in np.stack([rng.integers(0, n, 14) for n in (6, 3, 6)], axis=1).tolist()]
    graph = world([(h, r, t, 0.9) for h, r, t in facts], ("s",))
    features = features_of(graph, backbones=(some_backbone(0),))
    relation = np.full(6, graph.relations.id("s"))
    found = []
    for side in SIDES:
        queries = Queries.of(side, np.arange(6), relation)
        scores = model_scores(features, queries)
        candidates, columns = judged_candidates(features, queries, [each.copy() for each in scores], 3)
        found.append((scores[0], linked_candidates(features, queries, 3), candidates.entity, columns))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    # a model is asked of a fact as it is stored
    model = features.backbones[0].model
    stored = model.tail_scores(np.array([1]), relation[:1])[0, 4]
    assert [found[0][0][1, 4], found[0][0][4, 1]] == pytest.approx([stored, stored], rel=1e-5)


def test_no_reason_quotes_the_fact_itself_nor_its_mirror() -> None:
    facts = [
        (0, 0, 1, 0.8),
        (1, 0, 0, 0.7),
        (1, 0, 2, 0.6),
        (0, 0, 3, 0.9),
        (2, 1, 0, 0.9),
        (1, 1, 2, 1.0),
        (0, 2, 1, 0.5),
    ]
    graph = world(facts, ("r",))
    features = features_of(graph, backbones=(some_backbone(1),))
    for pair in ((0, 1), (1, 0)):
        head, tail = (np.array([each]) for each in pair)
        batch = FactBatch.of(head, np.array([0]), tail, features.index.find(head, np.array([0]), tail))
        reasons = witness(features, batch, 0, features.columns(*batch)).reasons({})
        quoted = {fact[:3] for reason in reasons for fact in reason.facts}
        assert ("a", "r", "d") in quoted
        assert ("b", "r", "c") in quoted
        assert quoted.isdisjoint({("a", "r", "b"), ("b", "r", "a")})
        assert quoted <= {fact[:3] for fact in graph}
        assert not any("itself" in reason.sentence or reason.kind in ("inverse", "repeat") for reason in reasons)
        asked = [reason.sentence for reason in reasons if "query" in reason.kind]
        assert len(asked) == 2
        assert not any(word in sentence for sentence in asked for word in ("head", "tail"))


def test_reasons_say_head_and_tail_only_where_there_are_some() -> None:
    for undirected in ((), ("r",)):
        graph = world([(0, 0, 1, 0.8), (1, 0, 2, 0.6), (0, 0, 3, 0.9)], undirected)
        features = features_of(graph, backbones=(some_backbone(1),))
        batch = FactBatch.of(np.array([4]), np.array([0]), np.array([5]))
        said = " ".join(each.sentence for each in witness(features, batch, 0, features.columns(*batch)).reasons({}))
        assert ("as head" in said) == (not undirected)
        assert ("no other entity to compare" in said) == bool(undirected)
