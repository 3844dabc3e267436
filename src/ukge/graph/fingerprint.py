"""A SHA-256 of facts by name, in order: the same whatever the ids, the chunks or the file format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.graph.vocabulary import Ids

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph


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
