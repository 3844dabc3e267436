"""Initial weights, and predictions that agree whichever way they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.contracts.small import scorer_of

from ukge.errors import ConfigError
from ukge.models import tables
from ukge.models.links import links
from ukge.models.model import Model, init
from ukge.models.scorers import Start, scorers
from ukge.models.tables import ArrayTables, Parameters, best
from ukge.models.tensors import TensorTables, resolve_device

N_ENTITIES, N_RELATIONS = 30, 4
HEAD, RELATION, TAIL = np.array([0, 5, 29]), np.array([1, 0, 3]), np.array([7, 7, 2])


def weights(name: str) -> Parameters:
    return init(scorer_of(name), N_ENTITIES, N_RELATIONS, dim=6, scale=0.3, seed=1)


@pytest.mark.parametrize("name", scorers.names())
def test_initial_weights_have_their_shape_and_distribution(name: str) -> None:
    scorer = scorer_of(name)
    start = init(scorer, 400, 300, dim=16, scale=0.3, seed=5)
    assert start.entity.shape == (400, scorer.entity_width(16))
    assert start.relation.shape == (300, scorer.relation_width(16))
    assert start.entity.dtype == start.relation.dtype == start.link.dtype == np.float32
    for table, parts in ((start.entity, scorer.entity_parts), (start.relation, scorer.relation_parts)):
        for part, own in zip(parts, np.split(table, len(parts), axis=1), strict=True):
            assert part.start is None or isinstance(part.start, Start)
            if part.start is None:  # a standard normal cut off at ±2 has the deviation 0.8796
                assert np.abs(own).max() <= 0.6
                mean, deviation = 0.0, 0.3 * 0.8796
            elif part.start.kind == "uniform":
                low, high = part.start[1:]
                assert own.min() >= low
                assert own.max() <= high
                mean, deviation = (low + high) / 2, (high - low) / np.sqrt(12)
            else:
                mean, deviation = part.start[1:]
            assert own.std() == pytest.approx(deviation, rel=0.03)
            assert abs(float(own.mean()) - mean) < 0.06 * deviation


@pytest.mark.parametrize("name", scorers.names())
def test_the_seed_decides_the_initial_weights(name: str) -> None:
    first, again = weights(name), weights(name)
    other = init(scorer_of(name), N_ENTITIES, N_RELATIONS, dim=6, scale=0.3, seed=2)
    for key, array in first.as_dict().items():
        assert np.array_equal(array, again.as_dict()[key])
    assert not np.array_equal(first.entity, other.entity)


@pytest.mark.parametrize("name", scorers.names())
def test_the_link_starts_where_it_has_a_gradient(name: str) -> None:
    start = init(scorer_of(name), 500, 5, dim=128, scale=0.3, seed=0)
    ids = np.random.default_rng(0).integers(0, 500, (2, 200))
    confidence = Model(start, scorer_of(name), links.get("logistic")).confidence(ids[0], ids[0] % 5, ids[1])
    low, high = np.quantile(confidence, [0.1, 0.9])
    assert low > 0.05
    assert high < 0.95


@pytest.mark.parametrize("weight", [1.5, -1.5])
@pytest.mark.parametrize("link", links.names())
@pytest.mark.parametrize("name", scorers.names())
def test_ranking_agrees_with_confidence(name: str, link: str, weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ArrayTables, "scores_at_once", 40)
    monkeypatch.setattr(ArrayTables, "rows_at_once", 40)  # so that queries and facts fall into several blocks
    start = weights(name)
    start.link[:] = weight, 0.4
    model = Model(start, scorer_of(name), links.get(link))
    everyone = np.arange(N_ENTITIES)
    best = model.rank_tails(HEAD, RELATION, k=5)
    scores = model.tail_scores(HEAD, RELATION)
    assert scores.shape == (3, N_ENTITIES)
    for i, (h, r) in enumerate(zip(HEAD, RELATION, strict=True)):
        confidence = model.confidence(np.full(N_ENTITIES, h), np.full(N_ENTITIES, r), everyone)
        assert np.allclose(np.sort(confidence)[::-1][:5], best.confidence[i], atol=1e-6)
        assert np.allclose(confidence[best.entity[i]], best.confidence[i], atol=1e-6)
        assert np.all(np.diff(confidence[np.argsort(scores[i])]) >= -1e-6)
    heads = model.rank_heads(RELATION, TAIL, k=99)
    assert heads.entity.shape == (3, N_ENTITIES)
    assert np.array_equal(heads.entity, np.argsort(-model.head_scores(RELATION, TAIL), axis=1))


def test_paths_agree_with_plausibility_and_bounds_hold() -> None:
    start = weights("complex")
    start.link[:] = 5.0, 0.5
    model = Model(start, scorers.get("complex"), links.get("rectifier"))
    g = model.plausibility(HEAD, RELATION, TAIL)
    assert np.allclose(model.tail_scores(HEAD, RELATION)[np.arange(3), TAIL], g, atol=1e-6)
    assert np.allclose(model.head_scores(RELATION, TAIL)[np.arange(3), HEAD], g, atol=1e-6)
    assert np.allclose(model.confidence(HEAD, RELATION, TAIL), np.clip(5 * g + 0.5, 0, 1), atol=1e-6)


def test_a_model_follows_its_parameters_and_takes_read_only_ones() -> None:
    start = weights("distmult")
    model = Model(start, scorers.get("distmult"), links.get("identity"))
    before = model.plausibility(HEAD, RELATION, TAIL)
    start.entity *= 2
    assert np.allclose(model.plausibility(HEAD, RELATION, TAIL), 4 * before, rtol=1e-5)
    for array in start.as_dict().values():
        array.setflags(write=False)
    frozen = Model(start, scorers.get("distmult"), links.get("identity"))
    assert np.allclose(frozen.plausibility(HEAD, RELATION, TAIL), 4 * before, rtol=1e-5)


@pytest.mark.parametrize("many", [1, 1 << 26])
@pytest.mark.parametrize("name", scorers.names())
def test_another_device_says_the_same(name: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MANY", many)  # from 1 on, distances are PyTorch's on the CPU too
    start = weights(name)
    start.link[:] = -0.7, 0.4
    parts = scorer_of(name), links.get("logistic")
    ours, other = Model(start, *parts), Model(TensorTables.of(start, "cpu"), *parts)
    for question, ids in (
        ("plausibility", (HEAD, RELATION, TAIL)),
        ("confidence", (HEAD, RELATION, TAIL)),
        ("tail_scores", (HEAD, RELATION)),
        ("head_scores", (RELATION, TAIL)),
    ):
        assert np.allclose(getattr(ours, question)(*ids), getattr(other, question)(*ids), rtol=1e-5, atol=1e-6)
    found, expected = ours.rank_tails(HEAD, RELATION, 7), other.rank_tails(HEAD, RELATION, 7)
    assert np.array_equal(found.entity, expected.entity)
    assert np.allclose(found.confidence, expected.confidence, rtol=1e-5)


def test_the_best_come_first_and_of_equal_ones_the_first() -> None:
    scores = np.array([[1, 3, 3, 2, 3], [0, -np.inf, 5, 5, -np.inf], [2, 2, 2, 2, 2]], dtype=np.float32)
    np.testing.assert_array_equal(best(scores, 2), [[1, 2], [2, 3], [0, 1]])
    np.testing.assert_array_equal(best(scores, 4), [[1, 2, 4, 3], [2, 3, 0, 1], [0, 1, 2, 3]])
    np.testing.assert_array_equal(best(scores, 9)[1], [2, 3, 0, 1, 4])
    assert best(scores, 0).shape == (3, 0)
    many = np.random.default_rng(0).integers(50, size=(20, 300)).astype(np.float32)
    np.testing.assert_array_equal(best(many, 30), np.argsort(-many, axis=1, kind="stable")[:, :30])


def test_a_device_that_is_not_there_is_named() -> None:
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda", "mps")
    for name in ("abacus", "cuda:99"):
        with pytest.raises(ConfigError, match=f"device '{name}'"):
            resolve_device(name)
