"""Corruptions that occur nowhere else in a batch are optimised where they are scored; that must change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ukge.learning.data import TrainingData
from ukge.learning.engines.fused import FusedEngine
from ukge.learning.engines.fused.records import Epoch
from ukge.logic.ground_rules import GroundRules
from ukge.models.model import init
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters
from ukge.settings.config import Config

N_ENTITIES, N_RELATIONS, N_FACTS, DIM, NEGATIVES = 900, 4, 200, 20, 4


@pytest.fixture(scope="module")
def graph() -> TrainingData:
    rng = np.random.default_rng(0)

    def ids(bound: int, size: int) -> np.ndarray:
        return rng.integers(bound, size=size).astype(np.int32)

    def values(size: int) -> np.ndarray:
        return rng.random(size).astype(np.float32)

    rules = GroundRules(ids(N_ENTITIES, 30), ids(N_RELATIONS, 30), ids(N_ENTITIES, 30), values(30), values(30))
    heads, kinds, tails = ids(N_ENTITIES, N_FACTS), ids(N_RELATIONS, N_FACTS), ids(N_ENTITIES, N_FACTS)
    return TrainingData(heads, kinds, tails, values(N_FACTS), N_ENTITIES, N_RELATIONS, rules)


def config(optimiser: str, threads: int = 1) -> Config:
    return Config().replace(
        dim=DIM, negatives=NEGATIVES, batch_size=64, optimiser=optimiser, lr=0.05, threads=threads, rule_weight=0.5
    )


def trained(graph: TrainingData, settings: Config, *, mark: bool) -> tuple[Parameters, float]:
    parameters = init(scorers.get("distmult"), N_ENTITIES, N_RELATIONS, DIM, 0.4, seed=3)
    engine = FusedEngine(parameters, graph, settings)
    engine._sampling = engine._sampling._replace(mark_lone=mark)
    losses = [engine.epoch(number).loss for number in range(3)]
    return parameters, losses[-1]


def test_exactly_the_corruptions_that_occur_once_are_marked(graph: TrainingData) -> None:
    engine = FusedEngine(
        init(scorers.get("distmult"), N_ENTITIES, N_RELATIONS, DIM, 0.4, seed=3), graph, config("rowwise-adagrad")
    )
    order = np.arange(N_FACTS)
    sizes = np.array([64, 64, 64, 8])
    engine._prepare(Epoch(order, np.uint64(7)), 0, sizes)
    buffers, prepared, rules = engine._buffers, engine._buffers.prepared, graph.rules
    assert rules is not None
    marked = 0
    for batch, size in enumerate(sizes):
        facts = prepared.facts[batch, :size]
        chosen = prepared.rules[batch, : prepared.n_rules[batch]]
        own = np.concatenate([graph.head[facts], graph.tail[facts], rules.head[chosen], rules.tail[chosen]])
        found = prepared.drawn[batch, :, :size].ravel()
        entities = np.where(found < 0, ~found, found)
        counts = np.bincount(np.concatenate([own, entities]), minlength=N_ENTITIES)
        np.testing.assert_array_equal(found < 0, counts[entities] == 1)
        n_rows, order_of, rows, starts = (part[batch] for part in buffers.by_entity)
        lone = set(entities[found < 0].tolist())
        assert set(rows[:n_rows].tolist()) == set(np.concatenate([own, entities]).tolist()) - lone
        assert starts[n_rows] == len(own) + len(entities) - len(lone)
        everyone = np.concatenate([graph.head[facts], rules.head[chosen], graph.tail[facts], rules.tail[chosen]])
        everyone = np.concatenate([everyone, entities])
        for place in range(n_rows):
            seen = everyone[order_of[starts[place] : starts[place + 1]]]
            assert len(seen) == counts[rows[place]]
            assert (seen == rows[place]).all()
        marked += len(lone)
    assert marked > 300


@pytest.mark.parametrize(
    ("optimiser", "loss"),
    [("lazy-adam", "squared"), ("adagrad", "squared"), ("rowwise-adagrad", "squared"), ("adagrad", "focus:decay=2")],
)
def test_optimising_them_early_changes_nothing(graph: TrainingData, optimiser: str, loss: str) -> None:
    settings = config(optimiser).replace(loss=loss)
    early, early_loss = trained(graph, settings, mark=True)
    late, late_loss = trained(graph, settings, mark=False)
    assert early_loss == pytest.approx(late_loss, rel=1e-5)
    for name, array in late.as_dict().items():
        np.testing.assert_allclose(early.as_dict()[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("optimiser", ["lazy-adam", "adagrad", "rowwise-adagrad"])
def test_and_is_the_same_to_the_bit_with_any_number_of_threads(graph: TrainingData, optimiser: str) -> None:
    one, loss = trained(graph, config(optimiser), mark=True)
    for threads in (2, 3):
        more, other = trained(graph, config(optimiser, threads), mark=True)
        assert other == loss
        for name, array in one.as_dict().items():
            np.testing.assert_array_equal(array, more.as_dict()[name])
