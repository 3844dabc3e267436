"""From partitioned Parquet by name to parts by id: complete, without leaks, the same on every engine."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ukge.cli import app
from ukge.distributed.prepare import PrepareSettings, prepare
from ukge.errors import ConfigError, DataError
from ukge.graph.catalogue import open_dataset
from ukge.graph.partitioned import PARTS, Prepared, is_prepared, open_prepared, save_prepared, write_note
from ukge.graph.split import split
from ukge.graph.synthetic import generate, stream_parquet
from ukge.learning.estimator import UKGE

N_ENTITIES, N_FACTS = 300, 3000
HELD_OUT = PrepareSettings(val=0.1, test=0.05)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bucket") / "facts"
    stream_parquet(path, N_ENTITIES, N_FACTS, seed=3, partition_by="relation")
    return path


@pytest.fixture(scope="module")
def prepared(bucket: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(str(bucket), tmp_path_factory.mktemp("prepared") / "world", HELD_OUT)


def named(found: Prepared, *parts: str) -> list[tuple[Any, ...]]:
    entities, relations = found.vocabulary("entity"), found.vocabulary("relation")
    rows: list[tuple[Any, ...]] = []
    for part in parts:
        facts = found.graph(part, entities, relations).facts()
        rows += zip(*(facts[column].to_pylist() for column in facts.column_names), strict=True)
    return rows


def test_nothing_is_lost_and_names_keep_their_facts(prepared: Prepared) -> None:
    world = generate(N_ENTITIES, N_FACTS, seed=3).graph
    facts = Counter((f.head, f.relation, f.tail, f.confidence) for f in world)
    assert Counter(named(prepared, "train", "val", "test")) == facts
    assert set(prepared.vocabulary("entity")) == {name for fact in facts for name in (fact[0], fact[2])}
    assert prepared.facts["val"] == pytest.approx(0.1 * N_FACTS, rel=0.3)


def test_no_pair_of_entities_is_held_out_and_trained_on(prepared: Prepared) -> None:
    pairs = {part: {frozenset((h, t)) for h, _, t, _ in named(prepared, part)} for part in ("train", "val", "test")}
    assert not pairs["train"] & pairs["val"]
    assert not pairs["train"] & pairs["test"]
    assert not pairs["val"] & pairs["test"]


def test_links_are_unseen_and_look_like_facts(prepared: Prepared) -> None:
    links = named(prepared, "links")
    facts = {fact[:3] for fact in named(prepared, "train", "val", "test")}
    ranges = {(relation, tail) for _, relation, tail in facts}
    assert 0.8 * prepared.facts["val"] <= len(links) <= prepared.facts["val"]
    assert len({link[:3] for link in links}) == len(links)
    for head, relation, tail, confidence in links:
        assert (head, relation, tail) not in facts
        assert (relation, tail) in ranges
        assert head != tail
        assert confidence == 0.0


def test_buckets_number_the_same_names_densely(
    prepared: Prepared, bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ukge.distributed.prepare.ONE_BUCKET", 100)
    found = prepare(str(bucket), tmp_path / "world", HELD_OUT)
    names = list(found.vocabulary("entity"))
    assert sorted(names) == sorted(prepared.vocabulary("entity"))
    assert names != sorted(names)
    assert sorted(named(found, *PARTS[:3])) == sorted(named(prepared, *PARTS[:3]))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shares_are_all_facts_once(prepared: Prepared, size: int) -> None:
    whole = prepared.share("train")
    shares = [prepared.share("train", rank, size) for rank in range(size)]
    for column in ("head", "relation", "tail", "confidence"):
        parts = [getattr(share, column) for share in shares]
        np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, column))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_prepared_directory_is_a_data_set(prepared: Prepared) -> None:
    dataset = open_dataset(prepared.path)
    assert [len(part) for part in dataset.parts.values()] == [prepared.facts[part] for part in dataset.parts]
    trained = UKGE(dim=8, epochs=2, engine="torch", threads=1).fit(dataset).trained
    assert trained is not None
    assert trained.best is not None


def test_a_data_set_in_memory_becomes_a_prepared_directory(tmp_path: Path) -> None:
    dataset = split(generate(200, 900, seed=2).graph, seed=0, name="small")
    found = save_prepared(dataset, dataset.val[:3], tmp_path / "small")
    again = found.dataset()
    assert again.parts == dataset.parts
    assert again.entities == dataset.entities
    assert found.facts["links"] == 3
    save_prepared(dataset, None, tmp_path / "small")
    assert "links" not in open_prepared(tmp_path / "small").facts


def test_a_source_that_is_split_stays_so(tmp_path: Path) -> None:
    for part, tails in (("train", "bcd"), ("val", "ef"), ("test", "g")):
        (tmp_path / "source" / part).mkdir(parents=True)
        write(tmp_path / "source" / part / "1.parquet", ["a"] * len(tails), list(tails), [0.5] * len(tails))
    found = prepare(str(tmp_path / "source"), tmp_path / "out")
    assert {part: found.facts[part] for part in ("train", "val", "test")} == {"train": 3, "val": 2, "test": 1}
    assert {fact[2] for fact in named(found, "val")} == {"e", "f"}


@pytest.mark.parametrize(
    ("heads", "confidences", "told"),
    [
        (["a", "b"], [0.5, 1.5], "confidence"),
        (["a", "b"], [0.5, None], "confidence"),
        (["a", " "], [0.5, 0.5], "head"),
        (["a", None], [0.5, 0.5], "head"),
    ],
)
def test_wrong_facts_are_shown_and_nothing_is_left(
    tmp_path: Path, heads: list[str | None], confidences: list[float | None], told: str
) -> None:
    (tmp_path / "source").mkdir()
    write(tmp_path / "source" / "1.parquet", heads, ["x", "y"], confidences)
    with pytest.raises(DataError, match=f"1 facts have no {told}") as caught:
        prepare(str(tmp_path / "source"), tmp_path / "out")
    assert len(caught.value.problems) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_prepared_directory_gives_way_to_another_only_if_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    facts = {"head": ["a", "b"] * 40, "relation": ["r"] * 80, "tail": [f"t{i}" for i in range(80)]}
    table = pa.table({**facts, "confidence": [0.5] * 80})
    pq.write_table(table, tmp_path / "source" / "1.parquet")
    cut = PrepareSettings(val=0.2, test=0.2)
    out = prepare(str(tmp_path / "source"), tmp_path / "out", cut).path
    with pytest.raises(ConfigError, match="overwrite=True"):
        prepare(str(tmp_path / "source"), out, PrepareSettings(val=0.3, test=0.2))
    made = (out / "prepared.json").stat().st_mtime_ns
    assert prepare(str(tmp_path / "source"), out, cut).path == out  # a kill came when all was done: so it is
    assert (out / "prepared.json").stat().st_mtime_ns == made
    pq.write_table(table.slice(0, 60), tmp_path / "source" / "1.parquet")
    with pytest.raises(ConfigError, match="overwrite=True"):
        prepare(str(tmp_path / "source"), out, cut)
    assert sum(prepare(str(tmp_path / "source"), out, cut, overwrite=True).facts[part] for part in PARTS[:3]) == 60
    with pytest.raises(ConfigError, match="exists already"):
        prepare(str(tmp_path / "source"), tmp_path / "source", cut, overwrite=True)
    assert (tmp_path / "source" / "1.parquet").is_file()


def test_what_cannot_be_prepared_is_said(tmp_path: Path, prepared: Prepared) -> None:
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        prepare(str(tmp_path / "nothing"), tmp_path / "out")
    with pytest.raises(ConfigError, match="exists already"):
        prepare(str(tmp_path), prepared.path)
    with pytest.raises(ConfigError, match="leave nothing"):
        PrepareSettings(val=0.0)
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"x": ["a"], "y": ["b"], "z": [1.0]}), tmp_path / "source" / "1.parquet")
    with pytest.raises(DataError, match="no column for the confidence"):
        prepare(str(tmp_path / "source"), tmp_path / "out")


def test_damage_is_noticed(prepared: Prepared, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(prepared.path, copy)
    next((copy / "train").glob("*.parquet")).unlink()
    with pytest.raises(DataError, match=r"holds .* facts, not"):
        open_prepared(copy).share("train")
    for file in (copy / "entities").glob("*.parquet"):
        pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(DataError, match="does not match its checksum"):
        open_prepared(copy).vocabulary("entity")
    sizes = prepared.n_entities, prepared.n_relations, prepared.facts
    write_note(copy, *sizes)
    with pytest.raises(DataError, match="does not name the ids"):
        open_prepared(copy).vocabulary("entity")
    shutil.copytree(prepared.path / "train", copy / "train", dirs_exist_ok=True)
    write_note(copy, *sizes)
    file = next((copy / "train").glob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(DataError, match="does not match its checksum"):
        open_prepared(copy).share("train")
    note = (copy / "prepared.json").read_text(encoding="utf-8")
    (copy / "prepared.json").write_text(note.replace('"relations": ', '"relations": 1'), encoding="utf-8")
    with pytest.raises(DataError, match="does not match its checksum"):
        open_prepared(copy)
    (copy / "prepared.json").write_text(json.dumps({"format": 99, "entities": 1, "relations": 1, "facts": {}}))
    with pytest.raises(DataError, match="format 99"):
        open_prepared(copy)
    (copy / "prepared.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        open_prepared(copy)
    assert not is_prepared(tmp_path)
    with pytest.raises(DataError, match="is not a prepared directory"):
        open_prepared(tmp_path)


def test_the_command_line_prepares(prepared: Prepared, bucket: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["data", "prepare", str(bucket), str(tmp_path / "out"), "--val", "0.1", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["entities"] == prepared.n_entities
    assert sum(told["facts"][part] for part in ("train", "val", "test")) == N_FACTS


def write(path: Path, heads: list[str | None], tails: list[str], confidences: list[float | None]) -> None:
    columns = {"head": heads, "relation": ["r"] * len(tails), "tail": tails, "confidence": confidences}
    pq.write_table(pa.table({**columns, "confidence": pa.array(confidences, pa.float64())}), path)
