"""What a run directory must be before anything in it is used: crafted, damaged, cut, or written by two at once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ukge.errors import ConfigError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent
from ukge.logic.ground_rules import GroundRules
from ukge.runs import manifest
from ukge.runs.directory import CHECKPOINT, Run
from ukge.storage.arrays import load_arrays, save_arrays

QUICK: dict[str, Any] = {
    "dim": 4,
    "epochs": 3,
    "every": 1,
    "threads": 1,
    "engine": "torch",
    "checkpoint_seconds": 0.0,
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=150, n_facts=800, seed=1).graph, seed=0, name="world")


@pytest.fixture(scope="module")
def whole(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "whole"
    rng = np.random.default_rng(0)
    head, tail = (rng.integers(len(dataset.entities), size=9).astype(np.int32) for _ in range(2))
    ones = np.ones(9, np.float32)
    UKGE("ukge-rect", **QUICK).fit(dataset, rules=GroundRules(head, head * 0, tail, ones, ones), out=path)
    return path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture
def unfinished(dataset: Dataset, tmp_path: Path) -> Path:
    """A run that was cut after its second epoch."""

    def stop(event: EpochEvent) -> None:
        if event.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        UKGE("ukge-rect", **QUICK).fit(dataset, out=tmp_path / "unfinished", callbacks=[stop])
    return tmp_path / "unfinished"


def rewrite(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest as somebody who knows how its checksum is made."""
    told = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    told.pop("checksum")
    change(told)
    told["checksum"] = manifest._checksum(told)
    (run / "manifest.json").write_text(json.dumps(told), encoding="utf-8")


CRAFTED: list[Callable[[dict[str, Any]], object]] = [
    lambda told: told.clear(),
    lambda told: told.pop("data"),
    lambda told: told.update(format="3"),
    lambda told: told.update(format=[3]),
    lambda told: told.update(status=7),
    lambda told: told.update(model=None),
    lambda told: told.update(files=[]),
    lambda told: told.update(files={"weights.safetensors": 5}),
    lambda told: told.update(data=[]),
    lambda told: told["data"].update(more=1),
    lambda told: told["data"].update(undirected="interacts"),
    lambda told: told["data"].update(inverses=[["a"]]),
    lambda told: told["data"].pop("facts"),
    lambda told: told.update(result=None),
    lambda told: told.pop("result"),
    lambda told: told["result"].update(best="low"),
    lambda told: told["result"].update(collapsed={"seen": 1}),
    lambda told: told.update(seed=True),
]


@pytest.mark.parametrize("number", range(len(CRAFTED)))
def test_a_crafted_manifest_is_refused(run: Path, number: int) -> None:
    rewrite(run, CRAFTED[number])
    with pytest.raises(RunError, match=r"manifest\.json|is a run of format"):
        UKGE.load(run)


@pytest.mark.parametrize("text", ["", "[]", "7", "null", '"x"', '{"checksum": []}', "[" * 100_000, "\x00", "{}"])
def test_a_manifest_of_any_shape_is_refused(run: Path, text: str) -> None:
    (run / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"manifest\.json is damaged"):
        Run.open(run)


@pytest.mark.parametrize("name", ["weights.safetensors", "config.toml", "data/train.parquet", "trace.jsonl"])
def test_a_file_that_is_not_listed_is_not_left_unchecked(run: Path, name: str) -> None:
    rewrite(run, lambda told: told["files"].pop(name))
    with pytest.raises(RunError, match=f"does not list {name}"):
        Run.open(run)
    rewrite(run, lambda told: told.update(files={}))
    with pytest.raises(RunError, match="does not list"):
        Run.open(run)


def test_a_manifest_lists_files_of_a_run_alone(run: Path) -> None:
    rewrite(run, lambda told: told["files"].update({"../../secret": "0" * 64}))
    with pytest.raises(RunError, match=r"lists '\.\./\.\./secret', which is no file of a run"):
        Run.open(run)


def test_runs_of_the_format_before_are_read(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "trace.jsonl").read_text(encoding="utf-8").splitlines()]
    plain = [{name: value for name, value in line.items() if name != "digest"} for line in lines]
    (run / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plain), encoding="utf-8")
    rewrite(run, lambda told: (told.update(format=2), told["files"].pop("trace.jsonl")))
    assert len(UKGE.load(run).history) == 3


def test_one_changed_bit_in_the_trace_is_noticed(unfinished: Path) -> None:
    file = unfinished / "trace.jsonl"
    content = file.read_bytes()
    first = content.index(b"\n")
    for place in range(0, first, 7):
        broken = bytearray(content)
        broken[place] ^= 1
        file.write_bytes(bytes(broken))
        with pytest.raises(RunError, match=r"trace\.jsonl, line 1, is damaged"):
            UKGE.resume(unfinished)
    lines = content.splitlines(keepends=True)
    file.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    with pytest.raises(RunError, match="it is not that of epoch 1"):
        UKGE.resume(unfinished)
    file.write_bytes(lines[0])
    with pytest.raises(RunError, match="it ends after 1 of 2 epochs"):
        UKGE.resume(unfinished)


@pytest.mark.parametrize("tail", [b"", b'{"epoch": 3, "lo', b"\x00\x00\x00\n\x00"])
def test_what_comes_after_the_checkpoint_is_run_again(unfinished: Path, tail: bytes) -> None:
    lines = (unfinished / "trace.jsonl").read_bytes().splitlines(keepends=True)
    (unfinished / "trace.jsonl").write_bytes(b"".join(lines[:2]) + tail)
    UKGE.resume(unfinished)
    assert [line["epoch"] for line in Run.open(unfinished).trace()] == [1, 2, 3]


def crafted_checkpoint(run: Path, **changed: Any) -> None:
    """Change a checkpoint as somebody who writes its digests anew."""
    arrays, notes = load_arrays(run / CHECKPOINT)
    for name, change in changed.items():
        if name == "notes":
            notes = change(notes)
        else:
            place = name.replace("_", ".", 1)
            arrays[place] = change(arrays[place])
    save_arrays(run / CHECKPOINT, arrays, notes)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"parameters_entity": lambda a: a[:5]}, "'entity' has the shape"),
        ({"parameters_relation": lambda a: a[:, :2]}, "'relation' has the shape"),
        ({"parameters_entity": lambda a: a * np.nan}, "'entity' holds numbers that are not finite"),
        ({"parameters_entity": lambda a: a.astype(np.float64)}, "'entity' is float64"),
        ({"best_entity": lambda a: a[:5]}, "'entity' has the shape"),
        ({"state_entity.exp_avg": lambda a: a[:5]}, r"'entity\.exp_avg' has the shape"),
        ({"notes": lambda notes: {**notes, "epoch": -1}}, "does not say how far"),
        ({"notes": lambda notes: {**notes, "epoch": "2"}}, "does not say how far"),
        ({"notes": lambda notes: {**notes, "more": 1}}, "does not say how far"),
        ({"notes": lambda notes: [*notes]}, "does not say how far"),
    ],
)
def test_a_crafted_checkpoint_is_refused(unfinished: Path, changed: dict[str, Any], told: str) -> None:
    if "best_entity" in changed:  # otherwise the last weights are the best
        arrays, notes = load_arrays(unfinished / CHECKPOINT)
        best = {f"best.{name}": arrays[f"parameters.{name}"] for name in ("entity", "relation", "link")}
        save_arrays(unfinished / CHECKPOINT, {**arrays, **best}, notes)
    crafted_checkpoint(unfinished, **changed)
    with pytest.raises(RunError, match=rf"checkpoint\.safetensors cannot be used: .*{told}|{told}"):
        UKGE.resume(unfinished)


def test_moments_that_do_not_fit_do_not_reach_compiled_code(dataset: Dataset, tmp_path: Path) -> None:
    def stop(event: EpochEvent) -> None:
        if event.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        UKGE("ukge-rect", **{**QUICK, "engine": "fused"}).fit(dataset, out=tmp_path / "run", callbacks=[stop])
    arrays, notes = load_arrays(tmp_path / "run" / CHECKPOINT)
    moment = next(name for name in arrays if name.startswith("state.") and arrays[name].ndim > 1)
    save_arrays(tmp_path / "run" / CHECKPOINT, {**arrays, moment: arrays[moment][:5]}, notes)
    with pytest.raises(RunError, match=f"'{moment.removeprefix('state.')}' has the shape"):
        UKGE.resume(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("head", 2**30, "above"),
        ("relation", -1, "below 0"),
        ("tail", 10_000, "above"),
        ("weight", np.inf, "not finite"),
        ("body", np.nan, "not finite"),
    ],
)
def test_crafted_ground_rules_are_refused(run: Path, name: str, value: float, told: str) -> None:
    arrays, _ = load_arrays(run / "ground_rules.safetensors")
    arrays[name][3] = value
    save_arrays(run / "ground_rules.safetensors", arrays)
    Run(run).update()
    with pytest.raises(RunError, match=rf"ground_rules\.safetensors cannot be used: '{name}' .*{told}"):
        _ = Run.open(run).rules


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("head", 10_000, "above"),
        ("tail", -1, "below"),
        ("confidence", 1.5, "above 1"),
        ("confidence", np.nan, "not finite"),
        (None, None, "does not exist"),
    ],
)
def test_crafted_facts_are_refused(run: Path, column: str | None, value: float, told: str) -> None:
    file = run / "data" / "val.parquet"
    table = pq.read_table(file)
    if column is None:
        table = table.drop_columns(["confidence"])
    else:
        numbers = table[column].to_numpy().copy()
        numbers[0] = value
        table = table.set_column(table.column_names.index(column), column, [numbers])
    pq.write_table(table, file)
    rewrite(run, lambda said: said["files"].pop("data/val.parquet"))
    Run(run).update()
    with pytest.raises(RunError, match=rf"val\.parquet cannot be used: .*{told}"):
        Run.open(run).dataset()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100])
def test_names_that_are_no_parquet_are_refused(run: Path, content: bytes) -> None:
    (run / "entities.parquet").write_bytes(content)
    Run(run).update()
    with pytest.raises(RunError, match=r"entities\.parquet cannot be used"):
        UKGE.load(run)


def test_a_setting_that_is_refused_in_training_leaves_the_old_run(dataset: Dataset, run: Path) -> None:
    before = {file.name: file.read_bytes() for file in run.glob("*.*")}
    with pytest.raises(ConfigError):
        UKGE("ukge-rect", engine="fused", sampler="shared").fit(dataset, out=run, overwrite=True)
    assert {file.name: file.read_bytes() for file in run.glob("*.*")} == before
    assert [entry.name for entry in run.parent.iterdir()] == ["run"]


def test_a_save_that_fails_leaves_the_old_run(run: Path, monkeypatch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    model = UKGE.load(run)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Run, "append_trace", full)
    with pytest.raises(OSError, match="No space"):
        model.save(run, overwrite=True)
    monkeypatch.undo()
    np.testing.assert_array_equal(UKGE.load(run).predict(dataset.test), model.predict(dataset.test))
    assert [entry.name for entry in run.parent.iterdir()] == ["run"]


FIT = """
import sys
from ukge.cli import main
sys.argv = ["ukge", *sys.argv[1:]]
main()
"""


def test_two_trainings_into_one_directory_are_one(dataset: Dataset, tmp_path: Path) -> None:
    from ukge.graph.catalogue import save_dataset

    save_dataset(dataset, tmp_path / "data")
    words = ["train", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--quiet", "--rules", "none"]
    quick = ["--epochs", "60", "--dim", "8", "--engine", "torch", "--threads", "1", "--patience", "999"]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", FIT, *words, *quick, "--seed", seed],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    said = [process.communicate() for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], said
    first, second = codes.index(0), codes.index(2)
    assert (
        f"is in use by process {both[first].pid}" in " ".join(said[second][1].split())
        or "holds a run" in said[second][1]
    )
    run = Run.open(tmp_path / "run")
    assert run.config.runtime.seed == run.manifest()["seed"] == first + 1
    assert [line["epoch"] for line in run.trace()] == list(range(1, 61))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data", "run"]


def test_two_resumes_do_not_double_the_trace(unfinished: Path) -> None:
    from ukge.storage.locks import alone

    code = "import sys; from ukge.learning.estimator import UKGE; UKGE.resume(sys.argv[1])"
    with alone(unfinished):
        second = subprocess.run(
            [sys.executable, "-c", code, str(unfinished)], capture_output=True, text=True, check=False
        )
    assert "InUseError" in second.stderr
    assert "is in use by process" in second.stderr
    UKGE.resume(unfinished)
    assert [line["epoch"] for line in Run.open(unfinished).trace()] == [1, 2, 3]
