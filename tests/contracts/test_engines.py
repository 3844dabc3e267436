"""Two engines, one truth: the fused engine agrees with PyTorch for every scorer × link × loss × optimiser.

What differs from scorer to scorer is held together by `test_fused_formulas.py`.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from typing import Any, get_args

import numba as nb
import numpy as np
import pytest
import torch
from tests.contracts.gradients import fused_gradients, loss_and_gradients

from ukge.errors import ConfigError, DataError, RunError
from ukge.learning.data import TrainingData
from ukge.learning.engines import engines
from ukge.learning.engines.fused import FusedEngine, applies
from ukge.learning.engines.fused.choices import LINKS, OPTIMISERS
from ukge.learning.engines.fused.records import Epoch
from ukge.learning.engines.torch_engine import TorchEngine
from ukge.learning.labelled import Labelled
from ukge.learning.sampling import Facts
from ukge.logic.ground_rules import GroundRules
from ukge.models.arrays import Array
from ukge.models.links import links
from ukge.models.model import Model, init
from ukge.models.scorers import Scorer, TransE, scorers
from ukge.models.tables import Parameters
from ukge.settings.config import Config
from ukge.settings.knobs import LinkName, ScorerName

N_ENTITIES, N_RELATIONS, N_FACTS, DIM = 40, 5, 60, 8
WHOLE_STEPS = get_args(ScorerName) if os.environ.get("UKGE_KERNELS") else ["distmult", "rotate"]
"""Scorers whose whole steps are compiled, which takes long: one with inner products, one with distances and angles."""

LOSSES = ("squared", "logistic", "margin", "growing-margin:power=2", "focus:decay=4,l3=0.05")
EPOCH = 1
"""In which β of the focus is three quarters."""


def a_graph(seed: int = 0, n_facts: int = N_FACTS) -> TrainingData:
    rng = np.random.default_rng(seed)

    def ids(bound: int, size: int) -> np.ndarray:
        return rng.integers(bound, size=size).astype(np.int32)

    rules = GroundRules(
        ids(N_ENTITIES, 9),
        ids(N_RELATIONS, 9),
        ids(N_ENTITIES, 9),
        rng.random(9).astype(np.float32),
        rng.uniform(0.2, 2.0, 9).astype(np.float32),
    )
    return TrainingData(
        ids(N_ENTITIES, n_facts),
        ids(N_RELATIONS, n_facts),
        ids(N_ENTITIES, n_facts),
        rng.random(n_facts).astype(np.float32),
        N_ENTITIES,
        N_RELATIONS,
        rules,
    )


def some_parameters(scorer: str, seed: int = 1) -> Parameters:
    parameters = init(scorers.get(scorer), N_ENTITIES, N_RELATIONS, DIM, 0.6, seed)
    parameters.link[:] = (0.8, 0.1)
    return parameters


def settings(scorer: str, link: str, **more: object) -> Config:
    base = {"scorer": scorer, "link": link, "dim": DIM, "negatives": 3, "l2": 0.05, "rule_weight": 0.7, "threads": 2}
    return Config().replace(**{**base, "rule_prior": 0.3, "negative_weight": 1.5, **more})


@pytest.mark.parametrize("scorer", WHOLE_STEPS)
def test_losses_and_gradients_agree_for_every_link_and_loss(scorer: str) -> None:
    data = a_graph()
    rng = np.random.default_rng(2)
    heads, tails = (rng.integers(N_ENTITIES, size=(N_FACTS, 3)).astype(np.int32) for _ in range(2))
    assert data.rules is not None
    for link in LINKS:
        for loss in LOSSES:
            config = settings(scorer, link, loss=loss, margin=2.0)
            parameters = some_parameters(scorer)
            everything = np.arange(len(data.rules), dtype=np.int32)
            engine = FusedEngine(parameters.copy(), data, config)
            engine.turn_to(EPOCH)
            found = fused_gradients(engine, heads, tails, everything)
            truth = loss_and_gradients(
                parameters, scorers.get(scorer), links.get(link), config.objective, data, heads, tails, epoch=EPOCH
            )
            agree(found, truth, f"{link} {loss}")


def agree(found: tuple[dict[str, float], Parameters], truth: tuple[dict[str, float], Parameters], about: str) -> None:
    assert found[0].keys() == truth[0].keys()
    for term, value in truth[0].items():
        assert found[0][term] == pytest.approx(value, rel=1e-5, abs=1e-6), (about, term)
    for name, gradient in truth[1].as_dict().items():
        np.testing.assert_allclose(found[1].as_dict()[name], gradient, rtol=1e-5, atol=1e-5, err_msg=f"{about} {name}")


def a_pool(n: int = 70) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    ends = rng.integers(N_ENTITIES, size=(2, n)).astype(np.int32)
    return ends[0], rng.integers(N_RELATIONS, size=n).astype(np.int32), ends[1], rng.random(n).astype(np.float32)


def pooled(**more: object) -> Config:
    loss = "semi-supervised:gather=1,use=2,rise=0.4,most=0.5,capacity=2000"
    return settings("distmult", "logistic", loss=loss, rule_weight=0.0, rule_prior=0.0, **more)


def test_labelled_facts_of_a_pool_count_as_in_pytorch() -> None:
    data = TrainingData(**{**vars(a_graph()), "rules": None})
    rng, pool = np.random.default_rng(2), a_pool()
    heads, tails = (rng.integers(N_ENTITIES, size=(N_FACTS, 3)).astype(np.int32) for _ in range(2))
    config, parameters = pooled(), some_parameters("distmult")
    engine = FusedEngine(parameters.copy(), data, config)
    assert engine.guesses is not None
    engine.guesses.put(*pool)
    engine.turn_to(2)
    found = fused_gradients(engine, heads, tails, np.arange(len(pool[0]), dtype=np.int32))
    labelled = Labelled(Facts(*(torch.from_numpy(ids).long() for ids in pool[:3])), torch.from_numpy(pool[3]).double())
    truth = loss_and_gradients(
        parameters, scorers.get("distmult"), links.get("logistic"), config.objective, data, heads, tails,
        labelled=labelled,
    )  # fmt: skip
    agree(found, truth, "pool")


def test_a_pool_is_filled_with_what_the_model_says_of_fresh_corruptions_and_goes_on_to_the_bit() -> None:
    data, ours = TrainingData(**{**vars(a_graph()), "rules": None}), some_parameters("distmult")
    engine = FusedEngine(ours, data, pooled(batch_size=25, lr=1e-12))
    assert engine.guesses is not None
    engine.epoch(0)
    assert len(engine.guesses) == 0
    engine.epoch(1)
    head, relation, tail, confidence = engine.guesses.columns.values()
    assert len(head) == 2 * 3 * N_FACTS
    known = Counter(zip(data.head, data.relation, strict=True)), Counter(zip(data.relation, data.tail, strict=True))
    half = np.arange(len(head)) % (2 * 3 * 25) < 3 * 25  # of each batch the corrupted heads come first
    assert all((r, t) in known[1] for r, t in zip(relation[half][:75], tail[half][:75], strict=True))
    assert all((h, r) in known[0] for h, r in zip(head[~half][:75], relation[~half][:75], strict=True))
    model = Model(ours, scorers.get("distmult"), links.get("logistic"))
    np.testing.assert_allclose(confidence, model.confidence(head, relation, tail), rtol=1e-5)
    state = {name: array.copy() for name, array in engine.state().items()}
    again = FusedEngine(ours.copy(), data, pooled(batch_size=25, lr=1e-12))
    again.load_state(state)
    assert engine.epoch(2).losses == again.epoch(2).losses
    assert all((engine.state()[name] == array).all() for name, array in again.state().items())
    assert engine._buffers.prepared.drawn.shape[3] == 2  # of three, four tenths come from the pool


def test_what_the_kernels_do_not_know_of_a_pool_is_left_to_pytorch() -> None:
    assert applies(pooled())
    assert not applies(pooled().replace(rule_weight=0.1))
    assert not applies(pooled().replace(link="identity"))
    assert not applies(pooled().replace(sampler="none"))
    assert not applies(settings("distmult", "logistic", loss="margin", sampler="none"))


def test_every_scorer_and_link_of_our_own_is_fused() -> None:
    for scorer in get_args(ScorerName):
        for link in get_args(LinkName):
            assert applies(settings(scorer, link)), (scorer, link)


def test_who_may_write_to_the_facts_or_rules_makes_no_other_kernel() -> None:
    """Compiling takes longer than training on a small graph: facts that were read, sorted or mined share one kernel."""
    data, config = a_graph(), settings("distmult", "logistic")
    typeof: Any = nb.typeof

    def types(given: TrainingData) -> tuple[Any, Any]:
        engine = FusedEngine(some_parameters("distmult"), given, config)
        return typeof(engine._fact_arrays()), typeof(engine._rule_arrays())

    expected = types(data)
    assert types(dataclasses.replace(data, rules=None)) == expected
    assert data.rules is not None
    for column in (data.head, data.confidence, data.rules.tail, data.rules.weight):
        column.flags.writeable = False
    assert types(data) == expected


def test_a_scorer_of_the_same_formula_is_fused_whatever_its_name_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Renamed(TransE):
        pass

    class Other(TransE):
        def compare(self, query: Array, candidate: Array) -> Array:
            return -TransE.compare(self, query, candidate)

    def get(scorer: Scorer) -> bool:
        monkeypatch.setattr(scorers, "get", lambda _: scorer)
        return applies(settings("distmult", "logistic"))

    assert get(Renamed(2))
    assert not get(Other(2))


@pytest.mark.parametrize("optimiser", sorted(OPTIMISERS))
def test_optimisers_take_the_same_steps(optimiser: str) -> None:
    # Without negatives and rules nothing is drawn, so both engines see the same batches in the same order.
    config = settings("distmult", "logistic", optimiser=optimiser, sampler="none", batch_size=17, lr=0.05)
    plain = TrainingData(**{**vars(a_graph()), "rules": None})
    ours, theirs = some_parameters("distmult"), some_parameters("distmult")
    fused = FusedEngine(ours, plain, config)
    torch_engine = TorchEngine(theirs, plain, config, scorers.get("distmult"), links.get("logistic"))
    for number in range(3):
        mine, reference = fused.epoch(number), torch_engine.epoch(number)
        assert mine.loss == pytest.approx(reference.loss, rel=1e-4)
    for name, array in theirs.as_dict().items():
        np.testing.assert_allclose(ours.as_dict()[name], array, rtol=2e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("optimiser", sorted(OPTIMISERS))
def test_the_number_of_threads_changes_no_bit(optimiser: str) -> None:
    weights = []
    for threads in (1, 2, 3):
        config = settings("distmult", "rectifier", optimiser=optimiser, batch_size=25, threads=threads)
        parameters = some_parameters("distmult")
        engine = FusedEngine(parameters, a_graph(), config)
        for number in range(3):
            engine.epoch(number)
        weights.append(parameters)
    for other in weights[1:]:
        for name, array in weights[0].as_dict().items():
            np.testing.assert_array_equal(array, other.as_dict()[name])


def test_state_goes_on_to_the_bit() -> None:
    config = settings("distmult", "rectifier", batch_size=25)
    whole, cut = some_parameters("distmult"), some_parameters("distmult")
    engine = FusedEngine(whole, a_graph(), config)
    for number in range(4):
        engine.epoch(number)
    first = FusedEngine(cut, a_graph(), config)
    first.epoch(0)
    first.epoch(1)
    state = {name: array.copy() for name, array in first.state().items()}
    second = FusedEngine(cut, a_graph(), config)
    second.load_state(state)
    second.epoch(2)
    second.epoch(3)
    for name, array in whole.as_dict().items():
        np.testing.assert_array_equal(array, cut.as_dict()[name])


def drawn(config: Config, data: TrainingData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    engine = FusedEngine(some_parameters("distmult"), data, config)
    order = np.arange(len(data))
    engine._prepare(Epoch(order, np.uint64(12345)), 0, np.array([len(data)]))
    prepared = engine._buffers.prepared
    tails, heads = prepared.drawn[0]
    return prepared.facts[0], heads, tails


def test_corruptions_are_uniform() -> None:
    data = a_graph(n_facts=4000)
    _, heads, tails = drawn(settings("distmult", "rectifier", batch_size=4000), data)
    for side in (heads, tails):
        counts = np.bincount(side.ravel(), minlength=N_ENTITIES)
        expected = side.size / N_ENTITIES
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert chi_square < 73.0  # the 99.9 % quantile with 39 degrees of freedom


def test_a_share_of_the_corruptions_follows_the_degrees() -> None:
    data = a_graph(n_facts=4000)
    data = dataclasses.replace(data, head=data.head // 4 * 4)  # hubs: 0, 4, 8, …
    degree = np.bincount(np.concatenate([data.head, data.tail]), minlength=N_ENTITIES) / (2 * len(data))
    for share in (0.5, 1.0):
        _, heads, tails = drawn(settings("distmult", "rectifier", batch_size=4000, by_degree=share), data)
        for side in (heads, tails):
            counts = np.bincount(side.ravel(), minlength=N_ENTITIES)
            expected = side.size * (share * degree + (1.0 - share) / N_ENTITIES)
            assert float(((counts - expected) ** 2 / expected).sum()) < 73.0


def test_filtered_corruptions_are_never_observed() -> None:
    data = a_graph(n_facts=4000)  # dense: half of all triples are observed
    facts, heads, tails = drawn(settings("distmult", "rectifier", batch_size=4000, filter_observed=True), data)
    observed = set(zip(data.head.tolist(), data.relation.tolist(), data.tail.tolist(), strict=True))
    for i, fact in enumerate(facts):
        h, r, t = int(data.head[fact]), int(data.relation[fact]), int(data.tail[fact])
        assert not observed & {(int(other), r, t) for other in heads[i]}
        assert not observed & {(h, r, int(other)) for other in tails[i]}


def test_corruptions_in_range_were_seen_at_that_place() -> None:
    data = a_graph(n_facts=60)
    facts, heads, tails = drawn(settings("distmult", "rectifier", batch_size=60, in_range=True), data)
    for i, fact in enumerate(facts):
        same = data.relation == data.relation[fact]
        assert set(heads[i].tolist()) <= set(data.head[same].tolist())
        assert set(tails[i].tolist()) <= set(data.tail[same].tolist())


def test_a_relation_whose_range_is_used_up_still_gets_unseen_facts() -> None:
    head = np.array([0, 0, 1, 1], dtype=np.int32)
    tail = np.array([2, 3, 2, 3], dtype=np.int32)
    data = TrainingData(head, np.zeros(4, np.int32), tail, np.ones(4, np.float32), N_ENTITIES, N_RELATIONS)
    config = settings("distmult", "rectifier", batch_size=4, in_range=True, filter_observed=True)
    facts, _, tails = drawn(config, data)
    for i, fact in enumerate(facts):
        assert not {2, 3} & set(tails[i].tolist()), data.head[fact]


@pytest.mark.parametrize("where", ["head", "relation", "tail"])
@pytest.mark.parametrize("wrong", [-1, N_ENTITIES])
def test_ids_outside_the_tables_reach_no_engine(where: str, wrong: int) -> None:
    data = a_graph()
    assert data.rules is not None
    ids = getattr(data, where).copy()
    ids[3] = wrong
    with pytest.raises(DataError, match=f"the {where} {wrong} of a training fact"):
        dataclasses.replace(data, **{where: ids})
    in_rules = getattr(data.rules, where).copy()
    in_rules[1] = wrong
    with pytest.raises(DataError, match=f"the {where} {wrong} of a training fact or ground rule"):
        dataclasses.replace(data, rules=dataclasses.replace(data.rules, **{where: in_rules}))


@pytest.mark.parametrize("engine", ["fused", "torch", "queries"])
def test_tables_with_too_few_rows_reach_no_engine(engine: str) -> None:
    parameters = some_parameters("distmult")
    few = Parameters(parameters.entity[:-1], parameters.relation, parameters.link)
    softmax = {"loss": "softmax", "sampler": "exhaustive", "rule_weight": 0.0, "rule_prior": 0.0}
    config = settings("distmult", "logistic", engine=engine, **(softmax if engine == "queries" else {}))
    with pytest.raises(RunError, match="do not fit the data"):
        engines.get(engine)(few, a_graph(), config)


def test_a_batch_whose_occurrences_cannot_be_counted_is_refused() -> None:
    data, n = a_graph(), 1 << 20
    head, relation, tail = (np.resize(column, n) for column in (data.head, data.relation, data.tail))
    many = TrainingData(head, relation, tail, np.ones(n, np.float32), N_ENTITIES, N_RELATIONS)
    config = settings("distmult", "logistic", batch_size=n, negatives=2000)
    with pytest.raises(ConfigError, match="a batch of 1,048,576 facts with 2,000 corruptions"):
        FusedEngine(some_parameters("distmult"), many, config)
