"""Small files that unpack to gigabytes, or grow while they are read, end as an error with a place, in little memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ukge.errors import DataError
from ukge.graph.files import LONGEST
from ukge.graph.readers import read

MEGABYTE = 1 << 20
CHILD = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from ukge.errors import DataError
from ukge.graph.readers import read

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
said = {}
for path in sys.argv[1:]:
    try:
        read(path)
        said[path] = ["was read"]
    except DataError as error:
        said[path] = [str(problem) for problem in error.problems]
print(json.dumps({"said": said, "grown": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}))
"""
OPENING: dict[str, bytes] = {
    "zeros.tsv": b"",
    "zeros.csv": b"",
    "zeros.jsonl": b"",
    "zeros.graphml": b"",
    "zeros.rdf": b"",
    "zeros.ttl": b"",
    "zeros.jsonld": b"",
    "late.tsv": b"a\tr\tb\t0.5\n" * 3,
    "literal.ttl": b'<a:a> <b:b> "',
    "literal.nt": b'<a:a> <b:b> "',
    "iri.ttl": b"<a:a",
    "string.jsonld": b'{"@id": "',
    "text.rdf": b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">',
    "tag.rdf": b'<a b="',
    "comment.rdf": b"<!--",
    "text.graphml": b'<graphml><key id="c"/><graph><edge><data key="c">',
    "tag.graphml": b'<graphml a="',
    "quoted.csv": b'a,r,"',
    "string.jsonl": b'{"head": "',
}


def test_ten_gigabytes_of_one_line_end_quickly_in_little_memory(tmp_path: Path) -> None:
    """Members of a gzip file follow each other, so that 10 GB take no time to make."""
    zeros, letters = (gzip.compress(byte * (16 * MEGABYTE), 9) for byte in (b"\0", b"a"))
    paths = []
    for name, opening in OPENING.items():
        path = tmp_path / f"{name}.gz"
        member = zeros if name.startswith("zeros") or name == "late.tsv" else letters
        path.write_bytes(gzip.compress(opening) + member * 640)
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    for path, said in answer["said"].items():
        assert said, path
        assert said != ["was read"], path
    assert "line 4" in answer["said"][str(tmp_path / "late.tsv.gz")][0]
    assert answer["grown"] < 700 * 1024, "kilobytes"


def test_many_lines_of_a_quoted_record_are_one_too_long(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv.gz"
    path.write_bytes(gzip.compress(b"a,r,b,0.5\n") + gzip.compress(b'"\n",' * MEGABYTE) * 100)
    with pytest.raises(DataError, match="line 2: longer than"):
        read(path)
    path.write_bytes(gzip.compress(b"\n" * MEGABYTE) * 1000)
    with pytest.raises(DataError, match="blank lines"):
        read(path)


def test_a_million_digits_that_are_no_number_are_told_at_once(tmp_path: Path) -> None:
    """Tried in every division of the digits, they would take days."""
    path = tmp_path / "digits.tsv"
    path.write_text(f"a\tr\tb\t0.5\na\tr\tc\t{'9' * 1_000_000}x\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2, column confidence: confidence is not a number"):
        read(path)


def test_a_long_line_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    name = "n" * (LONGEST - len("a\tr\t\t0.5"))
    path.write_text(f"a\tr\t{name}\t0.5\nb\tr\tc\t0.5\n")
    assert read(path)[0].tail == name
    path.write_text(f"b\tr\tc\t0.5\na\tr\tn{name}\t0.5\n")
    with pytest.raises(DataError, match="line 2: longer than 1,048,576 bytes"):
        read(path)


def laughs(encoding: str) -> bytes:
    """Entities that stand for 30 of the one before: 30⁸ letters of some hundred bytes."""
    entities = "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 30}">' for i in range(8))
    opening = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [<!ENTITY a "ha">{entities}]>'
    rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    body = f'<rdf:RDF {rdf}><rdf:Description rdf:about="a:a"><b xmlns="b:">&i;</b></rdf:Description></rdf:RDF>'
    return (opening + body).encode(encoding)


@pytest.mark.parametrize("extension", ["rdf", "rdf.gz", "graphml", "graphml.zst"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "latin-1", "utf-7"])
def test_no_document_type_in_any_xml(tmp_path: Path, extension: str, encoding: str) -> None:
    import zstandard

    pack: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}
    path = tmp_path / f"laughs.{extension}"
    path.write_bytes(pack.get(extension.rsplit(".", maxsplit=1)[-1], bytes)(laughs(encoding)))
    with pytest.raises(DataError, match=r"document type|not in UTF-8|encoding that cannot be read") as caught:
        read(path)
    assert caught.value.problems[0].line == 1


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("deep.ttl", b"<a:a> <b:b> <<( "),
        ("deep.nt", b"<<( <a:a> <b:b> "),
        ("deep.trig", b"[<b:b> "),
        ("deep.graphml", b"<a>"),
        ("deep.rdf", b'<a xmlns="b:">'),
        ("deep.jsonl", b'{"a":'),
        ("deep.jsonld", b"["),
    ],
)
def test_nesting_without_end_is_refused(tmp_path: Path, name: str, opening: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(opening * (MEGABYTE // len(opening) - 1))
    with pytest.raises(DataError):
        read(path)
