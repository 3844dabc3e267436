"""An independent check: PSL itself (LINQS's pslpython, which carries its Java program) grounds and solves the same.

It runs where `pslpython` can be imported and Java is installed, in this Python or in the one UKGE_PSL_PYTHON names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.logic.psl_program import predicate, psl_program

from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import connect
from ukge.logic.grounding import FACTS, GroundingSettings
from ukge.logic.inference import infer
from ukge.logic.program import NegativePrior, ground_program
from ukge.logic.syntax import parse_rule

Triple = tuple[str, str, str]
RULES = [
    parse_rule("2.0: p(A, B) & q(B, C) -> r(A, C) ^2"),
    parse_rule("1.0: r(A, B) -> r(B, A)"),
    parse_rule("1.5: p(A, B) & q(A, C) -> r(B, C)"),
    parse_rule("0.5: r(A, B) & r(B, C) -> r(A, C) ^2"),
    parse_rule("0.7: p(A, B) & r(A, B) -> !q(A, B) ^2"),
    parse_rule("0.6: q(A, B) & r(B, C) & p(C, D) -> r(A, D) ^2"),
]
TO_THE_END = {"reasoner.runfulliterations": True, "admmreasoner.maxiterations": 20_000, "runtime.log.level": "OFF"}
"""Left to itself, PSL stops where its objective changes little, which is up to 0.007 away from the minimum here."""
PROGRAM = """
import json, sys, pslpython.runtime as runtime
config = json.load(sys.stdin)
print("\\n" + json.dumps({"inferred": runtime.run(config), "grounded": runtime.ground(config)}))
"""


@pytest.fixture(scope="module")
def psl() -> str:
    python = os.environ.get("UKGE_PSL_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import pslpython"], check=False, capture_output=True).returncode:
        pytest.skip("pslpython is not installed (pip install pslpython)")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("PSL needs Java, which is not installed")
    return python


def run(python: str, program: dict[str, Any]) -> dict[str, Any]:
    asked = {**program, "options": {**program["options"], **TO_THE_END, "runtime.inference.output.results": False}}
    done = subprocess.run([python, "-c", PROGRAM], input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def small_graph() -> tuple[UncertainGraph, UncertainGraph]:
    """Return 28 observed facts over 6 entities, and all other triples as targets."""
    rng = np.random.default_rng(7)
    entities = [f"e{i}" for i in range(6)]
    triples = [t for t in product(entities, "pqr", entities) if t[0] != t[2]]
    order = rng.permutation(len(triples))
    observed = [(*triples[i], round(float(rng.uniform(0.4, 1.0)), 3)) for i in order[:28]]
    graph = UncertainGraph.from_facts(observed)
    head, relation, tail = ([triples[i][place] for i in order[28:]] for place in range(3))
    targets = UncertainGraph.from_columns(
        head, relation, tail, np.zeros(len(head)), entities=graph.entities, relations=graph.relations
    )
    return graph, targets


def test_psl_finds_the_same_ground_rules_and_the_same_map_state(psl: str) -> None:
    graph, targets = small_graph()
    prior = NegativePrior(0.3, squared=True)
    answer = run(psl, psl_program(graph, RULES, targets, prior=prior))
    names = {predicate(i, name).upper(): name for i, name in enumerate(graph.relations)}

    asked = GroundingSettings(strong=0.0)
    inferred = infer(graph, RULES, targets=targets, joint=True, prior=prior, settings=asked)
    ours = {(fact.head, fact.relation, fact.tail): fact.confidence for fact in inferred.graph}
    theirs = {
        (atom["arguments"][0], names[atom["predicate"]], atom["arguments"][1]): atom["value"]
        for atom in answer["inferred"]["atoms"]
        if not atom["observed"]
    }
    assert set(ours) == set(theirs)
    assert max(abs(ours[triple] - theirs[triple]) for triple in ours) < 1e-3

    assert _our_ground_rules(graph, targets, prior) == _their_ground_rules(answer["grounded"], names)


def _our_ground_rules(graph: UncertainGraph, targets: UncertainGraph, prior: NegativePrior) -> Counter[Any]:
    with connect("duckdb") as engine:
        program = ground_program(engine, graph, RULES, targets, GroundingSettings(strong=0.0), prior, joint=True)
    observed = {(fact.head, fact.relation, fact.tail): fact.confidence for fact in graph}
    atoms = [*observed, *((fact.head, fact.relation, fact.tail) for fact in program.targets)]
    found: Counter[Any] = Counter()
    for row in program.grounded.read().to_pylist():
        body = [atoms[row[name]] for name in FACTS if row[name] is not None]
        head = graph.entities[row["head"]], graph.relations[row["relation"]], graph.entities[row["tail"]]
        negative = [*body, head] if RULES[row["rule"]].negated else body
        positive = [] if RULES[row["rule"]].negated else [head]
        if _can_be_violated(negative, positive, observed):
            found[row["rule"], frozenset([*body, head])] += 1
    assert sum(found.values()) == len(program.hinges) - len(program.targets)
    return found


def _their_ground_rules(grounded: dict[str, Any], names: dict[str, str]) -> Counter[Any]:
    atoms, observed = {}, {}
    for number, atom in grounded["atoms"].items():
        triple = (atom["arguments"][0], names[atom["predicate"]], atom["arguments"][1])
        atoms[int(number)] = triple
        if atom["observed"]:
            observed[triple] = atom["value"]
    found: Counter[Any] = Counter()
    for one in grounded["groundRules"]:
        negative = [atoms[n] for n, sign in zip(one["atoms"], one["coefficients"], strict=True) if sign < 0]
        positive = [atoms[n] for n, sign in zip(one["atoms"], one["coefficients"], strict=True) if sign > 0]
        if one["ruleIndex"] < len(RULES) and _can_be_violated(negative, positive, observed):
            found[one["ruleIndex"], frozenset([*negative, *positive])] += 1
    return found


def _can_be_violated(negative: list[Triple], positive: list[Triple], observed: dict[Triple, float]) -> bool:
    """Say whether a clause ¬n₁ ∨ ¬n₂ ∨ … ∨ p has a target in it and can be less than true, whatever the targets are."""
    certain = sum(1.0 - observed.get(atom, 1.0) for atom in negative) + sum(
        observed.get(atom, 0.0) for atom in positive
    )
    return certain < 1.0 - 1e-6 and not all(atom in observed for atom in [*negative, *positive])
