"""Work in steps: what a listener hears."""

from __future__ import annotations

import pytest

from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.fitting import STEPS
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.logic.mining import MiningSettings, mine
from ukge.progress.steps import Steps


def test_shares_follow_the_weights_of_the_steps() -> None:
    heard: list[tuple[str, float]] = []
    steps = Steps(lambda step, share: heard.append((step, share)), {"read": 1, "learn": 3})
    steps.begin("read")
    steps.begin("learn")
    steps.within(0.5)
    assert heard == [("read", 0.0), ("learn", 0.25), ("learn", 0.625)]


def test_nobody_has_to_listen() -> None:
    Steps(None, {"read": 1}).begin("read")


def test_fitting_evidence_tells_every_step_and_never_goes_back() -> None:
    dataset = split(generate(n_entities=200, n_facts=1500, seed=3).graph, val=0.15, seed=1)
    heard: list[tuple[str, float]] = []
    few = EvidenceSettings(iterations=3, leaves=4, folds=2, rank_queries=20, rank_candidates=5, expectation_trees=3)
    Evidence.fit([], dataset, tell=lambda step, share: heard.append((step, share)), settings=few)
    assert list(dict.fromkeys(step for step, _ in heard)) == list(STEPS)
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert 0.85 < shares[-1] < 1.0


@pytest.mark.parametrize(("length", "last"), [(2, "measuring the rules"), (3, "finding and measuring longer rules")])
def test_mining_tells_its_steps(length: int, last: str) -> None:
    heard: list[str] = []
    graph = generate(n_entities=200, n_facts=1500, seed=0).graph
    mine(graph, MiningSettings(max_length=length), tell=lambda step, _: heard.append(step))
    assert heard[0] == "loading the facts"
    assert heard[-1] == last
