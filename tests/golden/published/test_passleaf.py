"""PASSLEAF: the loss worked out by hand, when the pool fills and is used, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ukge import UKGE
from ukge.errors import ConfigError
from ukge.learning.data import TrainingData
from ukge.learning.engines.torch_engine import Batches
from ukge.learning.labelled import Labelled, corrupted, fewer
from ukge.learning.pool import Pool
from ukge.learning.sampling import Facts, PerFact
from ukge.models.losses import BatchScores, Given, PoolSettings, losses
from ukge.models.published.passleaf import SemiSupervised
from ukge.models.scorers import scorers
from ukge.runs.learnt import EpochEvent
from ukge.settings.config import Config, ObjectiveConfig


def batch(**more: Any) -> BatchScores:
    nothing = torch.zeros(2, 1)
    return BatchScores(
        lambda x: x,
        torch.tensor([0.7, 0.2]),
        torch.tensor([1.0, 0.5]),
        (nothing, nothing, nothing),
        scorers.get("distmult"),
        **more,
    )


def test_the_loss_is_the_one_worked_out_by_hand() -> None:
    observed, unlabelled = losses.get("semi-supervised")(ObjectiveConfig(negative_weight=2.0), Given(True))
    assert observed.value(batch()).item() == pytest.approx((0.09 + 0.09) / 2)
    unseen = torch.tensor([[0.1, 0.3], [0.5, 0.7]])
    false = 0.01 + 0.09 + 0.25 + 0.49
    assert unlabelled.value(batch(unseen_plausibility=unseen)).item() == pytest.approx(2.0 * false / 4)
    guessed = {"labelled_plausibility": torch.tensor([0.6]), "labelled_confidence": torch.tensor([0.8])}
    assert unlabelled.value(batch(unseen_plausibility=unseen, **guessed)).item() == pytest.approx(
        2.0 * (false + 0.04) / 5
    )
    counts = torch.tensor([[True, True], [True, False]])
    found = unlabelled.value(batch(unseen_plausibility=unseen, unseen_counts=counts, **guessed))
    assert found.item() == pytest.approx(2.0 * (false - 0.49 + 0.04) / 4)


def test_the_share_of_the_pool_rises_to_its_most() -> None:
    pool = SemiSupervised().pool
    assert [pool.share(epoch) for epoch in (29, 30, 31, 69, 200)] == pytest.approx([0.0, 0.02, 0.04, 0.8, 0.8])


def guesses(*heads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    ids = np.array(heads)
    return ids, ids * 0, ids + 1, ids / 10


def test_the_pool_is_a_ring_that_is_stored_and_taken_up() -> None:
    ids = torch.arange(9, dtype=torch.int32).numpy()
    data = TrainingData(ids, ids * 0, ids, (ids * 0 + 1).astype("float32"), 10, 1)
    settings = PoolSettings(4, 0, 0, 1.0, 0.5)
    pool = Pool(settings, data)
    assert pool.state() == {}
    pool.put(*guesses(0, 1, 2))
    pool.put(*guesses(3, 4, 5, 6, 7, 8))
    state = pool.state()
    assert sorted(state["pool.head"].tolist()) == [5, 6, 7, 8]  # the newest four
    assert state["pool.confidence"].tolist() == pytest.approx((state["pool.head"] / 10).tolist())
    again = Pool(settings, data)
    again.load_state({name: array.copy() for name, array in state.items()})
    for each in (pool, again):
        each.put(*guesses(1))
    assert all((again.state()[name] == array).all() for name, array in pool.state().items())
    cpu = torch.device("cpu")
    drawn = [Labelled.draw(each.columns, 50, torch.Generator().manual_seed(3), cpu) for each in (pool, again)]
    assert torch.equal(drawn[0].confidence, drawn[1].confidence)
    assert torch.allclose(drawn[0].confidence, drawn[0].facts.head / 10)


def test_a_pool_needs_corruptions_of_single_facts() -> None:
    ids = np.arange(9, dtype=np.int32)
    data = TrainingData(ids, ids * 0, ids, (ids * 0 + 1).astype("float32"), 10, 1)
    config = Config().replace(loss="semi-supervised", sampler="shared")
    with pytest.raises(ConfigError, match="corruptions of single facts"):
        Batches(data, config, torch.device("cpu"))


def test_corruptions_of_a_batch_one_by_one() -> None:
    facts = Facts(torch.tensor([1, 2]), torch.tensor([0, 1]), torch.tensor([3, 4]))
    unseen = PerFact(torch.tensor([[5, 6], [7, 8]]), torch.tensor([[9, 10], [11, 12]]))
    head, relation, tail = corrupted(facts, unseen)
    assert list(zip(head.tolist(), relation.tolist(), tail.tolist(), strict=True)) == [
        (5, 0, 3), (6, 0, 3), (7, 1, 4), (8, 1, 4), (1, 0, 9), (1, 0, 10), (2, 1, 11), (2, 1, 12),
    ]  # fmt: skip
    half = fewer(PerFact(unseen.heads, unseen.tails, torch.tensor([[True, False, False, True]] * 2)), 0.5)
    assert half.heads.tolist() == [[5], [7]]
    assert half.tails.tolist() == [[9], [11]]
    assert half.counts is not None
    assert half.counts.tolist() == [[True, False]] * 2


def test_a_pool_goes_on_under_an_optimiser_that_has_moments_before_its_first_step(tmp_path: Path) -> None:
    facts = [(f"e{n % 7}", "r", f"e{n * 3 % 11}", 0.5) for n in range(40)]
    settings: dict[str, Any] = {"dim": 4, "epochs": 3, "batch_size": 16, "negatives": 2, "engine": "torch"}
    settings |= {"loss": "semi-supervised:gather=0,use=1,capacity=50", "optimiser": "lazy-adam", "probe": "none"}

    def stop(event: EpochEvent) -> None:
        if event.epoch == 2:
            raise InterruptedError

    def fit(out: str, **more: Any) -> UKGE:
        model = UKGE("passleaf", **settings, threads=1, every=1, checkpoint_seconds=0.0)
        return model.fit(sorted(set(facts)), out=tmp_path / out, progress=False, **more)

    whole = fit("whole")
    with pytest.raises(InterruptedError):
        fit("cut", callbacks=[stop])
    resumed = UKGE.resume(tmp_path / "cut", progress=False)
    assert whole.trained is not None
    assert resumed.trained is not None
    assert np.array_equal(whole.trained.parameters.entity, resumed.trained.parameters.entity)
