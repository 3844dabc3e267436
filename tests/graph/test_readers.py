"""Reading tables, JSON Lines and objects in memory: headers, columns, ids, scales and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.normalise import Clip, Log, MinMax
from ukge.graph.readers import ReadReport, read, read_vocabulary, read_with_report
from ukge.graph.uncertain import Fact, UncertainGraph
from ukge.graph.vocabulary import Vocabulary

CAT = Fact("cat", "hunts", "mouse", 0.9)
DOG = Fact("dog", "chases", "cat", 0.5)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def make(text: str, name: str = "facts.tsv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return make


def test_a_table_without_header(file: Any) -> None:
    graph, report = read_with_report(file("cat\thunts\tmouse\t0.9\n\ndog\tchases\tcat\t0.5"))
    assert list(graph) == [CAT, DOG]
    assert list(graph.entities) == ["cat", "dog", "mouse"]
    assert report == ReadReport(report.source, "tsv", rows=2, facts=2)


def test_the_fifth_column_is_the_source(file: Any) -> None:
    graph = read(file("cat\thunts\tmouse\t0.9\tbook\ndog\tchases\tcat\t0.5\t\n"))
    assert list(graph) == [Fact(*CAT[:4], "book"), DOG]


@pytest.mark.parametrize(
    "header",
    [
        "head\trelation\ttail\tconfidence",
        "Subject\tPREDICATE\tObject\t Score ",
        "source\trelation\ttarget\tweight",
        "h\tr\tt\tprobability",
        "\n\nhead\trelation\ttail\tconfidence",
        "\ufeffhead\trelation\ttail\tconfidence",
    ],
)
def test_a_line_of_recognised_names_is_a_header(file: Any, header: str) -> None:
    assert list(read(file(f"{header}\ncat\thunts\tmouse\t0.9\n"))) == [CAT]


def test_columns_follow_the_header_in_any_order(file: Any) -> None:
    text = "score\tnote\ttail\thead\tprovenance\trelation\n0.9\tx\tmouse\tcat\tbook\thunts\n"
    graph, report = read_with_report(file(text))
    assert list(graph) == [Fact(*CAT[:4], "book")]
    assert report.ignored_columns == ("note",)


@pytest.mark.parametrize(
    "first",
    [
        "head\trelation\ttail\t0.5",
        "subject\tpredicate\tobject\t1",
        "head\trelation\ttail\t1\tconfidence",
        "h\tr\tt\t1e-3",
    ],
)
def test_a_fact_is_never_taken_for_a_header(file: Any, first: str) -> None:
    graph = read(file(f"{first}\n"))
    assert len(graph) == 1
    assert graph[0].head == first.split("\t", maxsplit=1)[0]


def test_an_unknown_first_line_is_a_header_only_if_the_user_says_so(file: Any) -> None:
    path = file("who\tdoes\twhom\thow sure\ncat\thunts\tmouse\t0.9\n")
    with pytest.raises(DataError, match=r"line 1, column confidence[\s\S]*columns=\{'head': 'who'"):
        read(path)
    assert list(read(path, header=True)) == [CAT]
    named = {"head": "who", "relation": "does", "tail": "whom", "confidence": "how sure"}
    assert list(read(path, columns=named)) == [CAT]


def test_header_false_makes_the_first_line_a_fact(file: Any) -> None:
    with pytest.raises(DataError, match="line 1, column confidence"):
        read(file("head\trelation\ttail\tconfidence\ncat\thunts\tmouse\t0.9\n"), header=False)


def test_columns_by_position(file: Any) -> None:
    path = file("0.9\tcat\t17\thunts\tmouse\n")
    graph, report = read_with_report(path, columns={"head": 1, "relation": 3, "tail": 4, "confidence": 0})
    assert list(graph) == [CAT]
    assert report.ignored_columns == ("2",)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"confidence": 9}, DataError, "no column 9"),
        ({"confidence": "scores"}, DataError, r"no column 'scores'[\s\S]*'score'"),
        ({"subject": "head"}, ConfigError, "cannot map 'subject'"),
        ({"head": None}, ConfigError, "cannot map 'head'"),
        ({"head": "tail", "tail": "tail"}, ConfigError, "share one column"),
        ({"head": "score"}, DataError, "no column for the confidence"),
    ],
)
def test_columns_that_do_not_fit(file: Any, columns: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(file("score\thead\trelation\ttail\n0.9\tcat\thunts\tmouse\n"), columns=columns)


def test_a_source_column_can_be_left_out(file: Any) -> None:
    path = file("head\trelation\ttail\tscore\tsource\ncat\thunts\tmouse\t0.9\tbook\n")
    assert read(path).source is not None
    assert read(path, columns={"source": None}).source is None


def test_tsv_has_no_quoting_and_csv_has(file: Any) -> None:
    assert read(file('"cat"\thunts\t"\t0.9\n'))[0] == Fact('"cat"', "hunts", '"', 0.9)
    text = '"cat, big",hunts,"a ""b""",0.9\r\n"two\r\nlines",r,x,"0.5"\r\n'
    assert list(read(file(text, "facts.csv"))) == [
        Fact("cat, big", "hunts", 'a "b"', 0.9),
        Fact("two\r\nlines", "r", "x", 0.5),
    ]


def test_another_delimiter(file: Any) -> None:
    assert list(read(file("cat;hunts;mouse;0.9\n", "facts.csv"), delimiter=";")) == [CAT]
    assert list(read(file("cat|hunts|mouse|0.9\n", "facts.txt"), format="tsv", delimiter="|")) == [CAT]


def test_integers_are_names_without_vocabularies_and_ids_with_them(file: Any) -> None:
    path = file("1\t0\t0\t0.9\n")
    assert read(path)[0] == Fact("1", "0", "0", 0.9)
    entities = file("1\tcat\n0\tmouse\n", "entities.tsv")
    relations = file("0\thunts\n", "relations.tsv")
    graph = read(path, entities=entities, relations=relations)
    assert list(graph) == [CAT]
    assert list(graph.entities) == ["mouse", "cat"]
    assert read(path, entities=read_vocabulary(entities))[0] == Fact("cat", "0", "mouse", 0.9)
    assert read(path, relations=Vocabulary(["hunts"], kind="relation"))[0] == Fact("1", "hunts", "0", 0.9)


def test_names_that_look_like_nothing_stay_names(file: Any) -> None:
    names = ["NA", "null", "NaN", "#N/A", "-", "None"]
    graph = read(file("".join(f"{name}\tr\tx\t0.5\n" for name in names)))
    assert [fact.head for fact in graph] == names


def test_a_scale_is_applied_before_the_check(file: Any) -> None:
    path = file("a\tr\tb\t0.1\na\tr\tc\t22\na\tr\td\t3\n")
    scale = Clip(0.1, 3.0) | Log() | MinMax(0.1, 1.0)
    assert read(path, scale=scale).confidence.tolist() == pytest.approx([0.1, 1.0, 1.0])
    assert read(path, scale="clip:0.1,3 log minmax:0.1,1").confidence.tolist() == pytest.approx([0.1, 1.0, 1.0])
    assert read(path, scale=lambda weights: weights / 22).confidence.tolist() == pytest.approx([0.1 / 22, 1, 3 / 22])


def test_a_scale_that_does_not_reach_the_interval_names_the_lines(file: Any) -> None:
    path = file("a\tr\tb\t2\n\na\tr\tc\t22\n")
    with pytest.raises(DataError, match=r"line 3, column confidence: confidence is outside \[0, 1\] \(found '11'\)"):
        read(path, scale=lambda weights: weights / 2)
    with pytest.raises(DataError, match="returned 1 values for 2 weights"):
        read(path, scale=lambda weights: weights[:1])
    with pytest.raises(DataError, match="line 3, column confidence: confidence is not a finite number"):
        read(file("a\tr\tb\t2\n\na\tr\tc\tinf\n"), scale=lambda weights: weights)


def test_a_scale_s_own_complaint_names_the_lines(file: Any) -> None:
    with pytest.raises(DataError, match=r"facts\.tsv[\s\S]*line 3"):
        read(file("a\tr\tb\t2\n\na\tr\tc\t-1\n"), scale=Log())


def test_json_lines_as_objects_and_arrays(file: Any) -> None:
    text = (
        '{"subject": "cat", "predicate": "hunts", "object": "mouse", "score": 0.9, "note": 1}\n\n'
        '["dog", "chases", "cat", 0.5]\n["dog", "chases", "cat", 1, "book"]\n'
    )
    graph, report = read_with_report(file(text, "facts.jsonl"))
    assert list(graph) == [CAT, DOG, Fact("dog", "chases", "cat", 1.0, "book")]
    assert report.ignored_columns == ("note",)
    swapped = file('{"a": "cat", "b": "hunts", "c": "mouse", "d": 0.9}\n', "swapped.ndjson")
    assert list(read(swapped, columns={"head": "a", "relation": "b", "tail": "c", "confidence": "d"})) == [CAT]
    assert list(
        read(file("[0.9, 7, 8, 9]\n", "ids.jsonl"), columns={"confidence": 0, "head": 1, "relation": 2, "tail": 3})
    )


def test_json_lines_with_ids(file: Any) -> None:
    path = file("[1, 0, 0, 0.9]\n", "facts.jsonl")
    entities, relations = Vocabulary(["mouse", "cat"]), Vocabulary(["hunts"], kind="relation")
    assert list(read(path, entities=entities, relations=relations)) == [CAT]
    with pytest.raises(DataError, match=r"line 1, column tail: no such id"):
        read(file("[1, 0, 5, 0.9]\n", "facts.jsonl"), entities=entities, relations=relations)


FRAME = {"head": ["cat", "dog"], "relation": ["hunts", "chases"], "tail": ["mouse", "cat"], "confidence": [0.9, 0.5]}


def test_frames_and_tables_in_memory() -> None:
    frame = pd.DataFrame(FRAME, index=[7, 7])
    assert list(read(frame)) == [CAT, DOG]
    assert list(read(pa.table(FRAME))) == [CAT, DOG]
    assert list(read(pa.RecordBatch.from_pydict(FRAME))) == [CAT, DOG]
    assert list(read(pa.table(FRAME).to_reader())) == [CAT, DOG]
    assert list(read(frame.astype({"head": "category", "relation": "string"}))) == [CAT, DOG]
    renamed = frame.rename(columns={"confidence": "belief"})
    assert list(read(renamed, columns={"confidence": "belief"})) == [CAT, DOG]
    assert list(read(pd.DataFrame(frame.to_numpy(dtype=object)).astype({3: float}))) == [CAT, DOG]


def test_integer_columns_are_names_or_ids() -> None:
    frame = pd.DataFrame({"head": [1], "relation": [0], "tail": [0], "confidence": [1]})
    assert list(read(frame)) == [Fact("1", "0", "0", 1.0)]
    graph = read(frame, entities=Vocabulary(["mouse", "cat"]), relations=Vocabulary(["hunts"], kind="relation"))
    assert list(graph) == [Fact("cat", "hunts", "mouse", 1.0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": [0.9, 1.5]}, r"row 1, column confidence: confidence is outside \[0, 1\]"),
        ({"confidence": [0.9, None]}, "row 1, column confidence: confidence is missing"),
        ({"confidence": ["0.9", "high"]}, "row 1, column confidence: confidence is not a number"),
        ({"head": ["cat", None]}, "row 1, column head: head name is empty"),
        ({"head": ["cat", " "]}, "row 1, column head: head name is empty"),
        ({"tail": [0.5, 1.0]}, "column tail must hold names"),
        ({"tail": ["mouse", 5]}, "row 1, column tail: tail is not text"),
        ({"tail": ["mouse", "\ud800"]}, "surrogate"),
    ],
)
def test_frames_that_are_wrong(change: dict[str, Any], message: str) -> None:
    columns = {**FRAME, **change}
    with pytest.raises(DataError, match=message):
        read(pd.DataFrame({name: pd.Series(values, dtype=_dtype(values)) for name, values in columns.items()}))


def _dtype(values: list[Any]) -> Any:
    return object if any(isinstance(value, str) for value in values) else None


def test_empty_tables_hold_no_facts() -> None:
    with pytest.raises(DataError, match="no facts"):
        read(pd.DataFrame(FRAME).iloc[:0])


def test_parquet_reads_only_the_columns_of_facts(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    pq.write_table(pa.table({"note": [1, 2], **FRAME}), path)
    graph, report = read_with_report(path)
    assert list(graph) == [CAT, DOG]
    assert report.ignored_columns == ("note",)
    pq.write_table(pa.table({**FRAME, "confidence": [0.9, 7.0]}), path)
    with pytest.raises(DataError, match=r"facts\.parquet[\s\S]*row 1, column confidence"):
        read(path)


def test_networkx_graphs() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("cat", "mouse", relation="hunts", confidence=0.9)
    graph.add_edge("cat", "mouse", relation="likes", confidence=0.1, source="book")
    graph.add_edge("dog", "cat", relation="chases", confidence=0.5)
    expected = [CAT, Fact("cat", "likes", "mouse", 0.1, "book"), DOG]
    assert list(read(graph)) == expected
    simple = nx.DiGraph()
    simple.add_edge(1, 2, kind="hunts", w=1)
    assert list(read(simple, columns={"relation": "kind", "confidence": "w"})) == [Fact("1", "hunts", "2", 1.0)]


def test_networkx_graphs_that_are_wrong() -> None:
    with pytest.raises(DataError, match="undirected"):
        read(nx.Graph([("a", "b")]))
    with pytest.raises(DataError, match=r"edge 0, column relation: attribute 'relation' is missing"):
        read(nx.DiGraph([("a", "b")]))
    with pytest.raises(ConfigError, match=r"cannot map 'head'"):
        read(nx.DiGraph([("a", "b")]), columns={"head": "x"})
    clash = nx.DiGraph()
    clash.add_edge(1, "1", relation="r", confidence=1.0)
    with pytest.raises(DataError, match="two nodes have one name"):
        read(clash)
    odd = nx.DiGraph()
    odd.add_edge("a", "b", relation="r", confidence="high")
    with pytest.raises(DataError, match=r"edge 0, column confidence: confidence is not a number"):
        read(odd)


def test_the_graph_does_not_share_memory_that_the_caller_can_change() -> None:
    confidence, ids = np.array([0.9, 0.5]), np.array([0, 1], np.int32)
    names, relation = Vocabulary(["cat", "dog"]), Vocabulary(["likes"], kind="relation")
    by_ids = UncertainGraph.from_ids(ids, ids * 0, ids, confidence, names, relation)
    by_name = UncertainGraph.from_columns(["cat", "dog"], ["likes"] * 2, ["cat", "dog"], confidence)
    ids[:], confidence[:] = 0, 0.25
    assert by_ids.head.tolist() == [0, 1]
    assert by_ids.confidence.tolist() == by_name.confidence.tolist() == [0.9, 0.5]


def test_the_benchmark_graphs(benchmark_data: Path) -> None:
    folder = benchmark_data / "cn15k"
    graph = read(folder / "val.tsv", entities=folder / "entities.tsv", relations=folder / "relations.tsv")
    assert (len(graph), graph.n_entities, graph.n_relations) == (16_881, 15_000, 36)
    assert graph.confidence.min() >= 0.1
