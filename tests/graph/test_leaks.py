"""What train gives away, by hand, and as whoever splits or trains is told it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from ukge.cli import app
from ukge.graph.audit import audit
from ukge.graph.audit.leaks import Leaks, find_leaks
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.graph.writers import write

Rows = list[tuple[str, str, str, float]]
TRAIN: Rows = [("a", "likes", "b", 0.4), ("b", "likes", "c", 0.9), ("c", "knows", "d", 1.0), ("d", "likes", "a", 0.2)]
VAL: Rows = [("c", "likes", "b", 0.9)]
TEST: Rows = [("a", "likes", "b", 0.7), ("a", "likes", "d", 0.2), ("d", "likes", "c", 0.3), ("b", "knows", "d", 1.0)]


def dataset(train: Rows, val: Rows, test: Rows) -> Dataset:
    entities, relations = Vocabulary(["a", "b", "c", "d"]), Vocabulary(["likes", "knows"], kind="relation")

    def part(rows: Rows) -> UncertainGraph:
        head, tail = (np.array([entities.id(str(row[place])) for row in rows], np.int64) for place in (0, 2))
        relation = np.array([relations.id(row[1]) for row in rows], np.int64)
        confidence = np.array([row[3] for row in rows], np.float64)
        return UncertainGraph.from_ids(head, relation, tail, confidence, entities, relations)

    return Dataset("small", part(train), part(val), part(test))


def test_leaks_by_hand() -> None:
    data = dataset(TRAIN, VAL, TEST)
    found = find_leaks(data)
    assert found.lines() == (
        "Of 4 test facts 1 (25.0 %) has its inverse in train, 1 (25.0 %) is in train as it is, and 3 (75.0 %) link two "
        "entities that train links.",
        "Of 1 validation facts 1 (100.0 %) has its inverse in train, none is in train as it is, and 1 (100.0 %) links "
        "two entities that train links.",
    )
    assert found.hint(lambda name, value: f"[{name} {value}]").startswith("[leak_safe True] cuts the facts")
    told = found.to_dict()
    assert (told["test"]["facts"], told["test"]["exact"]["rows"], told["val"]["inverse"]["rows"]) == (4, 1, 1)
    assert {twins for _, twins in found.parts} == set(audit(data).twins)


def test_a_part_without_facts_is_not_told_of() -> None:
    assert find_leaks(dataset(TRAIN, [], [])) == Leaks(())
    assert Leaks(()).lines() == ()
    assert [line[:12] for line in find_leaks(dataset(TRAIN, [], TEST)).lines()] == ["Of 4 test fa"]


def test_nothing_leaks_from_a_leak_safe_cut() -> None:
    found = find_leaks(split(both_ways(), leak_safe=True))
    assert not found.found
    assert found.hint() == ""
    assert found.lines() == (
        "No test or validation fact has its inverse in train, is in train as it is, or links two that train links.",
    )


def both_ways() -> UncertainGraph:
    pairs = [(f"p{a}", f"p{b}") for a in range(40) for b in range(a) if (a * b) % 7 < 3]
    return UncertainGraph.from_facts(
        [(h, "binds", t, 0.5 + len(t) / 10) for h, t in (*pairs, *((t, h) for h, t in pairs))]
    )


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "binds.tsv"
    write(both_ways(), path)
    return path


def command(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


AS_IT_STANDS = ("--undirected", "none")


def test_who_splits_is_told(facts: Path, tmp_path: Path) -> None:
    expected = find_leaks(split(both_ways(), undirected="none"))
    shown = " ".join(command("data", "split", facts, *AS_IT_STANDS, "--out", tmp_path / "cut").stdout.split())
    for line in (*expected.lines(), "What to do: --leak-safe cuts the facts"):
        assert line in shown
    plain = json.loads(command("data", "split", facts, *AS_IT_STANDS, "--out", tmp_path / "same", "--json").stdout)
    assert plain["leaks"] == json.loads(json.dumps(expected.to_dict()))
    safe = command("data", "split", facts, *AS_IT_STANDS, "--out", tmp_path / "safe", "--leak-safe").stdout
    assert "No test or validation fact has its inverse in train" in safe
    assert "--leak-safe" not in safe


def test_who_trains_is_told_of_a_file_and_of_a_split(facts: Path, tmp_path: Path) -> None:
    quick = ("--dim", "8", "--epochs", "1", "--every", "1", "--threads", "1")
    expected = find_leaks(split(both_ways(), undirected="none"))
    told = command("train", facts, *AS_IT_STANDS, "--out", tmp_path / "a", *quick)
    assert all(line in " ".join(told.stderr.split()) for line in expected.lines())
    command("data", "split", facts, *AS_IT_STANDS, "--out", tmp_path / "cut")
    given = command("train", tmp_path / "cut", *AS_IT_STANDS, "--out", tmp_path / "b", *quick, "--json", "--quiet")
    assert json.loads(given.stdout)["leaks"]["test"]["inverse"]["rows"] == expected.parts[0][1].inverse.rows > 0
    assert "inverse" not in given.stderr
    again = command("train", "--resume", tmp_path / "a", "--json", "--quiet")
    assert json.loads(again.stdout)["leaks"] is None
