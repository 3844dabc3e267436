"""`--undirected`: what was found is said in one line, a run and a data set remember it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import answered, refused

from ukge.runs.directory import Run


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ninety interactions, each in both directions, in a file."""
    rng = np.random.default_rng(0)
    chosen = rng.permutation([(i, j) for i in range(20) for j in range(i)])[:90]
    lines = [f"p{a:02}\tinteracts\tp{b:02}\t{0.5 + (a + b) / 100}\n" for i, j in chosen for a, b in ((i, j), (j, i))]
    path = tmp_path_factory.mktemp("twice") / "twice.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_what_has_no_direction_is_said_in_one_line(twice: Path, tmp_path: Path) -> None:
    found = answered("data", "split", str(twice), "--out", str(tmp_path / "cut"))
    told = " ".join((found.stdout + found.stderr).split())
    line = "interacts has no direction: 180 rows are 90 facts; --undirected none takes them as they stand"
    assert told.count(line) == 1
    assert "train 77, val 6, test 7" in told
    assert json.loads((tmp_path / "cut" / "dataset.json").read_text())["undirected"] == ["interacts"]
    as_it_stands = answered("data", "split", str(twice), "--undirected", "none", "--out", str(tmp_path / "raw"))
    assert "no direction" not in as_it_stands.stderr
    assert "train 153, val 13, test 14" in as_it_stands.stdout


def test_audits_and_runs_take_it_too(twice: Path, tmp_path: Path) -> None:
    found = json.loads(answered("audit", str(twice), "--json").stdout)
    assert found["whole"]["rows"] == 90
    assert found["symmetry"][0]["undirected"] is True
    raw = json.loads(answered("audit", str(twice), "--json", "--undirected", "none").stdout)
    assert raw["whole"]["rows"] == 180
    flags = ["--epochs", "20", "--dim", "8", "--batch-size", "32", "-q", "--out", str(tmp_path / "run")]
    answered("train", str(twice), *flags)
    assert list(Run(tmp_path / "run").data.undirected) == ["interacts"]
    answered("evaluate", str(tmp_path / "run"), "--protocol", "positives")
    assert "interacts" in str(refused("train", str(twice), "--undirected", "interact"))
