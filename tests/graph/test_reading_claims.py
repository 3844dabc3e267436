"""Claims read from tables by column, kept beside facts, written and read back, and what an audit tells of sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ukge.errors import RunError
from ukge.graph.audit import audit
from ukge.graph.bad_rows import BadRows, Limit
from ukge.graph.catalogue import open_dataset, save_dataset
from ukge.graph.claims import Claims
from ukge.graph.readers import read, read_claims
from ukge.graph.writers.claims import write_claims
from ukge.runs.directory import Run
from ukge.runs.manifest import DataNote
from ukge.settings.config import Config

HEADER = "subject,predicate,object,score,extractor,date,doc,offset\n"
ROWS = (
    "cat,hunts,mouse,0.8,gpt,2026-01-01,a.html,3\n"
    'cat,hunts,"mouse",".6",spacy,2026-01-02,a.html,9\n'
    "dog,hunts,cat,9e-1,,,b.html,\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "claims.csv"
    path.write_text(HEADER + ROWS)
    return path


def test_columns_are_found_by_their_usual_names(file: Path) -> None:
    claims = read_claims(file)
    assert (len(claims), len(claims.facts)) == (3, 2)
    assert claims.facts.confidence.tolist() == [pytest.approx(0.7), 0.9]
    assert claims.fact.tolist() == [0, 0, 1]
    told = claims.table().to_pydict()
    assert told["time"] == ["2026-01-01", "2026-01-02", ""]
    assert told["document"] == ["a.html", "a.html", "b.html"]
    assert told["span"] == ["3", "9", ""]


def test_columns_without_a_header_follow_the_confidence(tmp_path: Path) -> None:
    path = tmp_path / "claims.tsv"
    path.write_text('a\tr\tb\t"0.9"\tgpt\t2026\n')
    claims = read_claims(path)
    assert claims.time is not None
    assert (claims.confidence.tolist(), claims.time.to_pylist(), claims.document) == ([0.9], ["2026"], None)


def test_what_stands_beside_a_bad_row_goes_with_it(file: Path) -> None:
    file.write_text(HEADER + "x,r,y,1.7,gpt,1999-01-01,x.html,1\n" + ROWS + ",r,y,0.7,gpt,1999-01-01,x.html,1\n")
    bad = BadRows()
    assert read_claims(file, bad_rows=bad).table().equals(read_claims_of(file.parent, HEADER + ROWS).table())
    assert bad.frame()["line"].tolist() == [2, 6]


def read_claims_of(folder: Path, text: str) -> Claims:
    (folder / "good.csv").write_text(text)
    return read_claims(folder / "good.csv")


@pytest.mark.parametrize("name", ["claims.parquet", "again.csv", "claims.tsv", "claims.jsonl"])
def test_written_claims_come_back(file: Path, tmp_path: Path, name: str) -> None:
    claims = read_claims(file)
    write_claims(claims, tmp_path / name)
    again = read_claims(tmp_path / name)
    columns = ["head", "relation", "tail", "confidence", "source", "document"]
    assert again.table().select(columns).to_pylist() == claims.table().select(columns).to_pylist()


def test_a_data_set_keeps_the_claims_of_its_file(file: Path, tmp_path: Path) -> None:
    dataset = open_dataset(file)
    assert dataset.claims is not None
    assert len(dataset.claims) == 3
    kept = open_dataset(save_dataset(dataset, tmp_path / "cut")).claims
    assert kept is not None
    assert kept.table().to_pylist() == dataset.claims.table().to_pylist()


def test_a_run_keeps_the_claims_of_its_facts_with_a_checksum(tmp_path: Path) -> None:
    rows = "".join(f"a{i % 7},r,b{i % 5},0.{1 + i % 9},who{i % 3},2026,d{i % 4},{i}\n" for i in range(90))
    (tmp_path / "claims.csv").write_text(HEADER + rows)
    dataset = open_dataset(tmp_path / "claims.csv")
    Run.create(tmp_path / "run", Config(), DataNote.of(dataset, "claims.csv"), dataset, None, model="ukge-n").publish()
    claims = Run.open(tmp_path / "run").claims()
    assert claims is not None
    assert claims.table().to_pylist() == read_claims(tmp_path / "claims.csv").table().to_pylist()
    (tmp_path / "run/data/claims.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"claims\.parquet is damaged"):
        Run.open(tmp_path / "run")


def test_facts_that_are_said_once_are_no_claims(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(
        "head,relation,tail,confidence,source\n" + "".join(f"a{i % 4},r,b{i % 5},0.5,web\n" for i in range(20))
    )
    assert open_dataset(path).claims is None


def test_an_audit_finds_who_copies_whom_and_not_who_says_the_same_always() -> None:
    draw = np.random.default_rng(0)
    facts = [f"fact {i}" for i in range(200)]
    own = {name: np.round(draw.random(200), 3) for name in ("one", "two")}
    copied = np.where(np.arange(200) < 190, own["one"], 0.5)
    said = {**own, "copy": copied, "sure": np.ones(200), "sure too": np.ones(200)}
    source = [name for name in said for _ in facts]
    confidence = np.concatenate(list(said.values()))
    found = audit(Claims.from_columns(facts * 5, ["r"] * 1000, ["o"] * 1000, confidence, source)).sources
    assert found is not None
    assert (found.count, found.claims, found.facts, found.contested) == (5, 1000, 200, 200)
    (copy,) = found.copies
    assert (copy.first, copy.second) == ("one", "copy")
    assert copy.same == pytest.approx(0.95, abs=0.01)
    one = next(each for each in found.each if each.name == "one")
    assert one.middle == pytest.approx(((own["one"] >= 0.4) & (own["one"] <= 0.6)).mean())
    others = (said["two"] + said["copy"] + 2) / 4
    assert one.gap == pytest.approx(np.abs(own["one"] - others).mean())


def test_limits_are_shares_or_numbers_of_rows() -> None:
    assert [Limit.of(text) for text in ("1%", 0.01, "0.01", "20", 20, "100 %")] == [
        *[Limit(share=0.01)] * 3,
        *[Limit(number=20)] * 2,
        Limit(share=1.0),
    ]
    assert Limit.of("1%").allows(10, 1000)
    assert not Limit.of("1%").allows(11, 1000)
    assert not Limit.of("0").allows(1, 1000)


def test_an_unclosed_quotation_mark_costs_one_row(tmp_path: Path) -> None:
    """It would swallow 500 rows, up to the next quotation mark."""
    path = tmp_path / "facts.csv"
    lines = [f"a{i},r,b,0.5\n" for i in range(600)]
    lines[100] = f'"{lines[100]}'
    path.write_text("".join(lines) + '"x\ny",r,b,0.5\n')
    bad = BadRows()
    graph = read(path, bad_rows=bad)
    assert len(graph) == 600
    assert graph[599].head == "x\ny"
    assert bad.frame()[["line", "reason"]].values.tolist() == [[101, "a quotation mark is never closed"]]
