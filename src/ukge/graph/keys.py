"""Facts as single integers, so that joins, twins and membership are one vectorised look-up; and all facts of a graph as
one SHA-256: the same whatever the ids, the chunks or the file format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.vocabulary import Ids

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

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


def fingerprint(graph: UncertainGraph) -> str:
    """Return the fingerprint of a graph's facts. Names that no fact uses do not count."""
    hasher = hashlib.sha256(f"ukge facts 1 {len(graph)}".encode())
    if graph.undirected:
        hasher.update("\0".join(("undirected", *sorted(graph.undirected))).encode())
    for vocabulary, columns in ((graph.entities, (graph.head, graph.tail)), (graph.relations, (graph.relation,))):
        order, ranks = _by_first_use(len(vocabulary), columns)
        _hash_names(hasher, vocabulary.decode(order))
        for column in ranks:
            hasher.update(column.astype("<i4", copy=False).tobytes())
    hasher.update((graph.confidence + 0.0).astype("<f8", copy=False).tobytes())
    if graph.source is not None:
        _hash_names(hasher, graph.source.cast(pa.large_string()).fill_null("\0"))
    return hasher.hexdigest()


def _by_first_use(size: int, columns: Sequence[Ids]) -> tuple[npt.NDArray[np.int64], list[Ids]]:
    ids = np.concatenate(columns)
    first = np.full(size, len(ids), dtype=np.int64)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    order = np.argsort(first, kind="stable")[: int((first < len(ids)).sum())]
    rank = np.zeros(size, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return order, [rank[column] for column in columns]


def _hash_names(hasher: Any, names: pa.Array) -> None:
    plain = names.cast(pa.large_string())
    if len(plain) == 0:
        return
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    hasher.update(np.diff(ends).astype("<i8").tobytes())
    hasher.update(memoryview(data or b"")[ends[0] : ends[-1]])
