"""Names ⇄ dense ids."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.graph.arrow import from_names, from_numpy, to_numpy

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
