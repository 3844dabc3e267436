"""The fused CPU engine: the paper's objective with independent negatives, in compiled code."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.graph.keys import triple_keys
from ukge.learning.data import TrainingData
from ukge.learning.engines import EpochResult
from ukge.learning.engines.fused import links, ops, optimisers
from ukge.learning.engines.fused.kernel import run_batches
from ukge.learning.engines.fused.prepare import prepare_batches
from ukge.learning.engines.fused.records import (
    TERMS,
    Buffers,
    Epoch,
    Extent,
    Facts,
    Hyper,
    Ints,
    Members,
    Moments,
    Objective,
    Optimiser,
    Rules,
    Sampling,
    Tables,
    allocate,
)
from ukge.logic.ground_rules import GroundRules
from ukge.models.scorers import scorers
from ukge.models.tables import Floats, Parameters, State, aligned_zeros
from ukge.settings.config import Config

LINKS = {"logistic": links.LOGISTIC_LINK, "rectifier": links.RECTIFIER_LINK, "identity": links.IDENTITY_LINK}
LOSSES = {"squared": links.SQUARED, "logistic": links.LOGISTIC, "margin": links.MARGIN}
OPTIMISERS = {
    "adam": optimisers.ADAM,
    "lazy-adam": optimisers.LAZY_ADAM,
    "adagrad": optimisers.ADAGRAD,
    "rowwise-adagrad": optimisers.ROWWISE_ADAGRAD,
}
SAMPLERS = ("independent", "none")
GROUP = 32


def applies(config: Config) -> bool:
    """Return whether the kernels can minimise what `config` asks for."""
    query, comparator = scorers.get(config.model.scorer).fused or ("", "")
    return (
        not config.model.encodes
        and query in ops.QUERIES
        and comparator in ops.COMPARATORS
        and config.model.link in LINKS
        and config.objective.loss in LOSSES
        and config.optimiser.optimiser in OPTIMISERS
        and config.sampling.sampler in SAMPLERS
    )


class FusedEngine:
    """Minimises eq. 15 on the CPU; see `kernel` for how. Repeatable to the bit with any number of threads."""

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config) -> None:
        data.check(parameters)
        self.parameters = parameters
        self.data = data
        self.config = config
        self.threads = config.runtime.threads or os.cpu_count() or 1
        self.steps = 0
        self._pool = ThreadPoolExecutor(self.threads, "prepare")
        self._negatives = config.sampling.negatives if config.sampling.sampler == "independent" else 0
        self._rules = data.rules if data.rules is not None and len(data.rules) > 0 and _wants_rules(config) else None
        query, comparator = scorers.get(config.model.scorer).fused or ("", "")
        self._codes = ops.as_type(ops.QUERIES[query]), ops.as_type(ops.COMPARATORS[comparator])
        self._objective = _objective(config)
        self._optimiser = OPTIMISERS[config.optimiser.optimiser]
        self._moments = self._new_moments()
        self._sampling = self._new_sampling()
        size = min(config.optimiser.batch_size, len(data))
        self._batch_size = size
        self._group = max(1, min(GROUP, -(-len(data) // size)))
        most_rules = int(self._rules_drawn(np.array([size])).max())
        if 2 * (size + most_rules) + 2 * size * self._negatives > np.iinfo(np.int32).max:
            raise ConfigError(
                f"a batch of {size:,} facts with {self._negatives:,} corruptions on either side is too large",
                hint="Lower ‹batch_size› or ‹negatives›.",
            )
        self._buffers = allocate(Extent(self._group, size, most_rules, self._negatives), parameters, self.threads)

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run one epoch over a seeded permutation of the facts."""
        seed = self.config.runtime.seed
        order = np.random.Generator(np.random.Philox(key=[seed, number])).permutation(len(self.data))
        key = np.random.Generator(np.random.Philox(key=[seed, number])).integers(2**63, dtype=np.uint64)
        totals = self._buffers.scratch.totals
        totals[:] = 0.0
        n_batches = -(-len(self.data) // self._batch_size)
        for first in range(0, n_batches, self._group):
            count = min(self._group, n_batches - first)
            start = first * self._batch_size
            sizes = np.full(count, self._batch_size, dtype=np.int64)
            sizes[-1] = min(self._batch_size, len(self.data) - start - (count - 1) * self._batch_size)
            self._prepare(Epoch(order, key), start, sizes)
            self._run(self._buffers.first(count), self._optimiser, self._moments)
            self.steps += count
            if on_facts is not None:
                on_facts(int(sizes.sum()))
        return EpochResult(len(self.data), self._named(totals / n_batches))

    def sync(self) -> None:
        """Do nothing: the kernels work on the parameters themselves."""

    def state(self) -> State:
        """Return the optimiser's moments and the number of steps."""
        return {**self._moments._asdict(), "steps": np.array([self.steps], dtype=np.int64)}

    def load_state(self, state: State) -> None:
        """Take up the moments and the step count."""
        for name, moment in self._moments._asdict().items():
            moment[:] = state[name]
        self.steps = int(state["steps"][0])

    def _named(self, totals: npt.NDArray[np.float64]) -> dict[str, float]:
        """Return the losses by the names of the terms that take part, as the PyTorch engine names them."""
        found = dict(zip(TERMS, totals.tolist(), strict=True))
        objective = self.config.objective
        if objective.loss != "squared":
            named = {objective.loss: found["observed"] + found["unseen"]}
        elif self._negatives and objective.negative_weight:
            named = {"observed": found["observed"], "unseen": found["unseen"]}
        else:
            named = {"observed": found["observed"]}
        if self._rules is not None and self.config.sampling.rules_per_fact > 0:
            named["rules"] = found["rules"]
        if objective.l2:
            named["l2"] = found["l2"]
        return named

    def _new_moments(self) -> Moments:
        both = self._optimiser in (optimisers.ADAM, optimisers.LAZY_ADAM)
        by_row = self._optimiser == optimisers.ROWWISE_ADAGRAD
        moments: list[Floats] = []
        for table in self._tables():
            first = aligned_zeros(*table.shape) if both else _one_column(table)
            second = _one_column(table) if by_row else aligned_zeros(*table.shape)
            moments += [first, second]
        return Moments(*moments)

    def _new_sampling(self) -> Sampling:
        data, config = self.data, self.config.sampling
        observed = np.zeros(0, dtype=np.int64)
        if config.filter_observed:
            observed = np.unique(triple_keys(*data.observed(), data.n_entities, data.n_relations))
        if config.in_range:
            head, relation, tail = data.observed()
            heads, tails = _seen_at(relation, head, data), _seen_at(relation, tail, data)
        else:
            ends = np.concatenate([data.head, data.tail]) if config.by_degree else np.zeros(0, dtype=np.int32)
            heads = tails = Members(np.zeros(0, dtype=np.int64), ends)
        return Sampling(
            data.n_entities,
            data.n_relations,
            observed,
            heads,
            tails,
            np.uint64(config.by_degree * 2**32),
            # Dense Adam walks every entity anyway, so nothing is to be had from optimising some of them early.
            mark_lone=self._optimiser != optimisers.ADAM,
        )

    def _tables(self) -> Tables:
        return Tables(self.parameters.entity, self.parameters.relation, self.parameters.link.reshape(2, 1))

    def _fact_arrays(self) -> Facts:
        data = self.data
        return Facts(*map(_read_only, (data.head, data.relation, data.tail, data.confidence)))

    def _rule_arrays(self) -> Rules:
        rules = self._rules
        if rules is None:
            ids, values = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
            rules = GroundRules(ids, ids, ids, values, values)
        return Rules(*map(_read_only, (rules.head, rules.relation, rules.tail, rules.body, rules.weight)))

    def _rules_drawn(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many ground rules batches of these sizes get."""
        per_fact = self.config.sampling.rules_per_fact
        if self._rules is None or per_fact == 0:
            return np.zeros(len(sizes), dtype=np.int64)
        return np.maximum(np.round(per_fact * sizes).astype(np.int64), 1)

    def _prepare(self, epoch: Epoch, start: int, sizes: npt.NDArray[np.int64]) -> None:
        """Prepare batches of these sizes, from place `start` of the epoch's order on."""
        buffers = self._buffers.first(len(sizes))
        buffers.prepared.n_facts[:] = sizes
        buffers.prepared.n_rules[:] = self._rules_drawn(sizes)
        arguments: tuple[Any, ...] = (
            start,
            epoch,
            self._fact_arrays(),
            self._rule_arrays(),
            self._sampling,
            buffers.prepared,
            buffers.by_entity,
            buffers.by_relation,
        )
        bounds = [len(sizes) * share // self.threads for share in range(self.threads + 1)]
        # Compiled code without Python's lock: plain threads share it out, and nothing is compiled as parallel code.
        shares = [self._pool.submit(prepare_batches, *each, *arguments) for each in pairwise(bounds)]
        for share in shares:
            share.result()

    def _run(self, buffers: Buffers, optimiser: int, moments: Moments) -> None:
        """Run the prepared batches with an optimiser and its moments."""
        nb.set_num_threads(min(self.threads, vars(nb.config)["NUMBA_NUM_THREADS"]))
        opt = self.config.optimiser
        hyper = np.array([(opt.lr, opt.beta1, opt.beta2, opt.eps, 1.0, 1.0)], dtype=Hyper)
        run_batches(
            *self._codes,
            self._objective,
            Optimiser(optimiser, hyper, self.steps),
            self._fact_arrays(),
            self._rule_arrays(),
            self._tables(),
            moments,
            *buffers,
        )


def _wants_rules(config: Config) -> bool:
    return config.objective.rule_weight > 0 or config.objective.rule_prior > 0


def _objective(config: Config) -> npt.NDArray[np.void]:
    """Return what is minimised, as one record."""
    objective = config.objective
    # The margin loss compares a fact with its unseen facts: there is nothing to weigh against each other.
    negative_weight = 1.0 if objective.loss == "margin" else objective.negative_weight
    codes = LINKS[config.model.link], LOSSES[objective.loss]
    weights = negative_weight, objective.l2, objective.margin, objective.rule_weight, objective.rule_prior
    return np.array([codes + weights], dtype=Objective)


def _one_column(table: Floats) -> Floats:
    """Return a moment table of one column, where an optimiser keeps one number per row or none."""
    return np.zeros((len(table), 1), dtype=np.float32)


def _read_only(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column as one that is not written to: Numba compiles all anew for arrays that may be, and for a mix."""
    view = column.view()
    view.flags.writeable = False
    return view


def _seen_at(relation: Ints, entity: Ints, data: TrainingData) -> Members:
    """Return the entities seen at one place of each relation; `entity` holds each fact's at that place."""
    pairs = np.unique(relation.astype(np.int64) * data.n_entities + entity)
    offsets = np.searchsorted(pairs // data.n_entities, np.arange(data.n_relations + 1))
    return Members(offsets.astype(np.int64), (pairs % data.n_entities).astype(np.int32))
