"""Rules over relations without a direction: one fact with its mirror, and each rule once, against plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.logic.brute_force import ENTITIES, RELATIONS, every_rule

from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.engine import connect
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.measures import measure
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.rules import Atom, Rule

Triple = tuple[str, str, str]
ENGINE = connect("duckdb", threads=1)
STRONG = 0.5


@st.composite
def undirected_graphs(draw: st.DrawFn) -> UncertainGraph:
    """Draw a small dense graph of which some relations have no direction; each triple is said once."""
    pairs = st.tuples(*(st.integers(0, size - 1) for size in (len(ENTITIES), len(RELATIONS), len(ENTITIES))))
    facts = draw(st.dictionaries(pairs, st.sampled_from([0.3, 0.6, 0.7, 0.9, 1.0]), min_size=8, max_size=30))
    names = Vocabulary(ENTITIES), Vocabulary(RELATIONS, kind="relation")
    empty = UncertainGraph.from_ids([], [], [], np.zeros(0), *names)
    undirected = draw(st.sampled_from([("p",), ("p", "r"), RELATIONS]))
    head, relation, tail = (np.array(column) for column in zip(*facts, strict=True))
    graph = empty.taken_as_undirected(undirected).with_facts(head, relation, tail, np.array(list(facts.values())))
    _, first = np.unique(graph.keys(), return_index=True)
    return graph[first]


def stored(graph: UncertainGraph, triple: Triple) -> Triple:
    head, relation, tail = triple
    turned = relation in graph.undirected and graph.entities.id(head) > graph.entities.id(tail)
    return (tail, relation, head) if turned else triple


def bodies(graph: UncertainGraph, rule: Rule) -> Iterator[tuple[Triple, float, tuple[int, ...]]]:
    """Yield every way to fill a body: the head as it is stored, the body's truth, and the rows of its facts."""
    rows = {(fact.head, fact.relation, fact.tail): row for row, fact in enumerate(graph)}
    for entities in product(ENTITIES, repeat=len(rule.variables)):
        if len(set(entities)) < len(entities):
            continue
        names = dict(zip(rule.variables, entities, strict=True))
        body = [rows.get(stored(graph, (names[a.subject], a.relation, names[a.object]))) for a in rule.body]
        sure = [0.0 if row is None else float(graph.confidence[row]) for row in body]
        if min(sure) > STRONG:
            head = stored(graph, (names[rule.head.subject], rule.head.relation, names[rule.head.object]))
            used = tuple(sorted(row for row in body if row is not None))
            yield head, max(0.0, sum(sure) - len(sure) + 1), used


def figures(graph: UncertainGraph, rule: Rule) -> dict[str, float]:
    facts = {(fact.head, fact.relation, fact.tail): fact.confidence for fact in graph}
    implied: dict[Triple, float] = defaultdict(float)
    for head, value, _ in bodies(graph, rule):
        implied[head] = max(implied[head], value)
    relation = rule.head.relation
    certain = [triple for triple, c in facts.items() if triple[1] == relation and c > STRONG]
    subjects = {entity for h, r, t in certain for entity in ((h, t) if r in graph.undirected else (h,))}
    ends = [(h, t) if relation in graph.undirected else (h,) for h, _, t in implied]
    return {
        "implied": len(implied),
        "support": sum(triple in facts for triple in implied),
        "pca_implied": sum(bool(subjects.intersection(each)) for each in ends),
        "head_facts": sum(r == relation for _, r, _ in facts),
        "body_sum": sum(implied.values()),
        "overlap": sum(min(value, facts[triple]) for triple, value in implied.items() if triple in facts),
    }


def readings(rule: Rule, undirected: Sequence[str]) -> frozenset[Rule]:
    """Return every way to write a rule whose atoms may be turned where they have no direction."""

    def ways(atom: Atom) -> list[Atom]:
        return [atom, Atom(atom.relation, atom.object, atom.subject)] if atom.relation in undirected else [atom]

    written = (Rule(tuple(body), head) for *body, head in product(*(ways(atom) for atom in (*rule.body, rule.head))))
    return frozenset(each.canonical() for each in written)


RULES = list(every_rule(2, conjunctions=True))


@given(graph=undirected_graphs(), chosen=st.lists(st.sampled_from(RULES), min_size=1, max_size=12, unique=True))
@settings(deadline=None, max_examples=5)
def test_figures_count_a_fact_and_its_mirror_once(graph: UncertainGraph, chosen: list[Rule]) -> None:
    for scored in measure(graph, chosen, strong=STRONG, engine=ENGINE):
        expected = figures(graph, scored.rule)
        found = {name: getattr(scored.measures, name) for name in expected}
        assert found == pytest.approx(expected, abs=1e-6), scored.rule


@given(graph=undirected_graphs(), ratio=st.sampled_from([0.2, 0.5]))
@settings(deadline=None, max_examples=4)
def test_each_rule_is_mined_once_and_none_is_missing(graph: UncertainGraph, ratio: float) -> None:
    wanted = MiningSettings(strong=STRONG, conjunctions=True, min_support=2, min_hit_ratio=ratio, keep_redundant=True)
    mined = [readings(rule, graph.undirected) for rule in mine(graph, wanted, engine=ENGINE).rules]
    assert len(mined) == len(set(mined))
    good = set()
    for rule in RULES:
        atoms = {stored_atom(atom, graph.undirected) for atom in (*rule.body, rule.head)}
        told = figures(graph, rule)
        if len(atoms) > len(rule.body) and told["support"] >= 2 and told["support"] >= ratio * told["implied"]:
            good.add(readings(rule, graph.undirected))
    assert set(mined) == good


def stored_atom(atom: Atom, undirected: Sequence[str]) -> tuple[str, ...]:
    ends = sorted(atom.variables) if atom.relation in undirected else atom.variables
    return atom.relation, *ends


@given(graph=undirected_graphs(), chosen=st.lists(st.sampled_from(RULES), min_size=1, max_size=6, unique=True))
@settings(deadline=None, max_examples=5)
def test_ground_rules_have_heads_as_they_are_stored_each_once(graph: UncertainGraph, chosen: list[Rule]) -> None:
    told = ground(graph, chosen, GroundingSettings(strong=STRONG, unseen_only=False), engine=ENGINE).read()
    rows = told.to_pylist()
    for number, rule in enumerate(chosen):
        if len({stored_atom(atom, graph.undirected) for atom in rule.body}) < len(rule.body):
            continue  # one fact fills both atoms
        expected = {(head, used) for head, value, used in bodies(graph, rule) if value > 0}
        found = []
        for row in (row for row in rows if row["rule"] == number):
            names = graph.entities[row["head"]], graph.relations[row["relation"]], graph.entities[row["tail"]]
            found.append((names, tuple(sorted(row[f"fact_{place}"] for place in range(1, len(rule.body) + 1)))))
        assert sorted(found) == sorted(expected)


def test_three_steps_are_found_from_one_end_only() -> None:
    rng = np.random.default_rng(3)
    n = 30
    names = Vocabulary([f"e{i:02}" for i in range(n)]), Vocabulary(["near", "in"], kind="relation")
    empty = UncertainGraph.from_ids([], [], [], np.zeros(0), *names).taken_as_undirected(["near"])
    pairs = np.array([(a, b) for a in range(n) for b in range(a + 1, n)])
    near = pairs[rng.random(len(pairs)) < 0.2]
    graph = empty.with_facts(near[:, 0], np.zeros(len(near), int), near[:, 1], np.ones(len(near)))
    wanted = MiningSettings(max_length=3, min_support=2, min_hit_ratio=0.0, keep_redundant=True)
    rules = mine(graph, wanted, engine=ENGINE).rules
    assert sorted(len(rule) for rule in rules) == [2, 3]
