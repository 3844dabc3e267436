"""What is fuzzed: every reader and rule syntax, with seeds that it reads and what its answers are compared with."""

# ruff: noqa: E501  (seeds and words are as long as they are)
from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from tests.fuzz.directories import Directory, make_evidence, make_run
from tests.fuzz.doubles import MalformedError, UnknownError, anyburl, delimited_by_commas, json_lines, tsv
from tests.fuzz.doubles_of_graphs import conceptnet, graphml, n_triples, nell, parquet, rdf, string
from tests.fuzz.mutate import flipped, mutated
from tests.fuzz.outcomes import ACCEPTED, MISREAD, REFUSED, UNCAUGHT, UNCHECKED, Outcome

from ukge.errors import UkgeError
from ukge.graph.bad_rows import BadRows
from ukge.graph.readers import read, read_vocabulary, read_with_report
from ukge.graph.readers.layout import Roles
from ukge.graph.readers.node_files import read_nodes
from ukge.graph.readers.rows import read_rows
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import write
from ukge.logic.exchange import read_rules_file

CORPUS = Path(__file__).parents[1] / "graph" / "corpus"
FOUND = Path(__file__).parent / "corpus"
GRAPH = UncertainGraph.from_facts(
    [
        ("cat", "hunts", "mouse", 0.8, "web"),
        ("dog, old", 'said "no"', "cat", 0.25, None),
        ("Ünïcode", "hunts", "ключ", 1.0, "book"),
        ("http://a.b/c", "urn:x:y", "d'e", 0.0, "web"),
        ("cat", "likes", "mouse", 0.123456789, "book"),
    ]
)


@dataclass(frozen=True)
class Target:
    """One thing that reads: the extension of its files, how it is called, its seeds, and its double."""

    name: str
    extension: str
    call: Callable[[Path], Any]
    seeds: tuple[bytes, ...]
    double: Callable[[bytes], list[Any]] | None = None
    packs: bool = False
    binary: bool = False

    def prepare(self, _work: Path) -> None:
        """Make nothing: its seeds are there."""

    def inputs(self, draw: random.Random) -> tuple[str, bytes, bytes | None]:
        """Return an input: its extension, its bytes, and what it holds unpacked, if that is known."""
        seed = draw.choice(self.seeds)
        if self.binary:
            data = flipped(seed, draw) if draw.random() < 0.95 else seed
            return self.extension, data, data
        pack = draw.choice(tuple(PACKERS)) if self.packs and draw.random() < 0.25 else None
        if pack is None:
            data = mutated(seed, self.seeds, draw)
            return self.extension, data, data
        if draw.random() < 0.5:
            data = mutated(seed, self.seeds, draw)
            return f"{self.extension}.{pack}", PACKERS[pack](data), data
        packed = flipped(PACKERS[pack](seed), draw)
        return f"{self.extension}.{pack}", packed, unpacked(packed, pack)

    def outcome(self, path: Path, plain: bytes | None) -> Outcome:  # noqa: PLR0911
        """Read an input: an error that names the file, or an answer that the double gives as well."""
        try:
            found = self.call(path)
        except UkgeError as error:
            return Outcome(REFUSED) if str(path) in str(error) else Outcome(UNCAUGHT, f"no place: {error}"[:300])
        except Exception as error:
            return Outcome(UNCAUGHT, f"{type(error).__name__}: {error}"[:300])
        if self.double is None or plain is None:
            return Outcome(UNCHECKED)
        facts: list[Any] = [tuple(one) if isinstance(found, UncertainGraph) else len(one) for one in found]
        try:
            expected = self.double(plain)
        except UnknownError:
            return Outcome(UNCHECKED)
        except MalformedError:
            return Outcome(MISREAD, f"malformed, but read as {facts[:3]}"[:300])
        wrong = next((pair for pair in zip(facts, expected, strict=False) if not same(*pair)), None)
        if wrong is None and len(facts) == len(expected):
            return Outcome(ACCEPTED)
        return Outcome(MISREAD, f"{len(facts)} facts instead of {len(expected)}: {wrong}"[:300])


class Lenient:
    """Reads with bad rows put aside, and holds that to what strict reading says of the same file."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __call__(self, path: Path) -> UncertainGraph:
        bad = BadRows()
        strict = self._strict(path)
        graph, report = read_with_report(path, bad_rows=bad, **self.options)
        told = bad.frame()
        if bad.rows != report.aside.bad or len(told) != sum(bad.counts.values()) or len(told) < bad.rows:
            raise AssertionError(f"{bad!r}, but {report.aside} and {len(told)} lines")
        if report.facts + sum(report.skipped.values()) + bad.rows != report.rows:
            raise AssertionError(f"{report.facts} facts, {report.skipped} and {bad!r} are not {report.rows} rows")
        if strict is not None and (bad.rows or strict != graph):
            raise AssertionError(f"strict reading accepts it, and lenient reading gives {graph!r} and {bad!r}")
        if strict is None and not bad.rows:
            raise AssertionError(f"strict reading refuses it, and lenient reading puts nothing aside of {graph!r}")
        return graph

    def _strict(self, path: Path) -> UncertainGraph | None:
        try:
            return read(path, **self.options)
        except UkgeError:
            return None


def same(found: Any, expected: Any) -> bool:
    """Return whether two facts have the same names and source, and the same confidence but for rounding."""
    if not isinstance(found, tuple):
        return bool(found == expected)
    names = found[:3] + found[4:] == expected[:3] + expected[4:]
    return bool(names and abs(found[3] - expected[3]) <= 1e-9)


def unpacked(data: bytes, pack: str) -> bytes | None:
    """Return what a packed file holds, None if it is damaged."""
    try:
        return gzip.decompress(data) if pack == "gz" else zstandard.ZstdDecompressor().stream_reader(data).read()
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return None


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": _zstd}


def targets(work: Path) -> list[Target | Directory]:
    """Return all targets; `work` is a directory for the seeds that are made."""
    facts = [
        Target(name, name, read, _seeds(work, name), double, packs=True, binary=name == "parquet")
        for name, double in (
            ("tsv", tsv), ("csv", delimited_by_commas), ("jsonl", json_lines), ("parquet", parquet(*_written(work, "parquet"))),
            ("graphml", graphml), ("nt", n_triples), ("nq", n_triples),
            *((syntax, rdf(syntax)) for syntax in ("ttl", "trig", "n3", "rdf", "jsonld")),
        )
    ]  # fmt: skip
    entities, relations = CORPUS / "entities.tsv", CORPUS / "relations.tsv"
    named = [
        Target(
            "string", "txt", _reader(format="string", mirrors=True), (STRING, *_corpus("string_*")), string, packs=True
        ),
        Target(
            "conceptnet",
            "csv",
            _reader(format="conceptnet", scale="conceptnet"),
            (CONCEPTNET, *_corpus("concept*")),
            conceptnet,
        ),
        Target("nell", "tsv", _reader(format="nell"), (NELL, *_corpus("nell*")), nell),
        *(
            Target(f"{name} as {ext}", ext, _reader(format=name), _samples(pattern), packs=True)
            for name, ext, pattern in (
                ("kgx", "tsv", "rtx_edges.tsv"),
                ("kgx", "jsonl", "*_edges.jsonl"),
                ("mitab", "txt", "intact.txt"),
                ("mitab", "mitab", "*.mitab"),
                ("sssom", "tsv", "*.sssom.tsv"),
                ("diseases", "tsv", "disease_*.tsv"),
                ("neo4j", "csv", "neo4j/gene_disease.csv"),
                ("lightrag", "graphml", "graph_chunk*.graphml"),
            )
        ),
        Target("scaled", "tsv", _reader(scale="clip:0.1,3 log minmax:0.1,1"), _seeds(work, "tsv")),
        Target("ids", "tsv", _reader(entities=entities, relations=relations), (b"0\t0\t1\t0.5\n", *_corpus("ids*"))),
        Target("columns", "csv", _reader(columns={"head": "b", "confidence": 0}, relation="r"), (b"c,t,b\n0.5,x,y\n",)),
        Target("one relation", "csv", _reader(relation="r"), (b"a,b,0.5\nc,d,0.25\n", b"head,tail,score\na,b,0.5\n")),
        Target("vocabulary", "tsv", read_vocabulary, (b"0\ta\n1\tb\n2\tc d\n", *_corpus("entities*"))),
    ]
    rows = [
        Target(f"rows of {name}", name, _rows, _seeds(work, name), binary=name == "parquet", packs=True)
        for name in ("tsv", "csv", "jsonl", "parquet")
    ]
    nodes = [
        Target(
            f"nodes of {name}",
            name,
            read_nodes,
            (seed, *_files(sorted((FOUND / f"nodes-of-{name}").glob("*")))),
            packs=True,
        )
        for name, seed in (("tsv", NODES), ("csv", NODES.replace(b"\t", b",")), ("jsonl", NODES_JSON))
    ]
    lenient = [
        *(
            Target(f"lenient {name}", name, Lenient(), _seeds(work, name), binary=name == "parquet", packs=True)
            for name in ("tsv", "csv", "jsonl", "parquet", "graphml", "ttl", "nt")
        ),
        *(
            Target(f"lenient {name}", ext, Lenient(format=name), _samples(pattern))
            for name, ext, pattern in (
                ("kgx", "tsv", "rtx_edges.tsv"),
                ("mitab", "txt", "intact.txt"),
                ("sssom", "tsv", "*.sssom.tsv"),
                ("diseases", "tsv", "disease_*.tsv"),
                ("neo4j", "csv", "neo4j/gene_disease.csv"),
                ("lightrag", "graphml", "graph_chunk*.graphml"),
            )
        ),
        Target("lenient string", "txt", Lenient(format="string"), (STRING, *_corpus("string_*"))),
        Target("lenient conceptnet", "csv", Lenient(format="conceptnet", scale="conceptnet"), (CONCEPTNET,)),
        Target("lenient nell", "tsv", Lenient(format="nell"), (NELL, *_corpus("nell*"))),
    ]
    rules = [
        Target("rules: psl", "psl", read_rules_file, (PSL,)),
        Target("rules: anyburl", "txt", read_rules_file, (ANYBURL,), anyburl),
        Target("rules: json", "json", read_rules_file, (RULES_JSON,)),
    ]
    return [
        *facts,
        *named,
        *rows,
        *nodes,
        *lenient,
        *rules,
        Directory("run", make_run),
        Directory("evidence", make_evidence),
    ]


def _reader(**options: Any) -> Callable[[Path], UncertainGraph]:
    return lambda path: read(path, **options)


def _rows(path: Path) -> Any:
    return read_rows(path, Roles(("head", "relation", "tail", "confidence"), (), more=True))


def _seeds(work: Path, name: str) -> tuple[bytes, ...]:
    seeds = list(MORE.get(name, ()))
    if name in ("tsv", "csv", "jsonl", "parquet", "graphml", "ttl", "nt", "trig", "nq"):
        seeds += _written(work, name)
    faulty = [seed for seed in (*_corpus(f"*.{name}"), *_files(sorted((FOUND / name).glob(f"*.{name}")))) if seed]
    fine = seeds * (1 + len(faulty) // len(seeds))  # as often as those with faults, or little would be read
    return (*fine, *faulty)


def _written(work: Path, name: str) -> list[bytes]:
    path = work / f"seed.{name}"
    written = []
    for graph in (GRAPH, GRAPH.where(relation="likes")):
        write(graph, path)
        written.append(path.read_bytes())
    return written


def _samples(pattern: str) -> tuple[bytes, ...]:
    return _files(sorted((CORPUS.parent / "samples").glob(pattern)))


def _corpus(pattern: str) -> tuple[bytes, ...]:
    return _files(sorted(CORPUS.glob(pattern)))


def _files(paths: Iterable[Path]) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in paths)


STRING = (
    b"protein1 protein2 neighborhood textmining homology combined_score\n9.A 9.B 0 310 20 900\n9.B 9.C 44 0 0 150\n"
)
CONCEPTNET = (
    b'/a/[x]\t/r/IsA\t/c/en/cat\t/c/en/animal/n\t{"dataset": "/d/x", "weight": 2.0}\n'
    b'/a/[y]\t/r/Likes\t/c/en/dog\t/c/en/bone\t{"sources": [{"a": 1}], "weight": 1}\n'
)
NODES = (
    b"#id\tname\tcategory\tdescription\tsynonym\txref\tlength:int\n"
    b'a\tTP53\tbiolink:Gene|biolink:Protein\t"a, b"\tx|y\tz\t3\nb\t\t\t\t\t\t\na\tp53\tX\t\t\t\t4\n'
)
NODES_JSON = (
    b'{"id": "a", "name": "TP53", "category": ["Gene", "X"], "synonym": "x", "size": 3, "more": {"b": [1, null]}}\n'
    b'{"id": 7, "label": null}\n{"id": "a", "type": "Y", "xref": ["z"], "size": "many"}\n'
)
NELL = (
    b"Entity\tRelation\tValue\tIteration\tProbability\tSource\nconcept:a\tconcept:r\tconcept:b\t9\t0.93\tx [y]\n"
    b"concept:b\tconcept:r\tconcept:c\t10\t1.0\tz\n"
)
PSL = (
    b'# mined\n1.0: Synonym(A, B) & Synonym(B, C) -> Synonym(A, C) ^2\n0.4: "a b"(A, B) && q(A, C) -> !r(B, C)\n'
    b"r(A, B) <- p(B, A) // head first\n"
)
ANYBURL = b"4\t3\t0.75\th(X,Y) <= r1(X,A), r2(A,Y)\n10\t2\t0.2\th(X,Y) <= r1(Y,X)\nh(X,Y) <= s(X,Y)\n"
RULES_JSON = b'[{"rule": "0.5: p(A, B) -> q(B, A) ^2", "weight": 0.5}, {"rule": "p(A, B) -> r(A, B)"}]'
RDF_XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="https://w3id.org/ukge#" xmlns:x="http://x/">
  <rdf:Statement><rdf:subject rdf:resource="http://x/a"/><rdf:predicate rdf:resource="http://x/likes"/>
    <rdf:object rdf:resource="http://x/b"/><u:confidence rdf:datatype="http://www.w3.org/2001/XMLSchema#double">0.5</u:confidence>
  </rdf:Statement></rdf:RDF>"""
JSON_LD = b"""{"@context": {"rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "u": "https://w3id.org/ukge#"},
 "@id": "_:s", "@type": "rdf:Statement", "rdf:subject": {"@id": "http://x/a"}, "rdf:predicate": {"@id": "http://x/likes"},
 "rdf:object": {"@id": "http://x/b"}, "u:confidence": 0.5}"""
GRAPHML = b"""<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="r" for="edge" attr.name="relation"><default>likes</default></key><key id="c" for="edge" attr.name="weight"/>
<key id="d" for="all" attr.name="look"/><graph edgedefault="directed"><desc>text</desc><node id="a"><graph><node id="z"/></graph></node>
<edge source="a" target="b" directed="true"><data key="c"> 0.5 </data><data key="d"><x>1</x></data></edge>
<edge source="a" target="c"><data key="c"><![CDATA[0.25]]></data><data key="r">has</data></edge></graph></graphml>"""
TURTLE = b"""@prefix : <http://x/> . @prefix u: <https://w3id.org/ukge#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
<< :a :likes :b >> u:confidence 0.5 ; u:source "web" . :a :likes :c {| u:confidence "0.25" |} .
_:s a rdf:Statement ; rdf:subject :a ; rdf:predicate :has ; rdf:object \"\"\"long 'text'\"\"\"@en ; u:confidence 1.0e-1 . # ok
"""
MORE: dict[str, tuple[bytes, ...]] = {
    "tsv": (b"head\trelation\ttail\tconfidence\na\tr\tb\t0.5\n", b"a\tr\tb\t0.5\r\nb\tr\tc\t1\r\n"),
    "csv": (b'head,relation,tail,confidence,source\na,r,"b\nb",0.5,web\n', b'a,r,"b ""c""",.5\n', b"a,r,b,0,85\n"),
    "jsonl": (
        b'["a", "r", "b", 0.5]\n["a", "r", 3, "0.25", "web"]\n',
        b'{"s": "a", "p": "r", "o": "b", "weight": 1}\n',
    ),
    "rdf": (RDF_XML,),
    "jsonld": (JSON_LD,),
    "graphml": (GRAPHML,),
    "ttl": (TURTLE,),
    "trig": (TURTLE,),
    "n3": (b"".join(line + b"\n" for line in TURTLE.splitlines() if not line.startswith(b"<<")),),
}
