"""Files that are either whole or not there, and that notice when they were changed.

Tensors go to safetensors with a digest of their content in the header; everything else is listed with its SHA-256 in
the run's manifest. Nothing that is loaded here can execute code.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from ukge.errors import RunError

Arrays = dict[str, npt.NDArray[Any]]
DAMAGED = "The file was cut short or edited. Restore it, or train again."
_SIZED = {f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bool": "BOOL", **_SIZED}
"""The dtypes that are stored, with their names in safetensors."""
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


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a run killed at any moment, sees the old content or the new, never a part."""
    with _replacing(path) as handle:
        handle.write(content)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def save_arrays(
    path: Path, arrays: Mapping[str, npt.NDArray[Any] | Stream], notes: Mapping[str, Any] | None = None
) -> None:
    """Write arrays and JSON-able notes to one safetensors file, atomically, with a digest of both.

    Nothing is copied: what is mapped from a file, or comes as a stream, may be larger than memory.
    """
    streams = {name: array if isinstance(array, Stream) else Stream.of(array) for name, array in arrays.items()}
    text = json.dumps(notes or {}, sort_keys=True)
    # One entry: the order of several is not fixed, and equal content must give equal files.
    entries: dict[str, Any] = {"__metadata__": {"ukge": json.dumps({"digest": _digest(streams, text), "notes": text})}}
    # The widest numbers first, so that every array begins at a multiple of its numbers' size.
    order = sorted(streams, key=lambda name: (-streams[name].dtype.itemsize, name))
    end = 0
    for name in order:
        start, end = end, end + streams[name].nbytes
        kind = DTYPES[streams[name].dtype.name]
        entries[name] = {"dtype": kind, "shape": list(streams[name].shape), "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with _replacing(path) as handle:
        handle.write(struct.pack("<Q", len(header)) + header)
        for name in order:
            handle.writelines(streams[name].bytes())


def load_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save_arrays` wrote; a missing, truncated or edited file is a `RunError` that names it."""
    return _load(path, mapped=False)


def map_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read as `load_arrays` does, but leave the arrays in the file, from where their pages come as they are used.

    Changes to them stay in this process.
    """
    return _load(path, mapped=True)


def _load(path: Path, *, mapped: bool) -> tuple[Arrays, dict[str, Any]]:
    if not path.is_file():
        raise RunError(f"{path} is missing", hint="Is this a run directory? `ukge train` makes one.")
    try:
        with safe_open(str(path), framework="numpy") as handle:
            header = json.loads((handle.metadata() or {}).get("ukge", "{}"))
            names = list(handle.keys())
            arrays: Arrays = {} if mapped else {name: handle.get_tensor(name) for name in names}
        if mapped:
            arrays = _mapped(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path} is damaged: {error}", hint=DAMAGED) from None
    text = str(header.get("notes", ""))
    if header.get("digest") != _digest({name: Stream.of(array) for name, array in arrays.items()}, text):
        raise RunError(f"{path} is damaged: its content does not match its checksum", hint=DAMAGED)
    notes: dict[str, Any] = json.loads(text)
    return arrays, notes


def _mapped(path: Path) -> Arrays:
    """Return the arrays of a safetensors file that was found sound, mapped copy-on-write."""
    kinds = {name: dtype for dtype, name in DTYPES.items()}
    with path.open("rb") as handle:
        (size,) = struct.unpack("<Q", handle.read(8))
        entries = json.loads(handle.read(size))
    arrays: Arrays = {}
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        dtype, shape = np.dtype(kinds[entry["dtype"]]), tuple(entry["shape"])
        if 0 in shape:
            arrays[name] = np.zeros(shape, dtype)
        else:
            start = 8 + size + entry["data_offsets"][0]
            arrays[name] = np.memmap(path, dtype, "c", start, shape or (1,)).view(np.ndarray).reshape(shape)
    return arrays


def _digest(arrays: Mapping[str, Stream], text: str) -> str:
    hasher = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        hasher.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        for block in array.bytes():
            hasher.update(block)
    return hasher.hexdigest()
