"""1-vs-all by query and fact by fact: the same objective, the same gradients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.learning.engines import engines, resolve
from ukge.learning.engines.query_engine import Queries, QueryEngine, applies
from ukge.learning.engines.torch_engine import OnDevice, TorchEngine
from ukge.learning.engines.torch_optimisers import Gradient, Optimiser, optimisers
from ukge.models.links import links
from ukge.models.scorers import scorers
from ukge.settings.config import Config

from .test_engines import N_FACTS, a_graph, settings, some_parameters

EVERYTHING = 10 * N_FACTS


def one_vs_all(scorer: str, **more: object) -> Config:
    base: dict[str, object] = {"loss": "softmax", "sampler": "exhaustive", "rule_weight": 0.0, "rule_prior": 0.0}
    return settings(scorer, "logistic", **{**base, "rules_per_fact": 0.0, "batch_size": EVERYTHING, **more})


class Recorder(Optimiser):
    """Keeps gradients and changes nothing."""

    by_rows = False

    def __init__(self) -> None:
        self.seen: list[dict[str, Tensor]] = []

    def step(self, gradients: Mapping[str, Gradient]) -> None:
        self.seen.append({name: each.values for name, each in gradients.items()})

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        raise AssertionError("nothing to load")


def recorded(engine: OnDevice) -> tuple[dict[str, float], list[dict[str, Tensor]]]:
    recorder = Recorder()
    engine._optimiser = recorder
    return dict(engine.epoch(0).losses), recorder.seen


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("scorer", [name for name in scorers if applies(one_vs_all(name))])
def test_one_step_over_all_facts_has_the_same_losses_and_gradients(scorer: str, filtered: bool) -> None:
    config, data = one_vs_all(scorer, filter_observed=filtered), a_graph()
    chosen = scorers.get(scorer)
    by_fact = TorchEngine(some_parameters(scorer), data, config, chosen, links.get("logistic"))
    by_query = QueryEngine(some_parameters(scorer), data, config, chosen)
    (expected, theirs), (found, ours) = recorded(by_fact), recorded(by_query)
    assert found == pytest.approx(expected, rel=1e-5)
    assert len(ours) == len(theirs) == 1
    for name in ("entity", "relation"):
        torch.testing.assert_close(ours[0][name], theirs[0][name], rtol=1e-4, atol=1e-6)


def test_steps_hold_a_batch_of_facts_and_every_answer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = a_graph(n_facts=500)
    engine = QueryEngine(some_parameters("complex"), data, one_vs_all("complex", batch_size=50), scorers.get("complex"))
    asked: list[list[int]] = []
    take = engine._step

    def listening(queries: npt.NDArray[np.int64]) -> Tensor:
        asked.append(queries.tolist())
        return take(queries)

    monkeypatch.setattr(engine, "_step", listening)
    told: list[int] = []
    assert engine.epoch(0, told.append).facts == sum(told) == 500
    assert sorted(query for step in asked for query in step) == list(range(len(Queries.of(data))))
    assert len(asked) == pytest.approx(10, abs=1)


def test_queries_are_those_of_both_sides() -> None:
    data = a_graph()
    found = Queries.of(data)
    seen = []
    for q in range(len(found)):
        for place in range(found.start[q], found.start[q + 1]):
            given, answer = int(found.given[q]), int(found.answer[place])
            head, tail = (given, answer) if q < found.for_tails else (answer, given)
            seen.append((head, int(found.relation[q]), tail, float(found.confidence[place])))
    facts = list(zip(*(c.tolist() for c in (data.head, data.relation, data.tail, data.confidence)), strict=True))
    assert sorted(seen) == sorted(facts * 2)


@pytest.mark.parametrize("optimiser", optimisers.names())
def test_every_optimiser_learns_and_an_interrupted_training_goes_on_alike(optimiser: str) -> None:
    config = one_vs_all("complex", optimiser=optimiser, lr=0.05, batch_size=16, l2=0.0, threads=1)
    data = a_graph()
    straight = QueryEngine(some_parameters("complex"), data, config, scorers.get("complex"))
    losses = [straight.epoch(number).loss for number in range(6)]
    assert losses[-1] < 0.8 * losses[0]
    first = QueryEngine(some_parameters("complex"), data, config, scorers.get("complex"))
    for number in range(3):
        first.epoch(number)
    state = {name: array.copy() for name, array in first.state().items()}
    second = QueryEngine(first.parameters.copy(), data, config, scorers.get("complex"))
    second.load_state(state)
    for number in range(3, 6):
        second.epoch(number)
    np.testing.assert_array_equal(second.parameters.entity, straight.parameters.entity)


def test_it_is_chosen_for_one_vs_all_and_refused_for_anything_else() -> None:
    config = one_vs_all("complex")
    assert resolve(config) == "queries"
    assert isinstance(engines.get("auto")(some_parameters("complex"), a_graph(), config), QueryEngine)
    for other in ({"loss": "logistic"}, {"sampler": "shared"}, {"in_range": True}, {"rule_weight": 0.1}):
        changed = config.replace(**other)
        assert resolve(changed) != "queries"
        with pytest.raises(ConfigError, match="softmax loss with the sampler 'exhaustive' alone"):
            engines.get("queries")(some_parameters("complex"), a_graph(), changed)
