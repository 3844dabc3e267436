"""How files of facts are read is said with the same flags on every command; a run keeps what was read."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.asking import answered, refused

from ukge.cli import app
from ukge.errors import ConfigError, RunError
from ukge.graph.readers import read
from ukge.graph.synthetic import generate
from ukge.serve.snapshot import Snapshot

ODD = ["--delimiter", "semicolon", "--columns", "head=3,tail=1,confidence=0", "--relation", "linked"]
READING: dict[str, Any] = {
    "delimiter": "semicolon",
    "columns": {"head": 3, "tail": 1, "confidence": 0},
    "relation": "linked",
}
FLAGS = {"--format", "--columns", "--header", "--delimiter", "--relation", "--normalise", "--language", "--channels"}
READERS = [
    "audit",
    "complete",
    "data convert",
    "data info",
    "data normalise",
    "data split",
    "fuse",
    "predict",
    "rules ground",
    "rules mine",
    "rules score",
    "rules show",
    "train",
    "tune",
]
RENAMED = {"data normalise": {"--normalise": "--scale"}, "complete": {"--relation": "--exclude-relation"}}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of entities with a score, between semicolons, in an odd order, with a column that nobody asked for."""
    facts = generate(n_entities=250, n_facts=1800, seed=2).graph
    pairs = {(fact.head, fact.tail): fact.confidence for fact in facts}
    path = tmp_path_factory.mktemp("odd") / "pairs.dat"
    lines = [f"{score};{tail};x{at};{head}\n" for at, ((head, tail), score) in enumerate(pairs.items())]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(odd: Path) -> Path:
    """A run that was trained from the odd file on the command line, with evidence."""
    path = odd.parent / "run"
    settings = ["--dim", 8, "--epochs", 2, "--every", 2, "--batch-size", 256, "--tau", 0.6]
    answered("train", odd, "--out", path, *settings, *ODD)
    answered("evidence", "fit", path, "--trees", 3)
    return path


def test_every_command_that_reads_facts_has_the_same_flags() -> None:
    for name in READERS:
        command: Any = typer.main.get_command(app)
        for word in name.split():
            command = command.get_command(None, word)
        flags = {flag for each in command.params for flag in each.opts}
        wanted = {RENAMED.get(name, {}).get(flag, flag) for flag in FLAGS}
        assert wanted <= flags, (name, wanted - flags)


def test_a_run_is_whole(run: Path, odd: Path, tmp_path: Path) -> None:
    """It was found by its path and parsed again: moved, or after its file had gone, it could not be judged."""
    moved = tmp_path / "elsewhere"
    shutil.copytree(run, moved)
    hidden = odd.with_suffix(".gone")
    odd.rename(hidden)
    try:
        assert "mse" in answered("evaluate", moved, "--protocol", "split", "--replicates", 0, "--json").stdout
        answered("evidence", "fit", moved, "--trees", 3)
        answered("train", "--resume", moved)
        assert len(Snapshot.open(moved).dataset.whole()) == len(hidden.read_text(encoding="utf-8").splitlines())
    finally:
        hidden.rename(odd)
    assert isinstance(refused("evaluate", moved, "--data", odd.parent), RunError)


def test_the_run_answers(run: Path, odd: Path, tmp_path: Path) -> None:
    score, tail, _, head = odd.read_text(encoding="utf-8").splitlines()[0].split(";")
    asked = tmp_path / "asked.dat"
    asked.write_text(f"{score};{tail};mine;{head}\n", encoding="utf-8")
    told = list(csv.DictReader(io.StringIO(answered("predict", run, asked, *ODD).stdout), delimiter="\t"))
    assert [(row["head"], row["relation"], row["tail"], row["column_2"]) for row in told] == [
        (head, "linked", tail, "mine")
    ]
    ranked = json.loads(answered("rank", run, "linked", "--head", head, "-k", 3, "--json").stdout)
    assert [row["relation"] for row in ranked] == ["linked"] * 3
    new = tmp_path / "new.dat"
    new.write_text(f"0.9;{tail};x;newcomer\n", encoding="utf-8")
    asked.write_text(f"{score};{tail};mine;newcomer\n", encoding="utf-8")
    told = list(
        csv.DictReader(io.StringIO(answered("predict", run, asked, *ODD, "--with", new).stdout), delimiter="\t")
    )
    assert told[0]["confidence"]
    every = ("complete", run, "-k", 4, "--min-confidence", 0, "--json", "--no-reasons")
    first = json.loads(answered(*every).stdout)[0]
    seen = tmp_path / "seen.dat"
    seen.write_text(f"1;{first['tail']};x;{first['head']}\n", encoding="utf-8")
    flags = [flag.replace("--relation", "--exclude-relation") for flag in ODD]
    assert first not in json.loads(answered(*every, "--exclude", seen, *flags).stdout)


def test_data_and_rules_read_it_too(odd: Path, tmp_path: Path) -> None:
    answered("data", "convert", odd, tmp_path / "facts.tsv", *ODD)
    facts = read(tmp_path / "facts.tsv")
    assert facts == read(odd, **READING)
    assert f"{len(facts)}" in answered("data", "info", odd, *ODD, "--json").stdout
    assert f'"rows": {len(facts)}' in answered("audit", odd, *ODD, "--json").stdout
    answered("data", "split", odd, *ODD, "--out", tmp_path / "cut")
    answered("data", "normalise", odd, tmp_path / "scaled.tsv", "--scale", "minmax:0,1", *ODD)
    assert read(tmp_path / "scaled.tsv").confidence.max() == 1.0
    rule = "linked(A, B) -> linked(B, A)"
    measured = json.loads(answered("rules", "score", odd, rule, "--strong", 0.5, "--json", *ODD).stdout)
    assert measured[0]["implied"] > 0


def test_what_is_not_read_is_told(odd: Path) -> None:
    assert "columns not read: 2" in " ".join(answered("data", "info", odd, *ODD).stderr.split())


def test_how_to_read_what_is_no_file_is_refused(tmp_path: Path) -> None:
    error = refused("audit", "synthetic", "--relation", "r")
    assert isinstance(error, ConfigError)
    assert "'synthetic' is no file of facts" in str(error)
    cut = tmp_path / "cut"
    cut.mkdir()
    for part in ("train", "val", "test"):
        (cut / f"{part}.csv").write_text("a;b;0.5\nb;a;0.25\n", encoding="utf-8")
    answered("data", "info", cut, "--delimiter", ";", "--relation", "r")
    assert "of each part" in str(refused("data", "info", cut, "--delimiter", ";", "--normalise", "minmax:0,1"))


def test_rules_have_a_format_of_their_own(odd: Path) -> None:
    error = refused("rules", "score", odd, "r(A, B) -> r(B, A)", "--format", "psl")
    assert "rules_format=psl" in str(error)
