"""Grounding against the definition spelt out in plain Python, and what its report says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.logic.brute_force import graphs, groundings, once

from ukge.errors import ConfigError, DataError, RuleError
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import Engine, connect
from ukge.logic.ground_rules import Grounding
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.rules import Rule
from ukge.logic.syntax import parse_rule

RULES = [
    parse_rule(text)
    for text in (
        "0.5: p(A, B) -> q(B, A)",
        "2.0: q(B, C) & p(A, B) -> r(A, C)",
        "1.0: p(A, B) & q(A, C) -> !r(B, C)",
        "1.0: p(A, B) & q(B, C) & r(C, D) -> p(A, D)",
        "1.0: r(B, C) & p(A, B) & q(A, C) -> p(A, C)",
        "1.0: p(A, B) & q(A, B) -> r(A, B)",
    )
]
SYNONYMS = [
    ("college", "synonym", "university", 0.99),
    ("university", "synonym", "institute", 0.86),
    ("institute", "synonym", "school", 0.95),
]
TRANSITIVE = parse_rule("1.0: synonym(A, B) & synonym(B, C) -> synonym(A, C) ^2")
Row = tuple[int, str, str, str, float, tuple[int, ...]]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = connect("duckdb", threads=1)
    yield started
    started.close()


def rows(graph: UncertainGraph, found: Grounding) -> list[Row]:
    told = []
    for row in found.read().to_pylist():
        facts = tuple(row[f"fact_{place}"] for place in (1, 2, 3) if row[f"fact_{place}"] is not None)
        names = graph.entities[row["head"]], graph.relations[row["relation"]], graph.entities[row["tail"]]
        told.append((row["rule"], *names, round(row["body"], 9), facts))
    return told


def expected(graph: UncertainGraph, rules: list[Rule], asked: GroundingSettings) -> list[Row]:
    known = once(graph)
    told = []
    for number, rule in enumerate(rules):
        told += [
            (number, *one.head, round(one.value, 9), one.rows)
            for one in groundings(graph, rule, asked.strong, asked.distinct)
            if one.value > asked.min_body and not (asked.unseen_only and one.head in known)
        ]
    return told


@given(graphs(), st.sampled_from([0.0, 0.65]), st.booleans(), st.booleans(), st.sampled_from([0.0, 0.7]))
@settings(deadline=None, max_examples=4)
def test_every_ground_rule_and_no_other(
    engine: Engine, graph: UncertainGraph, strong: float, unseen: bool, distinct: bool, least: float
) -> None:
    asked = GroundingSettings(strong=strong, unseen_only=unseen, distinct=distinct, min_body=least)
    found = ground(graph, RULES, asked, engine=engine)
    assert sorted(rows(graph, found)) == sorted(expected(graph, RULES, asked))
    for number, told in enumerate(found.report.rules):
        all_of_it = list(groundings(graph, RULES[number], strong, distinct))
        assert told.filled == len(all_of_it)
        assert told.estimate >= told.filled
        assert told.untrue == sum(one.value <= least for one in all_of_it)
        kept = sum(row[0] == number for row in rows(graph, found))
        assert told.filled - told.untrue - told.observed == kept


@given(graphs())
@settings(deadline=None, max_examples=3)
def test_the_best_body_of_each_head(engine: Engine, graph: UncertainGraph) -> None:
    whole = ground(graph, RULES, GroundingSettings(strong=0.0, unseen_only=False), engine=engine)
    best_ones = ground(graph, RULES, GroundingSettings(strong=0.0, unseen_only=False, best_only=True), engine=engine)
    truest: dict[tuple[object, ...], float] = {}
    for rule, head, relation, tail, value, _ in rows(graph, whole):
        truest[rule, head, relation, tail] = max(value, truest.get((rule, head, relation, tail), 0.0))
    assert {row[:4]: row[4] for row in rows(graph, best_ones)} == truest
    assert len(best_ones) == len(truest)
    assert set(rows(graph, best_ones)) <= set(rows(graph, whole))


def test_the_papers_example() -> None:
    graph = UncertainGraph.from_facts(SYNONYMS)
    found = ground(graph, [TRANSITIVE])
    told = [(row[1], row[3], row[4], row[5]) for row in rows(graph, found)]
    assert told == [("college", "institute", 0.85, (0, 1)), ("university", "school", 0.81, (1, 2))]
    arrays = found.arrays()
    assert arrays.body.tolist() == pytest.approx([0.85, 0.81])
    assert arrays.weight.tolist() == [1.0, 1.0]
    assert [array.dtype for array in vars(arrays).values()] == [np.int32, np.int32, np.int32, np.float32, np.float32]


def test_rules_beyond_the_budget_are_named_with_their_size() -> None:
    hub = [("x", "r", f"y{i}", 1.0) for i in range(100)] + [("a", "s", "b", 1.0)]
    graph = UncertainGraph.from_facts(hub)
    wide, narrow = parse_rule("0.9: r(A, B) & r(A, C) -> r(B, C)"), parse_rule("0.1: s(A, B) -> s(B, A)")
    found = ground(graph, [wide, narrow], GroundingSettings(budget=500))
    assert len(found) == 1
    (pruned,) = found.report.pruned
    assert pruned.rule == wide
    assert pruned.estimate == 10_000
    assert "up to 10,000 ground rules, and 500 of the budget of 500 were left" in str(pruned.pruned)
    assert str(wide) in "\n".join(found.report.lines())
    assert len(ground(graph, [wide, narrow])) == 100 * 99 + 1


def test_a_file_holds_what_memory_would(tmp_path: Path) -> None:
    graph = UncertainGraph.from_facts(SYNONYMS)
    path = tmp_path / "ground.parquet"
    in_file, in_memory = ground(graph, [TRANSITIVE], out=path), ground(graph, [TRANSITIVE])
    assert in_file.table is None
    assert in_file.read().to_pylist() == in_memory.read().to_pylist()
    assert len(in_file) == len(in_memory) == 2
    for name in ("head", "relation", "tail", "body", "weight"):
        assert np.array_equal(getattr(in_file.arrays(), name), getattr(in_memory.arrays(), name))
    assert [p.name for p in tmp_path.iterdir()] == ["ground.parquet"]
    with pytest.raises(DataError, match="directory does not exist"):
        ground(graph, [TRANSITIVE], out=tmp_path / "none" / "ground.parquet")


def test_nothing_to_ground(tmp_path: Path) -> None:
    graph = UncertainGraph.from_facts(SYNONYMS)
    empty = ground(graph, [])
    assert len(empty) == 0
    assert empty.read().schema.field("fact_1").type == pa.int64()
    assert len(ground(graph, [TRANSITIVE], GroundingSettings(budget=0))) == 0


def test_an_upper_bound_is_no_lower_bound() -> None:
    graph = UncertainGraph.from_facts(SYNONYMS)
    found = ground(graph, [parse_rule("synonym(A, B) & synonym(B, C) -> !synonym(A, C)")])
    assert len(found) == 2
    with pytest.raises(RuleError, match="positive heads only"):
        found.arrays()


@pytest.mark.parametrize("wrong", [{"budget": -1}, {"min_body": 1.0}, {"strong": -0.5}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        ground(UncertainGraph.from_facts(SYNONYMS), [TRANSITIVE], GroundingSettings(**wrong))  # type: ignore[arg-type]
