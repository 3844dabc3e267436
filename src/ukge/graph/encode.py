"""Names → dense ids, in the order in which names first occur: the first column's, then those new in the next.

Small inputs go through Arrow, large ones through a compiled hash table; both give the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.int32]
LARGE = 2_000_000  # names from which on loading the compiled table (about half a second) pays


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
    encoder = BlockEncoder([len(column) for column in columns])
    for place, column in enumerate(columns):
        for chunk in column.chunks:
            encoder.add(place, chunk)
    return encoder.finish()


class BlockEncoder:
    """Encodes columns of names that arrive piece by piece, in any order. `expected` is how long each may become.

    Memory that is not written to is never paid for, so an estimate that is too high costs nothing.
    """

    def __init__(self, expected: Sequence[int]) -> None:
        from ukge.graph.name_table import NameTable  # noqa: PLC0415  (Numba is not loaded for small graphs)

        self._table = NameTable()
        self._ids: list[Ids] = [np.empty(max(length, 1), np.int32) for length in expected]
        self._lengths = [0] * len(expected)

    def add(self, column: int, names: pa.Array) -> None:
        """Encode the next names of a column."""
        if len(names) == 0:
            return
        start, end = self._lengths[column], self._lengths[column] + len(names)
        if end > len(self._ids[column]):
            room = np.empty(2 * end, np.int32)
            room[:start] = self._ids[column][:start]
            self._ids[column] = room
        _, offsets, data = names.buffers()
        large = pa.types.is_large_string(names.type) or pa.types.is_large_binary(names.type)
        every: npt.NDArray[np.integer] = np.frombuffer(offsets, np.int64 if large else np.int32)
        own = every[names.offset : names.offset + len(names) + 1]
        text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        self._table.encode(own, text, self._ids[column][start:end])
        self._lengths[column] = end

    def finish(self) -> tuple[list[Ids], pa.Array]:
        """Return the ids of each column and the names, both in order of first occurrence, column by column."""
        ids = [column[:length] for column, length in zip(self._ids, self._lengths, strict=True)]
        order = self._table.renumber(ids)
        offsets, data = self._table.names
        names = pa.Array.from_buffers(
            pa.large_binary(), len(self._table), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        return ids, names.take(pa.array(order)).cast(pa.large_string())
