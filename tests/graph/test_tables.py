"""Tables out: what each format holds comes back as it was."""

from __future__ import annotations

import csv
import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ukge.errors import DataError
from ukge.graph.files import open_text
from ukge.graph.writers.tables import table_text, write_table

ROWS: list[dict[str, Any]] = [
    {"name": 'say "hi", you', "score": 0.1, "n": 7, "tags": ["a", "b"], "day": datetime.date(2020, 1, 2)},
    {"name": None, "score": None, "n": None, "tags": None, "day": None},
    {"name": "ö", "score": float("nan"), "n": 0, "tags": [], "day": None},
]


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "csv", "csv.zst", "jsonl", "ndjson.gz", "parquet"])
def test_every_format_holds_every_column(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    write_table(path, pa.Table.from_pylist(ROWS))
    if ending == "parquet":
        assert str(pq.read_table(path).to_pylist()) == str(ROWS)
        return
    with open_text(path, newline="") as text:
        if "json" in ending:
            found = [json.loads(line) for line in text]
            assert found[0] == {**ROWS[0], "day": "2020-01-02"}
            assert set(found[1].values()) == {None}
            assert found[2]["score"] is None
            return
        quoting: Any = csv.QUOTE_NONE if "tsv" in ending else csv.QUOTE_MINIMAL
        delimiter = "\t" if "tsv" in ending else ","
        cells = list(csv.reader(text, delimiter=delimiter, quoting=quoting))
    assert cells[0] == ["name", "score", "n", "tags", "day"]
    assert cells[1] == ['say "hi", you', "0.1", "7", '["a", "b"]', "2020-01-02"]
    assert cells[2] == [""] * 5


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    table = pa.table({"name": ["two\nlines"]})
    with pytest.raises(DataError, match="column name holds a tab or a line end"):
        write_table(tmp_path / "table.tsv", table)
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / "table.csv", table)
    for name, wrong in (
        ("t.xyz", "is not written"),
        ("t.parquet.gz", "compresses by itself"),
        ("no/t.tsv", "directory"),
    ):
        with pytest.raises(DataError, match=wrong):
            write_table(tmp_path / name, table)


def test_a_table_without_rows_is_its_header() -> None:
    assert table_text(pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.null())})) == "a\tb\n"
