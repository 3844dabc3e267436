"""A flipped bit in a file of ours is noticed: the facts are the same, or there is an error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ukge.errors import DataError
from ukge.graph.readers import read
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.graph.writers import write


@pytest.fixture(scope="module")
def graph() -> UncertainGraph:
    draw = random.Random(0)
    names = [f"entity {number}" for number in range(60)]
    facts = [
        (draw.choice(names), f"r{draw.randrange(5)}", draw.choice(names), draw.random(), draw.choice(["web", None]))
        for _ in range(120)
    ]
    return UncertainGraph.from_facts(facts)


@pytest.mark.parametrize("name", ["facts.tsv.zst", "facts.jsonl.zst", "facts.parquet", "facts.csv.gz"])
def test_a_flipped_bit_changes_no_fact(tmp_path: Path, graph: UncertainGraph, name: str) -> None:
    path = tmp_path / name
    write(graph, path)
    whole = path.read_bytes()
    draw = random.Random(1)
    # Of Parquet, pages have checksums of their own; the rest, which is most of so small a file, is tried as well.
    places = range(0, len(whole), 4) if name == "facts.parquet" else draw.sample(range(len(whole)), 400)
    refused = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            found = read(path)
        except DataError:
            refused += 1
        else:
            assert found == graph, f"byte {place}"
    assert refused > 100


def test_checksums_do_not_depend_on_how_facts_are_cut(
    tmp_path: Path, graph: UncertainGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ukge.graph.writers.tables._ROWS", 7)
    write(graph, tmp_path / "facts.parquet")
    assert read(tmp_path / "facts.parquet") == graph


def test_names_of_a_vocabulary(graph: UncertainGraph) -> None:
    whole = graph.entities.to_parquet()
    assert Vocabulary.of_parquet(whole, "entity") == graph.entities
    middle = whole.index(b"zstd") if b"zstd" in whole else 60
    damaged = bytearray(whole)
    damaged[middle] ^= 1
    with pytest.raises((DataError, OSError)):
        Vocabulary.of_parquet(bytes(damaged), "entity")
