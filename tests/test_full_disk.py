"""A disk that is full, or a file that may not grow: an error with the path and what to do, before anything is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.writers import write
from ukge.learning.estimator import UKGE
from ukge.learning.mapped import mapped_table
from ukge.runs.directory import Run
from ukge.storage.arrays import load_arrays, save_arrays
from ukge.storage.files import reserve

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=200, n_facts=1500, seed=1).graph, seed=0, name="world")


def test_a_mapped_table_takes_its_room_at_once(small_disk: Path) -> None:
    run = Run(small_disk / "run")
    run.path.mkdir()
    table = mapped_table(run, "entity", (1024, 512))
    assert (run.path / "tables" / "entity.f32").stat().st_blocks * 512 >= 2 * MIB
    table[:] = 1.0  # all of it can be written to: nothing of the room is missing
    with pytest.raises(RunError, match=r"best\.f32 cannot be written: no space is left") as caught:
        mapped_table(run, "best", (1024, 1024))
    assert "Make room" in str(caught.value)


def test_arrays_that_do_not_fit_leave_the_old_file_and_nothing_else(small_disk: Path) -> None:
    file = small_disk / "checkpoint.safetensors"
    save_arrays(file, {"a": np.ones(MIB // 4, np.float32)}, {"epoch": 1})
    with pytest.raises(RunError, match=r"checkpoint\.safetensors cannot be written: no space is left"):
        save_arrays(file, {"a": np.ones(MIB, np.float32)}, {"epoch": 2})
    assert load_arrays(file)[1] == {"epoch": 1}
    assert os.listdir(small_disk) == [file.name]


def test_a_training_with_mapped_tables_ends_with_an_error_and_no_signal(small_disk: Path, dataset: Dataset) -> None:
    write(dataset.train, small_disk.parent / "facts.tsv")
    command = [
        *(
            sys.executable,
            "-c",
            "from ukge.cli import main; main()",
            "train",
            str(small_disk.parent / "facts.tsv"),
            "--quiet",
        ),
        *("--out", str(small_disk / "run"), "--memory-map", "--dim", "8000", "--optimiser", "rowwise-adagrad"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "cannot be written: no space is left on the disk" in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_a_checkpoint_that_finds_no_room_can_be_resumed_when_there_is(small_disk: Path, dataset: Dataset) -> None:
    settings: dict[str, Any] = {
        "dim": 16,
        "epochs": 4,
        "every": 2,
        "engine": "torch",
        "threads": 1,
        "checkpoint_seconds": 0.0,
    }
    UKGE(**settings).fit(dataset, out=small_disk.parent / "whole")
    ballast = small_disk / "ballast"

    def fill(event: object) -> None:
        if getattr(event, "epoch") == 2:  # noqa: B009 — any event
            free = os.statvfs(small_disk)
            with ballast.open("wb") as handle:
                reserve(handle, free.f_bavail * free.f_bsize)

    with pytest.raises(RunError, match="no space is left"):
        UKGE(**settings).fit(dataset, out=small_disk / "run", callbacks=[fill])
    ballast.unlink()
    UKGE.resume(small_disk / "run")
    for name, array in load_arrays(small_disk.parent / "whole" / "weights.safetensors")[0].items():
        np.testing.assert_array_equal(load_arrays(small_disk / "run" / "weights.safetensors")[0][name], array)


LIMITED = """
import resource, sys
from pathlib import Path
from typing import Any
import numpy as np
from ukge.errors import RunError
from ukge.learning.mapped import mapped_table
from ukge.runs.directory import Run
from ukge.storage.arrays import save_arrays
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
place = Path(sys.argv[1])
for work in (
    lambda: mapped_table(Run(place), "entity", (1024, 1024)),
    lambda: save_arrays(place / "weights.safetensors", {"a": np.ones(2**20, np.float32)}),
):
    try:
        work()
    except RunError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit on Windows")
def test_a_file_that_may_not_grow_is_an_error_with_its_path(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert (
        f"{tmp_path / 'tables' / 'entity.f32'} cannot be written: the file would be larger than is allowed" in told[0]
    )
    assert "ulimit -f" in done.stdout
    assert not (tmp_path / "weights.safetensors").exists()


def test_where_room_cannot_be_taken_the_file_is_as_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with (tmp_path / "file").open("wb") as handle:
        reserve(handle, 100)
    assert (tmp_path / "file").stat().st_size == 100
