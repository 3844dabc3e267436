"""Rules grounded for one fact agree with the relational engine that grounds them for all facts."""

from __future__ import annotations

import numpy as np
import pytest

from ukge import UncertainGraph
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.syntax import parse_rule
from ukge.serve.deadlines import Deadline
from ukge.serve.grounding import Grounder
from ukge.serve.observed import Observed
from ukge.serve.snapshot import Snapshot

RULES = [
    parse_rule(text)
    for text in (
        "r0(A, B) -> r1(A, B)",
        "r1(B, A) -> r1(A, B)",
        "r0(A, B) & r1(B, C) -> r2(A, C)",
        "r0(B, A) & r1(C, B) -> r2(A, C)",
        "r0(A, B) & r1(A, B) -> r2(A, B)",
        "r0(A, B) & r1(B, C) & r2(C, D) -> r0(A, D)",
    )
]


@pytest.mark.parametrize("size", [10, 60, 200])
def test_the_truest_bodies_are_those_of_the_engine(size: int) -> None:
    draw = np.random.default_rng(size)
    columns = [draw.integers(most, size=size) for most in (7, 3, 7)]
    triples = sorted(set(zip(*(column.tolist() for column in columns), strict=True)))
    loops = [(each, each % 3, each) for each in range(7) if (each, each % 3, each) not in triples]
    rows = [(f"e{h}", f"r{r}", f"e{t}", float(draw.integers(5, 11)) / 10) for h, r, t in triples]
    rows += [(f"e{h}", f"r{r}", f"e{t}", 0.0) for h, r, t in loops]  # so that every name is known
    graph = UncertainGraph.from_facts(rows)
    grounder = Grounder(Observed(graph), graph.relations)
    table = ground(graph, RULES, GroundingSettings(strong=0.0, unseen_only=False)).read().to_pylist()
    expected: dict[tuple[int, tuple[int, int, int]], list[float]] = {}
    for row in table:
        fact = (row["head"], row["relation"], row["tail"])
        body = [row[f"fact_{place}"] for place in range(1, 4) if row[f"fact_{place}"] is not None]
        body_facts = [(int(graph.head[at]), int(graph.relation[at]), int(graph.tail[at])) for at in body]
        if row["body"] > 0 and fact not in body_facts:
            expected.setdefault((row["rule"], fact), []).append(row["body"])
    found = {}
    for head in range(graph.n_entities):
        for relation in range(graph.n_relations):
            for tail in range(graph.n_entities):
                for ground_body in grounder.truest(RULES, (head, relation, tail), Deadline(60)):
                    key = RULES.index(ground_body.rule), (head, relation, tail)
                    found[key] = (ground_body.truth, ground_body.bodies)
    told = {key: (max(truths), len(truths)) for key, truths in expected.items()}
    assert found.keys() == told.keys()
    for key, (truth, bodies) in told.items():
        assert abs(found[key][0] - truth) < 1e-9
        assert found[key][1] == bodies


def test_observed_facts_are_found_from_both_ends(snapshot: Snapshot) -> None:
    whole = snapshot.dataset.whole()
    observed = snapshot.observed
    mean: dict[tuple[int, int, int], list[float]] = {}
    for h, r, t, value in zip(whole.head, whole.relation, whole.tail, whole.confidence, strict=True):
        mean.setdefault((int(h), int(r), int(t)), []).append(float(value))
    assert len(observed) == len(mean)
    for (head, relation, tail), values in list(mean.items())[::37]:
        assert abs((observed.confidence(head, relation, tail) or 0.0) - np.mean(values)) < 1e-9
        assert tail in observed.tails(head, relation).entity
        assert head in observed.heads(relation, tail).entity
        assert relation in observed.between(head, tail).relation
        assert head in observed.kind(relation, "head")
        assert tail in observed.kind(relation, "tail")
    assert observed.confidence(0, 0, 0) == (np.mean(mean[0, 0, 0]) if (0, 0, 0) in mean else None)
