"""Arrays in safetensors, with a digest of each in the header: one can be used without reading the others, and none
without being checked.

A digest says that a file is what somebody wrote. It does not say that what was written is fit for use: compiled code
does not look at the ids it is given. So `checked` is the one door between a file and whatever computes with it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ukge.errors import RunError
from ukge.storage.files import DAMAGED, replacing, reserve

Arrays = dict[str, npt.NDArray[Any]]
_SIZED = {f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bool": "BOOL", **_SIZED}
"""The dtypes that are stored, with their names in safetensors."""
_KINDS = {name: dtype for dtype, name in DTYPES.items()}
METADATA = "__metadata__"
BLOCK = 1 << 26
"""Bytes that are hashed or written at a time."""


@dataclass(frozen=True)
class Stream:
    """An array that is made piece by piece, from its first row to its last, each time it is asked for."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Callable[[], Iterable[npt.NDArray[Any]]]

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> Stream:
        """Return an array that is there, or mapped, as a stream."""

        def blocks() -> Iterator[npt.NDArray[Any]]:
            flat = array.reshape(-1) if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(-1)
            size = max(1, BLOCK // array.dtype.itemsize)
            for start in range(0, len(flat), size):
                yield flat[start : start + size]

        return cls(array.dtype, array.shape, blocks)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def bytes(self) -> Iterator[memoryview]:
        """Yield the content."""
        for block in self.blocks():
            yield np.ascontiguousarray(block).reshape(-1).view(np.uint8).data


def save_arrays(
    path: Path, arrays: Mapping[str, npt.NDArray[Any] | Stream], notes: Mapping[str, Any] | None = None
) -> None:
    """Write arrays and JSON-able notes to one safetensors file, atomically, with a digest of each.

    Nothing is copied: what is mapped from a file, or comes as a stream, may be larger than memory.
    """
    streams = {name: array if isinstance(array, Stream) else Stream.of(array) for name, array in arrays.items()}
    text = json.dumps(notes or {}, sort_keys=True)
    digests = {name: _digest(name, stream) for name, stream in sorted(streams.items())}
    told = json.dumps({"digest": _seal(text, digests), "digests": digests, "notes": text})
    # One entry: the order of several is not fixed, and equal content must give equal files.
    entries: dict[str, Any] = {METADATA: {"ukge": told}}
    # The widest numbers first, so that every array begins at a multiple of its numbers' size.
    order = sorted(streams, key=lambda name: (-streams[name].dtype.itemsize, name))
    end = 0
    for name in order:
        start, end = end, end + streams[name].nbytes
        kind = DTYPES[streams[name].dtype.name]
        entries[name] = {"dtype": kind, "shape": list(streams[name].shape), "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with replacing(path) as handle:
        reserve(handle, 8 + len(header) + end)
        handle.write(struct.pack("<Q", len(header)) + header)
        for name in order:
            handle.writelines(streams[name].bytes())


class StoredArrays(Mapping[str, npt.NDArray[Any]]):
    """The arrays of a file, left there: each is checked when it is first asked for, and its pages come as it is used.

    Changes to them stay in this process. The file may be replaced meanwhile: what was opened stays. A file that is
    written to, or cut short, changes what was opened, though; if `copied`, the whole file is in memory and checked
    before anything is used, whatever happens to it then.
    """

    def __init__(self, path: Path, *, copied: bool = False) -> None:
        if not path.is_file():
            raise RunError(f"{path} is missing", hint="Is this a run directory? `ukge train` makes one.")
        self._path = path
        self._checked: Arrays = {}
        try:
            with path.open("rb") as handle:
                self._memory = _read(handle) if copied else mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY)
            (size,) = struct.unpack_from("<Q", self._memory)
            entries = json.loads(self._memory[8 : 8 + size])
            told = json.loads(entries.pop(METADATA)["ukge"])
            text, seal, digests = str(told["notes"]), told["digest"], told["digests"]
            found = {name: self._mapped(8 + size, entry) for name, entry in entries.items()}
            end = 8 + size + sum(array.nbytes for array in found.values())
            notes: dict[str, Any] = json.loads(text)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, struct.error) as error:
            raise RunError(f"{path} is damaged: {error}", hint=DAMAGED) from None
        self._found, self.notes = found, notes
        if seal != _seal(text, digests) or end != len(self._memory) or found.keys() != digests.keys():
            raise self._damaged()
        self._digests: dict[str, str] = digests
        if copied:
            for name in self:
                self[name]  # checks it

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._checked:
            array = self._found[name]
            if _digest(name, Stream.of(array)) != self._digests[name]:
                raise self._damaged()
            self._checked[name] = array
        return self._checked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def part(self, prefix: str) -> Arrays:
        """Return the arrays whose names begin with a prefix and a dot, without these."""
        start = f"{prefix}."
        return {name.removeprefix(start): self[name] for name in self if name.startswith(start)}

    def _mapped(self, begin: int, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
        dtype, shape = np.dtype(_KINDS[entry["dtype"]]), tuple(map(int, entry["shape"]))
        start, end = entry["data_offsets"]
        count = int(np.prod(shape, dtype=np.int64))
        if end - start != count * dtype.itemsize:
            raise ValueError("an array's size does not fit its shape")
        return (
            np.frombuffer(self._memory, dtype, count, begin + start).reshape(shape) if count else np.zeros(shape, dtype)
        )

    def _damaged(self) -> RunError:
        return RunError(f"{self._path} is damaged: its content does not match its checksum", hint=DAMAGED)


def _read(handle: BinaryIO) -> mmap.mmap:
    """Return the content of a file in memory of this process alone, which is given back when nothing uses it."""
    size = os.fstat(handle.fileno()).st_size
    memory = mmap.mmap(-1, size)
    if handle.readinto(memory) != size:  # type: ignore[attr-defined]  # a file opened to be read in bytes has it
        raise ValueError("it was cut short while it was read")
    return memory


def load_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save_arrays` wrote; a missing, truncated or edited file is a `RunError` that names it."""
    arrays, notes = map_arrays(path)
    return {name: array.copy() for name, array in arrays.items()}, notes


def map_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read and check as `load_arrays` does, but leave the arrays in the file."""
    stored = StoredArrays(path)
    return dict(stored), stored.notes


def _digest(name: str, stream: Stream) -> str:
    hasher = hashlib.sha256(f"|{name}|{stream.dtype.str}|{stream.shape}|".encode())
    for block in stream.bytes():
        hasher.update(block)
    return hasher.hexdigest()


def _seal(text: str, digests: Mapping[str, str]) -> str:
    """Return a digest of everything but the arrays themselves."""
    return hashlib.sha256(json.dumps([text, digests], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Expected:
    """What one array must be.

    A size in `shape` is a number, None where any will do, or a name: sizes of one name are the same in all arrays that
    are checked together. `low` and `high` are the least and the greatest value allowed. Floats must be finite, unless
    `finite` is False. `rising` numbers never fall: places in another array, sorted keys.
    """

    dtype: str | tuple[str, ...]
    shape: tuple[int | str | None, ...]
    low: float | None = None
    high: float | None = None
    finite: bool = True
    rising: bool = False
    optional: bool = False


def checked(
    source: str | Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    expected: Mapping[str, Expected],
    *,
    sizes: Mapping[str, int] | None = None,
    hint: str = DAMAGED,
) -> Arrays:
    """Return the arrays that are expected, each as it must be; anything else is a `RunError` that names it.

    `sizes` are those that are known by name already.
    """
    known = dict(sizes or {})
    unknown = sorted(arrays.keys() - expected.keys())
    wrong = f"'{unknown[0]}' is not one of its arrays" if unknown else None
    for name, wanted in expected.items():
        if wrong is None and (name in arrays or not wanted.optional):
            wrong = _wrong(name, arrays[name], wanted, known) if name in arrays else f"'{name}' is missing"
    if wrong is not None:
        raise RunError(f"{source} cannot be used: {wrong}", hint=hint)
    return {name: arrays[name] for name in expected if name in arrays}


def _wrong(name: str, array: npt.NDArray[Any], wanted: Expected, known: dict[str, int]) -> str | None:
    """Return what is wrong with an array; sizes that it is the first to have are known from then on."""
    kinds = (wanted.dtype,) if isinstance(wanted.dtype, str) else wanted.dtype
    if array.dtype.name not in kinds or array.ndim != len(wanted.shape):
        return f"'{name}' is {array.dtype} {array.shape}, not {' or '.join(kinds)} {_told(wanted.shape, known)}"
    for size, said in zip(array.shape, wanted.shape, strict=True):
        right = known.setdefault(said, size) if isinstance(said, str) else said
        if right is not None and size != right:
            return f"'{name}' has the shape {array.shape}, not {_told(wanted.shape, known)}"
    return _wrong_values(name, array, wanted) if array.size else None


def _wrong_values(name: str, array: npt.NDArray[Any], wanted: Expected) -> str | None:
    least, greatest = array.min(), array.max()  # both are NaN if anything is
    if wanted.finite and not (np.isfinite(least) and np.isfinite(greatest)):
        return f"'{name}' holds numbers that are not finite"
    if wanted.low is not None and least < wanted.low:
        return f"'{name}' holds {least}, which is below {wanted.low:g}"
    if wanted.high is not None and greatest > wanted.high:
        return f"'{name}' holds {greatest}, which is above {wanted.high:g}"
    if wanted.rising and (array[1:] < array[:-1]).any():
        return f"'{name}' is not in rising order"
    return None


def _told(shape: tuple[int | str | None, ...], known: Mapping[str, int]) -> str:
    sizes = ("any" if size is None else str(known.get(size, size) if isinstance(size, str) else size) for size in shape)
    return f"({', '.join(sizes)}{',' if len(shape) == 1 else ''})"
