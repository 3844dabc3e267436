"""Nothing is misread: what could be taken for another fact is an error, or follows a rule that docs/data.md states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ukge.errors import DataError, RuleError
from ukge.graph.readers import read, read_vocabulary
from ukge.logic.exchange import read_anyburl, read_json
from ukge.logic.syntax import parse_rule

KEYS = '<key id="r" for="edge" attr.name="relation"/><key id="c" for="edge" attr.name="confidence"/>'
RDF = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\nPREFIX u: <https://w3id.org/ukge#>\nPREFIX : <x:>\n"


def graphml(edge: str, keys: str = KEYS) -> str:
    return f'<graphml>{keys}<graph edgedefault="directed"><node id="a"/>\n{edge}</graph></graphml>'


def edge(confidence: str = '<data key="c">0.5</data>', more: str = "") -> str:
    return f'<edge source="a" target="b"><data key="r">likes</data>{confidence}{more}</edge>'


def fault(tmp_path: Path, file: str, text: str | bytes, **options: Any) -> str:
    path = tmp_path / file
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DataError) as caught:
        read(path, **options)
    return str(caught.value)


def test_decimal_commas(tmp_path: Path) -> None:
    told = fault(tmp_path, "f.csv", "a,likes,b,0,85\nb,likes,c,1,0\n")
    assert "decimal comma" in told
    assert "0.85, not 0,85" in told
    assert "decimal comma" in fault(tmp_path, "f.csv", "a,b,0,85\nb,c,0,9\n", relation="likes")
    assert "0.85, not 0,85" in fault(tmp_path, "f.csv", "a;likes;b;0,85\n", delimiter=";")


def test_what_only_looks_like_a_decimal_comma_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a,likes,b,0,85\nb,likes,c,0.5,7\n")
    assert [fact[3:] for fact in read(path)] == [(0.0, "85"), (0.5, "7")]
    path.write_text("head,relation,tail,confidence,source\na,likes,b,0,85\n")
    assert read(path)[0][3:] == (0.0, "85")


NEVER_CLOSED = {
    "the next mark opens a name": ('"a,r,b,0.5\n"c",r,d,0.7\n', 1, "head"),
    "the next mark is lines away": ('a,r,b,0.5\nx,r,"b,0.5\nc,r,d,0.7\ne,r,"f",0.7\n', 2, "tail"),
    "it is in a column that is not read": (
        'head,relation,tail,confidence,note\na,r,b,0.5,"so\nc,r,d,0.7,"yes"\n', 2, None,
    ),
    "lines end as on Windows": ('a,r,b,0.5\r\n"c,r,d,0.5\r\n"e",r,f,0.7\r\n', 2, "head"),
    "the last line has no end": ('x,r,y,0.5\n"a,r,b,0.5\n"c",r,d,0.7', 2, "head"),
}  # fmt: skip


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(("text", "line", "column"), NEVER_CLOSED.values(), ids=NEVER_CLOSED)
def test_a_quotation_mark_that_is_never_closed_makes_no_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, column: str | None, large: bool
) -> None:
    if large:
        monkeypatch.setattr("ukge.graph.readers.delimited.LARGE_BYTES", 1)
    path = tmp_path / "f.csv"
    path.write_bytes(text.encode())
    with pytest.raises(DataError) as caught:
        read(path)
    first = caught.value.problems[0]
    assert (first.what, first.line, first.column) == ("a quotation mark is never closed", line, column)
    assert first.value == text.splitlines()[line - 1]
    assert len(read(path, bad_rows=tmp_path / "bad.tsv")) == len(text.splitlines()) - 1 - text.startswith("head")


def test_names_with_line_ends_in_quotation_marks_are_names(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(b'a,r,"two\nlines",0.5\n\n"a ""b""\r\nc",r,"""\n""",0.7\n')
    assert [fact[:3] for fact in read(path)] == [("a", "r", "two\nlines"), ('a "b"\r\nc', "r", '"\n"')]
    assert read(path, bad_rows=tmp_path / "bad.tsv") == read(path)


@pytest.mark.parametrize("number", ["0_1", "٠.٥", "1e", "0x1p-1", "True"])
def test_numbers_are_the_same_in_all_formats(tmp_path: Path, number: str) -> None:
    for name, text in {
        "f.tsv": f"a\tlikes\tb\t0.5\nb\tlikes\tc\t{number}\n",
        "f.jsonl": f'["a", "likes", "b", "{number}"]\n',
        "f.graphml": graphml(edge(f'<data key="c">{number}</data>')),
        "f.ttl": f'{RDF}:a :likes :b {{| u:confidence "{number}" |}} .\n',
    }.items():
        assert "not a number" in fault(tmp_path, name, text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (edge('<data key="c">0.<b/>5</data>'), "confidence holds elements, not text"),
        (edge('<data key="c">0.1</data><data key="c">0.9</data>'), "data is given twice"),
        (edge(more='<data key="other">1</data>'), "key that is not declared"),
        (edge(more="0.9"), "belongs to no data"),
        ("<edge source='a' target='b'>" + edge() + "</edge>", "not in a graph"),
    ],
)
def test_graphml_that_says_two_things(tmp_path: Path, text: str, what: str) -> None:
    told = fault(tmp_path, "f.graphml", graphml(text))
    assert what in told
    assert "line 2" in told


def test_graphml_declarations_and_names(tmp_path: Path) -> None:
    assert "declared twice" in fault(tmp_path, "f.graphml", graphml(edge(), KEYS + '<key id="c" for="edge"/>'))
    twice = KEYS + '<key id="d" for="edge" attr.name="confidence"/>'
    assert "two keys have one name" in fault(tmp_path, "f.graphml", graphml(edge(), twice))
    named = '<key id="n" for="node" attr.name="label"/>' + KEYS
    node = '<node id="b"><data key="n">Bea</data></node>'
    assert "no name" in fault(tmp_path, "f.graphml", graphml(node + edge(), named), name="label")
    assert "one id" in fault(tmp_path, "f.graphml", graphml(node + node + edge(), named), name="label")


def test_drawings_in_graphml_are_passed_over(tmp_path: Path) -> None:
    drawing = '<data key="d"><y:edge xmlns:y="http://www.yworks.com/xml/graphml"><y:a>9</y:a></y:edge></data>'
    path = tmp_path / "f.graphml"
    path.write_text(graphml(edge(more=drawing), KEYS + '<key id="d" for="edge" attr.name="look"/>'))
    assert [tuple(fact) for fact in read(path)] == [("a", "likes", "b", 0.5, None)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            '{"head": "a", "relation": "r", "tail": "b", "confidence": 0.1, "confidence": 0.9}',
            "'confidence' stands twice",
        ),
        ("[" * 50_000, "is not JSON"),
        ('["a", "r", "b", ' + "9" * 5000 + "]", "is not JSON"),
        ('["a", "r", "b", ' + "9" * 400 + "]", "confidence is not a number"),
    ],
)
def test_json_that_python_reads_otherwise(tmp_path: Path, text: str, what: str) -> None:
    told = fault(tmp_path, "f.jsonl", f'["a", "r", "b", 1]\n{text}\n')
    assert "line 2" in told
    assert what in told


@pytest.mark.parametrize("name", ["subject", "object", "predicate"])
def test_statements_with_two_parts_of_one_kind(tmp_path: Path, name: str) -> None:
    text = f"{RDF}_:s rdf:subject :a ; rdf:predicate :likes ; rdf:object :b ; rdf:{name} :c ; u:confidence 0.5 ."
    assert f"second {name}" in fault(tmp_path, "f.ttl", text)
    two = f'{RDF}:a :likes :b {{| u:confidence 0.5 ; u:source "x", "y" |}} .'
    assert "second source" in fault(tmp_path, "f.ttl", two)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "shift_jis", "nonsense"])
def test_rdf_xml_that_says_another_encoding(tmp_path: Path, encoding: str) -> None:
    """Its parser takes everything for UTF-8, and would read the two letters Ã© as one, é."""
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    )
    told = fault(tmp_path, "f.rdf", text)
    assert "UTF-8" in told
    assert "line 1" in told


def test_columns_with_one_name(tmp_path: Path) -> None:
    text = "head,relation,tail,confidence,Confidence \na,likes,b,0.5,0.9\n"
    assert "two columns are named 'confidence'" in fault(tmp_path, "f.csv", text)
    path = tmp_path / "f.csv"
    assert read(path, columns={"confidence": 4})[0].confidence == 0.9


def test_ids_of_thousands_of_digits(tmp_path: Path) -> None:
    names = tmp_path / "names.tsv"
    names.write_text(f"0\ta\n{'1' * 5000}\tb\n")
    with pytest.raises(DataError, match="line 2"):
        read_vocabulary(names)
    names.write_text("0\ta\n")
    told = fault(tmp_path, "f.tsv", f"0\tlikes\t{'1' * 5000}\t0.5\n", entities=names)
    assert "line 1" in told
    assert "no such id" in told


@pytest.mark.parametrize(
    "line",
    [
        "4\t3\t0.75\th(X,Y) <= r(X,A), s(A",
        "4\t3\t0.75\th(X,Y) <= r(X,Y), s(X,",
        "4\t3\t0.75\th(X,Y) <= r(X,Y),",
        "4\t3\t0.75\th(X,Y) <= r(X,Y) s(X,Y)",
        "4\t3\t0_7\th(X,Y) <= r(X,Y)",
        "4\t3\tnan\th(X,Y) <= r(X,Y)",
    ],
)
def test_a_rule_of_anyburl_that_is_cut_short(line: str) -> None:
    with pytest.raises(RuleError, match=r"rules\.txt, line 2"):
        read_anyburl(f"\n{line}", source="rules.txt")


def test_rules_that_no_rule_is_made_of() -> None:
    with pytest.raises(RuleError):
        parse_rule("٣: p(A, B) -> q(A, B)")
    for text in (
        '[{"rule": 3}]',
        '[{"rule": null}]',
        "[1]",
        "[" * 100_000,
        "9" * 5000,
        '{"rule": "p(A, B) -> q(A, B)"}',
    ):
        with pytest.raises(RuleError):
            read_json(text)


def test_a_source_that_is_spelt_otherwise_on_another_line_is_not_lost(tmp_path: Path) -> None:
    """The first line chose the key, and the sources of all others were dropped."""
    plain = '{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5'
    for first, second in (("sourCe", "source"), ("source", "Source")):
        told = fault(tmp_path, "f.jsonl", f'{plain}, "{first}": "x"}}\n{plain}, "{second}": "y"}}\n')
        assert f"line 2, column {second}: key '{second}' where other lines have '{first}'" in told
    (tmp_path / "g.jsonl").write_text(f'{plain}}}\n{plain}, "Source": "y"}}\n', encoding="utf-8")
    assert [fact.source for fact in read(tmp_path / "g.jsonl")] == [None, "y"]


@pytest.mark.parametrize("more", [r'"note": "bo\ud800ok"', r'"note": ["\ud800"]', r'"no\ud800te": 1'])
def test_half_a_surrogate_pair_beside_a_fact_is_named(tmp_path: Path, more: str) -> None:
    """Values of other columns come back beside predictions; the column could not be made."""
    file = tmp_path / "f.jsonl"
    file.write_text(f'{{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5, {more}}}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"f\.jsonl: 1 problem in 1 line\n  line 1, column .*half a surrogate pair"):
        read(file)
