"""The approximate index finds nearly what the exact search finds, is kept, and is built again when damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.serve.small_run import make_run

from ukge.asking.rank import Wanted
from ukge.serve.index import FOLDER, ApproximateSearch, approximate
from ukge.serve.snapshot import Snapshot


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Path:
    """A copy of the run that an index may be put into."""
    return Path(shutil.copytree(run, tmp_path / "own"))


def test_the_index_is_built_kept_and_its_recall_told(own: Path) -> None:
    snapshot = Snapshot.open(own, index_above=100)
    assert snapshot.searcher is snapshot.exact
    snapshot.warm()
    assert snapshot.index is not None
    searcher = snapshot.index.get()
    assert snapshot.searcher is searcher
    told = searcher.describe()
    assert told["kind"] == "approximate"
    assert told["recall"] == pytest.approx(1.0, abs=0.05)
    assert sorted(file.name for file in (own / FOLDER).iterdir()) == ["entities.usearch", "manifest.json"]
    written = (own / FOLDER / "entities.usearch").stat().st_mtime_ns
    again = approximate(own, snapshot.known, snapshot.exact)
    assert (own / FOLDER / "entities.usearch").stat().st_mtime_ns == written
    known = np.array([0, 1, 2, 3])
    exact = snapshot.exact.search([Wanted("tail", 5, 1, 10, without=known)])[0]
    near = again.search([Wanted("tail", 5, 1, 10, without=known)])[0]
    assert len(np.intersect1d(exact.entity, near.entity)) >= 9
    assert not np.isin(near.entity, known).any()
    some = np.arange(40, 60)
    assert again.search([Wanted("tail", 5, 1, 5, some)])[0].entity.tolist() == (
        snapshot.exact.search([Wanted("tail", 5, 1, 5, some)])[0].entity.tolist()
    )


def test_a_damaged_or_foreign_index_is_built_again(own: Path) -> None:
    snapshot = Snapshot.open(own)
    arguments = (own, snapshot.known, snapshot.exact)
    approximate(*arguments)
    file = own / FOLDER / "entities.usearch"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert isinstance(approximate(*arguments), ApproximateSearch)
    assert len(file.read_bytes()) == len(content)


def test_small_graphs_and_distances_have_no_index(run: Path, tmp_path: Path) -> None:
    assert Snapshot.open(run, index_above=1_000_000).index is None
    assert Snapshot.open(make_run(tmp_path, scorer="transe"), index_above=10).index is None
