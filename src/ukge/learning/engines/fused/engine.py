"""The fused CPU engine: the paper's objective with independent negatives, in compiled code."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.graph.keys import triple_keys
from ukge.learning.engines.base import EpochResult
from ukge.learning.engines.fused import links, ops, optimisers
from ukge.learning.engines.fused.kernel import run_batches
from ukge.learning.engines.fused.prepare import prepare_batches
from ukge.learning.engines.fused.rows import SPREAD
from ukge.learning.training_data import TrainingData
from ukge.logic.ground_rules import GroundRules
from ukge.models.aligned import aligned_zeros
from ukge.models.parameters import Parameters, State
from ukge.settings.config import Config

# (query, comparator) of each scorer that the kernels know.
SCORERS = {
    "distmult": (ops.PRODUCT, ops.DOT),
    "complex": (ops.COMPLEX_PRODUCT, ops.DOT),
    "transe-l1": (ops.TRANSLATION, ops.L1),
    "transe-l2": (ops.TRANSLATION, ops.L2),
    "rotate": (ops.ROTATION, ops.MODULUS),
    "dot": (ops.COPY, ops.DOT),
}
LINKS = {"logistic": links.LOGISTIC_LINK, "rectifier": links.RECTIFIER_LINK, "identity": links.IDENTITY_LINK}
LOSSES = {"squared": links.SQUARED, "logistic": links.LOGISTIC, "margin": links.MARGIN}
OPTIMISERS = {
    "adam": optimisers.ADAM,
    "lazy-adam": optimisers.LAZY_ADAM,
    "adagrad": optimisers.ADAGRAD,
    "rowwise-adagrad": optimisers.ROWWISE_ADAGRAD,
}
SAMPLERS = ("independent", "none")
N_TERMS = 4
GROUP = 32


def applies(config: Config) -> bool:
    """Return whether the kernels can minimise what `config` asks for."""
    return (
        config.model.scorer in SCORERS
        and config.model.link in LINKS
        and config.objective.loss in LOSSES
        and config.optimiser.optimiser in OPTIMISERS
        and config.sampling.sampler in SAMPLERS
    )


@dataclass(frozen=True)
class _Buffers:
    """What a group of prepared batches and one running batch need; allocated once."""

    facts: npt.NDArray[np.int32]
    rules: npt.NDArray[np.int32]
    drawn: npt.NDArray[np.int32]
    by_entity: tuple[npt.NDArray[Any], ...]
    by_relation: tuple[npt.NDArray[Any], ...]
    scratch: tuple[npt.NDArray[np.float32], ...]

    @property
    def prepared(self) -> tuple[Any, ...]:
        return self.facts, self.rules, self.drawn


class FusedEngine:
    """Minimises eq. 15 on the CPU; see `kernel` for how. Repeatable to the bit with any number of threads."""

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config) -> None:
        self.parameters = parameters
        self.data = data
        self.config = config
        self.threads = config.runtime.threads or os.cpu_count() or 1
        self.steps = 0
        self._pool = ThreadPoolExecutor(self.threads, "prepare")
        self._negatives = config.sampling.negatives if config.sampling.sampler == "independent" else 0
        self._rules = data.rules if data.rules is not None and len(data.rules) > 0 and _wants_rules(config) else None
        self._query, self._compare = (ops.as_type(code) for code in SCORERS[config.model.scorer])
        self._codes = np.array([LINKS[config.model.link], LOSSES[config.objective.loss]], dtype=np.int64)
        objective = config.objective
        # The margin loss compares a fact with its unseen facts: there is nothing to weigh against each other.
        negative_weight = 1.0 if objective.loss == "margin" else objective.negative_weight
        self._weights = np.array(
            [negative_weight, objective.l2, objective.margin, objective.rule_weight, objective.rule_prior],
            dtype=np.float32,
        )
        self._optimiser = OPTIMISERS[config.optimiser.optimiser]
        # Dense Adam walks every entity anyway, so nothing is to be had from optimising some of them early.
        self._mark_lone = self._optimiser != optimisers.ADAM
        opt = config.optimiser
        self._hyper = np.array([opt.lr, opt.beta1, opt.beta2, opt.eps, 1.0, 1.0], dtype=np.float32)
        self._moments = self._new_moments()
        self._observed, self._ranges = self._constraints()
        size = min(config.optimiser.batch_size, len(data))
        self._batch_size = size
        self._group = max(1, min(GROUP, -(-len(data) // size)))
        self._rules_per_batch = 0
        if self._rules is not None and config.sampling.rules_per_fact > 0:
            self._rules_per_batch = max(1, round(config.sampling.rules_per_fact * size))
        self._buffers = _allocate(self._group, size, self._rules_per_batch, self._negatives, parameters, self.threads)

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run one epoch over a seeded permutation of the facts."""
        nb.set_num_threads(min(self.threads, vars(nb.config)["NUMBA_NUM_THREADS"]))
        seed = self.config.runtime.seed
        permutation = np.random.Generator(np.random.Philox(key=[seed, number])).permutation(len(self.data))
        key = np.random.Generator(np.random.Philox(key=[seed, number])).integers(2**63, dtype=np.uint64)
        losses = np.zeros(N_TERMS)
        n_batches = -(-len(self.data) // self._batch_size)
        for first in range(0, n_batches, self._group):
            count = min(self._group, n_batches - first)
            start = first * self._batch_size
            sizes = np.full(count, self._batch_size, dtype=np.int64)
            sizes[-1] = min(self._batch_size, len(self.data) - start - (count - 1) * self._batch_size)
            self._prepare(permutation, start, sizes, key)
            self.steps = self._run(sizes, self._rules_drawn(sizes), losses, gradients_only=False)
            if on_facts is not None:
                on_facts(int(sizes.sum()))
        return EpochResult(len(self.data), self._named(losses / n_batches))

    def sync(self) -> None:
        """Do nothing: the kernels work on the parameters themselves."""

    def state(self) -> State:
        """Return the optimiser's moments and the number of steps."""
        names = ("entity_m", "entity_v", "relation_m", "relation_v", "link_m", "link_v")
        return {**dict(zip(names, self._moments, strict=True)), "steps": np.array([self.steps], dtype=np.int64)}

    def load_state(self, state: State) -> None:
        """Take up the moments and the step count."""
        names = ("entity_m", "entity_v", "relation_m", "relation_v", "link_m", "link_v")
        for name, moment in zip(names, self._moments, strict=True):
            moment[:] = state[name]
        self.steps = int(state["steps"][0])

    def gradients(
        self, heads: npt.NDArray[np.int32], tails: npt.NDArray[np.int32], rules: npt.NDArray[np.int32]
    ) -> tuple[dict[str, float], Parameters]:
        """Return the losses and gradients of one batch of all facts, with given corruptions and ground rules."""
        nb.set_num_threads(min(self.threads, vars(nb.config)["NUMBA_NUM_THREADS"]))
        sizes = np.array([len(self.data)], dtype=np.int64)
        buffers = _allocate(1, len(self.data), len(rules), self._negatives, self.parameters, self.threads)
        buffers.facts[0] = np.arange(len(self.data))
        buffers.rules[0, : len(rules)] = rules
        buffers.drawn[0] = tails, heads
        chosen = self._rule_arrays()
        entities = np.concatenate(
            [self.data.head, chosen[0][rules], self.data.tail, chosen[2][rules], tails.ravel(), heads.ravel()]
        )
        _group(entities, buffers.by_entity)
        _group(np.concatenate([self.data.relation, chosen[1][rules]]), buffers.by_relation)
        for moment in self._moments:
            moment[:] = 0.0
        kept, self._buffers = self._buffers, buffers
        losses = np.zeros(N_TERMS)
        self._run(sizes, np.array([len(rules)], dtype=np.int64), losses, gradients_only=True)
        self._buffers = kept
        gradients = Parameters(self._moments[0].copy(), self._moments[2].copy(), self._moments[4][:, 0].copy())
        return self._named(losses), gradients

    def _named(self, losses: npt.NDArray[np.float64]) -> dict[str, float]:
        """Return the losses by the names of the terms that take part, as the PyTorch engine names them."""
        observed, unseen, rules, l2 = losses.tolist()
        objective = self.config.objective
        if objective.loss != "squared":
            named = {objective.loss: observed + unseen}
        elif self._negatives and objective.negative_weight:
            named = {"observed": observed, "unseen": unseen}
        else:
            named = {"observed": observed}
        if self._rules is not None and self.config.sampling.rules_per_fact > 0:
            named["rules"] = rules
        if objective.l2:
            named["l2"] = l2
        return named

    def _new_moments(self) -> tuple[npt.NDArray[np.float32], ...]:
        tables = (self.parameters.entity, self.parameters.relation, self.parameters.link.reshape(2, 1))
        moments: list[npt.NDArray[np.float32]] = []
        for table in tables:
            both = self._optimiser in (optimisers.ADAM, optimisers.LAZY_ADAM)
            first = aligned_zeros(*table.shape) if both else _none(table)
            rowwise = self._optimiser == optimisers.ROWWISE_ADAGRAD
            second = _none(table) if rowwise else aligned_zeros(*table.shape)
            moments += [first, second]
        return tuple(moments)

    def _constraints(self) -> tuple[npt.NDArray[np.int64], tuple[Any, ...]]:
        data = self.data
        observed = np.zeros(0, dtype=np.int64)
        if self.config.sampling.filter_observed:
            observed = np.unique(triple_keys(*data.observed(), data.n_entities, data.n_relations))
        if self.config.sampling.in_range:
            head, relation, tail = data.observed()
            heads, tails = _members(relation, head, data), _members(relation, tail, data)
            return observed, (*heads, *tails, np.uint64(0))
        share = self.config.sampling.by_degree
        ends = np.concatenate([data.head, data.tail]) if share else np.zeros(0, dtype=np.int32)
        no_range = np.zeros(0, dtype=np.int64)
        return observed, (no_range, ends, no_range, ends, np.uint64(share * 2**32))

    def _fact_arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.data.head, self.data.relation, self.data.tail, self.data.confidence

    def _rule_arrays(self) -> tuple[npt.NDArray[Any], ...]:
        rules = self._rules
        if rules is None:
            ids, values = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
            rules = GroundRules(ids, ids, ids, values, values)
        return rules.head, rules.relation, rules.tail, rules.body, rules.weight

    def _rules_drawn(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self._rules_per_batch == 0:
            return np.zeros(len(sizes), dtype=np.int64)
        share = np.round(self.config.sampling.rules_per_fact * sizes).astype(np.int64)
        return np.maximum(share, 1)

    def _prepare(
        self, permutation: npt.NDArray[np.int64], start: int, sizes: npt.NDArray[np.int64], key: np.uint64
    ) -> None:
        data = self.data
        bounds = [len(sizes) * share // self.threads for share in range(self.threads + 1)]
        arguments = (
            start, self._batch_size, permutation, self._fact_arrays(), self._rule_arrays(), self._rules_drawn(sizes),
            self._negatives, data.n_entities, data.n_relations, key, self._observed, self._ranges, self._mark_lone,
            self._buffers.prepared, self._buffers.by_entity, self._buffers.by_relation,
        )  # fmt: skip
        # Compiled code without Python's lock: plain threads share it out, and nothing is compiled as parallel code.
        shares = [self._pool.submit(prepare_batches, *each, *arguments) for each in pairwise(bounds)]
        for share in shares:
            share.result()

    def _run(
        self,
        sizes: npt.NDArray[np.int64],
        rules_drawn: npt.NDArray[np.int64],
        losses: npt.NDArray[np.float64],
        *,
        gradients_only: bool,
    ) -> int:
        parameters = self.parameters
        steps: int = run_batches(
            self._query, self._compare, len(sizes), sizes, rules_drawn, self._negatives, self.threads, self._codes,
            self._weights, self._optimiser, self._hyper, self.steps, self._fact_arrays(), self._rule_arrays(),
            parameters.entity, parameters.relation, parameters.link.reshape(2, 1), self._moments,
            self._buffers.prepared, self._buffers.by_entity, self._buffers.by_relation, self._buffers.scratch, losses,
            gradients_only,
        )  # fmt: skip
        return steps


def _wants_rules(config: Config) -> bool:
    return config.objective.rule_weight > 0 or config.objective.rule_prior > 0


def _none(table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return a moment table of one column, where an optimiser keeps one number per row or none."""
    return np.zeros((len(table), 1), dtype=np.float32)


def _allocate(group: int, size: int, rules: int, negatives: int, parameters: Parameters, threads: int) -> _Buffers:
    rows = size + rules
    seen = 2 * rows + 2 * size * negatives
    width, relation_width = parameters.entity.shape[1], parameters.relation.shape[1]

    def ints(*shape: int) -> npt.NDArray[np.int32]:
        return np.zeros(shape, dtype=np.int32)

    def index(n: int) -> tuple[npt.NDArray[Any], ...]:
        return np.zeros(group, dtype=np.int64), ints(group, n), ints(group, n), ints(group, n + 1)

    queries = size + rows
    kept = aligned_zeros(queries + 2 * rows, width)

    return _Buffers(
        facts=ints(group, size),
        rules=ints(group, max(rules, 1)),
        drawn=ints(group, 2, size, negatives),
        by_entity=index(seen),
        by_relation=index(rows),
        scratch=(
            kept,
            kept[:queries],
            aligned_zeros(2 * size * negatives),
            kept[queries : queries + rows],
            aligned_zeros(rows, relation_width),
            kept[queries + rows :],
            aligned_zeros(SPREAD * threads, width),
            aligned_zeros(SPREAD * threads, width),
            aligned_zeros(min(rows, len(parameters.relation)), relation_width),
            aligned_zeros(rows, 2),
            aligned_zeros(rows, 4),
        ),
    )


def _group(keys: npt.NDArray[np.int32], index: tuple[npt.NDArray[Any], ...]) -> None:
    """Fill batch 0 of an occurrence index with NumPy (the gradients of one given batch)."""
    counts, order, rows, starts = index
    order[0, : len(keys)] = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order[0, : len(keys)]], return_index=True)
    counts[0] = len(distinct)
    rows[0, : len(distinct)] = distinct
    starts[0, : len(distinct)] = first
    starts[0, len(distinct)] = len(keys)


def _members(
    relation: npt.NDArray[np.int32], entity: npt.NDArray[np.int32], data: TrainingData
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the entities seen at one place of each relation: offsets per relation, and the entities."""
    pairs = np.unique(relation.astype(np.int64) * data.n_entities + entity)
    offsets = np.searchsorted(pairs // data.n_entities, np.arange(data.n_relations + 1))
    return offsets.astype(np.int64), (pairs % data.n_entities).astype(np.int32)
