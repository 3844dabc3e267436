"""What the kernels are given, by name: named tuples, which Numba takes apart before it compiles.

Those that a parallel loop hands to its threads hold arrays and numbers only, because Numba does not hand on a tuple
inside a tuple; `Work`, which is put together inside a thread, may. And the memory of the engine beyond parameters and
moments: that of some prepared batches and a running one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.models.tables import Floats, Parameters, aligned_zeros

Code = tuple[int, ...]
"""A query or a comparator as a tuple of that length; see `ops`."""

Ints = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]

TERMS = ("observed", "unseen", "rules", "l2")
"""The terms of the objective, in the order in which they are kept."""

SPREAD = 4
"""Rows from one thread's scratch to the next one's: two threads that write to one cache line hold each other up."""


class Facts(NamedTuple):
    """The observed facts."""

    head: Ints
    relation: Ints
    tail: Ints
    confidence: Floats


class Rules(NamedTuple):
    """The ground rules: their heads, the truth values of their bodies, the weights of their rules."""

    head: Ints
    relation: Ints
    tail: Ints
    body: Floats
    weight: Floats


class Tables(NamedTuple):
    """The parameters. w and b are two rows of one number, so that row-wise optimisers keep them apart."""

    entity: Floats
    relation: Floats
    link: Floats


class Moments(NamedTuple):
    """What the optimiser keeps beside each table; one column only where it keeps one number per row, or none."""

    entity_m: Floats
    entity_v: Floats
    relation_m: Floats
    relation_v: Floats
    link_m: Floats
    link_v: Floats


Objective = np.dtype(
    [
        ("link", np.int64),
        ("loss", np.int64),
        ("negative_weight", np.float32),
        ("l2", np.float32),
        ("margin", np.float32),
        ("rule_weight", np.float32),
        ("rule_prior", np.float32),
        ("power", np.float32),
        ("l3", np.float32),
        ("beta", np.float32),
        ("labelled", np.int64),
    ],
    align=True,
)
"""What is minimised: the codes of link and loss, and the weights of the terms; see `InKernels` for `power` and `l3`.

`beta` is the focus's, as it is in the running epoch. With `labelled`, what stands in the place of ground rules are
unseen facts, whose bodies are the confidences that they should have.

It is a record in memory, as `Hyper` is, and no named tuple: values that a kernel has in its registers may be multiplied
in another order, and the same training would give other bits.
"""

Hyper = np.dtype(
    [(name, np.float32) for name in ("rate", "beta1", "beta2", "eps", "correction1", "correction2")], align=True
)
"""The optimiser's settings, and the corrections of its bias in the running step."""


class Optimiser(NamedTuple):
    """The optimiser's code, its settings (one record) and how many steps it has taken."""

    code: int
    hyper: npt.NDArray[np.void]
    steps: int


class Members(NamedTuple):
    """Entities to draw from: with offsets, those of relation r at [offsets[r], offsets[r + 1]); else one list."""

    offsets: Counts
    entities: Ints


class Sampling(NamedTuple):
    """How corruptions are drawn: see `prepare.corrupt`. `mark_lone`: see `prepare.prepare_batch`."""

    n_entities: int
    n_relations: int
    observed: Counts
    heads: Members
    tails: Members
    by_degree: np.uint64
    mark_lone: bool


class Epoch(NamedTuple):
    """The order of the facts in an epoch, and the key of its random numbers."""

    order: Counts
    key: np.uint64


class Prepared(NamedTuple):
    """Some batches, one per row: how many facts and ground rules each has, which, and the entities drawn for them.

    `drawn` is by batch, side (0 corrupted tails, 1 corrupted heads), fact and number.
    """

    n_facts: Counts
    n_rules: Counts
    facts: Ints
    rules: Ints
    drawn: Ints


class Occurrences(NamedTuple):
    """Who touches which row of a table, per batch: `rows` are the n touched ones in ascending order.

    Row rows[i] is touched by the occurrences order[starts[i] : starts[i + 1]].
    """

    n: Counts
    order: Ints
    rows: Ints
    starts: Ints


class Scratch(NamedTuple):
    """What phase 1 keeps of a batch for phase 2, and what the threads write to on their way."""

    kept: Floats
    """`query`, `to_head` and `to_tail` one after another: they are views of it."""

    query: Floats
    """The query of each fact's corrupted tails, then of its corrupted heads, then of each ground rule."""

    coefficients: Floats
    """∂J/∂g of each corruption."""

    to_head: Floats
    """The gradient of each row's head; rows are the facts followed by the ground rules."""

    to_relation: Floats
    to_tail: Floats

    query_gradient: Floats
    """A query's gradient: some rows per thread, as `entity_gradient`."""

    entity_gradient: Floats
    relation_gradient: Floats
    """The gradient of each touched relation."""

    to_link: Floats
    """The gradient of w and b per row."""

    losses: Floats
    """The terms of the objective per row."""

    totals: npt.NDArray[np.float64]
    """The terms of the objective, added up over all rows of all batches."""


class Link(NamedTuple):
    """The link: its code, and w and b as they are in this step."""

    code: int
    w: np.float32
    b: np.float32


class Loss(NamedTuple):
    """The loss: its code, and the margin of the margin loss."""

    code: int
    margin: np.float32


class Batch(NamedTuple):
    """One of the prepared batches."""

    n_facts: int
    n_rules: int
    facts: Ints
    rules: Ints
    drawn: Ints


class Work(NamedTuple):
    """What one thread needs in phase 1.

    `objective` is an `Objective`; `own` is the first of its rows of the gradients that each thread has.
    """

    query: Code
    compare: Code
    objective: Any
    optimiser: Optimiser
    tables: Tables
    moments: Moments
    batch: Batch
    scratch: Scratch
    w: np.float32
    b: np.float32
    own: int


class Triple(NamedTuple):
    """A fact's ids."""

    head: Any
    relation: Any
    tail: Any


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
