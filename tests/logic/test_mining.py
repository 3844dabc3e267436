"""Mining and measuring against the definitions spelt out in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.logic.brute_force import every_rule, graphs, measures, turned, walk
from tests.logic.psl_program import psl_program

from ukge.errors import ConfigError, RuleError
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import Engine, connect
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.inference import infer
from ukge.logic.measures import ScoredRule, measure
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.syntax import parse_rule

ANY_PATTERN = [
    "p(A, B) -> q(A, B)",
    "p(B, A) -> p(A, B)",
    "p(A, A) -> q(A, A)",
    "p(A, B) & q(B, C) -> r(A, C)",
    "p(A, B) & q(A, C) -> r(B, C)",
    "p(A, B) & q(C, B) -> p(C, A)",
    "p(A, B) & q(B, B) -> r(A, B)",
    "p(A, B) & q(B, A) -> r(A, B)",
    "p(A, B) & q(B, C) & r(C, D) -> p(A, D)",
    "p(A, B) & q(B, C) & r(A, C) -> p(A, C)",
    "p(A, B) & p(A, C) & p(A, D) -> q(C, D)",
    "r(C, D) & p(A, B) & q(B, C) -> p(D, D)",
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = connect("duckdb", threads=1)
    yield started
    started.close()


def assert_same(found: ScoredRule, wanted: dict[str, float]) -> None:
    for name, value in wanted.items():
        assert getattr(found.measures, name) == pytest.approx(value, nan_ok=True), (str(found.rule), name)


@given(graphs(), st.sampled_from([0.0, 0.5, 0.85]), st.booleans())
@settings(deadline=None, max_examples=4)
def test_figures_of_any_pattern(engine: Engine, graph: UncertainGraph, strong: float, distinct: bool) -> None:
    rules = [parse_rule(text) for text in ANY_PATTERN]
    for found in measure(graph, rules, strong=strong, distinct=distinct, engine=engine):
        assert_same(found, measures(graph, found.rule, strong, distinct))


@given(graphs(), st.sampled_from([0.0, 0.65]), st.integers(1, 3), st.sampled_from([0.0, 0.4]), st.booleans())
@settings(deadline=None, max_examples=4)
def test_no_rule_is_missed_and_none_is_made_up(
    engine: Engine, graph: UncertainGraph, strong: float, support: int, hit_ratio: float, conjunctions: bool
) -> None:
    asked = MiningSettings(
        strong=strong, min_support=support, min_hit_ratio=hit_ratio, conjunctions=conjunctions, keep_redundant=True
    )
    found = {one.rule.canonical(): one for one in mine(graph, asked, engine=engine).scored}
    wanted = {}
    for rule in every_rule(2, conjunctions):
        counted = measures(graph, rule, strong, distinct=True)
        if counted["support"] >= support and counted["support"] >= hit_ratio * counted["implied"]:
            wanted[rule.canonical()] = counted
    assert set(found) == set(wanted)
    for rule, counted in wanted.items():
        assert_same(found[rule], counted)


@given(graphs(n_facts=16))
@settings(deadline=None, max_examples=4)
def test_rules_of_three_atoms_extend_good_ones_of_two(engine: Engine, graph: UncertainGraph) -> None:
    asked = MiningSettings(strong=0.0, min_support=2, min_hit_ratio=0.3, max_length=3, keep_redundant=True)
    found = {one.rule.canonical(): one for one in mine(graph, asked, engine=engine).scored}
    good = {}
    for rule in every_rule(3, conjunctions=False):
        counted = measures(graph, rule, 0.0, distinct=True)
        if counted["support"] >= 2 and counted["support"] >= 0.3 * counted["implied"]:
            good[rule.canonical()] = counted
    for rule, one in found.items():
        assert_same(one, good[rule])
    assert {rule for rule in good if len(rule) < 3} <= set(found)
    bodies = {body for rule in good if len(rule) == 2 for body in (walk(rule), turned(walk(rule)))}
    longer = {rule for rule in good if len(rule) == 3 and bodies.intersection((walk(rule)[:2], walk(rule)[1:]))}
    assert {rule for rule in found if len(rule) == 3} == longer


def family(n: int) -> UncertainGraph:
    """Return n families where the parents of a child are a couple, all but one are told, and one couple is doubtful."""
    facts: list[tuple[str, str, str, float]] = []
    for i in range(n):
        facts += [(f"m{i}", "motherOf", f"c{i}", 1.0), (f"f{i}", "fatherOf", f"c{i}", 0.9)]
        if i:
            facts.append((f"m{i}", "marriedTo", f"f{i}", 0.4 if i == 1 else 0.8))
    return UncertainGraph.from_facts(facts)


def test_figures_by_hand() -> None:
    (found,) = measure(family(10), [parse_rule("motherOf(A, B) & fatherOf(C, B) -> marriedTo(A, C)")], strong=0.75)
    figures = found.measures
    assert (figures.implied, figures.support, figures.strong_support, figures.pca_implied) == (10, 9, 8, 8)
    assert figures.hit_ratio == pytest.approx(0.9)
    assert figures.confidence == pytest.approx(0.8)
    assert figures.pca_confidence == pytest.approx(1.0)
    assert figures.head_coverage == pytest.approx(1.0)
    assert figures.body_mean == pytest.approx(0.9)
    assert figures.head_mean == pytest.approx((8 * 0.8 + 0.4) / 9)
    assert figures.error == pytest.approx((8 * 0.1 + 0.5) / 9)
    assert figures.lift == pytest.approx(1.0)
    assert figures.soft_confidence == pytest.approx((8 * 0.8 + 0.4) / 9.0)
    assert 0.59 < figures.lower_bound < 0.60
    assert set(figures.as_dict()) >= {"hit_ratio", "support", "lift"}


SAID_TWICE = UncertainGraph.from_facts(
    [
        ("a", "p", "b", 1.0),
        ("d", "p", "e", 1.0),
        ("b", "q", "c", 0.95),
        ("a", "p", "b", 0.8),
        ("a", "r", "c", 0.5),
        ("d", "p", "e", 0.6),
        ("a", "r", "c", 0.9),
        ("e", "q", "f", 1.0),
    ]
)


def test_a_fact_said_twice_counts_once_with_its_mean() -> None:
    """p(a, b) is 0.9 and r(a, c) 0.7; p(d, e) is 0.8 and so not strong, though one row says 1."""
    rule = parse_rule("p(A, B) & q(B, C) -> r(A, C)")
    [one] = measure(SAID_TWICE, [rule])
    figures = one.measures
    assert (figures.implied, figures.support, figures.strong_support, figures.head_facts) == (1, 1, 0, 1)
    assert figures.body_sum == pytest.approx(0.85)
    assert (figures.head_mean, figures.overlap, figures.relation_mean) == pytest.approx((0.7, 0.7, 0.7))
    assert figures.error == pytest.approx(0.15)
    report = mine(SAID_TWICE, MiningSettings(min_support=1, min_hit_ratio=0.1)).report
    assert (report.facts, report.strong_facts) == (5, 3)
    [ground_rule] = ground(SAID_TWICE, [rule], GroundingSettings(unseen_only=False)).read().to_pylist()
    assert ground_rule["body"] == pytest.approx(0.85)
    assert (ground_rule["fact_1"], ground_rule["fact_2"]) == (0, 2)
    unseen = SAID_TWICE[[0, 2, 3]]
    hinges = infer(unseen, [parse_rule("p(A, B) & q(B, C) -> q(A, C)")]).program.hinges
    assert hinges.constant[0] == pytest.approx(0.85)
    told = psl_program(SAID_TWICE, [rule], unseen[:0])["predicates"]
    assert told["R0_p/2"]["observations"] == [["a", "b", pytest.approx(0.9)], ["d", "e", pytest.approx(0.8)]]


def test_heads_may_be_looked_up_in_a_larger_graph() -> None:
    rule = parse_rule("motherOf(A, B) & fatherOf(C, B) -> marriedTo(A, C)")
    (inside,) = measure(family(10), [rule])
    larger = UncertainGraph.from_facts([*family(10), ("m0", "marriedTo", "f0", 0.1)])
    graph = UncertainGraph.from_columns(
        *(family(10).facts()[name] for name in ("head", "relation", "tail", "confidence")),
        entities=larger.entities,
        relations=larger.relations,
    )
    (outside,) = measure(graph, [rule], known=larger)
    assert (inside.measures.support, outside.measures.support) == (9, 10)


def test_the_report_accounts_for_every_rule() -> None:
    also = [(f"m{i}", "livesWith", f"f{i}", 1.0) for i in range(10)]
    mined = mine(UncertainGraph.from_facts([*family(10), *also]), MiningSettings(min_support=2, top=1))
    report = mined.report
    lost = report.implied_too_much + report.below_hit_ratio + report.redundant + report.beyond_top + report.too_dear
    assert report.supported == report.kept + lost
    assert report.kept == len(mined) == len({rule.head.relation for rule in mined.rules})
    assert report.beyond_top > 0
    assert report.widest is None
    assert len(report.lines()) == 3


def test_pairs_of_hubs_are_left_out_and_said() -> None:
    shared = [(hub, "in", f"x{i}", 1.0) for i in range(40) for hub in ("hub", "hob")]
    others = [(end, "in", f"y{i}", 1.0) for i in range(5) for end in (f"a{i}", f"b{i}")]
    pairs = [("hub", "with", "hob", 1.0), *((f"a{i}", "with", f"b{i}", 1.0) for i in range(5))]
    graph = UncertainGraph.from_facts(shared + others + pairs)
    free = mine(graph, MiningSettings(min_support=1, min_hit_ratio=0.01))
    capped = mine(graph, MiningSettings(min_support=1, min_hit_ratio=0.01, max_walks=200))
    assert free.report.widest is None
    assert capped.report.widest == 32
    assert capped.report.looked_at + capped.report.left_out == free.report.looked_at > 200
    assert capped.report.left_out == 41
    assert "both have more than 32 facts" in capped.report.lines()[-1]
    rule = parse_rule("in(A, B) & in(C, B) -> with(A, C)").canonical()
    (all_of_it,) = [one.measures for one in free.scored if one.rule.canonical() == rule]
    (exact,) = [one.measures for one in capped.scored if one.rule.canonical() == rule]
    assert all_of_it == exact
    assert exact.support == 6


def test_a_longer_rule_must_be_clearly_better() -> None:
    facts: list[tuple[str, str, str, float]] = []
    for i in range(60):
        facts += [(f"a{i}", "p", f"b{i}", 1.0), (f"a{i}", "q", f"b{i}", 1.0)]
        facts += [(f"a{i}", "s", f"b{i}", 1.0)] if i < 30 else []
        facts += [(f"a{i}", "r", f"b{i}", 1.0)] if i < 31 else []
    mined = mine(UncertainGraph.from_facts(facts), MiningSettings(conjunctions=True))
    found = {rule.canonical() for rule in mined.rules if rule.head.relation == "r"}
    assert parse_rule("p(A, B) -> r(A, B)").canonical() in found
    assert parse_rule("p(A, B) & q(A, B) -> r(A, B)").canonical() not in found
    assert parse_rule("p(A, B) & s(A, B) -> r(A, B)").canonical() not in found
    assert mined.report.redundant > 0
    kept = mine(UncertainGraph.from_facts(facts), MiningSettings(conjunctions=True, keep_redundant=True))
    assert len(kept) == len(mined) + mined.report.redundant


def test_weights_are_drawn_to_what_all_looked_at_rules_are_like() -> None:
    mined = mine(generate(seed=3).graph)
    weights = {rule.canonical(): rule.weight for rule in mined.weighted()}
    assert mined.prior.mean < min(one.measures.soft_confidence for one in mined.scored)
    for one in mined.scored:
        assert mined.prior.mean < weights[one.rule.canonical()] < one.measures.soft_confidence


def test_an_empty_or_weak_graph_has_no_rules() -> None:
    weak = UncertainGraph.from_facts([("a", "r", "b", 0.1)])
    assert len(mine(weak, MiningSettings(max_length=3))) == 0
    (found,) = measure(weak, [parse_rule("r(A, B) -> r(B, A)")])
    assert found.measures.hit_ratio == 0.0
    assert math.isnan(found.measures.error)
    assert measure(weak, []) == []


def test_what_cannot_be_measured_is_said() -> None:
    graph = family(3)
    with pytest.raises(RuleError, match="no relation 'motherof'") as caught:
        measure(graph, [parse_rule("motherof(A, B) -> marriedTo(A, B)")])
    assert "motherOf" in str(caught.value.hint)
    with pytest.raises(RuleError, match="negated head"):
        measure(graph, [parse_rule("motherOf(A, B) -> !marriedTo(A, B)")])


@pytest.mark.parametrize(
    "wrong", [{"max_length": 4}, {"min_support": 0}, {"min_hit_ratio": 1.5}, {"top": 0}, {"strong": 1.0}]
)
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        mine(family(2), MiningSettings(**wrong))  # type: ignore[arg-type]
