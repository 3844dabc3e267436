"""A probe of seconds before training: which learning rate and which λ suit this graph.

The paper's settings are those of its three graphs. On another one the same λ may shrink every embedding to nothing, or
the same rate end before anything is learnt. So a few pairs of both are tried for a few steps, the better ones for more
(successive halving), and the validation metric says which one training begins with.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.learning.engines import engines
from ukge.learning.keepers import InMemory
from ukge.learning.train import Loop, training_data
from ukge.learning.validation import Validation, metrics
from ukge.logic.ground_rules import GroundRules
from ukge.models.model import init
from ukge.models.scorers import scorers
from ukge.registry import Registry
from ukge.runs.directory import Progress
from ukge.settings.config import Config

probes: Registry[tuple[str, ...]] = Registry("probe", "ukge.probes")
probes.register("none")(())
probes.register("lr")(("lr",))
probes.register("l2")(("l2",))
probes.register("both")(("lr", "l2"))

RATES = (0.003, 0.01)
LAMBDAS = (0.015, 0.005, 0.001, 0.0002)

RUNGS = ((600, 3), (1800, 1))
"""Steps that each candidate gets, and how many of them go on. In fewer, many graphs teach no more than a constant."""

SHARE = 5
"""A probe takes at most one of so many of the training's steps, but a third of the rungs if its epochs are not fewer
than the default."""

FEWEST = 20
"""Steps of the first rung below which nothing is seen."""

LOOKS = 6
"""Validations of a candidate: the best one counts, as in a training that stops early."""

MOST_JUDGED = 5_000
"""Validation facts that judge."""

AS_GOOD = 0.01
"""The model's own settings stay, unless others are better by more than this share."""

LEARNT = 0.02
"""Share by which a candidate is better than the best constant if it learnt anything. On millions of facts none may be
in so few steps. Then the smallest λ is taken: a larger one might shrink embeddings before they know anything."""

SOON = 5
"""Epochs of steps below which it is too soon to learn anything."""


class Candidate(NamedTuple):
    """A rate and a λ, with the best validation after so many steps."""

    lr: float
    l2: float
    steps: int
    value: float


@dataclass(frozen=True)
class Probe:
    """What was tried, in order, and what training begins with."""

    metric: str
    tried: tuple[Candidate, ...]
    chosen: Candidate
    own: Candidate
    """the model's own settings, as far as they came"""
    seconds: float

    def note(self) -> dict[str, Any]:
        """Return what a run's manifest keeps of it."""
        tried = [{**each._asdict(), "value": each.value if math.isfinite(each.value) else None} for each in self.tried]
        return {"metric": self.metric, "seconds": round(self.seconds, 2), "tried": tried}

    def __str__(self) -> str:
        """Say what was chosen, in a sentence that names arguments as errors do."""
        told = f"‹lr={self.chosen.lr:g}› and ‹l2={self.chosen.l2:g}›"
        found = f"validation {self.metric} {self.chosen.value:.4f} after {self.chosen.steps:,} steps"
        if self.chosen[:2] == self.own[:2]:
            return f"a probe of {self.seconds:.0f} s left {told} as they are: {found}"
        own = f"with {self.own.lr:g} and {self.own.l2:g} it was {self.own.value:.4f} after {self.own.steps:,}"
        return f"a probe of {self.seconds:.0f} s chose {told}: {found}; {own}"


def probe(
    dataset: Dataset,
    config: Config,
    rules: GroundRules | None,
    tell: Callable[[str, float], None] | None = None,
    seconds: float | None = None,
) -> Probe | None:
    """Try rates and values of λ, as far as `config` leaves them open; None where nothing is open or seen so soon.

    `tell` hears what is tried, and the share of all that is done. Where it would take more than about `seconds`, all
    candidates get fewer steps.
    """
    rungs = rungs_of(config, dataset)
    if not rungs:
        return None
    metric, own = config.stopping.metric, (config.optimiser.lr, config.objective.l2)
    order, going = _Drawn(dataset, config), _open(config)
    if seconds is not None:
        share = min(1.0, seconds / (order.seconds_of_a_step(config, rules) * _total(rungs, len(going))))
        rungs = [(max(FEWEST, int(steps * share)), left) for steps, left in rungs]
    began = time.monotonic()
    sign = -1.0 if order.judge.higher_is_better else 1.0
    work = _total(rungs, len(going))
    tried: list[Candidate] = []
    for steps, left in rungs:
        some, found = order.first(steps), list[Candidate]()
        for lr, l2 in going:
            if tell is not None:
                tell(f"trying rate {lr:g}, λ {l2:g}", sum(each.steps for each in [*tried, *found]) / work)
            value = order.value(some, config.replace(lr=lr, l2=l2), rules, steps)
            before = [each.value for each in tried if (each.lr, each.l2) == (lr, l2)]  # it may have been best early
            found.append(Candidate(lr, l2, steps, sign * min(sign * each for each in (value, *before))))
        tried += found
        best, *_ = standing = sorted(found, key=lambda each: sign * each.value)
        going = [(each.lr, each.l2) for each in standing[:left]]
    mine = [each for each in tried if (each.lr, each.l2) == own][-1]
    chosen = best
    constant = order.judge.of_a_constant()
    soon = best.steps * config.optimiser.batch_size < SOON * len(dataset.train)
    if soon and constant is not None and best.value > (1.0 - LEARNT) * constant:
        sound = [each for each in tried if math.isfinite(each.value)]
        chosen = min(sound, key=lambda each: (each.l2, each.value), default=mine)
    elif mine.steps == best.steps and abs(mine.value - best.value) <= AS_GOOD * abs(best.value):
        chosen = mine
    return Probe(metric, tuple(tried), chosen, mine, time.monotonic() - began)


def _open(config: Config) -> list[tuple[float, float]]:
    """Return the pairs to try: the model's own, and those of a grid as far as they are left open."""
    lr, l2, left = config.optimiser.lr, config.objective.l2, probes.get(config.optimiser.probe)
    rates = RATES if "lr" in left else (lr,)
    lambdas = LAMBDAS if "l2" in left else (l2,)
    return sorted({(lr, l2), *itertools.product(rates, lambdas)})


def rungs_of(config: Config, dataset: Dataset) -> list[tuple[int, int]]:
    """Return the rungs: shorter ones for a training that is short itself, none for one that is over so soon."""
    facts = len(dataset.train)
    if not probes.get(config.optimiser.probe) or config.runtime.memory_map or not len(dataset.val):
        return []
    planned = config.stopping.epochs * math.ceil(facts / config.optimiser.batch_size)
    least = 1 / 3 if config.stopping.epochs >= Config().stopping.epochs else 0.0
    share = min(1.0, max(least, planned / SHARE / _total(RUNGS, len(_open(config)))))
    rungs = [(int(steps * share), left) for steps, left in RUNGS]
    return rungs if rungs[0][0] >= FEWEST else []


def _total(rungs: Sequence[tuple[int, int]], candidates: int) -> int:
    """Return the steps of all candidates on all rungs."""
    counts = candidates, *(left for _, left in rungs[:-1])
    return sum(count * steps for count, (steps, _) in zip(counts, rungs, strict=True))


class _Drawn:
    """The facts in one drawn order, of which every candidate sees the same first ones, and what judges them all."""

    def __init__(self, dataset: Dataset, config: Config) -> None:
        rng = np.random.Generator(np.random.Philox(config.runtime.seed))
        val = dataset.val
        if len(val) > MOST_JUDGED:
            val = val[np.sort(rng.choice(len(val), MOST_JUDGED, replace=False))]
        validation = Validation(dataset.train, val, config.sampling.tau, config.runtime.seed)
        self.judge = metrics.get(config.stopping.metric)(validation)
        self._train, self._batch = dataset.train, config.optimiser.batch_size
        self._order = rng.permutation(len(dataset.train))

    def first(self, steps: int) -> UncertainGraph:
        """Return the facts that so many steps see."""
        seen = steps * self._batch
        return self._train if seen >= len(self._train) else self._train[np.sort(self._order[:seen])]

    def seconds_of_a_step(self, config: Config, rules: GroundRules | None) -> float:
        """Return how long a step takes here, and what is looked at after some, once all is compiled."""
        for _ in range(2):
            began = time.monotonic()
            self.value(self.first(FEWEST), config, rules, FEWEST)
        return (time.monotonic() - began) / FEWEST

    def value(self, facts: UncertainGraph, config: Config, rules: GroundRules | None, steps: int) -> float:
        """Return the best validation within so many steps; the worst there is where they diverge."""
        epochs = max(1, round(steps / math.ceil(len(facts) / self._batch)))
        brief = config.replace(epochs=epochs, every=max(1, epochs // LOOKS), patience=epochs)
        data = training_data(facts, brief, rules)
        scorer, model = scorers.get(config.model.scorer), config.model
        parameters = init(scorer, data.n_entities, data.n_relations, model.dim, model.init_scale, config.runtime.seed)
        engine = engines.get(config.runtime.engine)(parameters, data, brief)
        keeper = InMemory(engine, brief, None, None, data.undirected)
        try:
            best = Loop(brief, engine, self.judge, keeper, [], None, Progress(), None).run_to_end().best
        except RunError:
            best = None
        worst = -math.inf if self.judge.higher_is_better else math.inf
        return worst if best is None or not math.isfinite(best) else best
