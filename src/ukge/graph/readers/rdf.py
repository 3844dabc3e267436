"""RDF whose statements carry a confidence: RDF 1.2 annotations and reifiers, and reified rdf:Statements.

    :cat :hunts :mouse {| ukge:confidence 0.8 |} .
    << :cat :hunts :mouse >> ukge:confidence 0.8 .
    _:s a rdf:Statement ; rdf:subject :cat ; rdf:predicate :hunts ; rdf:object :mouse ; ukge:confidence 0.8 .
    :g { :cat :hunts :mouse }    :g ukge:confidence 0.8 .

The name of an IRI is the IRI itself, unless a writer of ours made it from a name; of a blank node, its label; of a
literal, its N-Triples form. Statements are numbered from 1 in the order of the file.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import Where, as_number
from ukge.graph.files import DAMAGED_HINT, LONGEST, damaged, extension_of, open_bytes
from ukge.graph.findings import Findings
from ukge.graph.formats import Format, readers
from ukge.graph.iris import BASE, RDF, SOURCE, holds_confidence, name_of, pyoxigraph
from ukge.graph.readers.diagnosis import printable, stopped
from ukge.graph.readers.layout import percent_hint
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.xml import GuardedXml

_PARTS = {f"{RDF}subject": 0, f"{RDF}predicate": 1, f"{RDF}object": 2}
_SYNTAXES = {
    "turtle": "TURTLE", "ntriples": "N_TRIPLES", "nquads": "N_QUADS", "trig": "TRIG", "n3": "N3", "xml": "RDF_XML",
    "jsonld": "JSON_LD",
}  # fmt: skip
_HINT = (
    "Annotate each statement, as in :a :r :b {| ukge:confidence 0.8 |}, or give all others one confidence: "
    "‹default_confidence=0.5›."
)
_PIECE = 1 << 18
_OPENING, _CLOSING = (b"<<", b"[", b"(", b"{"), (b">>", b"]", b")", b"}")
_DEEPEST = 200
_BRACKETS = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*(?:"""|"{0,2}\\?\Z)'
    rb"|'''(?:[^'\\]|\\.|'(?!''))*(?:'''|'{0,2}\\?\Z)"
    rb'|"(?!"")(?:[^"\\\r\n]|\\.)*(?:"|\\?\Z)'
    rb"|'(?!'')(?:[^'\\\r\n]|\\.)*(?:'|\\?\Z)"
    rb"|#[^\r\n]*|<<|>>|<(?!<)[^<>\x00-\x20]*(?:>|\Z)|\[|\(|\{|\]|\)|\}",
    re.DOTALL,
)  # every alternative begins with one character, so that what lies between is passed over quickly
"""Brackets, and what is passed over because brackets in it are none: texts, IRIs and comments."""
_ABOUT = "statements about facts other than their confidence and source"


def read_rdf(
    path: Path,
    request: Request,
    *,
    confidence_predicate: str | None = None,
    source_predicate: str = SOURCE,
    base: str = BASE,
    syntax: str | None = None,
    default_confidence: float | None = None,
) -> Parsed:
    """Read statements with a confidence as facts.

    The confidence is what `confidence_predicate` says, by default `https://w3id.org/ukge#confidence` and any other
    predicate whose local name is `confidence`. Statements without one are an error unless `default_confidence` is
    given. `base` is the base under which the writer put names; `syntax` (turtle, ntriples, …) follows from the
    extension.
    """
    library = pyoxigraph()
    found = request.findings(str(path), "statement")
    statements = _Statements(found, library, confidence_predicate, source_predicate, base)
    known = _syntax(library, path, syntax)
    stream: Any = open_bytes(path)
    is_xml, is_json = known == library.RdfFormat.RDF_XML, known == library.RdfFormat.JSON_LD
    guarded = GuardedXml(stream, path) if is_xml else stream if is_json else _NotTooDeep(stream, path)
    try:
        with stream:
            for quad in library.parse(guarded, format=known):
                statements.take(quad.subject, quad.predicate.value, quad.object, quad.graph_name)
    except SyntaxError as error:
        hint = "Mend the file, or name its syntax: ‹syntax=...›."
        raise stopped(path, f"is not readable RDF: {printable(error.msg)}", error.lineno, hint) from None
    except MemoryError as error:
        what = f"is not readable RDF: {printable(str(error))}"
        raise stopped(path, what, statements.count or None, "Check the file's format.", "statement") from None
    except OSError as error:
        raise stopped(path, damaged(path, error), statements.count or None, DAMAGED_HINT, "statement") from None
    return statements.parsed(default_confidence)


class _NotTooDeep:
    """Passes Turtle and its kin on as long as terms are not nested deeper than any statement.

    The parser copes with any depth, but taking a term apart again is recursive, and ends the process.
    """

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._passed = io.BytesIO()
        self._rest = b""
        self._depth = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._passed.read(size)
        if not data:
            piece: bytes = self._stream.read(_PIECE)
            self._check(piece)
            self._passed = io.BytesIO(piece)
            data = self._passed.read(size)
        return data

    def _check(self, piece: bytes) -> None:
        whole = self._rest + piece
        self._rest = b""
        for found in _BRACKETS.finditer(whole):
            token = found[0]
            if found.end() == len(whole) and piece:
                self._rest = token  # a text that goes on, or half of a bracket
            elif token in _OPENING:
                self._depth += 1
            elif token in _CLOSING:
                self._depth = max(self._depth - 1, 0)
            if self._depth > _DEEPEST or len(self._rest) > LONGEST:
                deep = f"terms are nested more than {_DEEPEST:,} deep"
                long = f"a text is longer than {LONGEST:,} bytes, as none of a fact is"
                raise stopped(self._path, long if self._rest else deep, None, "Check the file's format.")


_Found = tuple[int, list[Any], float, str | None]
"""Where a statement stands, its parts, its confidence and its source."""


@dataclass
class _Reified:
    """A statement that something can be said about, and where it was first mentioned."""

    at: int
    parts: list[Any] = field(default_factory=lambda: [None, None, None])


class _Statements:
    """Statements gathered one by one: reified ones, what is said of them, and plain ones."""

    def __init__(self, found: Findings, library: Any, confidence: str | None, source: str, base: str) -> None:
        self.found = found
        self._faulty: set[Any] = set()
        self.count = 0
        self._triple = library.Triple
        self._literal = library.Literal
        self._named = library.NamedNode
        self._confidence = confidence
        self._source = source
        self._base = base
        self._reified: dict[Any, _Reified] = {}
        self._confidences: dict[Any, tuple[int, float]] = {}
        self._sources: dict[Any, str] = {}
        self._names: dict[Any, str] = {}
        self._plain: dict[tuple[Any, str, Any, Any], int] = {}
        self._graphs: set[Any] = set()

    def take(self, subject: Any, predicate: str, target: Any, graph: Any) -> None:
        self.count += 1
        if predicate == f"{RDF}reifies" and isinstance(target, self._triple):
            self._reify(subject, [target.subject, target.predicate.value, target.object])
        elif predicate in _PARTS:
            reified = self._reified.setdefault(subject, _Reified(self.count))
            place = _PARTS[predicate]
            part = target.value if place == 1 and isinstance(target, self._named) else target
            if reified.parts[place] not in (None, part):
                name = ("subject", "predicate", "object")[place]
                self._complain(f"is a second {name} of one statement", self.count, part, subject)
            reified.parts[place] = part
        elif self._holds_confidence(predicate):
            self._take_confidence(subject, target)
        elif predicate == self._source:
            source = str(target) if isinstance(target, self._triple) else target.value
            if self._sources.setdefault(subject, source) != source:
                self._complain("is a second source of one statement", self.count, target, subject)
        else:
            self._plain.setdefault((subject, predicate, target, graph), self.count)
            self._graphs.add(graph)

    def parsed(self, default: float | None) -> Parsed:
        facts = self._facts(default)
        self.found.checked = self.count
        facts.sort(key=lambda fact: fact[0])
        places = np.array([fact[0] for fact in facts], np.int64)
        about = sum(self._is_about(*each) for each in self._plain if each[1] != f"{RDF}type")
        sources = [fact[3] for fact in facts]
        return Parsed(
            head=[self._name(fact[1][0]) for fact in facts],
            relation=[name_of(fact[1][1], self._base) for fact in facts],
            tail=[self._name(fact[1][2]) for fact in facts],
            weight=np.array([fact[2] for fact in facts], np.float64),
            source=sources if self._sources else None,
            where=Where(self.found.source, "statement", lambda rows: places[rows].tolist()),
            rows=len(facts) + about,
            found=self.found,
            skipped={_ABOUT: about} if about else {},
        )

    def _facts(self, default: float | None) -> list[_Found]:
        facts: list[_Found] = []
        said: set[Any] = set()
        for subject, reified in self._reified.items():
            if any(part is None for part in reified.parts) or not isinstance(reified.parts[1], str):
                self._complain("lacks a subject, predicate or object", reified.at, subject)
                continue
            said.add(tuple(reified.parts))
            if subject in self._faulty:
                continue
            _, confidence = self._confidences.get(subject, (0, default))
            if confidence is None:
                self._complain("has no confidence", reified.at, self._shown(reified.parts))
            else:
                facts.append((reified.at, reified.parts, confidence, self._sources.get(subject)))
        for subject, (at, _) in self._confidences.items():
            if subject not in self._reified and subject not in self._graphs:
                self._complain("gives a confidence to what is no statement", at, subject)
        return facts + self._plain_facts(said, default)

    def _plain_facts(self, said: set[Any], default: float | None) -> list[_Found]:
        """Return statements that nothing is said about but by their graph; those without a confidence once for all."""
        facts: list[_Found] = []
        without: set[tuple[Any, str, Any]] = set()
        for (subject, predicate, target, graph), at in self._plain.items():
            parts = (subject, predicate, target)
            if self._is_about(subject, predicate, target, graph) or parts in said or graph in self._faulty:
                continue
            if graph in self._confidences:
                facts.append((at, [*parts], self._confidences[graph][1], self._sources.get(graph)))
            elif parts not in without:
                without.add(parts)
                if default is None:
                    self._complain("has no confidence", at, self._shown([*parts]))
                else:
                    facts.append((at, [*parts], default, None))
        return facts

    def _is_about(self, subject: Any, _predicate: str, _target: Any, graph: Any) -> bool:
        """Return whether something is said of a statement, or of a graph with a confidence, elsewhere than in it."""
        of_graph = subject in self._graphs and subject in self._confidences and graph != subject
        return subject in self._reified or of_graph

    def _reify(self, subject: Any, parts: list[Any]) -> None:
        reified = self._reified.setdefault(subject, _Reified(self.count, parts))
        if reified.parts != parts:
            self._complain("is a second statement of one reifier", self.count, self._shown(parts), subject)

    def _holds_confidence(self, predicate: str) -> bool:
        if self._confidence is not None:
            return predicate == self._confidence
        return holds_confidence(predicate, self._base)

    def _take_confidence(self, subject: Any, target: Any) -> None:
        value = as_number(target.value.strip()) if isinstance(target, self._literal) else None
        if value is None:
            hints = percent_hint(target.value.strip()) if isinstance(target, self._literal) else []
            self._complain("confidence is not a number", self.count, target, subject, *hints)
        elif subject in self._confidences and self._confidences[subject][1] != value:
            self._complain("is a second confidence of one statement", self.count, target, subject)
        else:
            self._confidences[subject] = (self.count, value)

    def _complain(self, what: str, at: int, value: Any, subject: Any = None, *hints: str) -> None:
        """Tell of a fault; what is said of its `subject` makes no fact."""
        self._faulty.add(subject)
        reified = self._reified.get(subject)
        self.found.row = self._shown(reified.parts) if reified is not None else str(value)
        self.found.add(what, at, None, str(value), _HINT, *hints)

    def _name(self, term: Any) -> str:
        if term not in self._names:
            is_iri = isinstance(term, self._named)
            self._names[term] = name_of(term.value, self._base) if is_iri else str(term)
        return self._names[term]

    def _shown(self, parts: list[Any]) -> str:
        return f"{parts[0]} <{parts[1]}> {parts[2]}"


def _syntax(library: Any, path: Path, syntax: str | None) -> Any:
    if syntax is None:
        known = library.RdfFormat.from_extension(extension_of(path).removeprefix("."))
        if known is None:
            raise DataError("no RDF syntax has this extension", source=str(path), hint=_syntax_hint())
        return known
    if syntax not in _SYNTAXES:
        raise ConfigError(f"unknown RDF syntax {syntax!r}", hint=_syntax_hint())
    return getattr(library.RdfFormat, _SYNTAXES[syntax])


def _syntax_hint() -> str:
    return f"Give ‹syntax=...›; known: {', '.join(_SYNTAXES)}."


readers.register("rdf")(Format(read_rdf, (".ttl", ".nt", ".nq", ".trig", ".n3", ".rdf", ".jsonld"), by_id=False))
