"""Negative links: triples taken to be false, with confidence 0, that a test set needs beside its facts.

How they are drawn decides what a test can tell, so there are several kinds, and a report should name its own:

- `uniform`: any head, any tail; mostly absurd, easy to reject.
- `range`: any head, the tail of a random training fact of the relation.
- `paper`: the same tail, the head a random end of a random training fact. The links of the paper's test sets are
  distributed like this: frequent tails of the relation, heads by degree.
- `corruption`: the like fact with its head or its tail replaced by any entity: the corruption that most of the field
  trains and tests with.
- `degree`: the same, but the new entity is a random end of a random training fact.
- `other-relation`: an entity pair that train holds under another relation; the hardest.
- `fitting`: head and tail of two random training facts of the relation: both ends are of the right type, as in what an
  extractor mistakes for a fact.
- `mixture`: equal shares of uniform, range, degree and other-relation, which the protocol `clean` is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError, Problem
from ukge.graph.dataset import Dataset
from ukge.graph.index import Ranges
from ukge.graph.keys import Keys, contains, times_before, triple_keys
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids
from ukge.registry import Registry
from ukge.settings.knobs import check_number, check_seed

MIXTURE = "mixture"
MIXED = ("uniform", "range", "degree", "other-relation")
SHARES: Mapping[str, float] = {
    "paper": 0.2,
    "corruption": 0.2,
    "degree": 0.2,
    "other-relation": 0.2,
    "range": 0.1,
    "uniform": 0.1,
}
"""Shares of the kinds where all of them are wanted: those that evidence learns from, chosen on validation facts."""

_TRIES = 1 << 16
_ROUNDS = 100
_BARREN_ROUNDS = 3
_NONE = -1


@dataclass(frozen=True, eq=False)
class Pool:
    """What the kinds draw from: the training facts, gathered by relation."""

    train: UncertainGraph

    @cached_property
    def by_relation(self) -> Ranges:
        """The rows of train by relation."""
        return Ranges.of(self.train.relation.astype(np.int64))

    @cached_property
    def ends(self) -> Ids:
        """Both ends of every training fact: a random element is an entity drawn by its degree."""
        return np.concatenate([self.train.head, self.train.tail])

    def fact_of(self, relation: Ids, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return a random training row of each relation; −1 for a relation that train does not have."""
        begin, end = self.by_relation.find(relation.astype(np.int64))
        at = begin + rng.integers(0, np.maximum(end - begin, 1))
        return np.where(end > begin, self.by_relation.rows[at], _NONE)

    def tail_of(self, relation: Ids, rng: np.random.Generator) -> Ids:
        """Return the tail of a random training fact of each relation, either end of one without a direction."""
        rows = self.fact_of(relation, rng)
        tail = _take(self.train.tail, rows)
        if not self.train.undirected:
            return tail
        turned = self.train.undirected_relations[relation] & (rng.random(len(relation)) < 0.5)
        return np.where(turned, _take(self.train.head, rows), tail)

    def head_of(self, relation: Ids, rng: np.random.Generator) -> Ids:
        """Return the head of a random training fact of each relation; ends of those without a direction are alike."""
        if self.train.undirected:
            directed = ~self.train.undirected_relations[relation]
            return np.where(directed, _take(self.train.head, self.fact_of(relation, rng)), self.tail_of(relation, rng))
        return _take(self.train.head, self.fact_of(relation, rng))

    def fact_of_another(self, relation: Ids, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return a random training row of any relation but the given one; −1 where there is none."""
        begin, end = self.by_relation.find(relation.astype(np.int64))
        others = len(self.train) - (end - begin)
        at = rng.integers(0, np.maximum(others, 1))
        at = np.where(at >= begin, at + (end - begin), at)
        return np.where(others > 0, self.by_relation.rows[np.minimum(at, len(self.train) - 1)], _NONE)

    def entity_by_degree(self, n: int, rng: np.random.Generator) -> Ids:
        """Return `n` random ends of random training facts."""
        return np.asarray(self.ends[rng.integers(0, len(self.ends), n)])


@dataclass(frozen=True, eq=False)
class Slots:
    """The facts a round of negative links is to be like, one per link."""

    head: Ids
    relation: Ids
    tail: Ids

    def __len__(self) -> int:
        return len(self.relation)

    def pick(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Slots:
        """Return some of the slots."""
        return Slots(self.head[rows], self.relation[rows], self.tail[rows])


Proposer = Callable[[Pool, Slots, np.random.Generator], tuple[Ids, Ids]]
"""Proposes a head and a tail for each slot, −1 where it cannot; the caller keeps what is true, new and no loop."""

KINDS: Registry[Proposer] = Registry("kind of negatives", "ukge.negatives")


@KINDS.register("uniform")
def _uniform(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    ends = rng.integers(0, pool.train.n_entities, (2, len(slots)), dtype=np.int32)
    return ends[0], ends[1]


@KINDS.register("range")
def _range(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    head = rng.integers(0, pool.train.n_entities, len(slots), dtype=np.int32)
    return head, pool.tail_of(slots.relation, rng)


@KINDS.register("paper")
def _paper(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    tail = pool.tail_of(slots.relation, rng)
    return pool.entity_by_degree(len(slots), rng), tail


@KINDS.register("corruption")
def _corruption(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    return _one_end_replaced(slots, rng.integers(0, pool.train.n_entities, len(slots), dtype=np.int32), rng)


@KINDS.register("degree")
def _degree(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    return _one_end_replaced(slots, pool.entity_by_degree(len(slots), rng), rng)


@KINDS.register("other-relation")
def _other_relation(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    rows = pool.fact_of_another(slots.relation, rng)
    return _take(pool.train.head, rows), _take(pool.train.tail, rows)


@KINDS.register("fitting")
def _fitting(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    return pool.head_of(slots.relation, rng), pool.tail_of(slots.relation, rng)


@KINDS.register(MIXTURE)
def _mixture(pool: Pool, slots: Slots, rng: np.random.Generator) -> tuple[Ids, Ids]:
    head = np.empty(len(slots), dtype=np.int32)
    tail = np.empty(len(slots), dtype=np.int32)
    part = rng.integers(0, len(MIXED), len(slots))
    for number, kind in enumerate(MIXED):
        mine = part == number
        head[mine], tail[mine] = KINDS.get(kind)(pool, slots.pick(mine), rng)
    return head, tail


def negative_links(
    data: Dataset | UncertainGraph,
    like: UncertainGraph | None = None,
    *,
    kind: str = "range",
    n: int | None = None,
    seed: int = 0,
    true_negatives: bool = True,
) -> UncertainGraph:
    """Return links with confidence 0, as many as there are facts in `like` (or `n`) and with their relations.

    `like` is the test part of a data set, or the whole of a graph, unless given. No link occurs twice and none is a
    loop. With `true_negatives` no link is a fact of any part; without, a link may by chance be one, as in the paper's
    test sets. The i-th link has the relation of the i-th fact. If a kind cannot find enough links, that is an error
    which names the relations: no other kind steps in.
    """
    train, whole = (data.train, data.whole()) if isinstance(data, Dataset) else (data, data)
    if like is None:
        like = data.test if isinstance(data, Dataset) else data
    propose = KINDS.get(kind)
    _check(train, like, n)
    check_seed(seed)
    rng = np.random.default_rng(seed)
    rows = _rows(len(like), n, rng)
    slots = Slots(like.head[rows], like.relation[rows], like.tail[rows])
    known = np.sort(whole.keys()) if true_negatives else np.zeros(0, dtype=np.int64)
    head, tail = _draw(propose, Pool(train), slots, known, rng)
    if (head == _NONE).any():
        raise _too_few(kind, train, slots.relation, head == _NONE)
    return train.with_facts(head, slots.relation, tail, np.zeros(len(rows)))


def with_negatives(
    dataset: Dataset, kind: str = "range", seed: int = 0, *, n: int | None = None, true_negatives: bool = True
) -> Dataset:
    """Return the data set with negative links beside its test facts, one per test fact unless `n` says otherwise."""
    drawn = negative_links(dataset, kind=kind, n=n, seed=seed, true_negatives=true_negatives)
    return replace(dataset, negatives=drawn)


def _draw(propose: Proposer, pool: Pool, slots: Slots, known: Keys, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Fill the slots round by round. Every round tries harder for the slots still open, until tries bring nothing."""
    head = np.full(len(slots), _NONE, dtype=np.int32)
    tail = np.full(len(slots), _NONE, dtype=np.int32)
    n_entities, n_relations = pool.train.n_entities, pool.train.n_relations
    taken = np.zeros(0, dtype=np.int64)
    barren, tries = 0, 1
    for _ in range(_ROUNDS):
        still_open = np.flatnonzero(head == _NONE)
        if len(still_open) == 0 or barren == _BARREN_ROUNDS:
            break
        wanted = slots.pick(np.tile(still_open, tries))
        proposed = propose(pool, wanted, rng)
        heads, _, tails = pool.train.as_stored(proposed[0], wanted.relation, proposed[1])
        keys = triple_keys(heads, wanted.relation, tails, n_entities, n_relations)
        good = (heads != tails) & (heads >= 0) & (tails >= 0) & ~contains(known, keys) & ~contains(taken, keys)
        _, first = np.unique(keys[good], return_index=True)
        found = np.flatnonzero(good)[np.sort(first)]
        # Slots of one relation are alike: the first new links of a relation go to its first open slots.
        to, of = _pair_up(slots.relation[still_open], wanted.relation[found])
        head[still_open[to]], tail[still_open[to]] = heads[found[of]], tails[found[of]]
        taken = np.sort(np.concatenate([taken, keys[found[of]]]))
        tries_most = max(1, _TRIES // len(still_open))
        barren = barren + 1 if len(found) == 0 and tries == tries_most else 0
        tries = min(tries * 2, tries_most)
    return head, tail


def _one_end_replaced(slots: Slots, other: Ids, rng: np.random.Generator) -> tuple[Ids, Ids]:
    at_head = rng.random(len(slots)) < 0.5
    return np.where(at_head, other, slots.head), np.where(at_head, slots.tail, other)


def _pair_up(
    left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return places in `left` and `right` that pair the k-th of each value with the k-th of the same value."""
    most = len(left) + len(right) + 1
    keys = [each.astype(np.int64) * most + times_before(each) for each in (left, right)]
    _, at_left, at_right = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return at_left, at_right


def _take(column: Ids, rows: npt.NDArray[np.int64]) -> Ids:
    return np.where(rows >= 0, column[np.maximum(rows, 0)], _NONE).astype(np.int32)


def _rows(n_like: int, n: int | None, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return which facts the links are like: each once, or, for another number, each about equally often."""
    if n is None or n == n_like:
        return np.arange(n_like)
    rounds, rest = divmod(n, n_like)
    return np.concatenate([np.tile(np.arange(n_like), rounds), np.sort(rng.permutation(n_like)[:rest])])


def _check(train: UncertainGraph, like: UncertainGraph, n: int | None) -> None:
    if like.entities != train.entities or like.relations != train.relations:
        raise DataError("the facts to be like do not share the vocabularies of the data set")
    if len(train) == 0 or len(like) == 0:
        raise DataError("negative links need training facts to draw from and facts to be like")
    if n is not None:
        check_number(int, "n", n, least=1, most=2**31 - 1)


def _too_few(kind: str, train: UncertainGraph, relation: Ids, missing: npt.NDArray[np.bool_]) -> DataError:
    asked = np.bincount(relation, minlength=train.n_relations)
    lacking = np.bincount(relation[missing], minlength=train.n_relations)
    worst = np.argsort(-lacking, kind="stable")[: int((lacking > 0).sum())]
    problems = [
        Problem(f"relation {train.relations[int(r)]!r}: {lacking[r]:,} of {asked[r]:,} links not found") for r in worst
    ]
    return DataError(
        f"kind {kind!r} found only {len(relation) - int(missing.sum()):,} of {len(relation):,} negative links",
        problems=problems,
        hint="Almost every candidate is a fact or was drawn already. Choose another kind (uniform has the most "
        "candidates), or ask for fewer links.",
    )
