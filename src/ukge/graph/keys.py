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


def contains(haystack: Keys, needles: Keys) -> npt.NDArray[np.bool_]:
    """Return which `needles` occur in the *sorted* `haystack`."""
    if len(haystack) == 0:
        return np.zeros(len(needles), dtype=np.bool_)
    at = np.searchsorted(haystack, needles)
    at[at == len(haystack)] = 0
    return np.asarray(haystack[at] == needles)
