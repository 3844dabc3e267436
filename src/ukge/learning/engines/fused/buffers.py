"""The memory of the fused engine beyond parameters and moments: that of some prepared batches and a running one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ukge.learning.engines.fused.records import Ints, Occurrences, Prepared, Scratch
from ukge.learning.engines.fused.rows import SPREAD, TERMS
from ukge.models.parameters import Parameters, aligned_zeros


class Extent(NamedTuple):
    """How much is prepared at once: batches, and at most so many facts, ground rules and negatives per side in each."""

    batches: int
    facts: int
    rules: int
    negatives: int


class Buffers(NamedTuple):
    """What a group of prepared batches and one running batch need; allocated once."""

    prepared: Prepared
    by_entity: Occurrences
    by_relation: Occurrences
    scratch: Scratch

    def first(self, count: int) -> Buffers:
        """Return the first batches alone; they share their memory with all."""
        n_facts, n_rules = self.prepared.n_facts[:count], self.prepared.n_rules[:count]
        return self._replace(prepared=self.prepared._replace(n_facts=n_facts, n_rules=n_rules))


def allocate(extent: Extent, parameters: Parameters, threads: int) -> Buffers:
    """Return buffers that are large enough, full of zeros."""
    group, size, rules, negatives = extent
    rows = size + rules
    prepared = Prepared(
        n_facts=np.zeros(group, dtype=np.int64),
        n_rules=np.zeros(group, dtype=np.int64),
        facts=_ints(group, size),
        rules=_ints(group, max(rules, 1)),
        drawn=_ints(group, 2, size, negatives),
    )
    by_entity, by_relation = _index(group, 2 * rows + 2 * size * negatives), _index(group, rows)
    return Buffers(prepared, by_entity, by_relation, _scratch(extent, parameters, threads))


def fill_index(keys: Ints, index: Occurrences) -> None:
    """Fill batch 0 of an occurrence index with NumPy (the gradients of one given batch)."""
    index.order[0, : len(keys)] = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[index.order[0, : len(keys)]], return_index=True)
    index.n[0] = len(distinct)
    index.rows[0, : len(distinct)] = distinct
    index.starts[0, : len(distinct)] = first
    index.starts[0, len(distinct)] = len(keys)


def _ints(*shape: int) -> Ints:
    return np.zeros(shape, dtype=np.int32)


def _index(group: int, n: int) -> Occurrences:
    return Occurrences(np.zeros(group, dtype=np.int64), _ints(group, n), _ints(group, n), _ints(group, n + 1))


def _scratch(extent: Extent, parameters: Parameters, threads: int) -> Scratch:
    width, relation_width = parameters.entity.shape[1], parameters.relation.shape[1]
    rows = extent.facts + extent.rules
    queries = extent.facts + rows
    kept = aligned_zeros(queries + 2 * rows, width)
    return Scratch(
        kept=kept,
        query=kept[:queries],
        coefficients=aligned_zeros(2 * extent.facts * extent.negatives),
        to_head=kept[queries : queries + rows],
        to_relation=aligned_zeros(rows, relation_width),
        to_tail=kept[queries + rows :],
        query_gradient=aligned_zeros(SPREAD * threads, width),
        entity_gradient=aligned_zeros(SPREAD * threads, width),
        relation_gradient=aligned_zeros(min(rows, len(parameters.relation)), relation_width),
        to_link=aligned_zeros(rows, 2),
        losses=aligned_zeros(rows, len(TERMS)),
        totals=np.zeros(len(TERMS)),
    )
