"""The PyTorch engine: gradients, learning, repeatability, and every choice of sampler, loss and optimiser."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.contracts.gradients import loss_and_gradients
from tests.contracts.small import named, scorer_of

from ukge.errors import ConfigError
from ukge.learning.data import TrainingData
from ukge.learning.engines.torch_engine import TorchEngine
from ukge.learning.engines.torch_optimisers import optimisers
from ukge.learning.sampling import samplers
from ukge.logic.ground_rules import GroundRules
from ukge.models.links import links
from ukge.models.losses import losses
from ukge.models.model import Model, init
from ukge.models.scorers import scorers
from ukge.models.tables import SHARED, Parameters, State
from ukge.settings.config import Config, ObjectiveConfig

N_ENTITIES, N_RELATIONS = 20, 3
SMALL = Config().replace(dim=6, batch_size=32, negatives=4, lr=0.02, threads=1, device="cpu", rules_per_fact=0.5)


def graph(n: int = 150, n_rules: int = 25, seed: int = 0) -> TrainingData:
    rng = np.random.default_rng(seed)

    def ids(high: int, size: int) -> npt.NDArray[np.int32]:
        return rng.integers(0, high, size, dtype=np.int32)

    rules = None
    if n_rules:
        head, relation, tail = ids(N_ENTITIES, n_rules), ids(N_RELATIONS, n_rules), ids(N_ENTITIES, n_rules)
        body, weight = rng.random((2, n_rules), dtype=np.float32)
        rules = GroundRules(head, relation, tail, body, weight + np.float32(0.5))
    head, relation, tail = ids(N_ENTITIES, n), ids(N_RELATIONS, n), ids(N_ENTITIES, n)
    return TrainingData(head, relation, tail, rng.random(n, dtype=np.float32), N_ENTITIES, N_RELATIONS, rules)


def engine(config: Config, data: TrainingData | None = None, parameters: Parameters | None = None) -> TorchEngine:
    scorer, link = scorers.get(config.model.scorer), links.get(config.model.link)
    if parameters is None:
        parameters = init(scorer, N_ENTITIES, N_RELATIONS, config.model.dim, config.model.init_scale, 0)
    return TorchEngine(parameters, data or graph(), config, scorer, link)


def copied(state: State) -> State:
    return {name: array.copy() for name, array in state.items()}


def test_loss_is_the_sum_spelt_out_fact_by_fact() -> None:
    data = graph(n=6, n_rules=4, seed=2)
    rules = data.rules
    assert rules is not None
    rng = np.random.default_rng(9)
    heads, tails = rng.integers(0, N_ENTITIES, (2, 6, 3))
    start = init(scorers.get("distmult"), N_ENTITIES, N_RELATIONS, 4, 0.5, 3)
    start.link[:] = 0.8, 0.1
    settings = ObjectiveConfig(negative_weight=0.7, rule_weight=0.3, rule_prior=0.2, l2=0.05)

    def f(h: int, r: int, t: int) -> float:
        rows = start.entity[h].astype(np.float64), start.relation[r].astype(np.float64), start.entity[t]
        return float(start.link[0]) * float(np.sum(rows[0] * rows[1] * rows[2])) + float(start.link[1])

    observed, unseen, norms = [], [], []
    for i, (h, r, t) in enumerate(zip(data.head, data.relation, data.tail, strict=True)):
        observed.append((f(h, r, t) - data.confidence[i]) ** 2)
        unseen += [f(e, r, t) ** 2 for e in heads[i]] + [f(h, r, e) ** 2 for e in tails[i]]
        norms.append(
            sum(
                float(np.sum(row.astype(np.float64) ** 2))
                for row in (start.entity[h], start.relation[r], start.entity[t])
            )
            / 2
        )
    on_rules = [f(*fact) for fact in zip(rules.head, rules.relation, rules.tail, strict=True)]
    distances = [w * max(0.0, b - e) for w, b, e in zip(rules.weight, rules.body, on_rules, strict=True)]
    expected = {
        "observed": np.mean(observed),
        "unseen": 0.7 * np.mean(unseen),
        "rules": 0.3 * np.mean(np.square(distances)) + 0.2 * np.mean(np.square(on_rules)),
        "l2": 0.05 * np.mean(norms),
    }
    values, _ = loss_and_gradients(start, scorers.get("distmult"), links.get("rectifier"), settings, data, heads, tails)
    assert values == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("link", links.names())
@pytest.mark.parametrize("name", scorers.names())
def test_gradients_are_those_of_finite_differences(name: str, link: str) -> None:
    data = graph(n=8, n_rules=5, seed=1)
    rng = np.random.default_rng(4)
    heads, tails = rng.integers(0, N_ENTITIES, (2, 8, 2))
    scorer = scorer_of(name)
    start = init(scorer, N_ENTITIES, N_RELATIONS, 3, 0.5, 6)
    exact = Parameters.of({name: array.astype(np.float64) for name, array in start.as_dict().items()})
    settings = ObjectiveConfig(rule_weight=0.5, rule_prior=0.1, l2=0.01)

    def whole(at: Parameters) -> float:
        return sum(loss_and_gradients(at, scorer, links.get(link), settings, data, heads, tails)[0].values())

    _, gradients = loss_and_gradients(exact, scorer, links.get(link), settings, data, heads, tails)
    step = 1e-6
    for table, gradient in gradients.as_dict().items():
        assert gradient.dtype == np.float64
        values = exact.as_dict()[table].reshape(-1)
        for at in rng.integers(0, len(values), 1 if table.startswith(SHARED) else 6):
            kept = values[at]
            values[at] = kept + step
            above = whole(exact)
            values[at] = kept - step
            below = whole(exact)
            values[at] = kept
            assert gradient.reshape(-1)[at] == pytest.approx((above - below) / (2 * step), abs=1e-6, rel=1e-5)


@pytest.mark.parametrize("optimiser", optimisers.names())
def test_one_step_is_the_optimisers_own_formula(optimiser: str) -> None:
    data = graph(n=16, n_rules=0)
    config = SMALL.replace(optimiser=optimiser, sampler="none", l2=0.0, batch_size=16)
    ours = engine(config, data)
    before = ours.parameters.copy()
    scorer, link = scorers.get("distmult"), links.get("rectifier")
    _, gradients = loss_and_gradients(before, scorer, link, config.objective, data)
    ours.epoch(0)
    for name, gradient in gradients.as_dict().items():
        if optimiser == "rowwise-adagrad":
            by_row = gradient.reshape(len(gradient), -1)
            scale = np.sqrt(np.square(by_row).mean(axis=1)).reshape(-1, *[1] * (gradient.ndim - 1))
        else:  # the first steps of Adam and of Adagrad have the length of the learning rate
            scale = np.abs(gradient)
        expected = before.as_dict()[name] - 0.02 * gradient / (scale + 1e-8)
        assert np.allclose(ours.parameters.as_dict()[name], expected, atol=2e-4), name


def test_lazy_adam_is_adam_where_every_row_is_touched() -> None:
    whole = SMALL.replace(sampler="exhaustive")
    dense, lazy = engine(whole), engine(whole.replace(optimiser="lazy-adam"))
    for number in range(3):
        dense.epoch(number)
        lazy.epoch(number)
    for name, array in dense.parameters.as_dict().items():
        assert np.allclose(array, lazy.parameters.as_dict()[name], atol=1e-4), name


def test_by_rows_leaves_untouched_entities_alone() -> None:
    data = graph(n=3, n_rules=0)
    for optimiser in ("lazy-adam", "rowwise-adagrad"):
        ours = engine(SMALL.replace(optimiser=optimiser, sampler="none"), data)
        before = ours.parameters.copy()
        ours.epoch(0)
        touched = np.isin(np.arange(N_ENTITIES), np.concatenate([data.head, data.tail]))
        moved = (ours.parameters.entity != before.entity).any(axis=1)
        assert np.array_equal(moved, touched)


@pytest.mark.parametrize("optimiser", optimisers.names())
@pytest.mark.parametrize("sampler", samplers.names())
def test_every_sampler_learns_with_every_optimiser(sampler: str, optimiser: str) -> None:
    ours = engine(SMALL.replace(sampler=sampler, optimiser=optimiser, filter_observed=True))
    results = [ours.epoch(number) for number in range(12)]
    assert results[-1].loss < results[0].loss
    assert results[0].facts == 150
    assert set(results[0].losses) == {"observed", "rules", "l2"} | ({"unseen"} if sampler != "none" else set())


@pytest.mark.parametrize("loss", losses.names())
@pytest.mark.parametrize("name", scorers.names())
def test_every_loss_learns_with_every_scorer(name: str, loss: str) -> None:
    link = "rectifier" if loss == "squared" else "identity"
    data = graph(n_rules=0)
    ours = engine(SMALL.replace(scorer=named(name), loss=loss, link=link, l2=0.0, in_range=True), data)
    if loss == "distribution" and name != "distribution":
        with pytest.raises(ConfigError, match="the networks of one scorer"):
            ours.epoch(0)
        return
    results = [ours.epoch(number) for number in range(12)]
    assert results[-1].loss < results[0].loss


def test_training_fits_the_confidences() -> None:
    data = graph(n=60, n_rules=0)
    # Repeated triples of different confidence cannot both be met, so each is taken once.
    _, first = np.unique(np.stack([data.head, data.relation, data.tail]), axis=1, return_index=True)
    data = TrainingData(
        data.head[first], data.relation[first], data.tail[first], data.confidence[first], N_ENTITIES, N_RELATIONS
    )
    config = SMALL.replace(scorer="complex", sampler="none", l2=0.0, dim=16)
    ours = engine(config, data)
    for number in range(150):
        ours.epoch(number)
    model = Model(ours.parameters, scorers.get("complex"), links.get("rectifier"))
    assert np.abs(model.confidence(data.head, data.relation, data.tail) - data.confidence).max() < 0.02


@pytest.mark.parametrize("optimiser", optimisers.names())
@pytest.mark.parametrize("link", ["rectifier", "identity"])
def test_a_resumed_run_equals_an_uninterrupted_one_to_the_bit(optimiser: str, link: str) -> None:
    config = SMALL.replace(optimiser=optimiser, link=link)
    straight = engine(config)
    for number in range(4):
        straight.epoch(number)
    first = engine(config)
    first.epoch(0)
    first.epoch(1)
    parameters, state = first.parameters.copy(), copied(first.state())
    first.epoch(2)  # what happens after a checkpoint must not reach into it
    second = engine(config, parameters=parameters)
    second.load_state(state)
    results = [second.epoch(2), second.epoch(3)]
    for name, array in straight.parameters.as_dict().items():
        assert np.array_equal(array, parameters.as_dict()[name]), name
    assert second.state().keys() == straight.state().keys()
    for name, array in straight.state().items():
        assert np.array_equal(array, second.state()[name]), name
    assert all(np.isfinite(result.loss) for result in results)


def test_the_seed_decides_the_run() -> None:
    runs = []
    for seed in (1, 1, 2):
        ours = engine(SMALL.replace(seed=seed))
        ours.epoch(0)
        runs.append(ours.parameters.entity.copy())
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_progress_counts_every_fact_once_and_the_last_batch_is_smaller() -> None:
    told: list[int] = []
    engine(SMALL).epoch(0, told.append)
    assert told == [32, 32, 32, 32, 22]


def test_a_loss_that_is_not_finite_is_returned() -> None:
    ours = engine(SMALL)
    ours.parameters.entity[:] = np.nan
    assert np.isnan(ours.epoch(0).loss)


def test_read_only_facts_are_taken_without_a_warning() -> None:
    data = graph()
    for column in (data.head, data.relation, data.tail, data.confidence):
        column.setflags(write=False)
    assert np.isfinite(engine(SMALL, data).epoch(0).loss)


def test_rules_pull_their_heads_up() -> None:
    data = graph(n=40, n_rules=0)
    head = np.array([3], dtype=np.int32)
    one = np.ones(1, dtype=np.float32)
    rules = GroundRules(head, np.array([1], dtype=np.int32), np.array([11], dtype=np.int32), 0.9 * one, one)
    with_rule = TrainingData(data.head, data.relation, data.tail, data.confidence, N_ENTITIES, N_RELATIONS, rules)
    found = []
    for facts in (data, with_rule):
        ours = engine(SMALL.replace(rule_weight=5.0), facts)
        for number in range(60):
            ours.epoch(number)
        model = Model(ours.parameters, scorers.get("distmult"), links.get("rectifier"))
        found.append(float(model.confidence(rules.head, rules.relation, rules.tail)[0]))
    assert found[1] > found[0] + 0.2
    assert found[1] > 0.7
