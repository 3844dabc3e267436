"""Facts without a column of relations, and tables that are laid out in odd ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pyarrow as pa
import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.readers import read
from ukge.graph.uncertain import Fact
from ukge.graph.vocabulary import Vocabulary


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def make(text: str, name: str = "facts.tsv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return make


ODD = "a;0.25;x;b\nc;0.75;y;d\n"
PAIRS = [Fact("a", "interacts", "b", 0.25), Fact("c", "interacts", "d", 0.75)]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("odd.csv", ODD, {"delimiter": ";", "columns": {"head": 0, "confidence": 1, "tail": 3}}),
        ("odd.dat", ODD, {"delimiter": "semicolon", "columns": {"head": 0, "confidence": 1, "tail": 3}}),
        ("pairs.txt", "a\tb\t0.25\nc\td\t0.75\n", {}),
        ("spaces.txt", "from to score\na b 0.25\nc d 0.75\n", {"delimiter": "space"}),
        ("named.tsv", "head\trelation\ttail\tscore\na\tx\tb\t0.25\nc\ty\td\t0.75\n", {}),
        ("pairs.jsonl", '{"head": "a", "tail": "b", "score": "0.25"}\n["c", "d", 0.75]\n', {}),
        (
            "pairs.graphml",
            '<graphml><key id="w" for="edge" attr.name="score"/><graph edgedefault="directed"><node id="a"/>'
            '<edge source="a" target="b"><data key="w">0.25</data></edge>'
            '<edge source="c" target="d"><data key="w">0.75</data></edge></graph></graphml>',
            {},
        ),
    ],
)
def test_a_file_without_relations_gets_one_for_all(file: Any, name: str, text: str, options: dict[str, Any]) -> None:
    assert list(read(file(text, name), relation="interacts", **options)) == PAIRS


def test_tables_without_relations_get_one_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"head": ["a", "c"], "tail": ["b", "d"], "confidence": ["0.25", "0.75"]})
    graph = nx.DiGraph()
    graph.add_edge("a", "b", confidence=0.25)
    graph.add_edge("c", "d", confidence=0.75)
    for source in (frame, pa.Table.from_pandas(frame), graph):
        assert list(read(source, relation="interacts")) == PAIRS
    frame.to_parquet(tmp_path / "pairs.parquet")
    assert list(read(tmp_path / "pairs.parquet", relation="interacts")) == PAIRS
    known = Vocabulary(["binds", "interacts"], kind="relation")
    assert read(frame, relation="interacts", relations=known).relation.tolist() == [1, 1]
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\t0.25\nc\td\t0.75\n", encoding="utf-8")
    monkeypatch.setattr("ukge.graph.readers.delimited.LARGE_BYTES", 1)  # block by block
    assert list(read(path, relation="interacts")) == PAIRS


def test_a_relation_for_all_that_does_not_fit(file: Any) -> None:
    pairs = "a\tb\t0.25\n"
    with pytest.raises(DataError, match=r"3 columns instead of 4 or 5[\s\S]*relation=NAME"):
        read(file(pairs))
    with pytest.raises(DataError, match="4 or 5"):
        read(file("a;r;b;0.25\n"))
    with pytest.raises(ConfigError, match="relation gives all facts the same one"):
        read(file(pairs), relation="r", columns={"relation": 1})
    with pytest.raises(ConfigError, match="is no name of a relation"):
        read(file(pairs), relation=" ")
    with pytest.raises(DataError, match="unknown relation 's'"):
        read(file(pairs), relation="s", relations=Vocabulary(["r"], kind="relation"))
    with pytest.raises(ConfigError, match="has no option relation"):
        read(file(pairs), format="nell", relation="r")


def test_a_line_that_is_separated_otherwise_is_told_so(file: Any) -> None:
    with pytest.raises(DataError, match="delimiter='semicolon'"):
        read(file("a;r;b;0.25\n", "f.tsv"))
