"""RDF 1.2: every fact is a statement annotated with its confidence, in Turtle or N-Triples.

    <…/entity/cat> <…/relation/hunts> <…/entity/mouse> {| ukge:confidence "0.8"^^xsd:double |} .

Names become IRIs by percent-encoding under a base, and come back from there unchanged; names that are web addresses
or URNs stand for themselves.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import ConfigError, DataError
from ukge.graph.files import extension_of
from ukge.graph.formats import Format, writers
from ukge.graph.iris import BASE, CONFIDENCE, RDF, SOURCE, iri_of, pyoxigraph
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.lines import Escape, batches, joined, one_by_one, write_joined

_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_REIFIES = f"<{RDF}reifies>"
_SYNTAXES = {".ttl": "turtle", ".trig": "turtle", ".nt": "ntriples", ".nq": "ntriples"}


def write_rdf(
    graph: UncertainGraph,
    sink: pa.NativeFile,
    path: Path,
    *,
    base: str = BASE,
    confidence_predicate: str = CONFIDENCE,
    source_predicate: str = SOURCE,
    syntax: str | None = None,
) -> None:
    """Write annotated statements; a reader needs the same base and predicates if they are not the default ones."""
    chosen = syntax or _SYNTAXES.get(extension_of(path))
    if chosen not in ("turtle", "ntriples"):
        raise DataError("no RDF syntax to write", source=str(path), hint="Let the file's name end in .ttl or .nt.")
    for iri in (base, confidence_predicate, source_predicate):
        try:
            pyoxigraph().NamedNode(iri)
        except ValueError as error:
            raise ConfigError(f"{iri!r} is no IRI: {error}", hint="Give an absolute IRI.") from None
    written = _write_turtle if chosen == "turtle" else _write_ntriples
    written(graph, sink, base, confidence_predicate, source_predicate)


def _write_turtle(graph: UncertainGraph, sink: pa.NativeFile, base: str, confidence: str, source: str) -> None:
    sink.write(f"@prefix xsd: <{_DOUBLE.removesuffix('double')}> .\n".encode())
    origin = one_by_one(lambda text: f" ; <{source}> {_literal(text)}")
    names = {kind: _iris(kind, base, (confidence, source)) for kind in ("entity", "relation")}
    for batch in batches(graph, **names, source=origin, null=""):
        parts = [batch.head, " ", batch.relation, " ", batch.tail, f' {{| <{confidence}> "', batch.confidence]
        write_joined(sink, [*parts, '"^^xsd:double', "" if batch.source is None else batch.source, " |} .\n"])


def _write_ntriples(graph: UncertainGraph, sink: pa.NativeFile, base: str, confidence: str, source: str) -> None:
    names = {kind: _iris(kind, base, (confidence, source)) for kind in ("entity", "relation")}
    for batch in batches(graph, **names, source=one_by_one(_literal), null=""):
        triple = [batch.head, " ", batch.relation, " ", batch.tail]
        fact = ["_:f", batch.number]
        parts = [*triple, " .\n", *fact, f" {_REIFIES} <<( ", *triple, " )>> .\n"]
        parts += [*fact, f' <{confidence}> "', batch.confidence, f'"^^<{_DOUBLE}> .\n']
        if batch.source is not None:
            known = pc.not_equal(batch.source, "")
            parts.append(pc.if_else(known, joined([*fact, f" <{source}> ", batch.source, " .\n"]), ""))
        write_joined(sink, parts)


def _iris(kind: str, base: str, reserved: tuple[str, ...]) -> Escape:
    return one_by_one(lambda name: f"<{iri_of(name, kind, base, reserved)}>")


def _literal(text: str) -> str:
    escaped = re.sub(r'[\x00-\x1f"\\\x7f]', lambda found: f"\\u{ord(found[0]):04X}", text)
    return f'"{escaped}"'


writers.register("rdf")(Format(write_rdf, tuple(_SYNTAXES)))
