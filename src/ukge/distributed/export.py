"""From the shards of a checkpoint to the ordinary weights of a run, in pieces: no process holds the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.metadata import MetadataIndex, TensorStorageMetadata

from ukge.distributed.checkpoints import FOLDER, last_checkpoint
from ukge.errors import RunError
from ukge.models.tables import Parameters
from ukge.storage.arrays import Stream, map_arrays, save_arrays

WEIGHTS = ("entity", "relation", "link")
BLOCK = 1 << 24
"""Numbers that travel at a time."""


def export_weights(run: Path, best_epoch: int, notes: dict[str, Any]) -> None:
    """Write `weights.safetensors` of a run: the best epoch's, or the last checkpoint's where no epoch was judged."""
    best = run / FOLDER / f"best-{best_epoch:06d}"
    source = best if best.is_dir() else last_checkpoint(run / FOLDER)
    if source is None or (best_epoch >= 0 and source != best):
        raise RunError(f"{run} has no weights of epoch {best_epoch} to export")
    save_arrays(run / "weights.safetensors", read_streams(source), notes)


def exported(run: Path) -> Parameters:
    """Return the weights of a run, left in their file."""
    return Parameters.of(map_arrays(run / "weights.safetensors")[0])


def read_streams(checkpoint: Path) -> dict[str, Stream]:
    """Return the weights of a checkpoint as streams over its shards."""
    metadata = HuggingFaceStorageReader(str(checkpoint)).read_metadata()
    streams = {}
    for name in WEIGHTS:
        entry = metadata.state_dict_metadata[name]
        if not isinstance(entry, TensorStorageMetadata):
            raise RunError(f"{checkpoint} holds no tensor {name}")
        chunks = sorted(entry.chunks, key=lambda chunk: tuple(chunk.offsets))
        places = [
            (Path(metadata.storage_data[MetadataIndex(name, chunk.offsets)].relative_path), chunk.sizes[0])
            for chunk in chunks
            if 0 not in chunk.sizes
        ]
        streams[name] = Stream(np.dtype(np.float32), tuple(entry.size), _Rows(name, places))
    return streams


class _Rows:
    """The rows of one tensor, chunk after chunk, in blocks."""

    def __init__(self, name: str, places: list[tuple[Path, int]]) -> None:
        self._name = name
        self._places = places

    def __call__(self) -> Iterator[npt.NDArray[Any]]:
        for file, n_rows in self._places:
            with safe_open(str(file), framework="numpy") as handle:
                rows = handle.get_slice(self._name)
                width = int(np.prod(rows.get_shape()[1:], dtype=np.int64))
                step = max(1, BLOCK // max(1, width))
                for start in range(0, n_rows, step):
                    yield rows[start : min(start + step, n_rows)]
