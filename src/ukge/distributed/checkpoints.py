"""Checkpoints of sharded weights: every rank writes its rows, and any number of ranks reads them.

    checkpoints/epoch-000010/     the last epoch: weights, the optimisers' state, progress.json
    checkpoints/best-000008/      the best epoch's weights

A directory is written under another name and gets its own when it is whole. Shards are safetensors files, each with its
SHA-256 beside it.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from ukge.distributed.engine import DistributedEngine
from ukge.errors import RunError
from ukge.runs.directory import Progress
from ukge.storage.files import DAMAGED, sha256, write_atomically, writing
from ukge.storage.sealed import sealed, unsealed

FOLDER = "checkpoints"
PROGRESS = "progress.json"
ENTITY = "entity"


class Checkpoints:
    """The checkpoints of one run, as all ranks see them; the directory must be one that all ranks share."""

    def __init__(self, run: Path, engine: DistributedEngine) -> None:
        self._folder = run / FOLDER
        self._engine = engine
        self._world = engine.world

    def save(self, progress: Progress) -> None:
        """Write all that resuming needs, then let go of older checkpoints."""
        target = self._folder / f"epoch-{progress.epoch:06d}"
        self._write(target, self._weights() | self._state(), vars(progress))
        if self._world.first:
            for old in self._folder.iterdir():
                if old.name not in (target.name, f"best-{progress.best_epoch:06d}"):
                    shutil.rmtree(old)

    def save_best(self, epoch: int) -> None:
        """Write the weights as they are now as those of the best epoch."""
        self._write(self._folder / f"best-{epoch:06d}", self._weights(), {"epoch": epoch})

    def load(self) -> Progress | None:
        """Bring the engine to the last checkpoint, or return None if there is none."""
        last = last_checkpoint(self._folder)
        # What the first rank finds: a shared file system may show another rank less, for a while.
        name = self._world.broadcast_text("" if last is None else last.name)
        if not name:
            return None
        found = self._folder / name
        self._check(found)
        state = self._weights() | self._state()
        with _quiet():
            load(state, storage_reader=HuggingFaceStorageReader(str(found)))
        own = {name.removeprefix("state."): state[name].cpu().numpy() for name in self._own_state()}
        self._engine.load_state(own)
        note = found / PROGRESS
        return Progress.read(unsealed(note.read_bytes(), note), note)

    def _weights(self) -> dict[str, Tensor]:
        table = self._engine.table
        return {ENTITY: table.as_global(table.local), **self._engine.replicated}

    def _state(self) -> dict[str, Tensor]:
        moments = {f"{ENTITY}.{name}": moment for name, moment in self._engine.table.moments().items()}
        return moments | self._own_state()

    def _own_state(self) -> dict[str, Tensor]:
        return {f"state.{name}": torch.tensor(array) for name, array in self._engine.state().items()}

    def _write(self, target: Path, state: dict[str, Tensor], note: dict[str, object]) -> None:
        partial = target.with_name(f"{target.name}.partial")

        def clear() -> None:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)

        self._world.by_first(clear)
        with _quiet(), writing(target):
            writer = HuggingFaceStorageWriter(path=str(partial), save_distributed=True)
            save(state, storage_writer=writer)
        for file in partial.glob(f"shard-{self._world.rank + 1:05d}-*.safetensors"):
            write_atomically(file.with_suffix(".sha256"), sha256(file).encode())
        self._world.barrier()

        def commit() -> None:
            write_atomically(partial / PROGRESS, sealed(note).encode())
            shutil.rmtree(target, ignore_errors=True)
            os.replace(partial, target)

        self._world.by_first(commit)

    def _check(self, found: Path) -> None:
        """Let the ranks share the checking of the shards."""
        files = shards(found)[self._world.rank :: self._world.size]
        wrong = next((file for file in files if not _sound(file)), None)
        if any(self._world.gathered(int(wrong is not None))):
            where = found if wrong is None else wrong
            raise RunError(f"{where} is damaged: its content does not match its checksum", hint=DAMAGED)


def last_checkpoint(folder: Path) -> Path | None:
    """Return the directory of the last epoch that was written whole."""
    found = sorted(path for path in folder.glob("epoch-*") if (path / PROGRESS).is_file() and not path.suffix)
    return found[-1] if found else None


def shards(checkpoint: Path) -> list[Path]:
    """Return the files that hold a checkpoint's tensors."""
    return sorted(checkpoint.glob("shard-*.safetensors"))


def _sound(file: Path) -> bool:
    expected = file.with_suffix(".sha256")
    return expected.is_file() and expected.read_text(encoding="utf-8") == sha256(file)


@contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch warns of its own use of what it deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
