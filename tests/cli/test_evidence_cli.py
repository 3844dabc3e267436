"""`ukge explain`, `complete`, `doubt`, `predict` and `fuse` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import answered, refused

from ukge.errors import ConfigError, DataError, RunError
from ukge.estimator import UKGE
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.readers import read


def _tsv(path: Path, rows: list[tuple[object, ...]]) -> Path:
    path.write_text("".join("\t".join(str(cell) for cell in row) + "\n" for row in rows), encoding="utf-8")
    return path


def _table(path: Path) -> pa.Table:
    return pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter="\t", quote_char=False))


def test_explain_tells_sentences_and_json(home: Path, dataset: Dataset) -> None:
    fact = dataset.val[0][:3]
    told = json.loads(answered("explain", home / "run", *fact, "--json").stdout)
    total = told["base"] + sum(reason["contribution"] for reason in told["reasons"])
    assert total == pytest.approx(told["confidence"], abs=1e-9)
    assert f"confidence {told['confidence']:.2f}" in answered("explain", home / "run", *fact).stdout
    assert isinstance(refused("explain", home / "run", "nobody", *fact[1:]), DataError)
    assert "evidence fit" in str(refused("explain", home / "plain", *fact))


def test_complete_prints_or_writes_unseen_facts(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    options = ["--min-confidence", "0.05", "-k", "7", "--relation", dataset.relations[0]]
    found = json.loads(answered("complete", home / "run", *options, "--json").stdout)
    known = {fact[:3] for fact in dataset.train}
    assert 0 < len(found) <= 7
    assert not {(each["head"], each["relation"], each["tail"]) for each in found} & known
    lines = answered("complete", home / "run", *options).stdout.splitlines()
    assert [line.split("\t")[1] for line in lines] == [each["head"] for each in found]
    answered("complete", home / "run", *options, "--out", tmp_path / "new.parquet")
    assert [fact.confidence for fact in read(tmp_path / "new.parquet")] == [each["confidence"] for each in found]
    without = answered("complete", home / "run", *options, "--exclude", tmp_path / "new.parquet", "--json").stdout
    again = {(each["head"], each["tail"]) for each in json.loads(without)}
    assert not again & {(each["head"], each["tail"]) for each in found}
    assert isinstance(refused("complete", home / "run", "--min-confidence", "7"), ConfigError)


def test_doubt_lists_observed_facts(
    home: Path, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ukge.evidence.doubt.PARTS", 3)
    found = json.loads(answered("doubt", home / "run", "-k", "5", "--json").stdout)
    known = {fact[:4] for fact in dataset.train}
    assert len(found) == 5
    assert all((each["head"], each["relation"], each["tail"], each["stored"]) in known for each in found)
    answered("doubt", home / "run", "-k", "5", "--out", tmp_path / "doubt.parquet")
    assert pq.read_table(tmp_path / "doubt.parquet")["head"].to_pylist() == [each["head"] for each in found]


@pytest.mark.parametrize("ending", ["tsv", "parquet"])
def test_predict_judges_every_row(home: Path, dataset: Dataset, tmp_path: Path, ending: str) -> None:
    asked = dataset.val[:6]
    file = tmp_path / f"asked.{ending}"
    if ending == "tsv":
        _tsv(file, [fact[:3] for fact in asked])
    else:
        pq.write_table(asked.facts(), file)
    answered("predict", home / "run", file, "--out", tmp_path / f"told.{ending}")
    told = _table(tmp_path / "told.tsv") if ending == "tsv" else pq.read_table(tmp_path / "told.parquet")
    evidence = Evidence.load(home / "run")
    assert told["head"].to_pylist() == [fact.head for fact in asked]
    assert told["confidence"].to_pylist() == pytest.approx(evidence.predict(asked).tolist())
    assert told["low"].to_pylist() == pytest.approx(evidence.interval(asked)[0].tolist())
    assert all(reason.endswith(".") for reason in told["reason"].to_pylist())
    assert ("given" in told.column_names) == (ending == "parquet")


def test_predict_without_evidence_asks_the_model(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    file = _tsv(tmp_path / "asked.tsv", [("head", "relation", "tail"), *(fact[:3] for fact in dataset.val[:4])])
    answered("predict", home / "plain", file, "--out", tmp_path / "told.tsv")
    told = _table(tmp_path / "told.tsv")
    assert told.column_names == ["head", "relation", "tail", "confidence"]
    expected = UKGE.load(home / "plain").predict(dataset.val[:4])
    assert told["confidence"].to_pylist() == pytest.approx(expected.tolist())
    new = _tsv(tmp_path / "new.tsv", [("x", *dataset.val[0][1:3], 0.5)])
    error = refused("predict", home / "plain", file, "--out", tmp_path / "t.tsv", "--with", new)
    assert isinstance(error, RunError)


def test_predict_says_that_a_model_for_ranking_has_no_confidences(dataset: Dataset, tmp_path: Path) -> None:
    UKGE("complex-all", dim=4, epochs=1, every=1, batch_size=256).fit(dataset, out=tmp_path / "run")
    file = _tsv(tmp_path / "asked.tsv", [fact[:3] for fact in dataset.val[:4]])
    told = " ".join(answered("predict", tmp_path / "run", file, "--out", tmp_path / "told.tsv").output.split())
    assert "complex-all learnt an order, not confidences (softmax loss)" in told


def test_predict_takes_in_new_entities_first(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    _, relation, tail, *_ = dataset.val[0]
    asked = _tsv(tmp_path / "asked.tsv", [(dataset.entities[0], relation, tail), ("stranger", relation, tail)])
    error = refused("predict", home / "run", asked, "--out", tmp_path / "told.tsv")
    assert "line 2, column head: unknown entity (found 'stranger')" in str(error)
    assert not (tmp_path / "told.tsv").exists()
    new = _tsv(tmp_path / "new.tsv", [("stranger", relation, dataset.val[1].tail, 0.9)])
    answered("predict", home / "run", asked, "--out", tmp_path / "told.tsv", "--with", new, "--no-reasons")
    assert len(_table(tmp_path / "told.tsv")) == 2


def test_fuse_joins_two_opinions(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    facts = [fact[:3] for fact in dataset.val]
    rows = [(*fact, 0.9 if at % 2 else 0.2) for at, fact in enumerate(facts)]
    file = _tsv(tmp_path / "candidates.tsv", [*rows[:5], ("stranger", *facts[0][1:], 0.4)])
    answered("fuse", home / "run", file, "--out", tmp_path / "fused.parquet")
    told = pq.read_table(tmp_path / "fused.parquet")
    graph = Evidence.load(home / "run").predict(facts[:5], leave_out=True)
    assert told["graph"].to_pylist() == [*pytest.approx(graph.tolist()).expected, None]
    odds = graph[0] / (1 - graph[0]) * 0.2 / 0.8
    assert told["confidence"][0].as_py() == pytest.approx(odds / (1 + odds))
    assert told["confidence"][5].as_py() == pytest.approx(0.4)
    labelled = _tsv(
        tmp_path / "labelled.tsv", [("h", "r", "t", "score", "label"), *((*row, int(row[3] > 0.5)) for row in rows)]
    )
    answered("fuse", home / "run", file, "--labelled", labelled, "--out", tmp_path / "learnt.parquet")
    learnt = pq.read_table(tmp_path / "learnt.parquet")["confidence"].to_pylist()
    assert min(learnt[1], learnt[3]) > max(learnt[0], learnt[2], learnt[4])
    error = refused("fuse", home / "run", file, "--labelled", file, "--out", tmp_path / "x.parquet")
    assert "no column for the label" in str(error)


def test_files_that_are_no_facts_arerefused(home: Path, tmp_path: Path) -> None:
    for name, text, wrong in (
        ("two.tsv", "a\tb\n", "no column for the tail"),
        ("hole.tsv", "a\t\tb\n", "line 1, column relation: the name is missing"),
        ("high.tsv", "a\tb\tc\t7\n", "line 1, column confidence: a confidence is a number from 0 to 1 (found '7')"),
        ("odd.xyz", "a\tb\tc\n", "is not read"),
        ("bad.parquet", "no parquet", "no readable Parquet"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        error = refused("predict", home / "run", tmp_path / name, "--out", tmp_path / "told.tsv")
        assert isinstance(error, DataError), name
        assert wrong in str(error)
