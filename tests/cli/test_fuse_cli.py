"""`ukge fuse CLAIMS` and `ukge calibrate` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from tests.cli.asking import answered, refused

from ukge.errors import ConfigError, DataError
from ukge.graph.synthetic import ClaimedWorld, generate_claims
from ukge.graph.writers.tables import write_table


@pytest.fixture(scope="module")
def made() -> ClaimedWorld:
    return generate_claims(3_000, seed=4)


@pytest.fixture(scope="module")
def claims(made: ClaimedWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with claims.tsv and labels.tsv."""
    home = tmp_path_factory.mktemp("claims")
    write_table(home / "claims.tsv", made.claims.table())
    write_table(home / "labels.tsv", made.truth()[:150])
    return home


def table(path: Path) -> pa.Table:
    return pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter="\t", quote_char=False))


def test_rows_keep_their_order_and_other_columns(claims: Path, tmp_path: Path) -> None:
    told = answered("fuse", claims / "claims.tsv", "--out", tmp_path / "fused.tsv", "--report", tmp_path / "r.json")
    given, fused = table(claims / "claims.tsv"), table(tmp_path / "fused.tsv")
    assert fused.column_names == ["head", "relation", "tail", "confidence", "extractor", "source", "time", "document"]
    for name in ("head", "relation", "tail", "source", "document"):
        assert fused[name].to_pylist() == given[name].to_pylist()
    assert fused["extractor"].to_pylist() == given["confidence"].to_pylist()
    assert "17 sources" in " ".join(told.stderr.split())
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["scores"] is None
    assert {each["source"] for each in report["sources"]} == set(given["source"].to_pylist())
    assert all(each["low"] <= each["holds"] <= each["high"] for each in report["sources"])


def test_labels_are_learnt_from_and_the_gain_is_told(claims: Path, tmp_path: Path) -> None:
    kept, out = tmp_path / "fusion.json", tmp_path / "facts.jsonl"
    asked = ["fuse", claims / "claims.tsv", "--labelled", claims / "labels.tsv"]
    told = answered(*asked, "--facts", "--save", kept, "--out", out)
    words = " ".join(told.stderr.split())
    assert "on 150 labels, each unseen by what judged it" in words
    assert "Brier" in words
    facts = [json.loads(line) for line in out.read_text().splitlines()]
    triples = {(each["head"], each["relation"], each["tail"]) for each in facts}
    assert len(triples) == len(facts) < table(claims / "claims.tsv").num_rows
    assert {"confidence", "mean", "claims", "sources"} <= set(facts[0])
    again = json.loads(answered("fuse", claims / "claims.tsv", "--with", kept, "--json").stdout)
    assert len(again) == table(claims / "claims.tsv").num_rows


def test_mistakes_are_refused(claims: Path, tmp_path: Path) -> None:
    file = claims / "claims.tsv"
    assert isinstance(refused("fuse", claims), ConfigError)
    assert isinstance(refused("fuse", "a", file, "--run", "b"), ConfigError)
    assert isinstance(refused("fuse", file, "--with", file, "--save", tmp_path / "x"), ConfigError)
    assert isinstance(refused("fuse", file, "--with", file), DataError)
    assert isinstance(refused("calibrate", file), ConfigError)
    assert isinstance(refused("calibrate", file, "--labelled", claims / "labels.tsv", "--source", "nobody"), DataError)


def test_a_source_is_calibrated_and_the_next_file_too(claims: Path, tmp_path: Path) -> None:
    cal, file = tmp_path / "cal.json", claims / "claims.tsv"
    asked = ["calibrate", file, "--labelled", claims / "labels.tsv", "--source", "overconfident-1"]
    told = answered(*asked, "--out", cal)
    assert "isotonic" in told.stderr
    assert json.loads(cal.read_text())["method"] != "kept"
    answered("calibrate", file, "--with", cal, "--out", tmp_path / "next.tsv")
    rows = table(tmp_path / "next.tsv").to_pylist()
    own = [row for row in rows if row["source"] == "overconfident-1"]
    assert max(row["confidence"] for row in own) < min(row["extractor"] for row in own)
    assert all(row["confidence"] == row["extractor"] for row in rows if row["source"] != "overconfident-1")
