"""Every malformed file of the corpus is a DataError that names line, column and value, and says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.readers import read, read_vocabulary

CORPUS = Path(__file__).parent / "corpus"
IDS = {"entities": CORPUS / "entities.tsv", "relations": CORPUS / "relations.tsv"}
STRING = {"format": "string"}
CONCEPTNET = {"format": "conceptnet"}


SOMEWHERE = -1  # how far damaged data can be read depends on the decompressor


@dataclass(frozen=True)
class Case:
    """A file, where its first problem is, and fragments of the message."""

    file: str
    line: int | None
    column: str | None
    fragments: tuple[str, ...]
    count: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


CASES = [
    Case("confidence_above_one.tsv", 3, "confidence", ("outside [0, 1]", "'1.5'", "scale=")),
    Case("confidence_negative.tsv", 3, "confidence", ("outside [0, 1]", "'-0.25'")),
    Case("confidence_nan.tsv", 2, "confidence", ("not a finite number", "'NaN'")),
    Case("confidence_infinite.tsv", 2, "confidence", ("not a finite number", "'inf'")),
    Case("confidence_overflow.tsv", 2, "confidence", ("not a finite number", "'1e999'")),
    Case("confidence_text.tsv", 4, "confidence", ("not a number", "'high'")),
    Case("confidence_comma.tsv", 2, "confidence", ("not a number", "'0,5'")),
    Case("confidence_empty.tsv", 2, "confidence", ("confidence is empty",)),
    Case("confidence_twelve_bad.tsv", 2, "confidence", ("12 problems in 13 lines", "… and 2 more"), 12),
    Case("unknown_header.tsv", 1, "confidence", ("'how sure'", "columns={'head': 'who', 'relation': 'does',")),
    Case("head_empty.tsv", 2, "head", ("head name is empty",)),
    Case("relation_blank.tsv", 2, "relation", ("relation name is empty", "'  '")),
    Case("tail_unicode_blank.tsv", 2, "tail", ("tail name is empty", r"'\u2003\xa0'")),
    Case("too_few_columns.tsv", 2, None, ("3 columns instead of 4", r"'dog\thunts\tcat'")),
    Case("too_many_columns.tsv", 2, None, ("6 columns instead of 4",)),
    Case("three_columns.tsv", 1, None, ("3 columns instead of 4 or 5", "columns=")),
    Case("white_line.tsv", 2, None, ("1 column instead of 4", "'   '")),
    Case("comment_line.tsv", 1, None, ("no comment here",)),
    Case("commas_not_tabs.tsv", 1, None, ("comma-separated", "delimiter=")),
    Case(
        "several_kinds.tsv", 2, "head", ("4 problems in 4 lines", "line 3: 2 columns", "line 4, column confidence"), 4
    ),
    Case("latin1.tsv", 2, None, ("not UTF-8 text", r"caf\\xe9", "iconv")),
    Case("utf16.tsv", 1, None, ("not UTF-8 text",)),
    Case("empty.tsv", None, None, ("the file is empty",), 0),
    Case("blank_lines.tsv", None, None, ("only blank lines",), 0),
    Case("header_only.tsv", None, None, ("a header and no facts",), 0),
    Case("header_then_bad.tsv", 4, "score (confidence)", ("outside [0, 1]", "'3'")),
    Case("carriage_returns.tsv", 2, "confidence", ("'4'",)),
    Case("crlf.tsv", 3, "confidence", ("'4'",)),
    Case("truncated.tsv.gz", SOMEWHERE, None, ("damaged or cut off", "Fetch or compress")),
    Case("not_gzip.tsv.gz", None, None, ("damaged or cut off",)),
    Case("checksum.tsv.gz", None, None, ("damaged or cut off",)),
    Case("truncated.tsv.zst", None, None, ("damaged or cut off",)),
    Case("not_zstd.tsv.zst", None, None, ("damaged or cut off",)),
    Case("bad_value_inside.tsv.gz", 3, "confidence", ("'2'",)),
    Case("quote_never_closed.csv", 2, "head", ("a quotation mark is never closed", "cat,hunts,mouse,0.9")),
    Case("quote_swallows_a_line.csv", 4, "head", ("a quotation mark is never closed", "cat,hunts,mouse,0.9")),
    Case("after_quoted_newline.csv", 4, "confidence", ("'7'",)),
    Case("too_few_columns.csv", 3, None, ("3 columns instead of 4",)),
    Case("not_json.jsonl", 2, None, ("is not JSON",)),
    Case("missing_key.jsonl", 3, "tail", ("key 'tail' is missing",)),
    Case("wrong_type.jsonl", 2, "tail", ("tail is not text", "relation is not text", "confidence is not a number"), 4),
    Case("short_array.jsonl", 2, None, ("array of 3 values",)),
    Case("scalar.jsonl", 2, None, ("neither an object nor an array",)),
    Case("out_of_range.jsonl", 3, "confidence", ("line 4, column confidence", "'2'", "head name is empty"), 3),
    Case("half_surrogate.jsonl", 2, "head", ("surrogate",)),
    Case("unknown_keys.jsonl", 1, None, ("no column for the head", "columns=")),
    Case("not_parquet.parquet", None, None, ("no readable Parquet file",), 0),
    Case("not_xml.graphml", 4, None, ("not well-formed",)),
    Case("no_confidence.graphml", 6, None, ("edge has no confidence",)),
    Case("undirected.graphml", 4, None, ("edge is undirected",)),
    Case("doctype.graphml", 2, None, ("document type",)),
    Case("syntax.ttl", 3, None, ("oops",)),
    Case("plain_triple.ttl", 4, None, ("has no confidence", "default_confidence")),
    Case("confidence_text.ttl", 3, None, ("confidence is not a number", "high")),
    Case("confidence_of_nothing.ttl", 4, None, ("what is no statement",)),
    Case("two_confidences.ttl", 4, None, ("second confidence",)),
    Case("out_of_range.ttl", 5, "confidence", ("outside [0, 1]", "'9'")),
    Case("graph_without_confidence.trig", 2, None, ("has no confidence", "<http://x/c>")),
    Case("string_no_header.txt", None, None, ("no column protein1",), 0, STRING),
    Case("string_score_too_high.txt", 3, "combined_score", ("outside [0, 1000]", "'1001'"), 1, STRING),
    Case("string_short_line.txt", 2, None, ("2 columns instead of 3",), 1, STRING),
    Case("kgx_score.tsv", 3, "stringdb_combined_score", ("outside [0, 1000]", "'1001'", "columns=")),
    Case("kgx_short_line.tsv", 2, None, ("3 columns instead of 5",)),
    Case("mitab_score.txt", 3, "intact-miscore", ("not a number", "'high'")),
    Case("mitab_columns.txt", None, None, ("9 columns instead of 15, 36, 42", "2.7"), 0),
    Case("mitab_no_score.txt", None, None, ("no row has a score", "lpr", "score="), 0),
    Case("sssom_confidence.tsv", 5, "confidence", ("outside [0, 1]", "'1.5'")),
    Case("sssom_no_confidence.tsv", None, None, ("no column confidence", "similarity_score"), 0),
    Case("diseases_stars.tsv", 2, "stars", ("outside [0, 5]", "'6'")),
    Case("neo4j_confidence.csv", 2, "confidence:float", ("not a number", "'sure'")),
    Case("lightrag_weight.graphml", 37, "confidence", ("odds need a weight of 0 or more", "'-1'")),
    Case("conceptnet_unscaled.csv", 1, "information", ("outside [0, 1]", "'2'", "paper", "3.0"), 1, CONCEPTNET),
    Case("conceptnet_no_weight.csv", 2, "information", ("has no weight", "is not JSON"), 2, CONCEPTNET),
    Case("conceptnet_four_columns.csv", 1, None, ("4 columns instead of 5",), 1, CONCEPTNET),
    Case("nell_no_probability.tsv", None, None, ("'Probability'",), 0, {"format": "nell"}),
    Case("ids_unknown.tsv", 2, "tail", ("no such id", "line 3, column relation", "no integer id"), 3, IDS),
    Case("facts.unknown", None, None, ("'.unknown'", "format=", "parquet"), 0),
]


@pytest.mark.parametrize("case", CASES, ids=[case.file for case in CASES])
def test_each_file_is_an_error_that_names_the_place(case: Case) -> None:
    with pytest.raises(DataError) as caught:
        read(CORPUS / case.file, **case.options)
    error = caught.value
    text = str(error)
    assert text.startswith(f"{CORPUS / case.file}: ")
    assert error.count == case.count
    first = error.problems[0] if error.problems else None
    assert case.line in (SOMEWHERE, first.line if first else None)
    assert (first.column if first else None) == case.column
    for fragment in case.fragments:
        assert fragment in text
    assert error.hint


def test_the_corpus_and_the_table_hold_the_same_files() -> None:
    listed = {case.file for case in CASES}
    there = {path.name for path in CORPUS.iterdir()} - {"relations.tsv"}
    assert {name for name in there if not name.startswith("entities")} == listed


@pytest.mark.parametrize(
    ("file", "line", "column", "fragment"),
    [
        ("entities_gap.tsv", 2, "id", "not among 0…1"),
        ("entities_twice.tsv", 2, "id", "given before, in line 1"),
        ("entities_no_id.tsv", 1, "id", "no integer"),
    ],
)
def test_malformed_files_of_names(file: str, line: int, column: str, fragment: str) -> None:
    with pytest.raises(DataError, match=fragment) as caught:
        read_vocabulary(CORPUS / file)
    assert (caught.value.problems[0].line, caught.value.problems[0].column) == (line, column)


def test_ten_offenders_are_shown_and_all_are_counted() -> None:
    with pytest.raises(DataError) as caught:
        read(CORPUS / "confidence_twelve_bad.tsv")
    assert [problem.line for problem in caught.value.problems] == list(range(2, 12))
    assert caught.value.count == 12


def test_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").touch()
    with pytest.raises(DataError, match=r"no such file[\s\S]*facts\.tsv"):
        read(tmp_path / "fact.tsv")
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        read(tmp_path / "folder.tsv")
    with pytest.raises(DataError, match="no extension says the format"):
        read(tmp_path / "facts")


def test_unknown_formats_and_options_list_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\t1\n")
    with pytest.raises(ConfigError, match=r"unknown reader 'tvs'\n.*tsv.*conceptnet"):
        read(path, format="tvs")
    with pytest.raises(ConfigError, match=r"reader 'tsv' has no option channels\n.*delimiter"):
        read(path, channels=["experiments"])
    with pytest.raises(ConfigError, match="reader 'pandas' reads an object"):
        read(path, format="pandas")
    with pytest.raises(ConfigError, match="type list"):
        read([("a", "r", "b", 1.0)])
    with pytest.raises(ConfigError, match=r"delimiter '\|\|'"):
        read(path, delimiter="||")


def test_a_parser_failure_without_a_finding_is_still_a_data_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\t1\nc\tr\tb\tx\n")
    monkeypatch.setattr("ukge.graph.readers.delimited.diagnose", lambda *_: None)
    with pytest.raises(DataError, match=r"cannot be read: .*'x'"):
        read(path)
