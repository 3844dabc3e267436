"""What `fit` takes, and what a run remembers of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ukge.errors import ConfigError, DataError, KindError
from ukge.graph.catalogue import open_dataset, reference_to
from ukge.graph.readers import read
from ukge.graph.split import split
from ukge.graph.writers import write
from ukge.learning.data import opened
from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent
from ukge.runs.directory import IN_MEMORY, Run

TRIPLE = ["head", "relation", "tail"]


def weights(model: UKGE) -> Any:
    assert model.trained is not None
    return model.trained.parameters.entity


@pytest.mark.parametrize("kind", ["arrow", "networkx", "tuples", "graph", "dataset", "x and y", "array and y"])
def test_the_same_facts_in_any_shape_train_the_same_model(
    frame: pd.DataFrame, model: UKGE, quick: dict[str, Any], kind: str
) -> None:
    data: Any = frame
    y = None
    if kind == "arrow":
        data = pa.Table.from_pandas(frame, preserve_index=False)
    elif kind == "networkx":
        nx = pytest.importorskip("networkx")
        data = nx.MultiDiGraph()
        for fact in read(frame):
            data.add_edge(fact.head, fact.tail, relation=fact.relation, confidence=fact.confidence)
    elif kind == "tuples":
        data = list(frame.itertuples(index=False, name=None))
    elif kind == "graph":
        data = read(frame)
    elif kind == "dataset":
        data = split(read(frame), test=0.0, seed=0)
    elif kind == "x and y":
        data, y = frame[TRIPLE], frame["confidence"].set_axis(range(1000, 0, -1))  # its index says nothing
    else:
        data, y = frame[TRIPLE].to_numpy(), frame["confidence"].tolist()
    fitted = UKGE(**quick).fit(data, y)
    if kind == "networkx":  # it has the facts in another order, by node
        assert sorted(fitted.entities or ()) == sorted(model.entities or ())
    else:
        np.testing.assert_array_equal(weights(fitted), weights(model))


@pytest.mark.parametrize("data", [{"head": ["a"]}, 3, None, b"facts.tsv"])
def test_a_type_that_is_not_taken_is_named(data: Any) -> None:
    with pytest.raises(KindError, match=rf"fit takes a frame or table .*, not an? {type(data).__name__}$"):
        UKGE().fit(data)


def test_a_data_set_has_its_own_confidences(frame: pd.DataFrame) -> None:
    for data in ("synthetic", split(read(frame), seed=0)):
        with pytest.raises(DataError, match="a data set has its own confidences\nWhat to do: Leave out y"):
            UKGE().fit(data, frame["confidence"])


class _KilledError(Exception):
    pass


def _kill(event: EpochEvent) -> None:
    if event.epoch == 3:
        raise _KilledError


def test_a_run_on_a_path_is_found_again(
    frame: pd.DataFrame, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the command line wrote down where the data was."""
    write(read(frame), tmp_path / "facts.tsv")
    settings = {**quick, "checkpoint_seconds": 0.0}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(_KilledError):
        UKGE(**settings).fit("facts.tsv", out="cut", callbacks=[_kill])
    assert Run("cut").data.reference == str(tmp_path / "facts.tsv")
    monkeypatch.chdir(tmp_path / "cut")
    resumed = UKGE.resume(tmp_path / "cut")
    whole = UKGE(**settings).fit(tmp_path / "facts.tsv")
    np.testing.assert_array_equal(weights(resumed), weights(whole))
    assert resumed.history["epoch"].tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(resumed.history["loss"], whole.history["loss"])


def test_a_run_on_a_frame_is_gone_on_with(
    frame: pd.DataFrame, model: UKGE, quick: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(_KilledError):
        UKGE(**quick, checkpoint_seconds=0.0).fit(frame, out=tmp_path / "cut", callbacks=[_kill])
    resumed = UKGE.resume(tmp_path / "cut")
    np.testing.assert_array_equal(weights(resumed), weights(model))


def test_a_name_of_the_catalogue_is_not_taken_for_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cn15k").mkdir()
    assert reference_to("cn15k") == "cn15k"
    assert reference_to("synthetic") == "synthetic"
    assert reference_to("world") == str(tmp_path / "world")


def test_names_and_paths_are_opened_as_data_sets(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(read(frame), tmp_path / "facts.tsv")
    monkeypatch.chdir(tmp_path)
    found, reference = opened("facts.tsv", seed=3, leak_safe=True)
    assert found.train == open_dataset(tmp_path / "facts.tsv", seed=3, leak_safe=True).train
    assert reference == str(tmp_path / "facts.tsv")
    assert len(found.test) > 0
    whole, reference = opened(frame, seed=3, leak_safe=False)
    assert (len(whole.train), len(whole.test), reference) == (930, 0, IN_MEMORY)


def test_frames_are_read_as_told(frame: pd.DataFrame) -> None:
    strange = frame.set_axis(["p", "q", "o", "n"], axis=1)[["n", "o", "p", "q"]]
    told = {"columns": {"head": "p", "relation": "q", "tail": "o", "confidence": "n"}}
    assert (
        opened(strange, seed=0, leak_safe=False, reading=told)[0].train
        == opened(frame, seed=0, leak_safe=False)[0].train
    )
    for data, y in ((read(frame), None), (frame, frame["confidence"])):
        with pytest.raises(ConfigError, match="reading tells how files, frames and tables are read"):
            opened(data, y, seed=0, leak_safe=False, reading=told)


def test_a_misspelt_keyword_is_named(frame: pd.DataFrame, quick: dict[str, Any]) -> None:
    misspelt: dict[str, Any] = {"undirekted": "none"}
    with pytest.raises(ConfigError, match=r"no keyword 'undirekted'.*\n.*'undirected'"):
        UKGE(**quick).fit(frame, **misspelt)


def test_a_benchmark_by_name(benchmark_data: Path, tmp_path: Path) -> None:
    fitted = UKGE(dim=2, epochs=1, every=1).fit("ppi5k", rules="none", out=tmp_path / "run")
    assert Run(tmp_path / "run").data.reference == "ppi5k"
    assert Run(tmp_path / "run").data.facts == len(open_dataset("ppi5k").train)
    assert len(fitted.entities or ()) == 4999


def test_tensorboard_writes_into_the_run(frame: pd.DataFrame, quick: dict[str, Any], tmp_path: Path) -> None:
    """The setting did nothing in Python."""
    with pytest.raises(ConfigError, match=r"tensorboard writes into the run directory.*\n.*with out"):
        UKGE(**quick, tensorboard=True).fit(frame)
    settings = {**quick, "tensorboard": True, "checkpoint_seconds": 0.0}
    with pytest.raises(_KilledError):
        UKGE(**settings).fit(frame, out=tmp_path / "run", callbacks=[_kill])
    assert len(list((tmp_path / "run" / "tensorboard").glob("events.out.tfevents*"))) == 1
    for file in (tmp_path / "run" / "tensorboard").iterdir():
        file.unlink()
    UKGE.resume(tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").glob("events.out.tfevents*"))
