"""Node data where a run is asked: names by label, answers by type, labels beside names; in Python and on the command
line, of a run whose facts hold nothing but numbers for names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from tests.cli.asking import answered, on_a_terminal, refused

from ukge import UKGE
from ukge.asking import Predictor
from ukge.errors import DataError, RunError
from ukge.graph.nodes import Nodes
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.serve.server import create_app

DRUGS, GENES = range(12), range(20, 40)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of drugs and genes without evidence; drug 3 and gene 23 are both called "three"."""
    rng = np.random.default_rng(1)
    pairs = [(drug, gene) for drug in DRUGS for gene in GENES]
    facts = [(f"E:{a}", "targets", f"E:{b}", float(rng.random())) for a, b in pairs if rng.random() < 0.9]
    names = [f"E:{each}" for each in (*DRUGS, *GENES)]
    labels = [
        "three" if each % 20 == 3 else f"drug {each}" if each < 20 else f"gene {each}" for each in (*DRUGS, *GENES)
    ]
    types = [
        ["biolink:Drug"] if each < 20 else ["biolink:Gene", *(["Kinase"] if each > 35 else [])]
        for each in (*DRUGS, *GENES)
    ]
    nodes = Nodes.from_columns(names, label=labels, types=types, aliases=[[f"alias of {label}"] for label in labels])
    dataset = split(UncertainGraph.from_facts(facts).with_nodes(nodes), val=0.3, test=0.1, undirected="none")
    place = tmp_path_factory.mktemp("nodes") / "run"
    UKGE("ukge-rect", dim=4, epochs=1).fit(dataset, out=place)
    return place


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    return Predictor.open(run)


def rows(*arguments: object) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(answered(*arguments, "--json").stdout)
    return told


def test_a_run_keeps_it_under_its_checksum(run: Path, tmp_path: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert "data/nodes.parquet" in manifest["files"]
    kept = Predictor.open(run).nodes
    assert kept.labels(["E:4", "E:24"]) == ["drug 4", "gene 24"]
    assert len(kept) == 32


@pytest.mark.parametrize("harm", ["a flipped byte", "no such file"])
def test_damaged_node_data_is_refused(run: Path, tmp_path: Path, harm: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    file = copy / "data" / "nodes.parquet"
    if harm == "no such file":
        file.unlink()
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    with pytest.raises(RunError, match=r"nodes\.parquet"):
        Predictor.open(copy)


def test_a_label_that_only_one_has_is_a_name_everywhere(run: Path, predictor: Predictor) -> None:
    by_name = predictor.rank("E:4", "targets", k=3)
    assert predictor.rank("drug 4", "targets", k=3) == by_name
    assert predictor.predict(("drug 4", "targets", "gene 24")) == predictor.predict(("E:4", "targets", "E:24"))
    assert predictor.explain("drug 4", "targets", "gene 24").fact == ("E:4", "targets", "E:24")
    assert [row["tail"] for row in rows("rank", run, "targets", "--head", "drug 4", "-k", 3)] == [
        each.entity for each in by_name
    ]
    told = answered("explain", run, "drug 4", "targets", "gene 24").stdout
    assert "(drug 4 [E:4], targets, gene 24 [E:24])" in told
    found = predictor.complete(heads=["drug 5"], min_confidence=0.0, k=4)
    assert set(found.facts()["head"].to_pylist()) == {"E:5"}


def test_a_label_of_several_and_an_unknown_name_are_refused_with_names(run: Path, predictor: Predictor) -> None:
    with pytest.raises(DataError, match="'three' is the label of 2 entities: E:3, E:23"):
        predictor.rank("three", "targets")
    error = refused("rank", run, "targets", "--head", "alias of drug 7")
    assert error.hint == "Near names: drug 7 (E:7)."


def test_answers_are_of_a_type(run: Path, predictor: Predictor) -> None:
    kinases = {f"E:{each}" for each in range(36, 40)}
    every = predictor.rank("E:4", "targets", k=100)
    assert len(every) == 32
    of_type = predictor.rank("E:4", "targets", k=100, type="Kinase")
    assert of_type == [each for each in every if each.entity in kinases]
    both = predictor.rank("E:4", "targets", k=100, type=["Kinase", "Drug"], among=["E:1", "gene 36", "gene 30"])
    assert {each.entity for each in both} == {"E:1", "E:36"}
    told = rows("rank", run, "targets", "--head", "E:4", "-k", 100, "--type", "type:Kinase")
    assert [row["tail"] for row in told] == [each.entity for each in of_type]
    fitting = predictor.rank("E:4", "targets", k=100, type="fitting")
    tails = set(predictor.dataset.whole().facts()["tail"].to_pylist())
    assert {each.entity for each in fitting} == tails
    assert {each.entity for each in predictor.rank("E:4", "targets", k=100, type="heads:targets")} == {
        f"E:{each}" for each in DRUGS
    }
    error = refused("rank", run, "targets", "--head", "E:4", "--type", "Kinaze")
    assert error.what == "no entity is of type 'Kinaze'"
    assert error.hint is not None
    assert "Did you mean 'Kinase'?" in error.hint


def test_answer_sets_and_completion_are_of_a_type_too(run: Path, predictor: Predictor) -> None:
    whole = predictor.answer_set("E:4", "targets", k=100)
    kinases = predictor.answer_set("E:4", "targets", k=100, type="Kinase")
    assert kinases.answers == [each for each in whole.answers if each.entity in {f"E:{n}" for n in range(36, 40)}]
    assert kinases.size == len(kinases.answers)
    found = predictor.complete(tail_type="Kinase", min_confidence=0.0, k=1000).facts()
    kinase = pa.array([f"E:{n}" for n in range(36, 40)])
    assert set(found["tail"].to_pylist()) <= set(kinase.to_pylist())
    told = rows("complete", run, "--tail-type", "Kinase", "--min-confidence", 0, "-k", 1000)
    assert [row["tail"] for row in told] == found["tail"].to_pylist()
    both = predictor.complete(head_type="Drug", heads=["E:1", "E:25"], typed=False, min_confidence=0.0).facts()
    assert set(both["head"].to_pylist()) == {"E:1"}


def test_labels_stand_beside_names(run: Path, predictor: Predictor) -> None:
    best = predictor.rank("E:4", "targets", k=1, type="Gene")[0]
    assert best.label == predictor.nodes.labels([best.entity])[0]
    assert f"{best.label} ({best.entity})" in on_a_terminal(
        "rank", run, "targets", "--head", "E:4", "--type", "Gene", width=120
    )
    row = rows("rank", run, "targets", "--head", "E:4", "-k", 1, "--type", "Gene")[0]
    assert (row["head_label"], row["tail_label"]) == ("drug 4", best.label)


def test_files_of_facts_may_hold_labels(run: Path, predictor: Predictor, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("drug 4\ttargets\tE:24\nthree\ttargets\tE:24\nE:4\ttargets\tgene 24\n", encoding="utf-8")
    told = rows("predict", run, path, "--no-header")
    expected = predictor.predict(("E:4", "targets", "E:24"))
    assert [row["confidence"] for row in told] == [pytest.approx(expected), None, pytest.approx(expected)]
    assert told[1]["note"].startswith("unknown entity 'three'")
    assert told[2]["head_label"] == "drug 4"


@pytest.fixture(scope="module")
def http(run: Path) -> Iterator[TestClient]:
    with TestClient(create_app(run, explorer=False)[0]) as client:
        yield client


def test_the_service_finds_by_label_and_alias_and_shows_what_is_known(http: TestClient) -> None:
    by_label = http.get("/v1/entities", params={"search": "drug 4"}).json()["entities"][0]
    assert by_label == {
        "name": "E:4",
        "label": "drug 4",
        "category": "Drug",
        "types": ["biolink:Drug"],
        "alias": None,
        "match": "exact",
        "facts": by_label["facts"],
    }
    by_alias = http.get("/v1/entities", params={"search": "ALIAS of gene 24"}).json()["entities"][0]
    assert (by_alias["name"], by_alias["alias"], by_alias["match"]) == ("E:24", "alias of gene 24", "exact")
    page = http.get("/v1/entity/gene 36").json()
    assert (page["name"], page["label"]) == ("E:36", "gene 36")
    assert (page["types"], page["aliases"]) == (["biolink:Gene", "Kinase"], ["alias of gene 36"])
    assert {(fact["tail"], fact["tail_label"]) for fact in page["facts"]} == {("E:36", "gene 36")}


def test_the_service_answers_by_label_and_type(http: TestClient, predictor: Predictor) -> None:
    told = http.get("/v1/rank", params={"relation": "targets", "head": "drug 4", "k": 9, "type": "Kinase"}).json()
    expected = predictor.rank("E:4", "targets", k=9, type="Kinase")
    assert (told["head"], told["tail"]) == ("E:4", None)
    assert [(each["entity"], each["label"]) for each in told["answers"]] == [(e.entity, e.label) for e in expected]
    why = http.get("/v1/explain", params={"head": "drug 4", "relation": "targets", "tail": "gene 24"}).json()
    assert (why["head"], why["head_label"], why["tail_label"]) == ("E:4", "drug 4", "gene 24")
    found = http.get("/v1/complete", params={"tail_type": "Kinase", "k": 50}).json()["facts"]
    assert {fact["tail"] for fact in found} <= {f"E:{each}" for each in range(36, 40)}
    assert all(fact["tail_label"].startswith("gene") for fact in found)


def test_the_service_refuses_what_is_ambiguous_or_unknown(http: TestClient) -> None:
    several = http.get("/v1/rank", params={"relation": "targets", "head": "three"})
    assert several.status_code == 422
    assert "the label of 2 entities: E:3, E:23" in several.text
    kind = http.get("/v1/rank", params={"relation": "targets", "head": "E:4", "type": "Kinaze"})
    assert (kind.status_code, kind.json()["near"]) == (404, ["Kinase"])
    assert http.get("/v1/complete", params={"head_type": "Kinaze"}).status_code == 404
    unknown = http.get("/v1/entity/alias of drug 7").json()
    assert unknown["near"][0] == "E:7"
