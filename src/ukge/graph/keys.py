"""Facts as single integers, so that joins, twins and membership are one vectorised look-up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError

Keys = npt.NDArray[np.int64]


def triple_keys(
    head: npt.NDArray[np.integer],
    relation: npt.NDArray[np.integer],
    tail: npt.NDArray[np.integer],
    n_entities: int,
    n_relations: int,
) -> Keys:
    """Return one int64 per (h, r, t), equal exactly where the triples are equal, ordered by relation, head, tail."""
    if n_relations * n_entities * n_entities > np.iinfo(np.int64).max:
        raise DataError(
            f"{n_entities:,} entities and {n_relations:,} relations are more than one 64-bit key can hold",
            hint="Split the graph by relation.",
        )
    keys: Keys = (relation.astype(np.int64) * n_entities + head) * n_entities + tail
    return keys


def pair_keys(
    head: npt.NDArray[np.integer], tail: npt.NDArray[np.integer], n_entities: int, *, directed: bool = False
) -> Keys:
    """Return one int64 per entity pair; by default (a, b) and (b, a) are the same pair."""
    if not directed:
        head, tail = np.minimum(head, tail), np.maximum(head, tail)
    return head.astype(np.int64) * n_entities + tail


def contains(keys: Keys, wanted: Keys) -> npt.NDArray[np.bool_]:
    """Return which wanted keys occur among sorted ones."""
    return find(keys, wanted) >= 0


def find(keys: Keys, wanted: Keys) -> Keys:
    """Return the place of each wanted key among sorted ones (of equal ones, the first), −1 where there is none."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    return np.where(keys[at] == wanted, at, -1)


def stable_order(keys: Keys) -> Keys:
    """Return the order of keys, that of their places where they are equal.

    Numbers that hold key and place at once are sorted far faster than places by their keys, if they are not too large.
    """
    n = len(keys)
    if n == 0 or keys.min() < 0 or int(keys.max()) >= np.iinfo(np.int64).max // n:
        return np.argsort(keys, kind="stable")
    return np.sort(keys * n + np.arange(n)) % n


def starts(ordered: Keys) -> Keys:
    """Return where each distinct one of ordered keys begins."""
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(first)


def times_before(values: npt.NDArray[np.integer]) -> Keys:
    """Return how often each value occurred before."""
    order = stable_order(values.astype(np.int64))
    ordered = values[order]
    nth = np.empty(len(values), dtype=np.int64)
    nth[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)
    return nth
