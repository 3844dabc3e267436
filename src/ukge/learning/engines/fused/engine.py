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
from ukge.learning.engines.fused import ops, optimisers, queries
from ukge.learning.engines.fused.choices import OPTIMISERS, in_kernels, objective_of, pool_of, wants_rules
from ukge.learning.engines.fused.guesses import guess
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
    Optimiser,
    Rules,
    Sampling,
    Tables,
    allocate,
)
from ukge.learning.pool import Pool
from ukge.logic.ground_rules import GroundRules
from ukge.models.losses import InKernels
from ukge.models.scorers import scorers
from ukge.models.tables import Floats, Parameters, State, aligned_zeros
from ukge.settings.config import Config
from ukge.storage.arrays import Expected

GROUP = 32


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
        self._rules = data.rules if data.rules is not None and len(data.rules) > 0 and wants_rules(config) else None
        settings = pool_of(config.objective.loss)
        self.guesses = None if settings is None else Pool(settings, data)
        self._share = 0.0
        """which share of the unseen facts comes from the pool"""
        query, comparator = scorers.get(config.model.scorer).fused or ("", "")
        self._codes = ops.as_type(queries.QUERIES[query]), ops.as_type(ops.COMPARATORS[comparator])
        self._loss = in_kernels(config.objective.loss) or InKernels("squared")
        self._objective = objective_of(config)
        self._optimiser = OPTIMISERS[config.optimiser.optimiser]
        self._moments = self._new_moments()
        self._sampling = self._new_sampling()
        size = min(config.optimiser.batch_size, len(data))
        self._batch_size = size
        self._group = max(1, min(GROUP, -(-len(data) // size)))
        most_rules = int(self._rules_drawn(np.array([size])).max())
        if settings is not None:
            most_rules = _labelled(settings.most, size, self._negatives)
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
        gathers = self.guesses is not None and number >= self.guesses.settings.gather
        group = 1 if gathers else self._group  # what one step says of its corruptions, a later one may learn from
        for first in range(0, n_batches, group):
            count = min(group, n_batches - first)
            start = first * self._batch_size
            sizes = np.full(count, self._batch_size, dtype=np.int64)
            sizes[-1] = min(self._batch_size, len(self.data) - start - (count - 1) * self._batch_size)
            self.turn_to(number)
            self._prepare(Epoch(order, key), start, sizes)
            self._run(self._buffers.first(count), self._optimiser, self._moments)
            self.steps += count
            if gathers:
                self._gather(Epoch(order, key), start, int(sizes[0]))
            if on_facts is not None:
                on_facts(int(sizes.sum()))
        return EpochResult(len(self.data), self._named(totals / n_batches))

    def sync(self) -> None:
        """Do nothing: the kernels work on the parameters themselves."""

    def state(self) -> State:
        """Return the optimiser's moments, the number of steps, and the pool if there is one."""
        pool = {} if self.guesses is None else self.guesses.state()
        return {**self._moments._asdict(), "steps": np.array([self.steps], dtype=np.int64), **pool}

    def expected(self) -> dict[str, Expected]:
        """Return what must be true of the parts of a state that grow as it learns."""
        return {} if self.guesses is None else self.guesses.expected()

    def load_state(self, state: State) -> None:
        """Take up the moments, the step count and the pool."""
        if self.guesses is not None:
            self.guesses.load_state(state)
        for name, moment in self._moments._asdict().items():
            moment[:] = state[name]
        self.steps = int(state["steps"][0])

    def _named(self, totals: npt.NDArray[np.float64]) -> dict[str, float]:
        """Return the losses by the names of the terms that take part, as the PyTorch engine names them."""
        found = dict(zip(TERMS, totals.tolist(), strict=True))
        objective = self.config.objective
        if self._loss.loss != "squared":
            named = {self._loss.loss: found["observed"] + found["unseen"]}
        elif self._negatives and objective.negative_weight:
            named = {"observed": found["observed"], "unseen": found["unseen"]}
        else:
            named = {"observed": found["observed"]}
        if self._rules is not None and self.config.sampling.rules_per_fact > 0:
            named["rules"] = found["rules"]
        if objective.l2:
            named["l2"] = found["l2"]
        return named

    def turn_to(self, number: int) -> None:
        """Settle what the epoch decides for the next batches: β, and how many unseen facts come from the pool."""
        self._objective["beta"] = max(0.0, 1.0 - number / self._loss.decay)
        if self.guesses is None:
            return
        self._share = self.guesses.settings.share(number) if len(self.guesses) else 0.0
        false = max(1, round((1.0 - self._share) * self._negatives))
        prepared = self._buffers.prepared
        if prepared.drawn.shape[3] != false:
            drawn = np.zeros((*prepared.drawn.shape[:3], false), dtype=np.int32)
            self._buffers = self._buffers._replace(prepared=prepared._replace(drawn=drawn))

    def _gather(self, epoch: Epoch, start: int, n_facts: int) -> None:
        """Put fresh corruptions of the last batch into the pool, with what the model says of them now."""
        if self.guesses is None:
            return
        facts, link = self._fact_arrays(), int(self._objective["link"][0])
        query = aligned_zeros(2, self.parameters.entity.shape[1])
        entities, confidences = guess(
            *self._codes, link, start, n_facts, self._negatives, epoch, facts, self._sampling, self._tables(), query
        )
        picked = np.repeat(epoch.order[start : start + n_facts], self._negatives)
        tails, heads = np.split(entities, 2)
        head, relation, tail = (column[picked] for column in (facts.head, facts.relation, facts.tail))
        self.guesses.put(
            np.concatenate([heads, head]),
            np.tile(relation, 2),
            np.concatenate([tail, tails]),
            np.concatenate(np.split(confidences, 2)[::-1]),
        )

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
        if self.guesses is not None and self._share > 0.0:
            head, relation, tail, told = map(_read_only, self.guesses.columns.values())
            return Rules(head, relation, tail, told, told)
        if rules is None:
            ids, values = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
            rules = GroundRules(ids, ids, ids, values, values)
        return Rules(*map(_read_only, (rules.head, rules.relation, rules.tail, rules.body, rules.weight)))

    def _rules_drawn(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many ground rules batches of these sizes get, or labelled facts in their place."""
        if self.guesses is not None:
            drawn = [_labelled(self._share, int(size), self._negatives) for size in sizes]
            return np.array(drawn, dtype=np.int64)
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


def _labelled(share: float, n_facts: int, negatives: int) -> int:
    """Return how many facts of a pool go with a batch in which they are this share of the unseen ones."""
    return round(share * 2 * n_facts * negatives)


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
