"""Names → dense ids, in the order in which names first occur: the first column's, then those new in the next.

Small inputs go through Arrow, large ones through compiled hash tables in threads; both give the same ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from mmap import mmap
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from ukge.graph.name_table import NameTable

T = TypeVar("T", bound=np.generic)
Ids = npt.NDArray[np.int32]
LARGE = 2_000_000  # names from which on loading the compiled table (about half a second) pays
PARTS = 2  # threads that share the names of one encoder
_WAITING = 8  # pieces on their way to each thread


def encode_names(columns: Sequence[pa.Array | pa.ChunkedArray]) -> tuple[list[Ids], pa.Array]:
    """Return the ids of each column and the distinct names, over all columns, that they stand for.

    Columns are Arrow strings or UTF-8 bytes without nulls. Bytes that are no UTF-8 raise `pa.ArrowInvalid`.
    """
    chunked = [column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]) for column in columns]
    if sum(len(column) for column in chunked) < LARGE:
        return encode_by_arrow(chunked)
    return encode_by_table(chunked)


def encode_by_arrow(columns: Sequence[pa.ChunkedArray]) -> tuple[list[Ids], pa.Array]:
    """Encode by Arrow's dictionary kernel: nothing to compile, slower per name."""
    one_type = columns[0].type if len({column.type for column in columns}) == 1 else pa.large_binary()
    every = pa.chunked_array([chunk for c in columns for chunk in c.cast(one_type).chunks], type=one_type)
    encoded = every.dictionary_encode()
    names = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], type=one_type)
    parts = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    ends = np.cumsum([len(column) for column in columns])
    return np.split(ids, ends[:-1]), names.cast(pa.large_string())


def encode_by_table(columns: Sequence[pa.ChunkedArray]) -> tuple[list[Ids], pa.Array]:
    """Encode by the compiled hash table."""
    with BlockEncoder([len(column) for column in columns]) as encoder:
        for place, column in enumerate(columns):
            for chunk in column.chunks:
                encoder.add(place, chunk)
        return encoder.finish()


class BlockEncoder:
    """Encodes columns of names that arrive piece by piece, in threads. `expected` is how long each may become.

    Each thread has the names of one part of all hashes to itself. Memory that is not written to is never paid for, so
    an estimate that is too high costs nothing.
    """

    def __init__(self, expected: Sequence[int], *, parts: int = PARTS) -> None:
        self._parts = parts
        self._pools = [ThreadPoolExecutor(max_workers=1) for _ in range(parts)]
        self._tables = [pool.submit(_new_table, part, parts) for part, pool in enumerate(self._pools)]
        self._ids: list[Ids] = [unwritten(length, np.int32) for length in expected]
        self._lengths = [0] * len(expected)
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def add(self, column: int, names: pa.Array) -> None:
        """Encode the next names of a column, soon; waits while too many are on their way."""
        start, end = self._lengths[column], self._lengths[column] + len(names)
        if end > len(self._ids[column]):
            self._wait(0)
            room: Ids = unwritten(2 * end, np.int32)
            room[:start] = self._ids[column][:start]
            self._ids[column] = room
        if len(names):
            ids = self._ids[column][start:end]
            self._waiting.extend(
                pool.submit(_encode_piece, table, names, ids)
                for pool, table in zip(self._pools, self._tables, strict=True)
            )
        self._lengths[column] = end
        self._wait(_WAITING * self._parts)

    def finish(self) -> tuple[list[Ids], pa.Array]:
        """Return the ids of each column and the names, both in order of first occurrence, column by column."""
        from ukge.graph.name_table import renumber  # noqa: PLC0415

        self._wait(0)
        ids = [column[:length] for column, length in zip(self._ids, self._lengths, strict=True)]
        tables = [table.result() for table in self._tables]
        order = renumber(ids, self._parts * max(len(table) for table in tables))
        before = np.cumsum([0, *(len(table) for table in tables)])[:-1]
        places = order // self._parts + before[order % self._parts]
        names = pa.concat_arrays([_arrow(table) for table in tables])
        return ids, names.take(pa.array(places)).cast(pa.large_string())

    def _wait(self, most: int) -> None:
        while len(self._waiting) > most:
            self._waiting.popleft().result()


def unwritten(length: int, dtype: type[T]) -> npt.NDArray[T]:
    """Return an array to be written once from its start to its end.

    NumPy asks for huge pages, which pay off for random access; the first write to them costs several times as much.
    """
    size = max(length, 1) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap(-1, size), dtype)


def _new_table(part: int, parts: int) -> NameTable:
    from ukge.graph.name_table import NameTable  # noqa: PLC0415  (Numba is not loaded for small graphs)

    return NameTable(part, parts)


def _encode_piece(table: Future[NameTable], names: pa.Array, ids: Ids) -> None:
    _, offsets, data = names.buffers()
    large = pa.types.is_large_string(names.type) or pa.types.is_large_binary(names.type)
    every: npt.NDArray[np.integer] = np.frombuffer(offsets, np.int64 if large else np.int32)
    text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    table.result().encode(every[names.offset : names.offset + len(names) + 1], text, ids)


def _arrow(table: NameTable) -> pa.Array:
    offsets, data = table.names
    return pa.Array.from_buffers(pa.large_binary(), len(table), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
