"""Everything that computes the truth of a body or a distance to satisfaction computes `ukge.logic.lukasiewicz`.

NumPy and PyTorch code calls it. Compiled kernels and relational expressions cannot, so each of them writes the formula
down once more; here every one is asked for its values, at random points and at the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from tests.contracts.gradients import fused_gradients, loss_and_gradients

from ukge.evidence.features import Features
from ukge.evidence.paths import PathRules, walk_key
from ukge.evidence.ranking import linked_candidates
from ukge.evidence.tables import Tables
from ukge.evidence.walks import Walks
from ukge.graph.index import FactIndex
from ukge.graph.queries import Queries, Side
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Vocabulary
from ukge.learning.data import TrainingData
from ukge.learning.engines.fused import FusedEngine
from ukge.logic.engine import connect
from ukge.logic.facts import Directions, fact_tables
from ukge.logic.ground_rules import GroundRules
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.joins import bindings, bodies_table, shaped
from ukge.logic.lukasiewicz import conjunction, distance_to_satisfaction, negation
from ukge.logic.program import NegativePrior, ground_program
from ukge.logic.rules import Rule
from ukge.logic.syntax import parse_rule
from ukge.logic.weights import Prior
from ukge.models.links import links
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters
from ukge.settings.config import Config

Floats = npt.NDArray[np.float64]

EDGES = (0.0, 1e-9, 0.3, 0.5, 0.7, 1.0 - 1e-9, 1.0)
ENGINE = connect("duckdb", threads=1)
RELATIONS = Vocabulary(["p", "q", "s", "r"], kind="relation")
PATH = parse_rule("p(A, B) & q(B, C) -> r(A, C)")
SINGLE = parse_rule("p(A, B) -> r(A, B)")
LONG = parse_rule("p(A, B) & q(B, C) & s(C, D) -> r(A, D)")
EXACT, SINGLE_PRECISION = 1e-12, 1e-6


def values(n: int) -> list[Floats]:
    """Return n columns: every combination of the edges, then random numbers."""
    edges = np.array(list(product(EDGES, repeat=n)))
    return list(np.concatenate([edges, np.random.default_rng(n).random((200, n))]).T)


def worlds(*columns: Floats) -> UncertainGraph:
    """Return separate walks of facts p, q, s, …, one for each row of confidences: entities 0 … n, then n + 1 …"""
    size, length = len(columns[0]), len(columns)
    at = np.arange(size) * (length + 1)
    entities = Vocabulary([f"e{number}" for number in range(size * (length + 1))])
    parts = [(at + place, np.full(size, place), at + place + 1) for place in range(length)]
    head, relation, tail = (np.concatenate(part) for part in zip(*parts, strict=True))
    return UncertainGraph.from_ids(head, relation, tail, np.concatenate(columns), entities, RELATIONS)


def ends(graph: UncertainGraph, length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    start = np.arange(0, graph.n_entities, length + 1)
    return start, start + length


def relational(rule: Rule, *columns: Floats) -> Floats:
    seen = shaped(rule)
    graph = worlds(*columns)
    steps = seen.steps([RELATIONS.index[name] for name in rule.relations], Directions(len(RELATIONS)))
    truth = np.zeros(len(columns[0]))
    with fact_tables(ENGINE, graph, 0.0) as facts:
        wanted = ENGINE.load(bodies_table([0], [steps]))
        for row in ENGINE.rows(bindings(facts.steps, wanted, seen.shape, distinct=True)):
            truth[row["v_0"] // (len(columns) + 1)] = row["value"]
        ENGINE.drop(wanted)
    return truth


def written(rule: Rule, *columns: Floats) -> Floats:
    table = ground(worlds(*columns), [rule], GroundingSettings(strong=0.0), engine=ENGINE).read()
    truth = np.zeros(len(columns[0]))
    truth[table["head"].to_numpy() // (len(columns) + 1)] = table["body"].to_numpy()
    return truth


def features(graph: UncertainGraph) -> Features:
    key = walk_key(PATH, RELATIONS)
    rules = PathRules(np.array([key]), np.array([3.0]), np.array([5.0]), Prior(0.5, 2.0), 0.0)
    index = FactIndex(graph)
    return Features.of(index, Tables.of(index, ENGINE), rules, ())


def evidence_column(_: Rule, *columns: Floats) -> Floats:
    graph = worlds(*columns)
    found, (head, tail) = features(graph), ends(graph, 2)
    asked = [ids.astype(np.int32) for ids in (head, np.full(len(head), RELATIONS.index["r"]), tail)]
    return found.columns(asked[0], asked[1], asked[2])[:, found.names.index("rule_body")].astype(np.float64)


def evidence_walks(_: Rule, *columns: Floats) -> Floats:
    graph = worlds(*columns)
    found = features(graph)
    bodies = (
        Walks(found, (int(head), RELATIONS.index["r"], int(tail))).bodies()
        for head, tail in zip(*ends(graph, 2), strict=True)
    )
    return np.array([each[0][0] if each else 0.0 for each in bodies])


@pytest.mark.parametrize(
    ("computed", "rule", "tolerance"),
    [
        *((computed, rule, EXACT) for computed in (relational, written) for rule in (SINGLE, PATH, LONG)),
        (evidence_column, PATH, SINGLE_PRECISION),
        (evidence_walks, PATH, EXACT),
    ],
    ids=lambda each: getattr(each, "__name__", None) or (f"{len(each)} atoms" if isinstance(each, Rule) else ""),
)
def test_the_truth_of_a_body_is_the_conjunction_of_its_facts(
    computed: Callable[..., Floats], rule: Rule, tolerance: float
) -> None:
    columns = values(len(rule))
    np.testing.assert_allclose(computed(rule, *columns), conjunction(*columns), rtol=0, atol=tolerance)


@pytest.mark.parametrize("side", ["tail", "head"])
def test_candidates_come_in_the_order_of_their_bodies(side: Side) -> None:
    """The kernel that proposes candidates shows no truths, only which entities have one above 0, truest first."""
    first, second = values(2)
    size = len(first)
    entities = Vocabulary(["given", *(f"{kind}{number}" for kind in "zy" for number in range(size))])
    given, between, far = np.zeros(size, np.int64), 1 + np.arange(size), 1 + size + np.arange(size)
    walk = (given, between, far) if side == "tail" else (far, between, given)
    head, tail = np.concatenate(walk[:2]), np.concatenate(walk[1:])
    relation = np.repeat([0, 1], size)
    graph = UncertainGraph.from_ids(head, relation, tail, np.concatenate([first, second]), entities, RELATIONS)
    asked = Queries.of(side, 0, RELATIONS.index["r"])
    proposed = linked_candidates(features(graph), asked, graph.n_entities)[0]
    truth = conjunction(first, second)
    assert set(proposed[proposed >= 0].tolist()) == set(far[truth > 0].tolist())
    assert (np.diff(truth[proposed[proposed >= 0] - 1 - size]) <= EXACT).all()


def one_rule(body: float, head: float) -> tuple[Parameters, TrainingData, Config]:
    """Return a model of one number per entity that gives the head of a ground rule exactly this confidence."""
    link = np.array([1.0, 0.0], np.float32)  # as every model has it: steps for another type would be compiled anew
    parameters = Parameters(np.array([[head], [1.0]], np.float32), np.ones((1, 1), np.float32), link)
    ids = np.zeros(1, np.int32)
    rules = GroundRules(ids, ids, ids + 1, np.array([body], np.float32), np.ones(1, np.float32))
    data = TrainingData(ids, ids, ids + 1, np.ones(1, np.float32), 2, 1, rules)
    config = Config().replace(scorer="distmult", link="identity", dim=1, rule_weight=1.0, rule_prior=0.0, threads=1)
    return parameters, data, config.replace(negatives=1, l2=0.0)


def in_torch(body: float, head: float) -> float:
    parameters, data, config = one_rule(body, head)
    scorer, link = scorers.get("distmult"), links.get("identity")
    return float(np.sqrt(loss_and_gradients(parameters, scorer, link, config.objective, data)[0]["rules"]))


def fused(body: float, head: float) -> float:
    nothing = np.zeros((1, 1), np.int32)
    return float(np.sqrt(fused_gradients(FusedEngine(*one_rule(body, head)), nothing, nothing, nothing[0])[0]["rules"]))


@pytest.mark.parametrize("computed", [in_torch, fused])
def test_engines_minimise_the_distance_to_satisfaction(computed: Callable[[float, float], float]) -> None:
    bodies, heads = values(2)
    found = [computed(float(body), float(head)) for body, head in zip(bodies, heads, strict=True)]
    np.testing.assert_allclose(found, distance_to_satisfaction(bodies, heads), rtol=0, atol=SINGLE_PRECISION)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("joint", [False, True])
def test_hinges_are_the_distances_of_their_ground_rules(negated: bool, joint: bool) -> None:
    """With `joint`, the second fact of every body is unknown too."""
    first, second, truth = (np.maximum(column, 1e-12) for column in values(3))  # no body holds a fact of 0
    whole = worlds(first, second)
    start, end = ends(whole, 2)
    heads = UncertainGraph.from_ids(start, np.full(len(start), 3), end, truth, whole.entities, RELATIONS)
    of_first = whole.relation == 0
    graph, targets = (whole[of_first], concat([heads, whole[~of_first]])) if joint else (whole, heads)
    rule = Rule(PATH.body, PATH.head, negated=negated)
    settings = GroundingSettings(strong=0.0)
    program = ground_program(ENGINE, graph, [rule], targets, settings, NegativePrior(), joint=joint)
    of_rules = program.hinges.distances(program.targets.confidence)[: -len(targets)]
    expected = distance_to_satisfaction(conjunction(first, second), negation(truth) if negated else truth)
    found = np.zeros(len(expected))  # ground rules that can never be violated have no hinge
    found[: len(of_rules)] = of_rules
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=0, atol=EXACT)
