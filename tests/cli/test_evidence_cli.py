"""`ukge explain`, `complete`, `doubt`, `predict` and `fuse` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import answered, on_a_terminal, refused
from typer.testing import Result

from ukge.errors import DataError, RunError
from ukge.evidence import Evidence
from ukge.evidence.explain import top_reasons
from ukge.graph.dataset import Dataset
from ukge.graph.files import open_text
from ukge.graph.readers import read
from ukge.learning.estimator import UKGE


def _tsv(path: Path, rows: list[tuple[object, ...]]) -> Path:
    path.write_text("".join("\t".join(str(cell) for cell in row) + "\n" for row in rows), encoding="utf-8")
    return path


def _table(path: Path) -> pa.Table:
    return pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter="\t", quote_char=False))


def _table_of(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_explain_tells_sentences_and_json(home: Path, dataset: Dataset) -> None:
    fact = dataset.val[0][:3]
    told = json.loads(answered("explain", home / "run", *fact, "--json").stdout)
    total = told["base"] + sum(reason["contribution"] for reason in told["reasons"])
    assert total == pytest.approx(told["confidence"], abs=1e-9)
    assert f"confidence {told['confidence']:.2f}" in answered("explain", home / "run", *fact).stdout
    assert isinstance(refused("explain", home / "run", "nobody", *fact[1:]), DataError)
    plain = json.loads(answered("explain", home / "plain", *fact, "--json").stdout)
    assert (plain["base"], {reason["contribution"] for reason in plain["reasons"]}) == (None, {None})


def test_complete_prints_or_writes_unseen_facts(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    options = ["--min-confidence", "0.05", "-k", "7", "--relation", dataset.relations[0]]
    found = json.loads(answered("complete", home / "run", *options, "--json").stdout)
    known = {fact[:3] for fact in dataset.train}
    assert 0 < len(found) <= 7
    assert not {(each["head"], each["relation"], each["tail"]) for each in found} & known
    triples = [(each["head"], each["relation"], each["tail"]) for each in found]
    evidence = Evidence.load(home / "run")
    assert [each["low"] for each in found] == pytest.approx(evidence.interval(triples)[0].tolist())
    assert [each["reason"] for each in found] == [each.sentence for each in top_reasons(evidence, triples)]
    header, *lines = answered("complete", home / "run", *options).stdout.splitlines()
    assert header == "head\trelation\ttail\tconfidence\tlow\thigh\treason"
    assert [line.split("\t")[0] for line in lines] == [each["head"] for each in found]
    shown = on_a_terminal("complete", home / "run", *options)
    assert max(map(len, shown.splitlines())) <= 80
    assert " — ".join(triples[0]) in " ".join(shown.split())
    answered("complete", home / "run", *options, "--out", tmp_path / "new.parquet")
    assert [fact.confidence for fact in read(tmp_path / "new.parquet")] == [each["confidence"] for each in found]
    without = answered("complete", home / "run", *options, "--exclude", tmp_path / "new.parquet", "--json").stdout
    again = {(each["head"], each["tail"]) for each in json.loads(without)}
    assert not again & {(each["head"], each["tail"]) for each in found}
    answered("complete", home / "run", *options, "--out", tmp_path / "new.graphml")
    assert [fact[:3] for fact in read(tmp_path / "new.graphml")] == triples
    assert isinstance(refused("complete", home / "run", "--out", tmp_path / "new.xyz"), DataError)


@pytest.mark.parametrize("end", ["head", "tail"])
def test_complete_tells_of_the_entities_asked_for(home: Path, dataset: Dataset, end: str) -> None:
    asked = ["complete", home / "run", "--min-confidence", "0", "-k", "1000", "--no-reasons", "--json"]
    names = [getattr(fact, end) for fact in dataset.train[:2]]
    found = json.loads(answered(*asked, f"--{end}", names[0], f"--{end}", names[1]).stdout)
    assert {each[end] for each in found} == set(names)
    other = "tail" if end == "head" else "head"
    both = json.loads(answered(*asked, f"--{end}", names[0], f"--{other}", found[0][other]).stdout)
    assert {(each[end], each[other]) for each in both} <= {(names[0], found[0][other])}
    assert "unknown entity" in str(refused(*asked, f"--{end}", "nobody"))
    sure = answered("complete", home / "run", f"--{end}", names[0], "--min-confidence", "1")
    assert "--any-entity looks further" in sure.stderr
    assert sure.stdout.count("\n") == 1, "a line of column names and no facts"
    shown = on_a_terminal("complete", home / "run", f"--{end}", names[0], "--min-confidence", "1")
    assert shown == "", "a person is told so, and sees no line of column names"


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
    if ending == "parquet":  # its own confidences are kept beside ours
        assert told["given_confidence"].to_pylist() == [fact.confidence for fact in asked]


def test_predict_without_evidence_asks_the_model(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    file = _tsv(tmp_path / "asked.tsv", [("head", "relation", "tail"), *(fact[:3] for fact in dataset.val[:4])])
    answered("predict", home / "plain", file, "--out", tmp_path / "told.tsv")
    told = _table(tmp_path / "told.tsv")
    assert told.column_names == ["head", "relation", "tail", "confidence", "low", "high", "note"]
    expected = UKGE.load(home / "plain").predict(dataset.val[:4])
    assert told["confidence"].to_pylist() == pytest.approx(expected.tolist())
    new = _tsv(tmp_path / "new.tsv", [("x", *dataset.val[0][1:3], 0.5)])
    error = refused("predict", home / "plain", file, "--out", tmp_path / "t.tsv", "--with", new)
    assert isinstance(error, RunError)


def test_predict_says_that_a_model_for_ranking_has_no_confidences(dataset: Dataset, tmp_path: Path) -> None:
    UKGE("complex-all", dim=4, epochs=1, every=1, batch_size=256).fit(dataset, out=tmp_path / "run")
    file = _tsv(tmp_path / "asked.tsv", [fact[:3] for fact in dataset.val[:4]])
    told = " ".join(answered("predict", tmp_path / "run", file, "--out", tmp_path / "told.tsv").output.split())
    assert "run learnt an order, not confidences (softmax loss)" in told


def test_predict_takes_in_new_entities_first(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    _, relation, tail, *_ = dataset.val[0]
    asked = _tsv(tmp_path / "asked.tsv", [(dataset.entities[0], relation, tail), ("stranger", relation, tail)])
    assert _table_of(answered("predict", home / "run", asked))[1]["confidence"] == ""
    new = _tsv(tmp_path / "new.tsv", [("stranger", relation, dataset.val[1].tail, 0.9)])
    answered("predict", home / "run", asked, "--out", tmp_path / "told.tsv", "--with", new, "--no-reasons")
    assert _table(tmp_path / "told.tsv")["confidence"].null_count == 0


def test_predict_keeps_columns_and_answers_rows_that_it_does_not_know(
    home: Path, dataset: Dataset, tmp_path: Path
) -> None:
    head, relation, tail, *_ = dataset.val[0]
    rows = [
        {"id": 7, "s": head, "p": relation, "o": tail, "note": "mine", "tags": ["a", {"b": 1}]},
        {"id": "8a", "s": head[:-1], "p": relation, "o": tail},
        {"id": None, "s": head, "p": "no such", "o": "nobody at all", "score": 0.25},
    ]
    file = tmp_path / "asked.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = answered("predict", home / "run", file, "--out", tmp_path / "told.jsonl.gz")
    assert "2 of 3 rows have names that the run does not know" in result.stderr
    with open_text(tmp_path / "told.jsonl.gz") as text:
        told = [json.loads(line) for line in text]
    assert told[0]["confidence"] == pytest.approx(Evidence.load(home / "run").predict([(head, relation, tail)])[0])
    assert told[0]["note"] is None
    assert told[0]["given_note"] == "mine"
    assert told[0]["tags"] == ["a", {"b": 1}] or json.loads(told[0]["tags"]) == ["a", {"b": 1}]
    assert [row["id"] for row in told] == ["7", "8a", None]
    assert told[1]["confidence"] is told[1]["low"] is told[1]["reason"] is None
    assert told[1]["note"].startswith(f"unknown entity {head[:-1]!r}; near: {head!r}")
    assert "unknown relation 'no such'" in told[2]["note"]
    assert "unknown entity 'nobody at all'" in told[2]["note"]
    assert told[2]["score"] == 0.25
    for ending in ("tsv", "csv", "parquet"):
        answered("predict", home / "run", file, "--out", tmp_path / f"told.{ending}")
    shown = on_a_terminal("predict", home / "run", file)
    assert f"unknown entity {head[:-1]!r}" in " ".join(shown.split())


def test_predict_of_a_file_of_another_graph_is_an_error(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    relation, tail = dataset.val[0][1:3]
    asked = _tsv(tmp_path / "asked.tsv", [("x", relation, tail), (), ("stranger", relation, tail)])
    for run in ("run", "plain"):
        error = refused("predict", home / run, asked, "--out", tmp_path / "told.tsv")
        assert "not one row has names that the run knows" in str(error)
        assert "line 3, column head: unknown entity (found 'stranger')" in str(error)
    assert not (tmp_path / "told.tsv").exists()


def test_predict_and_fuse_read_standard_input(home: Path, dataset: Dataset) -> None:
    facts = [fact[:3] for fact in dataset.val[:3]]
    lines = "".join(json.dumps([*fact, "0.5"]) + "\n" for fact in facts)
    flags = ("--format", "jsonl", "--json")
    told = json.loads(answered("predict", home / "run", "-", *flags, given=lines).stdout)
    assert [(row["head"], row["relation"], row["tail"]) for row in told] == facts
    assert [row["column_3"] for row in told] == ["0.5"] * 3
    fused = json.loads(answered("fuse", home / "run", "-", *flags, given=lines).stdout)
    assert [row["extractor"] for row in fused] == [0.5] * 3
    assert "standard input" in str(refused("predict", home / "run", "-"))
    broken = str(refused("fuse", home / "run", "-", "--format", "tsv", given="a\tb\tc\t7\n"))
    assert broken.startswith("standard input: ")
    assert "line 1, column confidence" in broken


def test_fuse_joins_two_opinions(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    facts = [fact[:3] for fact in dataset.val]
    rows = [(*fact, 0.9 if at % 2 else 0.2) for at, fact in enumerate(facts)]
    file = _tsv(tmp_path / "candidates.tsv", [*rows[:5], ("stranger", *facts[0][1:], 0.4)])
    answered("fuse", home / "run", file, "--out", tmp_path / "fused.parquet")
    told = pq.read_table(tmp_path / "fused.parquet")
    graph = Evidence.load(home / "run").predict(facts[:5])
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
    assert "4 columns instead of 5 or more" in str(error)


def test_files_that_are_no_facts_are_refused(home: Path, tmp_path: Path) -> None:
    for name, text, wrong in (
        ("two.tsv", "a\tb\n", "2 columns instead of 4 or more"),
        ("named.tsv", "head\tscore\tx\ty\na\t1\tc\td\n", "line 1, column confidence"),
        ("hole.tsv", "a\t\tb\t1\n", "line 1, column relation: relation name is empty"),
        ("high.tsv", "\na\tb\tc\t7\n", "line 2, column confidence: confidence is outside [0, 1] (found '7')"),
        ("text.jsonl", '["a", "b", "c", "high"]\n', "line 1, column confidence: confidence is not a number"),
        ("odd.xyz", "a\tb\tc\n", "'.xyz' says no format"),
        ("bad.parquet", "no parquet", "no readable Parquet"),
        ("header.csv", "head,relation,tail,score\n", "holds no facts"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        error = refused("fuse", home / "run", tmp_path / name, "--out", tmp_path / "told.tsv")
        assert isinstance(error, DataError), name
        assert wrong in str(error)


def test_links_that_are_asked_together_tell_what_they_are(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    facts, train = list(dataset.test)[:60], list(dataset.train)
    others = [
        (fact.head, dataset.relations[(at * 7) % len(dataset.relations)], fact.tail) for at, fact in enumerate(train)
    ]
    asked = _tsv(tmp_path / "asked.tsv", [*((f.head, f.relation, f.tail) for f in facts), *others[:240]])
    found = answered("predict", home / "run", asked, "--prior", "auto", "--out", tmp_path / "out.tsv")
    assert re.search(
        r"judged together, of the 300 links about \d+ hold \(\d+\.\d%\); the false ones are like", found.stderr
    )
    assert "other-relation" in found.stderr
    told = answered("predict", home / "run", asked, "--prior", "0.2", "--negatives", "other-relation", "--json")
    plain = answered("predict", home / "run", asked, "--json")
    mean = [sum(row["confidence"] for row in json.loads(each.stdout)) / 300 for each in (told, plain)]
    assert mean[0] != pytest.approx(mean[1])
    few = _tsv(tmp_path / "few.tsv", [(f.head, f.relation, f.tail) for f in facts])
    assert "too few to tell" in str(refused("predict", home / "run", few, "--prior", "auto"))
    assert "no evidence" in str(refused("predict", home / "plain", few, "--negatives", "degree"))
    assert "--negatives" in str(answered("rank", "--help").stdout)
