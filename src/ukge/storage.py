"""Files that are either whole or not there, and that notice when they were changed.

Tensors go to safetensors with a digest of their content in the header; everything else is listed with its SHA-256 in
the run's manifest. Nothing that is loaded here can execute code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ukge.errors import RunError

Arrays = dict[str, npt.NDArray[Any]]
DAMAGED = "The file was cut short or edited. Restore it, or train again."


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a run killed at any moment, sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], notes: Mapping[str, Any] | None = None) -> None:
    """Write arrays and JSON-able notes to one safetensors file, atomically, with a digest of both."""
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(notes or {}, sort_keys=True)
    # One entry: the order of several is not fixed, and equal content must give equal files.
    header = json.dumps({"digest": _digest(tensors, text), "notes": text})
    write_atomically(path, save(tensors, metadata={"ukge": header}))


def load_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save_arrays` wrote; a missing, truncated or edited file is a `RunError` that names it."""
    if not path.is_file():
        raise RunError(f"{path} is missing", hint="Is this a run directory? `ukge train` makes one.")
    try:
        with safe_open(str(path), framework="numpy") as handle:
            header = json.loads((handle.metadata() or {}).get("ukge", "{}"))
            arrays: Arrays = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path} is damaged: {error}", hint=DAMAGED) from None
    text = str(header.get("notes", ""))
    if header.get("digest") != _digest(arrays, text):
        raise RunError(f"{path} is damaged: its content does not match its checksum", hint=DAMAGED)
    notes: dict[str, Any] = json.loads(text)
    return arrays, notes


def _digest(arrays: Mapping[str, npt.NDArray[Any]], text: str) -> str:
    hasher = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        hasher.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        hasher.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()
