"""Names ⇄ dense ids, in the order in which names first occur: the first column's, then those new in the next.

Small inputs go through Arrow, large ones through compiled hash tables in threads; both give the same ids.
"""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from mmap import mmap
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.graph.arrow import from_names, from_numpy, to_numpy

if TYPE_CHECKING:
    from ukge.graph.name_table import NameTable

SHOWN = 3
"""Names that a vocabulary shows of itself."""

Ids = npt.NDArray[np.int32]


class Vocabulary:
    """An immutable list of distinct names; the id of a name is its place in the list."""

    __slots__ = ("_index", "kind", "names")

    def __init__(self, names: pa.Array | Sequence[str], *, kind: str = "entity") -> None:
        array = names if isinstance(names, pa.Array) else pa.array(names, type=pa.large_string())
        self.names: pa.Array = array.cast(pa.large_string())
        self.kind = kind
        self._index: dict[str, int] | None = None
        if self.names.null_count:
            raise DataError(f"{self.names.null_count:,} {kind} names are missing")
        if pc.count_distinct(self.names).as_py() != len(self.names):
            counts = pc.value_counts(self.names)
            repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
            raise DataError(f"{kind} name {repeated[0].as_py()!r} occurs twice in the vocabulary")

    @classmethod
    def trusted(cls, names: pa.Array, kind: str) -> Vocabulary:
        """Wrap names that are known to be distinct and complete (a dictionary made by Arrow), without checking."""
        vocabulary = cls.__new__(cls)
        vocabulary.names = names.cast(pa.large_string())
        vocabulary.kind = kind
        vocabulary._index = None
        return vocabulary

    @classmethod
    def of_parquet(cls, content: bytes, kind: str) -> Vocabulary:
        """Read what `to_parquet` returned."""
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 — most vocabularies come from facts

        return cls(
            ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read()["name"].combine_chunks(),
            kind=kind,
        )

    def to_parquet(self) -> bytes:
        """Return the content of a Parquet file with the names in order."""
        from pyarrow.parquet import write_table  # noqa: PLC0415

        sink = pa.BufferOutputStream()
        write_table(pa.table({"name": self.names}), sink, compression="zstd", write_page_checksum=True)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names.to_pylist())

    def __getitem__(self, index: int) -> str:
        name: str = self.names[int(index)].as_py()
        return name

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self is other or self.names.equals(other.names))

    def __hash__(self) -> int:
        return hash((len(self.names), self.names[0].as_py() if len(self.names) else ""))

    def __repr__(self) -> str:
        first = ", ".join(map(repr, self.names[:SHOWN].to_pylist()))
        return f"Vocabulary({len(self):,} {self.kind} names: {first}{', …' if len(self) > SHOWN else ''})"

    @property
    def index(self) -> dict[str, int]:
        """The map from name to id, built at first use."""
        if self._index is None:
            self._index = {name: i for i, name in enumerate(self.names.to_pylist())}
        return self._index

    def id(self, name: str) -> int:
        """Return the id of one name; an unknown name is an error that suggests near ones."""
        found = int(self.encode([name])[0]) if self._index is None else self._index.get(name, -1)
        if found < 0:
            near = self.near(name)
            hint = f"Near names: {', '.join(near)}." if near else "Names are compared exactly, case included."
            raise DataError(f"unknown {self.kind} {name!r}", hint=hint)
        return found

    def near(self, name: str, n: int = 5) -> list[str]:
        """Return up to `n` names that look like `name`: those that contain it first, then the closest spellings."""
        holding = self.names.filter(pc.match_substring(self.names, name, ignore_case=True))
        shortest = sorted(holding.to_pylist(), key=len)[:n] if name else []
        if len(shortest) >= n or len(self) > 200_000:
            return shortest
        close = difflib.get_close_matches(name, self.index, n=n, cutoff=0.6)
        return list(dict.fromkeys(shortest + close))[:n]

    def encode(self, names: Any) -> Ids:
        """Return the ids of many names (an Arrow array or any sequence); −1 stands for an unknown name."""
        if isinstance(names, pa.ChunkedArray):
            names = names.combine_chunks()
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            names = from_names(names)
        values = names if isinstance(names, pa.Array) else pa.array(names, type=pa.large_string())
        encoded: Ids = to_numpy(pc.index_in(values.cast(pa.large_string()), value_set=self.names), missing=-1)
        return encoded

    def decode(self, ids: npt.ArrayLike) -> pa.Array:
        """Return the names of many ids as an Arrow array."""
        return self.names.take(from_numpy(np.asarray(ids)))


T = TypeVar("T", bound=np.generic)
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
