"""Plain readers of GraphML, RDF, Parquet, STRING, ConceptNet and NELL, written apart from ours.

They know the usual forms. What they do not know they say so of (`UnknownError`), and nothing is compared.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from xml.etree import ElementTree
from xml.parsers import expat

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph
from tests.fuzz.doubles import NUMBER, Fact, MalformedError, UnknownError, fact_of, lines_of, no_pairs_twice

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PARTS = ("subject", "predicate", "object")
OURS = "https://w3id.org/ukge"
IRI = r'<[^<>"{}|^`\\\x00-\x20]*>'
BLANK = r"_:[A-Za-z0-9_]+"
LITERAL = rf'"[^"\\\x00-\x1f\x7f]*"(?:@[a-z]+|\^\^{IRI})?'
BRACKET = re.compile(rb"\}|&#")
NODE = rf"(?:{IRI}|{BLANK}|{LITERAL})"
LINE = re.compile(
    rf"[ \t]*({IRI}|{BLANK})[ \t]*({IRI})[ \t]*"
    rf"(?:({NODE})|<<\([ \t]*({IRI}|{BLANK})[ \t]*({IRI})[ \t]*({NODE})[ \t]*\)>>)"
    rf"[ \t]*((?:{IRI}|{BLANK})[ \t]*)?\.[ \t]*"
)


class Term(NamedTuple):
    """A node of RDF: as N-Triples write it, and its value alone."""

    form: str
    value: str


Triple = tuple[Term, Term, Any]


def graphml(data: bytes) -> list[Fact]:
    try:
        root = ElementTree.fromstring(data)  # what is dangerous ours has refused
    except ElementTree.ParseError as error:
        # It writes names as {namespace}name, and calls a namespace with such a bracket, which XML allows, bad syntax.
        bracket = error.code == expat.errors.codes[expat.errors.XML_ERROR_SYNTAX] and BRACKET.search(data)
        raise (UnknownError if bracket else MalformedError) from None
    except (LookupError, ValueError):
        raise MalformedError from None
    elements = list(_elements(root, ""))
    keys: dict[str, str] = {}
    defaults: dict[str, str | None] = {}
    if any(_local(each) == "key" for each, within in elements if within != "graphml"):
        raise UnknownError
    places = [_local(each) for each in root]
    if "graph" in places and "key" in places[places.index("graph") :]:
        raise UnknownError  # what comes after edges says nothing of them
    for key in (each for each in root if _local(each) == "key"):
        values = [each for each in key if _local(each) == "default"]
        name, said = key.get("attr.name", key.get("id", "")), key.get("id", "")
        if len(values) > 1 or said in keys:
            raise UnknownError
        if key.get("for", "all") in ("edge", "all"):
            if name not in ("relation", "confidence", "weight", "source", "look") or name in keys.values():
                raise UnknownError
            defaults.update((name, _only_text(each)) for each in values)
        keys[said] = name if key.get("for", "all") in ("edge", "all") else ""
    facts = []
    for edge, within in elements:
        if _local(edge) == "hyperedge" or (_local(edge) == "edge" and within != "graph"):
            raise MalformedError
        if _local(edge) == "edge":
            facts.append(_edge(edge, keys, defaults))
    if any(each.get("edgedefault", "directed") != "directed" for each, _ in elements if _local(each) == "graph"):
        raise UnknownError
    return facts


def _edge(edge: ElementTree.Element, keys: dict[str, str], defaults: dict[str, str | None]) -> Fact:
    values = dict(defaults)
    said = [each for each in edge if _local(each) == "data"]
    named = [each.get("key") for each in said]
    if len(set(named)) < len(named) or any(name not in keys for name in named):
        raise MalformedError
    values |= {keys[each.get("key", "")]: _only_text(each) for each in said}
    if edge.get("directed", "true") != "true":
        raise MalformedError
    number = "confidence" if "confidence" in keys.values() else "weight"
    if not {"relation", number} <= values.keys() or None in (values["relation"], values[number]):
        raise MalformedError
    confidence = (values[number] or "").strip()
    return fact_of([edge.get("source"), values["relation"], edge.get("target"), confidence, values.get("source")])


def _elements(root: ElementTree.Element, within: str) -> Iterator[tuple[ElementTree.Element, str]]:
    """Return what belongs to GraphML, each with what it stands in: neither drawings nor what is inside of values."""
    if _local(root):
        yield root, within
        for each in root if _local(root) not in ("data", "default", "desc") else ():
            yield from _elements(each, _local(root))


def _local(element: ElementTree.Element) -> str:
    space, _, local = element.tag.rpartition("}")
    return local if not space or "graphml.graphdrawing.org" in space else ""


def _only_text(element: ElementTree.Element) -> str | None:
    return None if len(element) else element.text or ""


def n_triples(data: bytes) -> list[Fact]:
    """N-Triples and N-Quads, line by line, without escapes."""
    triples: list[Triple] = []
    for line in lines_of(data):
        if not line.strip(" \t") or line.lstrip(" \t").startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if found is None:
            raise UnknownError
        terms = [None if each is None else Term(each, _value(each)) for each in found.groups()[:6]]
        inner = tuple(terms[3:]) if terms[2] is None else terms[2]
        triples.append((terms[0], terms[1], inner))  # type: ignore[arg-type]
    return _annotated(triples)


def rdf(syntax: str) -> Callable[[bytes], list[Fact]]:
    """Return a reader of what a parser makes of any other syntax."""

    def read(data: bytes) -> list[Fact]:
        try:
            quads = list(pyoxigraph.parse(data, format=pyoxigraph.RdfFormat.from_extension(syntax)))
        except SyntaxError:
            raise MalformedError from None
        return _annotated([(_term(quad.subject), _term(quad.predicate), _term(quad.object)) for quad in quads])

    return read


def _term(node: Any) -> Any:
    if isinstance(node, pyoxigraph.Triple):
        return tuple(_term(each) for each in (node.subject, node.predicate, node.object))
    return Term(str(node), node.value)


def _value(form: str) -> str:
    return form[1 : form.rindex('"')] if form.startswith('"') else form[2:] if form.startswith("_:") else form[1:-1]


def _annotated(triples: list[Triple]) -> list[Fact]:
    """Return the statements that are reified and have a confidence; that others are there is a fault."""
    parts: dict[str, dict[str, Any]] = {}
    said: dict[str, dict[str, set[str]]] = {}
    plain: list[Triple] = []
    for subject, predicate, target in triples:
        kind = _kind(predicate.value)
        if kind == "reifies" and not isinstance(target, Term):
            named = dict(zip(PARTS, target, strict=True))
        else:
            named = {kind: target} if kind in PARTS else {}
        for name, part in named.items():
            if parts.setdefault(subject.form, {}).setdefault(name, part) != part:
                raise MalformedError
        if kind in ("confidence", "source"):
            if not isinstance(target, Term) or not target.form.startswith('"'):
                raise UnknownError
            said.setdefault(subject.form, {}).setdefault(kind, set()).add(target.value)
        elif not named:
            plain.append((subject, predicate, target))
    if any("confidence" in about and reifier not in parts for reifier, about in said.items()):
        raise MalformedError
    if any(len(named) < len(PARTS) for named in parts.values()):
        raise MalformedError
    known = {tuple(named[name] for name in PARTS) for named in parts.values()}
    if any(each not in known and each[0].form not in parts for each in plain):
        raise MalformedError
    return [_statement(named, said.get(reifier, {})) for reifier, named in parts.items()]


def _kind(predicate: str) -> str:
    """Return what a predicate means to readers of facts; nothing, for most."""
    if predicate == f"{OURS}#source":
        return "source"
    if re.split("[/#]", predicate)[-1] == "confidence" and not predicate.startswith(f"{OURS}/"):
        return "confidence"
    return predicate.removeprefix(RDF) if predicate.startswith(RDF) and predicate != f"{RDF}source" else ""


def _statement(named: dict[str, Any], about: dict[str, set[str]]) -> Fact:
    numbers = {each.strip() for each in about.get("confidence", ())}
    if not all(NUMBER.fullmatch(each) for each in numbers) or len({float(each) for each in numbers}) != 1:
        raise MalformedError
    if any(not isinstance(each, Term) for each in named.values()) or len(about.get("source", ())) > 1:
        raise UnknownError
    return fact_of([*(_name(named[name]) for name in PARTS), numbers.pop(), *about.get("source", ())])


def _name(term: Term) -> str:
    if re.fullmatch("_:[0-9a-f]{20,}", term.form):
        raise UnknownError  # a label that no file gave it, and another one each time
    ours = re.fullmatch(rf"<{re.escape(OURS)}/(?:entity|relation)/(.*)>", term.form)
    if ours and ours[1] in ("%2E", "%2E%2E"):
        return unquote(ours[1])
    if ours and quote(unquote(ours[1]), safe="") == ours[1]:
        return unquote(ours[1])
    return term.value if term.form.startswith("<") else term.form


def parquet(*seeds: bytes) -> Callable[[bytes], list[Fact]]:
    """Return a reader for files that are seeds with faults: whatever is read must be what one of them holds."""
    right = [_rows_of(seed) for seed in seeds]

    def read(data: bytes) -> list[Fact]:
        try:
            found = _rows_of(data)
        except (pa.ArrowException, OSError, KeyError, ValueError):
            raise UnknownError from None
        if found not in right:
            raise MalformedError
        return found

    return read


def _rows_of(data: bytes) -> list[Fact]:
    table = pq.read_table(io.BytesIO(data))
    names = ("head", "relation", "tail", "confidence", "source")
    if table.column_names != list(names)[: table.num_columns]:
        raise UnknownError  # then their order counts
    columns = [table[name].to_pylist() if name in table.column_names else [None] * len(table) for name in names]
    return list(zip(*columns, strict=True))


def string(data: bytes) -> list[Fact]:
    header, *rows = [line.split(" ") for line in lines_of(data) if line]
    named = [header.index(name) for name in ("protein1", "protein2", "combined_score")]
    if any(header.count(name) > 1 for name in ("protein1", "protein2", "combined_score")):
        raise MalformedError
    if any(len(row) != len(header) for row in rows):
        raise MalformedError
    found = [[row[at] for at in named] for row in rows]
    if not all(NUMBER.fullmatch(score) for _, _, score in found):
        raise MalformedError
    return [fact_of([one, "interacts", other, float(score) / 1000]) for one, other, score in found]


def nell(data: bytes) -> list[Fact]:
    header, *rows = [line.split("\t") for line in lines_of(data) if line]
    header = [name.strip() for name in header]
    wanted = ("Entity", "Relation", "Value", "Probability")
    if any(header.count(name) != 1 for name in wanted) or any(len(row) != len(header) for row in rows):
        raise MalformedError
    return [fact_of([row[header.index(name)] for name in wanted]) for row in rows]


def conceptnet(data: bytes) -> list[Fact]:
    """Assertions between English concepts, with the paper's scale."""
    facts = []
    for line in lines_of(data):
        row = line.split("\t")
        if line and len(row) != 5:
            raise MalformedError
        if not line or not all(uri.startswith("/c/en/") for uri in row[2:4]):
            continue
        try:
            weight = json.loads(row[4], object_pairs_hook=no_pairs_twice)["weight"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise MalformedError from None
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
            raise MalformedError
        level = math.log(min(max(weight, 0.1), 3.0) / 0.1) / math.log(3.0 / 0.1)
        head, tail = (uri.split("/")[3] for uri in row[2:4])
        facts.append(fact_of([head, row[1].removeprefix("/r/"), tail, min(0.1 + 0.9 * level, 1.0)]))
    return facts
