"""What the kernels are given, by name: named tuples, which Numba takes apart before it compiles.

Those that a parallel loop hands to its threads hold arrays and numbers only, because Numba does not hand on a tuple
inside a tuple; `Work`, which is put together inside a thread, may.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Code = tuple[int, ...]
"""A query or a comparator as a tuple of that length; see `ops`."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


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
    ],
    align=True,
)
"""What is minimised: the codes of link and loss, and the weights of the terms.

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
