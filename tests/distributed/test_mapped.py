"""Tables in files: the same weights as in memory, to the bit, also after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge.errors import ConfigError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE
from ukge.learning.mapped import mapped_table
from ukge.learning.memory import estimate
from ukge.learning.train import EpochEvent
from ukge.runs.directory import Run
from ukge.settings.config import Config
from ukge.storage.arrays import Stream, load_arrays, map_arrays, save_arrays

SETTINGS: dict[str, Any] = {
    "dim": 8,
    "epochs": 6,
    "every": 2,
    "engine": "torch",
    "threads": 1,
    "optimiser": "rowwise-adagrad",
    "lr": 0.1,
    "checkpoint_seconds": 0.0,
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=200, n_facts=1500, seed=1).graph, seed=0, name="world")


def interrupt(event: EpochEvent) -> None:
    if event.epoch == 4:
        raise KeyboardInterrupt


@pytest.mark.parametrize("optimiser", ["rowwise-adagrad", "lazy-adam"])
def test_mapped_tables_give_the_same_weights(dataset: Dataset, tmp_path: Path, optimiser: str) -> None:
    settings = {**SETTINGS, "optimiser": optimiser}
    UKGE(**settings).fit(dataset, out=tmp_path / "memory")
    mapped = UKGE(**settings, memory_map=True).fit(dataset, out=tmp_path / "mapped")
    with pytest.raises(KeyboardInterrupt):
        UKGE(**settings, memory_map=True).fit(dataset, out=tmp_path / "broken", callbacks=[interrupt])
    assert (tmp_path / "broken" / "tables" / "entity.f32").stat().st_size == 200 * 8 * 4
    UKGE.resume(tmp_path / "broken")
    expected, notes = load_arrays(tmp_path / "memory" / "weights.safetensors")
    for run in ("mapped", "broken"):
        found, told = load_arrays(tmp_path / run / "weights.safetensors")
        assert told == notes
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{run} {name}")
        assert not (tmp_path / run / "tables").exists()
    np.testing.assert_array_equal(mapped.predict(dataset.test), UKGE.load(tmp_path / "memory").predict(dataset.test))


def test_mapping_needs_a_run_directory(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match="run directory"):
        UKGE(**SETTINGS, memory_map=True).fit(dataset)


def test_a_mapped_table_needs_no_memory() -> None:
    config = Config().replace(optimiser="rowwise-adagrad")
    held, mapped = (estimate(config.replace(memory_map=on), 10_000_000, 100, 1000) for on in (False, True))
    assert held.parameters == mapped.parameters + 10_000_000 * 128 * 4
    assert held.best == mapped.best + 10_000_000 * 128 * 4


def test_streams_are_written_as_arrays_are(tmp_path: Path) -> None:
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    save_arrays(tmp_path / "array", {"a": rows, "n": np.array(7)}, {"x": 1})
    stream = Stream(rows.dtype, rows.shape, lambda: [rows[:5], rows[5:]])
    save_arrays(tmp_path / "stream", {"a": stream, "n": np.array(7)}, {"x": 1})
    assert (tmp_path / "array").read_bytes() == (tmp_path / "stream").read_bytes()
    mapped, notes = map_arrays(tmp_path / "stream")
    assert notes == {"x": 1}
    np.testing.assert_array_equal(mapped["a"], rows)
    mapped["a"][0] = -1
    assert load_arrays(tmp_path / "stream")[0]["a"][0, 0] == 0, "changes stay in the process"


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells how a file is mapped")
def test_a_mapped_table_is_read_by_rows_and_not_ahead(tmp_path: Path) -> None:
    table = mapped_table(Run(tmp_path), "entity", (64, 16))
    table[:] = 1.0
    told = Path("/proc/self/smaps").read_text(encoding="utf-8").split("entity.f32")[1]
    flags = next(line for line in told.splitlines() if line.startswith("VmFlags:"))
    assert "rr" in flags.split()
