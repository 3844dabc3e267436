"""Two ways must agree: Arrow and the compiled name table, whole files and blocks, the fast parse and the diagnosis."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ukge.errors import DataError
from ukge.graph.columns import Where
from ukge.graph.name_table import NameTable
from ukge.graph.readers import read
from ukge.graph.readers.delimited import parse_table, read_tsv
from ukge.graph.readers.diagnosis import diagnose
from ukge.graph.readers.layout import Field, Layout
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.vocabulary import BlockEncoder, Vocabulary, encode_by_arrow, encode_by_table, encode_names

LENGTHS = st.sampled_from([0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 100])
ENDINGS = st.sampled_from(["", "x", "y", "é"])
NAMES = st.builds(lambda length, letter, end: letter * (length - 1) + end, LENGTHS, st.sampled_from("ab"), ENDINGS)
COLUMNS = st.lists(st.lists(NAMES, max_size=30), min_size=1, max_size=3)


def by_hand(columns: list[list[str]]) -> tuple[list[list[int]], list[str]]:
    """Number names by first occurrence, column after column."""
    ids: dict[str, int] = {}
    for column in columns:
        for name in column:
            ids.setdefault(name, len(ids))
    return [[ids[name] for name in column] for column in columns], list(ids)


@settings(deadline=None, max_examples=60)
@given(columns=COLUMNS, kind=st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]))
def test_arrow_and_table_number_names_by_first_occurrence(columns: list[list[str]], kind: pa.DataType) -> None:
    # Slices of longer arrays, so that offsets do not start at zero.
    arrays = [pa.array(["skipped", *column], pa.string()).cast(kind).slice(1) for column in columns]
    chunked = [pa.chunked_array([array[: len(array) // 2], array[len(array) // 2 :]], type=kind) for array in arrays]
    expected_ids, expected_names = by_hand(columns)
    for encode in (encode_by_arrow, encode_by_table):
        ids, names = encode(chunked)
        assert [column.tolist() for column in ids] == expected_ids
        assert names.to_pylist() == expected_names
        assert all(column.dtype == np.int32 for column in ids)


@settings(deadline=None, max_examples=40)
@given(columns=st.lists(st.tuples(NAMES, NAMES), max_size=40), cut=st.integers(1, 7), parts=st.sampled_from([1, 2, 4]))
def test_pieces_in_any_order_give_the_same_numbers(columns: list[tuple[str, str]], cut: int, parts: int) -> None:
    heads, tails = [pair[0] for pair in columns], [pair[1] for pair in columns]
    with BlockEncoder([0, 0], parts=parts) as encoder:  # no room expected, so that it has to grow
        for start in range(0, len(columns), cut):
            encoder.add(0, pa.array(heads[start : start + cut], pa.string()))
            encoder.add(1, pa.array(tails[start : start + cut], pa.string()))
        ids, names = encoder.finish()
    assert ([column.tolist() for column in ids], names.to_pylist()) == by_hand([heads, tails])


def test_a_small_table_grows_and_keeps_every_name() -> None:
    names = [f"{'long ' * (i % 12)}name {i % 3000}" for i in range(9000)]
    array = pa.array(names, pa.string())
    table = NameTable(slots=16)
    ids = np.empty(len(names), np.int32)
    table.encode(
        np.frombuffer(array.buffers()[1], np.int32)[: len(names) + 1], np.frombuffer(array.buffers()[2], np.uint8), ids
    )
    (expected,), distinct = by_hand([names])
    assert ids.tolist() == expected
    offsets, data = table.names
    assert [bytes(data[a:b]).decode() for a, b in itertools.pairwise(offsets)] == distinct


def test_long_names_that_share_hash_and_ends_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names beyond 24 bytes are compared byte by byte, not only by the words kept in the table."""
    import ukge.graph.name_table as module

    first = "a" * 8 + "0123456789" + "z" * 8
    other = "a" * 8 + "9876543210" + "z" * 8
    array = pa.array([first, other, first], pa.string())
    ends = np.frombuffer(array.buffers()[1], np.int32)[:4].astype(np.int64)
    data = np.frombuffer(array.buffers()[2], np.uint8)
    constant = lambda data, at, length: (np.uint64(1), np.uint64(2), np.uint64(3))  # noqa: E731  (every key collides)
    monkeypatch.setattr(module, "_key", constant)
    monkeypatch.setattr(module, "_hash", module._hash.py_func)
    monkeypatch.setattr(module, "_same", module._same.py_func)
    ids = np.empty(3, np.int32)
    with np.errstate(over="ignore"):
        module._encode.py_func(
            ends, data, 0, ids, np.zeros(64, np.uint64), np.empty(200, np.uint8), np.zeros(9, np.int64), 0, 0, 1
        )
    assert ids.tolist() == [0, 1, 0]


def test_large_inputs_take_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr("ukge.graph.vocabulary.LARGE", 3)
    monkeypatch.setattr("ukge.graph.vocabulary.encode_by_table", lambda columns: taken.append("table"))
    encode_names([pa.array(["a", "b"])])
    encode_names([pa.array(["a", "b"]), pa.array(["c"])])
    assert taken == ["table"]


def test_names_that_are_no_utf8_are_refused_both_ways() -> None:
    column = pa.chunked_array([pa.array([b"caf\xe9"], pa.binary())])
    for encode in (encode_by_arrow, encode_by_table):
        with pytest.raises(pa.ArrowInvalid):
            encode([column])


FACTS = "cat\thunts\tmouse\t0.9\tbook\n\ndog\tchases\tcat\t0.5\t\nmouse\teats\tcheese\t1\tfilm\n" * 40


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_blocks_and_whole_files_give_the_same_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"facts.tsv{suffix}"
    with pa.output_stream(str(path), compression="gzip" if suffix else None) as stream:
        stream.write(FACTS.encode())
    whole = read(path)
    monkeypatch.setattr("ukge.graph.readers.delimited.LARGE_BYTES", 1)
    monkeypatch.setattr("ukge.graph.readers.delimited._BLOCK", 128)
    monkeypatch.setattr("ukge.graph.readers.delimited.expected_rows", lambda path: 5)
    assert read_tsv(path, Request()).vocabularies is not None
    blocks = read(path)
    assert list(blocks) == list(whole)
    assert blocks.entities == whole.entities
    assert blocks.relations == whole.relations
    assert blocks.head.tolist() == whole.head.tolist()
    assert blocks.source is not None


@pytest.mark.parametrize("bad", ["a\tr\tb\t2\n", "a\tr\t \t0.5\n", "a\tr\tb\n", "a\tr\tb\tx\n", "\xff\tr\tb\t0.5\n"])
def test_blocks_and_whole_files_give_the_same_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(b"a\tr\tb\t0.5\n\n" * 30 + bad.encode("latin-1"))
    with pytest.raises(DataError) as whole:
        read(path)
    monkeypatch.setattr("ukge.graph.readers.delimited.LARGE_BYTES", 1)
    monkeypatch.setattr("ukge.graph.readers.delimited._BLOCK", 128)
    with pytest.raises(DataError) as blocks:
        read(path)
    assert str(blocks.value) == str(whole.value)
    assert blocks.value.problems[0].line == 61


NAME_CELLS = [b"a", b"cat", b'q"q', b"0", b"1", b" 1", b"\x00", b"\xc3\xa9"]
ODD_NAME_CELLS = [b"", b" ", b"\xc2\xa0", b"\xff", b'"', b'"q"', b"\x1c", b"\xef\xbb\xbf", b"7", b"-1", b"0x1", b"1.0"]
NUMBER_CELLS = [b"0.5", b"1", b" 0.25 ", b"+.5", b"1e-3", b"0", b"-0", b"1.", b'"0.5"']
ODD_NUMBER_CELLS = [b"-1", b"7", b"x", b"nan", b"1e999", b"0x1", b"1_0", b"", b"0,5", b"\xd9\xa0", b"- 1", b"-inf"]
USUAL_ROWS = st.tuples(*[st.sampled_from(NAME_CELLS)] * 3, st.sampled_from(NUMBER_CELLS)).map(list)
ODD_CELLS = st.sampled_from([*NAME_CELLS, *ODD_NAME_CELLS, *NUMBER_CELLS, *ODD_NUMBER_CELLS])
ODD_ROWS = st.lists(ODD_CELLS, min_size=1, max_size=5)
ONE_ODD = st.builds(lambda row, at, cell: [*row[:at], cell, *row[at + 1 :]], USUAL_ROWS, st.integers(0, 3), ODD_CELLS)
ROWS = st.lists(st.one_of(USUAL_ROWS, USUAL_ROWS, ONE_ODD, ODD_ROWS), min_size=1, max_size=4)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"])


def layout(delimiter: str, quoted: bool, *, ids: bool) -> Layout:
    words = Vocabulary(["a", "b"])
    name: Any = {"kind": "id", "vocabulary": words} if ids else {"kind": "name"}
    fields = (
        Field("head", 0, label="head", **name),
        Field("relation", 1, label="relation", kind="name"),
        Field("tail", 2, label="tail", **name),
        Field("confidence", 3, "number", "confidence", 0.0, 1.0),
    )
    return Layout(delimiter, quoted, 4, fields)


@settings(deadline=None, max_examples=60)
@given(rows=ROWS, end=ENDS, quoted=st.booleans(), ids=st.booleans())
@example(rows=[[b"a", b"r", b"\xff", b"0.5"]], end=b"\n", quoted=False, ids=False)
def test_the_fast_parse_fails_exactly_where_the_diagnosis_finds_something(
    rows: list[list[bytes]], end: bytes, quoted: bool, ids: bool
) -> None:
    text = end.join((b"," if quoted else b"\t").join(row) for row in [[b"0", b"r", b"1", b"0.5"], *rows]) + end
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / ("facts.csv" if quoted else "facts.tsv")
        path.write_bytes(text)
        shape = layout("," if quoted else "\t", quoted, ids=ids)
        fast = _fast_way_fails(path, shape)
        careful = _fails(lambda: diagnose(path, shape))
    assert fast == careful


def _fast_way_fails(path: Path, shape: Layout) -> bool:
    def whole() -> None:
        table = parse_table(path, shape)
        ids = shape.fields[0].vocabulary
        head, tail = (table[end] if ids is None else table[end].to_numpy() for end in ("head", "tail"))
        weight = table["confidence"].to_numpy()
        Parsed(head, table["relation"], tail, weight, Where(), len(table)).graph(Request(entities=ids))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ukge.graph.readers.delimited.diagnose", lambda *_: None)
        return _fails(whole)


def _fails(action: Any) -> bool:
    try:
        action()
    except DataError:
        return True
    return False
