"""What is written comes back: every fact, in order, with its exact confidence and its source, in every format."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ukge.errors import DataError
from ukge.graph.readers import read, readers
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import write, writers

EXTENSIONS = ("tsv", "csv", "jsonl", "parquet", "graphml", "ttl", "nt", "trig", "nq")
TEXT_EXTENSIONS = tuple(extension for extension in EXTENSIONS if extension != "parquet")

# Characters that some format treats as its own, beside arbitrary Unicode without lone surrogates.
TRICKY = st.sampled_from("\t\n\r\"'\\,;#%<>&{}[]|^`@: \u0000\u0001\u0085\u2028\ufeff\ufffe\U0001f600é").map(str)
ANY = st.characters(codec="utf-8")
NAMES = st.one_of(
    st.text(st.one_of(TRICKY, ANY), min_size=1, max_size=12),
    st.sampled_from(
        [".", "..", "0", "1.5", "NA", "null", "nan", "true", "head", "relation", "confidence", '"', "a%20b"]
    ),
    st.sampled_from(
        ["http://example.org/a#b", "https://w3id.org/ukge/entity/x", "urn:isbn:1", "http://[", "http://a/%zz"]
    ),
    st.sampled_from(["http://example.org/confidence", "https://w3id.org/ukge#confidence", "http://a b"]),
).filter(lambda name: bool(name.strip()))
CONFIDENCES = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, 5e-324, 0.1 + 0.2, 1e-7])
SOURCES = st.none() | NAMES
FACTS = st.lists(st.tuples(NAMES, NAMES, NAMES, CONFIDENCES, SOURCES), min_size=1, max_size=8)

CANNOT_HOLD = {
    "tsv": lambda text: any(char in text for char in "\t\r\n"),
    "graphml": lambda text: (
        any(char < " " and char not in "\t\n\r" for char in text) or "\ufffe" in text or "\uffff" in text
    ),
}


def holds(extension: str, facts: list[tuple[Any, ...]]) -> bool:
    """Say, independently of the writers, whether a format can hold the facts."""
    texts = [part for fact in facts for part in fact if isinstance(part, str)]
    if extension == "tsv" and facts[0][0].startswith("\ufeff"):
        return False
    cannot = CANNOT_HOLD.get(extension)
    return cannot is None or not any(cannot(text) for text in texts)


def there_and_back(graph: UncertainGraph, name: str, **options: Any) -> UncertainGraph:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        write(graph, path, **options)
        return read(path)


@pytest.mark.parametrize("extension", [e for e in EXTENSIONS if e not in ("trig", "nq")])  # written like ttl and nt
@settings(deadline=None, max_examples=40)
@given(facts=FACTS)
@example(facts=[("head", "relation", "tail", 1.0, "confidence")])
@example(facts=[("\ufeffa", "r", "b", 0.5, None)])
@example(facts=[("a", "r", "b", 0.5, None), ("a", "r", "b", 0.5, "x"), ("a", "r", "b", 0.25, None)])
def test_arbitrary_facts_come_back_or_are_refused(extension: str, facts: list[tuple[Any, ...]]) -> None:
    graph = UncertainGraph.from_facts(facts)
    if not holds(extension, facts):
        with pytest.raises(DataError):
            there_and_back(graph, f"facts.{extension}")
        return
    back = there_and_back(graph, f"facts.{extension}")
    assert list(back) == list(graph)
    assert back == graph
    assert back.confidence.tobytes() == (graph.confidence + 0.0).tobytes()


@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.parametrize("extension", TEXT_EXTENSIONS)
def test_compressed_text_comes_back(extension: str, compression: str) -> None:
    facts = [(f"e{i % 97}", f"r{i % 5}", f"e{i % 89}", i / 400, f"s{i % 3}" if i % 2 else None) for i in range(400)]
    graph = UncertainGraph.from_facts(facts)
    assert list(there_and_back(graph, f"facts.{extension}.{compression}")) == list(graph)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_many_batches_come_back(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.graph.writers.lines._BATCH", 64)
    monkeypatch.setattr("ukge.graph.writers.tables._ROWS", 64)
    facts = [(f"e{i % 97}", f"r{i % 5}", f"e{i % 89}", i / 300, "late" if i > 200 else None) for i in range(300)]
    graph = UncertainGraph.from_facts(facts)
    assert list(there_and_back(graph, f"facts.{extension}")) == list(graph)


@pytest.mark.parametrize(("extension", "header"), [("tsv", True), ("tsv", False), ("csv", True), ("csv", False)])
def test_tables_come_back_with_and_without_header(extension: str, header: bool) -> None:
    graph = UncertainGraph.from_facts([("head", "relation", "tail", 0.5, "x"), ('"a', "r", "b,c", 1.0, None)])
    assert list(there_and_back(graph, f"facts.{extension}", header=header)) == list(graph)


def test_names_that_no_fact_uses_do_not_stop_a_writer() -> None:
    graph = UncertainGraph.from_facts([("a\tb", "r", "c", 0.5, "x\ty"), ("a", "r", "c", 0.5, "z")])
    assert list(there_and_back(graph[1:], "facts.tsv")) == list(graph[1:])


def test_every_written_format_can_be_read() -> None:
    for name in set(writers) - {"cx2", "sif", "kgx"}:  # for other programs, and known by name
        assert set(writers.get(name).extensions) <= set(readers.get(name).extensions)
    assert {f".{extension}" for extension in EXTENSIONS} <= {
        e for name in writers for e in writers.get(name).extensions
    }
