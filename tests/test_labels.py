"""Labels of a run: whose word counts, what a kill leaves, and what goes on to fuse and calibrate."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import answered

from ukge import UKGE, UncertainGraph
from ukge.errors import ConfigError, RunError
from ukge.graph.index import FactIndex
from ukge.runs.directory import LABELS
from ukge.runs.labels import Label, Word, all_words, keep_labels, labels_of_rows, last_words, read_labels
from ukge.storage.lines import append_lines, read_lines

FACTS = [(f"a{i % 20}", "r", f"b{i // 20}", 0.1 + 0.01 * (i % 80)) for i in range(120)]
ONE, TWO, THREE = (fact[:3] for fact in FACTS[:3])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("labels") / "run"
    UKGE("ukge-logi", dim=4, epochs=1, engine="torch").fit(UncertainGraph.from_facts(FACTS), out=place)
    return place


@pytest.fixture
def run(trained: Path) -> Path:
    (trained / LABELS).unlink(missing_ok=True)
    return trained


def say(run: Path, by: str, **words: Word) -> None:
    facts = {"one": ONE, "two": TWO, "three": THREE}
    keep_labels(run, [Label.now(facts[name], word, by) for name, word in words.items()])


def test_the_last_word_of_each_person_counts(run: Path) -> None:
    say(run, "anna", one="no", two="yes", three="unsure")
    say(run, "ben", one="yes", two="yes")
    say(run, "anna", one="yes")
    say(run, "cleo", one="no")
    said = last_words(all_words(run))
    assert {by: each.word for by, each in said[ONE].items()} == {"anna": "yes", "ben": "yes", "cleo": "no"}
    table = read_labels(run)
    assert table.column_names[:5] == ["head", "relation", "tail", "confidence", "label"]
    rows = {row["head"]: row for row in table.to_pylist()}
    assert set(rows) == {"a0", "a1"}  # of the third nobody is sure
    assert rows["a0"]["label"] == pytest.approx(2 / 3)
    assert (rows["a1"]["label"], rows["a1"]["reviewers"]) == (1.0, "anna, ben")
    assert rows["a1"]["confidence"] == pytest.approx(0.11)
    say(run, "anna", two="withdrawn")
    say(run, "ben", two="withdrawn")
    assert [row["head"] for row in read_labels(run).to_pylist()] == ["a0"]
    assert len(all_words(run)) == 9  # nothing is ever removed


def test_labels_by_row_and_of_facts_that_are_gone(run: Path) -> None:
    say(run, "anna", one="no", two="yes")
    keep_labels(run, [Label.now(("gone", "r", "b0"), "yes", "anna")])
    graph = UncertainGraph.from_facts([FACTS[1], FACTS[0], FACTS[5], FACTS[0]])
    found = labels_of_rows(last_words(all_words(run)), FactIndex(graph))
    np.testing.assert_array_equal(found, [1.0, 0.0, np.nan, 0.0])
    assert read_labels(run).to_pylist()[-1]["confidence"] is None
    assert np.isnan(labels_of_rows({}, FactIndex(graph))).all()


def test_mistakes_are_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs the name"):
        Label.now(ONE, "yes", "  ")
    with pytest.raises(ConfigError, match="1 to 100 characters"):
        Label.now(ONE, "yes", "x" * 101)
    with pytest.raises(ConfigError, match="unknown word 'maybe'"):
        Label.now(ONE, "maybe", "anna")  # type: ignore[arg-type]
    with pytest.raises(RunError, match="is no run"):
        keep_labels(tmp_path, [Label.now(ONE, "yes", "anna")])
    say(run, "anna", one="no", two="yes")
    file = run / LABELS
    file.write_bytes(file.read_bytes().replace(b'"no"', b'"yes"', 1))
    with pytest.raises(RunError, match=r"labels\.jsonl, line 1, is damaged"):
        read_labels(run)


def test_what_a_kill_cut_short_is_passed_over_and_removed(run: Path) -> None:
    say(run, "anna", one="no", two="yes")
    file = run / LABELS
    whole = file.read_bytes()
    for cut in range(1, len(whole)):
        file.write_bytes(whole[:-cut])
        left = whole[:-cut].count(b"\n")
        assert len(all_words(run)) == left
        say(run, "ben", three="yes")
        assert [each.by for each in all_words(run)] == ["anna"] * left + ["ben"]
        if left == 0:
            break


def _add(file: Path, by: int, count: int) -> None:
    for number in range(count):
        append_lines(file, [f"{by} {number} {'x' * (number % 50)}"])


def test_several_write_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(file, by, 25)) for by in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    lines = [line.decode().split() for line in read_lines(file)]
    assert len(lines) == 75
    for by in range(3):
        assert [int(line[1]) for line in lines if line[0] == str(by)] == list(range(25))


WRITER = """
import sys
from pathlib import Path
from ukge.runs.labels import Label, keep_labels
number = 0
while True:
    keep_labels(Path(sys.argv[1]), [Label.now((f"a{number % 120}", "r", f"b{number % 7}"), "yes", "anna")])
    number += 1
    print(number, flush=True)
"""


def test_a_word_that_was_confirmed_survives_kill_9(run: Path) -> None:
    for _ in range(4):
        before = len(all_words(run))
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(run)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.05)
        os.kill(writer.pid, signal.SIGKILL)
        confirmed = 1 + len(writer.stdout.read().split())
        writer.wait()
        assert before + confirmed <= len(all_words(run)) <= before + confirmed + 1


def test_labels_stay_where_a_run_is_replaced(tmp_path: Path) -> None:
    place, graph = tmp_path / "run", UncertainGraph.from_facts(FACTS)
    UKGE("ukge-logi", dim=4, epochs=1, engine="torch").fit(graph, out=place)
    say(place, "anna", one="no")
    UKGE("ukge-logi", dim=4, epochs=1, seed=1, engine="torch").fit(graph, out=place, overwrite=True)
    assert [row["label"] for row in read_labels(place).to_pylist()] == [0.0]


def test_the_command(run: Path, tmp_path: Path) -> None:
    assert "nobody has labelled a fact yet" in answered("labels", run, "--json").stderr
    say(run, "anna", one="no", two="unsure")
    (row,) = json.loads(answered("labels", run, "--json").stdout)
    assert (row["head"], row["label"], row["reviewers"]) == ("a0", 0.0, "anna")
    answered("labels", run, "--out", tmp_path / "labels.tsv")
    header = (tmp_path / "labels.tsv").read_text("utf-8").split("\n")[0]
    assert header.split("\t")[:5] == ["head", "relation", "tail", "confidence", "label"]
    every = json.loads(answered("labels", run, "--every-word", "--json").stdout)
    assert [each["word"] for each in every] == ["no", "unsure"]


def test_what_people_said_of_a_run_teaches_fuse_and_calibrate(run: Path, tmp_path: Path) -> None:
    """Of 120 facts that people judged, those below .5 do not hold: the one source that says so is not changed much."""
    keep_labels(run, [Label.now(fact[:3], "yes" if fact[3] >= 0.5 else "no", "anna") for fact in FACTS])
    claims = tmp_path / "claims.tsv"
    rows = [(*fact, f"s{number}") for number in range(3) for fact in FACTS]
    header = "head\trelation\ttail\tconfidence\tsource\n"
    claims.write_text(header + "".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    told = answered("fuse", claims, "--labelled", run, "--facts", "--out", tmp_path / "fused.tsv")
    assert "on 120 labels" in told.stderr
    fused = [line.split("\t") for line in (tmp_path / "fused.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    by_fact = {tuple(row[:3]): float(row[3]) for row in fused}
    held = [by_fact[fact[:3]] for fact in FACTS if fact[3] >= 0.5]
    others = [by_fact[fact[:3]] for fact in FACTS if fact[3] < 0.5]
    assert np.mean(held) > np.mean(others) + 0.3
    told = answered("calibrate", claims, "--source", "s0", "--labelled", run, "--out", tmp_path / "s0.json")
    assert "calibration" in told.stderr
    answered("calibrate", claims, "--source", "s0", "--with", tmp_path / "s0.json", "--out", tmp_path / "s.tsv")
    rows_out = [line.split("\t") for line in (tmp_path / "s.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    own = {tuple(row[:3]): float(row[3]) for row in rows_out if row[-1] == "s0"}
    assert all((own[fact[:3]] > 0.5) == (fact[3] >= 0.5) for fact in FACTS if abs(fact[3] - 0.5) > 0.05)
