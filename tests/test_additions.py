"""What is added to a finished run is known whole, answers everywhere alike, and is gone when it is undone."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kills.additions import add_all, batches_like, killed_until_all_is_added

import ukge
from ukge import UKGE, Predictor
from ukge.asking.drift import LAST, SHARE, due_after, refresh_due
from ukge.cli import run as command
from ukge.errors import ConfigError, DataError, InUseError, RunError
from ukge.evidence import Evidence
from ukge.evidence.storage import StoredParts
from ukge.evidence.tables import Tables
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.undirected import without_direction
from ukge.runs.directory import EVIDENCE, Run
from ukge.runs.journal import Addition, Drift, Journal
from ukge.storage.files import sha256
from ukge.storage.locks import alone

FEW: dict[str, Any] = {"iterations": 8, "expectation_trees": 8, "folds": 2, "rank_queries": 40}


def trained(path: Path, dataset: Dataset, **settings: Any) -> Path:
    few = {"dim": 4, "epochs": 2, "every": 1, "lr": 0.02, "batch_size": 256, "engine": "torch"}
    UKGE("ukge-rect", **{**few, **settings}).fit(dataset, out=path, rules="none", progress=False)
    return path


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=150, n_facts=900, seed=5).graph, val=0.12, test=0.08, seed=0, name="world")


@pytest.fixture(scope="module")
def made(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("additions")
    judged = trained(home / "judged", dataset)
    shutil.copytree(judged, home / "plain")
    Evidence.fit(judged, dataset, **FEW).save(judged)
    return home


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "judged", tmp_path / "run"))


@pytest.fixture
def plain(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "plain", tmp_path / "plain"))


def facts_of(dataset: Dataset) -> list[tuple[str, str, str, float]]:
    """A fact of each kind: a new tail, a new relation, a known fact with another confidence, a known fact as it is."""
    one, two = dataset.train[0], dataset.train[1]
    return [
        (one.head, one.relation, "somewhere new", 0.8),
        ("somebody new", "is new to", two.tail, 0.6),
        (one.head, one.relation, one.tail, 0.123),
        (two.head, two.relation, two.tail, two.confidence),
    ]


def stored(opened: Predictor, *fact: str) -> float:
    ids = (
        np.array([vocabulary.id(name)])
        for vocabulary, name in zip((opened.entities, opened.relations, opened.entities), fact, strict=True)
    )
    return float(opened.known.stored(*ids)[0])


def trained_files(path: Path) -> dict[str, str]:
    files = [file for file in path.rglob("*") if file.is_file() and "added" not in file.parts]
    return {str(file.relative_to(path)): sha256(file) for file in files}


def test_what_is_added_is_known_and_undone_it_is_gone(run: Path, dataset: Dataset) -> None:
    before, opened = trained_files(run), Predictor.open(run)
    asked = dataset.test
    said = opened.predict(asked)
    new = facts_of(dataset)
    added = opened.add(new, source="by hand", who="a test")
    counts = added.facts, added.updated, added.repeated, added.entities, added.relations
    assert (added.number, *counts) == (1, 2, 1, 1, 2, 1)
    for each in (opened, Predictor.open(run)):
        assert [stored(each, *fact[:3]) for fact in new] == pytest.approx([fact[3] for fact in new])
        assert len(each.known) == len(FactIndex(dataset.whole())) + 2
        assert each.predict(asked) == pytest.approx(opened.predict(asked), abs=0)
        assert each.rank("somebody new", "is new to", k=3)
        assert each.explain(*new[0][:3]).observed == 0.8
    assert trained_files(run) == before, "what was trained stays as it is"
    second = ukge.add(run, [("somebody new", "is new to", "somewhere new", 0.4)])
    assert (second.number, second.entities, second.relations) == (2, 0, 0)
    (undone,) = ukge.undo(run)
    assert undone.number == 2
    np.testing.assert_array_equal(Predictor.open(run).predict(asked), opened.predict(asked))
    assert [each.number for each in ukge.undo(run, None)] == [1]
    again = Predictor.open(run)
    np.testing.assert_array_equal(again.predict(asked), said)
    assert again.added is None
    assert "somebody new" not in again.entities
    with pytest.raises(RunError, match="nothing is added"):
        ukge.undo(run)
    assert ukge.add(run, new).number == 5, "a number never means two things"


def test_a_run_with_additions_reads_as_one_that_had_the_facts(run: Path, dataset: Dataset) -> None:
    """Sums, index and data set are those of a graph that is made of all facts at once."""
    new = facts_of(dataset)
    ukge.add(run, new[:2])
    ukge.add(run, new[2:])
    opened = Predictor.open(run)
    features = opened.fitted.features
    fresh = Tables.of(features.index)
    for name in ("by_relation", "by_head_relation", "by_relation_tail", "by_head", "by_tail"):
        for part in ("key", "count", "total", "squares"):
            kept = getattr(getattr(features.tables, name), part)
            np.testing.assert_array_equal(kept, getattr(getattr(fresh, name), part), err_msg=f"{name}.{part}")
    np.testing.assert_array_equal(features.tables.implications.sums, fresh.implications.sums)
    expected = {tuple(fact)[:3]: fact.confidence for fact in dataset.train} | {f[:3]: f[3] for f in new}
    assert {tuple(fact)[:3]: fact.confidence for fact in opened.dataset.train} == pytest.approx(expected)
    (run / "added" / "sums.safetensors").unlink()
    asked = dataset.test
    np.testing.assert_array_equal(Predictor.open(run).predict(asked), opened.predict(asked), "sums are made anew")
    learnt = UKGE.load(run)
    assert learnt.predict([new[1][:3]])[0] == pytest.approx(opened.model.confidence(*_ids(opened, new[1]))[0])


def _ids(opened: Predictor, fact: tuple[str, str, str, float]) -> list[Any]:
    names = opened.entities, opened.relations, opened.entities
    return [np.array([vocabulary.id(name)]) for vocabulary, name in zip(names, fact[:3], strict=True)]


def test_a_held_out_fact_that_is_told_judges_no_more(run: Path, dataset: Dataset) -> None:
    told = [(fact.head, fact.relation, fact.tail, 0.111) for fact in (dataset.test[0], dataset.val[0])]
    assert ukge.add(run, told).held_out == 2
    opened = Predictor.open(run)
    assert (len(opened.dataset.test), len(opened.dataset.val)) == (len(dataset.test) - 1, len(dataset.val) - 1)
    assert stored(opened, *told[0][:3]) == 0.111
    ukge.undo(run)
    assert Predictor.open(run).dataset.test == dataset.test


def test_the_last_word_on_a_fact_counts_and_undone_the_one_before(plain: Path, dataset: Dataset) -> None:
    first = dataset.train[0]
    fact = first.head, first.relation, first.tail
    for confidence in (0.1, 0.2):
        ukge.add(plain, [(*fact, confidence)])
    assert stored(Predictor.open(plain), *fact) == 0.2
    ukge.undo(plain)
    assert stored(Predictor.open(plain), *fact) == 0.1
    ukge.undo(plain)
    assert stored(Predictor.open(plain), *fact) == dataset.train[0].confidence


def test_what_was_fitted_to_few_facts_is_fitted_again_when_more_come(plain: Path, dataset: Dataset) -> None:
    model = Predictor.open(plain).model
    relation = dataset.train[0].relation
    true = dataset.train.entities.id(dataset.train[0].head)
    tails = np.arange(40)
    wanted = model.confidence(np.full(40, true), np.full(40, dataset.relations.id(relation)), tails)
    rows = [
        ("twin", relation, dataset.entities[int(at)], float(np.clip(c, 0, 1)))
        for at, c in zip(tails, wanted, strict=True)
    ]
    asked = [row[:3] for row in rows[20:]]
    errors = []
    for part in (rows[:2], rows[2:20]):
        ukge.add(plain, part)
        errors.append(float(np.mean((UKGE.load(plain).predict(asked) - wanted[20:]) ** 2)))
    assert errors[1] < errors[0]
    ukge.undo(plain)
    assert float(np.mean((UKGE.load(plain).predict(asked) - wanted[20:]) ** 2)) == pytest.approx(errors[0])


def test_relations_without_a_direction_keep_their_rule(tmp_path: Path) -> None:
    graph = generate(n_entities=100, n_facts=400, seed=2).graph
    relation = graph.relations[0]
    whole = without_direction(graph, [relation])
    path = trained(tmp_path / "run", split(whole, val=0.1, seed=0, undirected="auto"))
    ukge.add(path, [("zz", relation, "aa", 0.7)])
    ukge.add(path, [("aa", relation, "zz", 0.9)])
    opened = Predictor.open(path)
    assert stored(opened, "zz", relation, "aa") == stored(opened, "aa", relation, "zz") == 0.9
    assert opened.predict([("zz", relation, "aa")]) == opened.predict([("aa", relation, "zz")])


def test_the_same_name_is_one_addition(plain: Path, dataset: Dataset) -> None:
    new = facts_of(dataset)
    first = ukge.add(plain, new, id="monday")
    assert ukge.add(plain, new, id="monday") == first
    with pytest.raises(DataError, match=r"other facts were added .* as 'monday'"):
        ukge.add(plain, new[:1], id="monday")
    assert len(Journal(plain).events) == 1
    assert ukge.add(plain, new).number == 0, "nothing is new"
    assert len(Journal(plain).events) == 1


def test_a_fault_adds_nothing(plain: Path, run: Path, dataset: Dataset) -> None:
    for wrong in ([("a", "r", "b", 1.5)], [("a", "r", "b", 0.5), (" ", "r", "b", 0.5)], [("a", "r", "b")], []):
        with pytest.raises(DataError):
            ukge.add(plain, wrong)
    misspelt: dict[str, Any] = {"surce": "x"}
    with pytest.raises(ConfigError, match="no keyword 'surce'"):
        ukge.add(plain, [("a", "r", "b", 0.5)], **misspelt)
    assert not (plain / "added").exists()
    opened = Predictor(lambda: dataset, evidence=Evidence.load(run))
    with pytest.raises(RunError, match="in memory"):
        opened.add([("a", "r", "b", 0.5)])
    with pytest.raises(RunError, match="not a run directory"):
        ukge.add(run / EVIDENCE, [("a", "r", "b", 0.5)])


def test_who_comes_second_is_told(plain: Path) -> None:
    def add(place: Path, told: Any) -> None:
        try:
            ukge.add(place, [("a", "r", "b", 0.5)])
        except InUseError as error:
            told.put(str(error))

    context = multiprocessing.get_context("fork")
    told: Any = context.Queue()
    with alone(plain):
        other = context.Process(target=add, args=(plain, told))
        other.start()
        other.join()
    assert "is in use by process" in told.get(timeout=60)
    assert not (plain / "added").exists()


def test_damage_is_an_error_that_names_the_file(run: Path, dataset: Dataset) -> None:
    ukge.add(run, facts_of(dataset))
    folder = run / "added"
    for name in ("000001.parquet", "000001.safetensors", "journal.jsonl"):
        content = (folder / name).read_bytes()
        middle = len(content) // 2
        (folder / name).write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(RunError, match=name):
            Predictor.open(run).predict([tuple(dataset.train[0])[:3]])
        with pytest.raises(RunError, match=name):
            Run.open(run)
        (folder / name).write_bytes(content)
    (folder / "000001.parquet").unlink()
    with pytest.raises(RunError, match=r"000001\.parquet is missing"):
        Run.open(run)


def test_what_rests_on_the_training_alone_is_refused(run: Path, dataset: Dataset) -> None:
    ukge.add(run, facts_of(dataset))
    with pytest.raises(RunError, match="an addition that its training has not seen"):
        Evidence.fit(run, Run.open(run).dataset(), **FEW)
    with pytest.raises(RunError, match="ukge refresh"):
        Evidence.load(run).save(run)
    with pytest.raises(RunError, match="has not seen"):
        UKGE.resume(run, progress=False)
    assert StoredParts(run / EVIDENCE, added=False).dataset.train == dataset.train


def test_a_refresh_trains_on_with_what_was_added(run: Path, dataset: Dataset) -> None:
    with pytest.raises(RunError, match="nothing is added"):
        ukge.refresh(run, progress=False)
    new = facts_of(dataset)
    ukge.add(run, new)
    (run / "labels").mkdir()
    (run / "labels" / "anna.jsonl").write_text("a label", encoding="utf-8")
    before = Predictor.open(run)
    weights = before.models["run"].parameters
    found = ukge.refresh(run, epochs=3, progress=False)
    after = Predictor.open(run)
    assert (found.additions, found.facts, found.entities, found.relations, found.epochs) == (1, 3, 2, 1, 3)
    assert after.added is None
    assert (run / "labels" / "anna.jsonl").read_text(encoding="utf-8") == "a label", "what others keep there stays"
    assert list(after.names) == list(before.names)
    assert after.dataset.train == before.dataset.train
    assert (after.dataset.val, after.dataset.test) == (dataset.val, dataset.test)
    moved = after.models["run"].parameters
    assert np.abs(moved.entity - weights.entity).max() < np.abs(weights.entity).max(), "it began with what was there"
    assert not np.array_equal(moved.entity[-1], weights.entity[-1]), "and new rows learnt on"
    assert found.figures.after == pytest.approx(Run.open(run).manifest()["result"]["best"])
    gap = np.abs(after.predict(dataset.train) - before.predict(dataset.train))
    assert found.change == pytest.approx(gap.mean(), rel=0.2)
    assert found.facts_moved[0].before != found.facts_moved[0].after
    with pytest.raises(RunError, match="nothing is added"):
        ukge.undo(run)


def test_a_refresh_is_due_after_many_facts_or_a_greater_error() -> None:
    def one(**drift: Any) -> Addition:
        return Addition(1, "", "", "", "", "", 500, drift=Drift(**drift))

    calm = {"before": 0.011, "usual": 0.01, "judged": LAST, "share": SHARE / 2}
    assert due_after([], SHARE) is None
    assert due_after([one(**calm)], SHARE) is None
    assert "facts were added as were trained on" in str(due_after([one(**{**calm, "share": 2 * SHARE})], SHARE))
    assert "errs more" in str(due_after([one(**{**calm, "before": 0.05})], SHARE))
    assert due_after([one(**{**calm, "before": 0.05}), one(**calm)], SHARE) is None, "the last facts count"
    assert due_after([one(**{**calm, "before": 0.9, "judged": 10})], SHARE) is None, "ten facts are too few to tell"
    assert refresh_due(Path("nowhere")) is None


def test_the_command_line(run: Path, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new.tsv"
    file.write_text("".join("\t".join(map(str, fact)) + "\n" for fact in facts_of(dataset)), encoding="utf-8")
    assert command(["add", str(run), str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["number"], told["facts"], told["source"]) == (1, 2, str(file))
    assert command(["add", str(run)]) == 0
    assert "new.tsv" in capsys.readouterr().out.replace("\n", "")
    assert command(["add", str(run), str(file)]) == 0
    assert "nothing is new" in capsys.readouterr().out
    assert command(["evaluate", str(run), "--replicates", "0"]) == 0
    assert "3 facts were added" in capsys.readouterr().err
    assert command(["undo", str(run), "--steps", "2"]) == 2
    assert "--all" in capsys.readouterr().err
    assert command(["undo", str(run), "--all"]) == 0
    assert "undone: addition 1" in capsys.readouterr().out
    file.write_text("a\tr\tb\t0.5\na\tr\tc\tmuch\n", encoding="utf-8")
    assert command(["add", str(run), str(file)]) == 2
    assert "line 2, column confidence" in capsys.readouterr().err
    assert command(["add", str(run), str(file), "--bad-rows", str(tmp_path / "bad.tsv")]) == 0
    assert "1 fact new" in capsys.readouterr().out


def test_additions_that_are_killed_lose_nothing(plain: Path, dataset: Dataset) -> None:
    """The long form is `make kills`: a hundred additions of 500 facts each."""
    batches = batches_like(dataset.train, 12, 20)
    began = time.monotonic()
    add_all(Path(shutil.copytree(plain, plain.with_name("timed"))), batches[:4])
    kills = killed_until_all_is_added(plain, batches, seed=1, most=2 * (time.monotonic() - began))
    assert kills
    opened = Predictor.open(plain)
    assert [stored(opened, *fact[:3]) for batch in batches for fact in batch] == [
        fact[3] for batch in batches for fact in batch
    ]
    assert not list((plain / "added").glob(".*"))
