"""What is known to be there is found: planted rules, the paper's rules, the authors' ground rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ukge.graph.aggregate import aggregate
from ukge.graph.catalogue import read_folder
from ukge.graph.dataset import Dataset
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.rules import Atom, Rule
from ukge.logic.syntax import parse_rule

PAPER = {
    "cn15k": ["relatedto(A, B) & relatedto(B, C) -> relatedto(A, C)", "causes(A, B) & causes(B, C) -> causes(A, C)"],
    "nl27k": [
        '"concept:athleteplaysforteam"(A, B) & "concept:athleteplayssport"(A, C) -> "concept:teamplayssport"(B, C)'
    ],
    "ppi5k": ["binding(A, B) & binding(B, C) -> binding(A, C)"],
}
TAU = {"cn15k": 0.85, "nl27k": 0.85, "ppi5k": 0.70}
COMPETES = '"concept:competeswith"(A, B) & "concept:competeswith"(B, C) -> "concept:competeswith"(A, C)'


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_rules_are_recovered_at_the_default_filters(seed: int) -> None:
    world = generate(seed=seed)
    planted = {parse_rule(text).canonical() for text in world.planted_rules}
    true = planted | {parse_rule(text).canonical() for text in world.implied_rules}
    found = {rule.canonical() for rule in mine(world.graph).rules}
    assert len(found & true) / len(found) >= 0.95
    assert len(found & planted) / len(planted) >= 0.95
    assert len(found & true) / len(true) >= 0.95


def _dataset(folder: Path, name: str) -> Dataset:
    return read_folder(folder / name, name=name, undirected="none")


@pytest.mark.parametrize("name", ["cn15k", "nl27k", "ppi5k"])
def test_the_papers_rules_are_mined(benchmark_data: Path, name: str) -> None:
    asked = MiningSettings(strong=TAU[name], min_hit_ratio=0.1)
    found = {rule.canonical() for rule in mine(_dataset(benchmark_data, name).train, asked).rules}
    for text in PAPER[name]:
        assert parse_rule(text).canonical() in found


@pytest.mark.parametrize(("name", "rule", "digits"), [("nl27k", COMPETES, 3), ("ppi5k", PAPER["ppi5k"][0], 6)])
def test_the_authors_ground_rules_come_out_again(benchmark_data: Path, name: str, rule: str, digits: int) -> None:
    dataset = _dataset(benchmark_data, name)
    asked = GroundingSettings(strong=0.9, unseen_only=False, distinct=False)
    ours = ground(dataset.train, [parse_rule(rule)], asked).heads(dataset.train)
    theirs = dataset.ground_rules
    assert theirs is not None
    assert len(ours) == len(theirs)
    assert np.array_equal(np.sort(ours.keys()), np.sort(theirs.keys()))
    one, other = (graph.confidence[np.lexsort((graph.confidence, graph.keys()))] for graph in (ours, theirs))
    assert np.abs(one - other).max() <= 0.5 * 10.0**-digits + 1e-9


def test_all_the_authors_ground_rules_of_cn15k_are_among_ours(benchmark_data: Path) -> None:
    dataset = _dataset(benchmark_data, "cn15k")
    rules = [parse_rule(PAPER["cn15k"][0]), parse_rule("synonym(A, B) & synonym(B, C) -> synonym(A, C)")]
    asked = GroundingSettings(strong=0.85, unseen_only=False, distinct=False, min_body=0.8)
    # The authors let each row of a repeated triple be a fact, so its highest confidence decides.
    train = aggregate(dataset.train, "max").graph
    ours = ground(train, rules, asked).heads(train)
    assert dataset.ground_rules is not None
    assert np.isin(dataset.ground_rules.keys(), ours.keys()).all()


def test_the_counts_of_all_rules_of_ppi5k_by_matrix_products(benchmark_data: Path) -> None:
    """An independent count on a real graph: the pairs a body implies are the non-zeros of a product of matrices."""
    train = _dataset(benchmark_data, "ppi5k").train
    facts = aggregate(train).graph
    strong = facts[facts.confidence > TAU["ppi5k"]]
    mined = mine(train, MiningSettings(strong=TAU["ppi5k"]))
    assert len(mined) > 300
    products: dict[tuple[Atom, ...], csr_matrix] = {}
    for one in mined.scored:
        if one.rule.body not in products:
            products[one.rule.body] = _implied(strong, one.rule)
        implied = products[one.rule.body]
        observed = _matrix(facts, one.rule.head.relation)
        held = _matrix(strong, one.rule.head.relation)
        counts = implied.nnz, implied.multiply(observed).nnz, implied.multiply(held).nnz
        figures = one.measures
        assert counts == (figures.implied, figures.support, figures.strong_support), one.rule


def _implied(facts: UncertainGraph, rule: Rule) -> csr_matrix:
    """Return which pairs a walk from A to the last variable leads to, never back to where it began."""
    steps = []
    for place, atom in enumerate(rule.body):
        step = _matrix(facts, atom.relation)
        steps.append(step if atom.subject == "ABC"[place] else step.T)
    product = csr_matrix(steps[0] if len(steps) == 1 else steps[0] @ steps[1])
    product.setdiag(0)
    product.eliminate_zeros()
    return product


def _matrix(facts: UncertainGraph, relation: str) -> csr_matrix:
    chosen = (facts.relation == facts.relations.id(relation)) & (facts.head != facts.tail)
    ones = np.ones(int(chosen.sum()), dtype=np.int32)
    return csr_matrix((ones, (facts.head[chosen], facts.tail[chosen])), shape=(facts.n_entities, facts.n_entities))
