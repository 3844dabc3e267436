"""The audit against hand-computed values, a slow independent count, and the figures known of the benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ukge.graph.audit import Audit, Baseline, NameCounts, audit
from ukge.graph.audit.rendering import as_page, as_text
from ukge.graph.catalogue import read_folder
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

ENTITIES = Vocabulary(["a", "b", "c", "d", "unused"])
RELATIONS = Vocabulary(["likes", "knows"], kind="relation")
Row = tuple[int, int, int, float]
A, B, C, D = range(4)
LIKES, KNOWS = range(2)


def graph(rows: Sequence[Row]) -> UncertainGraph:
    head, relation, tail, confidence = zip(*rows, strict=True) if rows else ((), (), (), ())
    h, r, t = (np.array(column, dtype=np.int64) for column in (head, relation, tail))
    return UncertainGraph.from_ids(h, r, t, np.array(confidence, dtype=np.float64), ENTITIES, RELATIONS)


@pytest.fixture(scope="module")
def found() -> Audit:
    train = [(A, LIKES, B, 0.2), (A, LIKES, B, 0.6), (B, LIKES, C, 0.9), (C, KNOWS, D, 1.0), (A, KNOWS, A, 0.5)]
    val = [(C, LIKES, B, 0.4)]
    test = [(A, LIKES, B, 0.7), (B, LIKES, A, 0.1), (D, LIKES, C, 0.3), (B, KNOWS, D, 1.0)]
    negatives = [(C, KNOWS, D, 0.0), (A, LIKES, B, 0.0), (D, KNOWS, A, 0.0), (D, KNOWS, B, 0.0)]
    return audit(Dataset("small", graph(train), graph(val), graph(test), graph(negatives)))


def test_counts_by_hand(found: Audit) -> None:
    train, val, test = found.parts
    assert [(part.rows, part.distinct) for part in (train, val, test, found.whole)] == [(5, 4), (1, 1), (4, 4), (10, 8)]
    assert train.mean == pytest.approx(0.64)
    assert train.std == pytest.approx(np.sqrt(0.0824))
    assert train.median == pytest.approx(0.6)
    assert (found.entities.known, found.entities.used) == (5, 4)
    assert (found.relations.known, found.relations.used) == (2, 2)
    assert sum(found.whole.histogram) == 10
    assert found.whole.mode == 1.0
    assert found.whole.mode_share == pytest.approx(0.2)


def test_a_confidence_of_one_falls_into_the_last_bin() -> None:
    histogram = audit(graph([(A, LIKES, B, 1.0), (A, LIKES, C, 0.0), (A, LIKES, D, 0.95)])).whole.histogram
    assert histogram[0] == 1
    assert histogram[-1] == 2


def test_the_most_frequent_confidence_is_counted_after_rounding() -> None:
    near = [(A, LIKES, B, 0.9999999), (A, LIKES, C, 1.0), (A, LIKES, D, 0.5), (A, KNOWS, D, 0.4996)]
    whole = audit(graph([*near, (B, LIKES, D, 0.99961)])).whole
    assert whole.mode == 1.0
    assert whole.mode_share == pytest.approx(0.6)


def test_repeats_by_hand(found: Audit) -> None:
    repeats = found.repeats
    assert (repeats.triples, repeats.rows, repeats.conflicting) == (1, 3, 1)
    assert repeats.mean_spread == pytest.approx(0.5)
    assert repeats.widest_spread == pytest.approx(0.5)
    [worst] = repeats.worst
    assert (worst.head, worst.relation, worst.tail) == ("a", "likes", "b")
    assert sorted(worst.confidences) == [0.2, 0.6, 0.7]


def test_the_same_confidence_with_fewer_digits_is_no_conflict() -> None:
    repeats = audit(graph([(A, LIKES, B, 0.709293243275961), (A, LIKES, B, 0.709293243)])).repeats
    assert (repeats.triples, repeats.conflicting) == (1, 0)


def test_twins_by_hand(found: Audit) -> None:
    val, test = found.twins
    assert (val.part, test.part) == ("val", "test")
    assert (test.exact.rows, test.exact.share) == (1, 0.25)
    assert test.exact.gap == pytest.approx(abs(0.7 - 0.4))  # train says 0.2 and 0.6
    assert test.inverse.rows == 1
    assert test.inverse.gap == pytest.approx(abs(0.1 - 0.4))
    assert test.pair.rows == 3  # b and d are not linked in train
    assert (val.exact.rows, val.exact.gap) == (0, None)
    assert val.inverse.gap == pytest.approx(0.5)


def test_negatives_by_hand(found: Audit) -> None:
    negatives = found.negatives
    assert negatives is not None
    assert (negatives.rows, negatives.facts, negatives.share) == (4, 2, 0.5)
    # (c, knows, d) costs 1²; (a, likes, b) the mean of 0.2², 0.6² and 0.7²; over 4 test facts and 4 negatives
    assert negatives.floor_mse == pytest.approx((1.0 + (0.04 + 0.36 + 0.49) / 3) / 8)
    # only (a, likes, b) is asked for twice, with 0.7 and 0: the mean 0.35 leaves 0.35² each time
    assert negatives.irreducible_mse == pytest.approx(2 * 0.35**2 / 8)
    assert negatives.tail_in_range == pytest.approx(3 / 4)
    assert negatives.head_in_domain == pytest.approx(1 / 4 + 1 / 4)
    assert negatives.pair_in_train == pytest.approx(2 / 4)
    assert [(each.head, each.tail) for each in negatives.examples] == [("c", "d"), ("a", "b")]


def test_symmetry_by_hand(found: Audit) -> None:
    likes, knows = found.symmetry
    assert (likes.relation, likes.facts) == ("likes", 5)
    assert likes.share == pytest.approx(4 / 5)
    # (a, b) means 0.5 against 0.1; (b, c) 0.9 against 0.4; both seen from both sides
    assert likes.gap == pytest.approx((0.4 + 0.5) / 2)
    assert (knows.relation, knows.facts, knows.share, knows.gap) == ("knows", 2, 0.0, None)  # a loop has no inverse


def baseline(found: Audit, name: str, fitted_on: str = "train") -> Baseline:
    return next(each for each in found.baselines if (each.name, each.fitted_on) == (name, fitted_on))


def test_baselines_by_hand(found: Audit) -> None:
    truth = np.array([0.7, 0.1, 0.3, 1.0])
    constant = baseline(found, "constant, mean")
    assert constant.positives.mse == pytest.approx(((truth - 0.64) ** 2).mean())
    assert constant.positives.mae == pytest.approx(np.abs(truth - 0.64).mean())
    assert constant.with_negatives is not None
    assert constant.with_negatives.mse == pytest.approx((((truth - 0.64) ** 2).sum() + 4 * 0.64**2) / 8)
    assert baseline(found, "constant, median", "train+val").positives.mae == pytest.approx(np.abs(truth - 0.55).mean())
    likes, knows = (0.2 + 0.6 + 0.9) / 3, 0.75
    means = np.array([likes, likes, likes, knows])
    assert baseline(found, "relation mean").positives.mse == pytest.approx(((truth - means) ** 2).mean())
    medians = np.array([0.6, 0.6, 0.6, 0.75])
    assert baseline(found, "relation median").positives.mae == pytest.approx(np.abs(truth - medians).mean())
    twins = np.array([0.4, 0.4, likes, knows])
    assert baseline(found, "twin, else relation mean").positives.mse == pytest.approx(((truth - twins) ** 2).mean())
    zeros = np.array([0.4, 0.4, 0.0, 0.0])
    assert baseline(found, "twin, else 0").positives.mse == pytest.approx(((truth - zeros) ** 2).mean())


def test_a_relation_that_train_lacks_gets_the_overall_value() -> None:
    dataset = Dataset("x", graph([(A, LIKES, B, 0.2), (A, LIKES, C, 0.4)]), graph([]), graph([(A, KNOWS, B, 0.9)]))
    found = audit(dataset)
    assert baseline(found, "relation mean").positives.mae == pytest.approx(0.6)
    assert baseline(found, "relation median").positives.mae == pytest.approx(0.6)


def test_a_graph_without_a_split_gets_what_applies() -> None:
    found = audit(graph([(A, LIKES, B, 0.2), (B, LIKES, A, 0.4)]), name="mine")
    assert (found.name, found.parts, found.twins, found.negatives, found.baselines) == ("mine", (), (), None, ())
    assert found.symmetry[0].share == 1.0
    json.dumps(found.to_dict(), allow_nan=False)


def test_nothing_breaks_without_facts() -> None:
    empty = graph([])
    for data in (empty, Dataset("none", empty, empty, empty, negatives=empty)):
        found = audit(data)
        assert found.whole.rows == 0
        json.dumps(found.to_dict(), allow_nan=False)
        printed(found)
        as_page(found)


def test_headlines_say_the_gravest_first(found: Audit) -> None:
    lines = found.headlines()
    assert lines[0].startswith("25.0 % of the test facts (1) are already in train")
    assert any("2 of the 4 negative links (50.0 %)" in line for line in lines)
    assert lines[-1] == "1 of the 5 entities occur in no fact."


def test_headlines_say_so_when_nothing_leaks() -> None:
    clean = Dataset(
        "clean", graph([(A, LIKES, B, 0.2)]), graph([]), graph([(C, LIKES, D, 0.2)]), graph([(A, KNOWS, D, 0.0)])
    )
    lines = audit(clean).headlines()
    assert lines[0] == "No test fact is in train, neither as it is nor inverted."
    assert "None of the 1 negative links is a fact of the graph." in lines


def test_a_symmetric_graph_is_to_be_cut_leak_safe() -> None:
    names = [f"p{number}" for number in range(6)]
    both = UncertainGraph.from_facts([(a, "binds", b, 0.5) for a in names for b in names if a != b])
    [line] = [line for line in audit(both).headlines() if "symmetric" in line]
    assert line.startswith("1 relation is symmetric in at least 90 % of the facts: binds. A random cut would give")
    cut = audit(split(both, leak_safe=True)).headlines()
    assert not any("random cut" in line for line in cut)


def printed(found: Audit, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(as_text(found))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def in_columns(text: str, title: str, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read a printed table: each row by its first cell, and in it each cell by the header it stands under."""
    lines = text.splitlines()
    first = lines.index(next(line for line in lines if line.startswith(title))) + 1
    ends, at = [], 0
    for column in columns:
        at = lines[first].index(column, at) + len(column)
        ends.append(at)
    rows = {}
    for line in lines[first + 1 :]:
        if not line.strip():
            break
        cells = [line[: line.find("  ")], *(line[:end].rsplit("  ", 1)[-1].strip() for end in ends[1:])]
        rows[cells[0]] = dict(zip(columns, cells, strict=True))
    return rows


def test_each_cell_of_the_printed_tables_stands_under_its_header(found: Audit) -> None:
    text = printed(found)
    columns = ["part", "rows", "distinct", "mean", "std", "median", "most often"]
    parts = in_columns(text, "Facts and their confidences", columns)
    assert parts["train"] == {
        "part": "train",
        "rows": "5",
        "distinct": "4",
        "mean": "0.640",
        "std": "0.287",
        "median": "0.600",
        "most often": "0.2 (20.0 %)",
    }
    assert parts["all"]["median"] == "0.550"
    twins = in_columns(text, "Held-out facts", ["part", "as it is", "gap", "inverted", "its entity pair"])
    assert twins["test"]["gap"] == "0.300"
    assert twins["test"]["inverted"] == "25.0 % (1)"
    assert twins["test"]["its entity pair"] == "75.0 % (3)"
    relations = in_columns(text, "Relations", ["relation", "facts", "inverse is a fact too", "gap"])
    assert relations["likes"] == {"relation": "likes", "facts": "5", "inverse is a fact too": "80.0 %", "gap": "0.450"}
    baselines = in_columns(text, "Trivial baselines", ["without a model", "test MSE", "+ neg. MSE", "+ neg. MAE"])
    constant = baseline(found, "constant, with negatives")
    assert constant.with_negatives is not None
    assert baselines["constant, with negatives"]["test MSE"] == f"{constant.positives.mse:.4f}"
    assert baselines["constant, with negatives"]["+ neg. MAE"] == f"{constant.with_negatives.mae:.4f}"


def test_each_cell_of_the_page_stands_under_its_header(found: Audit) -> None:
    tables = [
        [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
        for table in re.findall(r"<table>(.*?)</table>", as_page(found), re.DOTALL)
    ]
    assert len(tables) == 7
    for header, *rows in tables:
        assert {len(row) for row in rows} == {len(header)}
    header, train, *_ = tables[0]
    assert dict(zip(header, train, strict=True)) == {
        "part": "train",
        "rows": "5",
        "distinct triples": "4",
        "mean": "0.640",
        "std": "0.287",
        "median": "0.600",
        "lowest": "0.200",
        "highest": "1.000",
        "most often": "0.2 (20.0 %)",
    }


@pytest.mark.parametrize("width", [80, 200])
def test_no_row_of_the_printed_tables_is_cut_or_broken(found: Audit, width: int) -> None:
    text = printed(found, width)
    assert "…" not in text
    for line in text.splitlines():
        assert len(line) <= width
    rows = [line.rstrip() for line in text.splitlines()]
    for name in ("train", "val", "test", "all"):
        assert any(row.startswith(name) and row.endswith("%)") for row in rows)
    for each in found.baselines:
        assert any(row.startswith(each.name) and row.endswith(f"{each.with_negatives.mae:.4f}") for row in rows)  # type: ignore[union-attr]


def test_a_graph_without_news_begins_with_its_tables() -> None:
    lonely = audit(graph([(A, LIKES, B, 0.1), (B, KNOWS, C, 0.2)]), name="two")
    quiet = replace(lonely, entities=NameCounts(3, 3), whole=replace(lonely.whole, mode_share=0.0))
    assert quiet.headlines() == ()
    first, gap, title = (line.rstrip() for line in printed(quiet).splitlines()[:3])
    assert (first, gap) == ("Audit of two   2 facts, 3 entities, 2 relations", "")
    assert title == "Facts and their confidences"


def test_one_of_a_thing_is_told_as_one() -> None:
    one = audit(UncertainGraph.from_facts([("a", "r", "a", 0.5)]), name="one")
    assert "1 fact, 1 entity, 1 relation\n" in printed(one)
    assert "1 fact · 1 entity · 1 relation<" in as_page(one)


def test_names_that_look_like_markup_stay_text() -> None:
    evil = UncertainGraph.from_facts(
        [("[bold]<script>", "[/red]", "x & y", 0.1), ("[bold]<script>", "[/red]", "x & y", 0.9)]
    )
    found = audit(evil, name="<b>")
    assert "[bold]<script>" in printed(found)
    page = as_page(found)
    assert "<script>" not in page
    assert "[bold]&lt;script&gt;" in page
    assert "<title>Audit of &lt;b&gt;</title>" in page


def test_the_page_needs_nothing_from_outside(found: Audit) -> None:
    page = as_page(found)
    assert "http:" not in page
    assert "https:" not in page
    assert "src=" not in page
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert page.count("<svg") == page.count("</svg>") > 5


rows_of = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4), st.sampled_from([0.1, 0.5, 0.7, 1.0])),
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(rows_of.filter(len), rows_of, rows_of.filter(len), st.lists(st.tuples(*[st.integers(0, 1)] * 3), max_size=6))
def test_agrees_with_a_slow_count(
    train: list[Row], val: list[Row], test: list[Row], links: list[tuple[int, int, int]]
) -> None:
    found = audit(Dataset("any", graph(train), graph(val), graph(test), graph([(*link, 0.0) for link in links])))
    said: dict[tuple[int, int, int], list[float]] = {}
    for h, r, t, c in train + val + test:
        said.setdefault((h, r, t), []).append(c)
    learnt: dict[tuple[int, int, int], list[float]] = {}
    for h, r, t, c in train:
        learnt.setdefault((h, r, t), []).append(c)

    assert found.whole.distinct == len(said)
    assert found.repeats.triples == sum(len(values) > 1 for values in said.values())
    assert found.repeats.conflicting == sum(len(set(values)) > 1 for values in said.values())
    twins = next(each for each in found.twins if each.part == "test")
    for twin, turned in ((twins.exact, False), (twins.inverse, True)):
        gaps = [
            abs(c - np.mean(learnt[key]))
            for h, r, t, c in test
            if (key := (t, r, h) if turned else (h, r, t)) in learnt
        ]
        assert twin.rows == len(gaps)
        assert twin.gap == (pytest.approx(np.mean(gaps)) if gaps else None)
    pairs = {frozenset((h, t)) for h, _, t, _ in train}
    assert twins.pair.rows == sum(frozenset((h, t)) in pairs for h, _, t, _ in test)

    if links:
        assert found.negatives is not None
        assert found.negatives.facts == sum(link in said for link in links)
        floor = sum(float(np.mean(np.square(said[link]))) for link in links if link in said)
        assert found.negatives.floor_mse == pytest.approx(floor / (len(test) + len(links)))
    for symmetry in found.symmetry:
        r = RELATIONS.id(symmetry.relation)
        facts = [key for key in said if key[1] == r and key[0] != key[2]]
        assert symmetry.facts == len(facts)
        assert symmetry.share == pytest.approx(np.mean([(t, r, h) in said for h, r, t in facts]))


KNOWN = {
    "cn15k": {
        "rows": (241_158, 225_376),
        "exact": (0.104, 0.143),
        "inverse": (0.133, None),
        "pair": 0.349,
        "negatives": (150, 0.008),
        "floor": 0.12,
        "constant": (0.0545, 0.165),
        "mode": (0.709, 0.43),
    },
    "nl27k": {
        "rows": (175_424, 175_412),
        "exact": (0.001, None),
        "inverse": (0.328, 0.008),
        "pair": 0.933,
        "negatives": (201, 0.014),
        "floor": 0.57,
        "constant": (0.0563, 0.189),
        "mode": (1.0, 0.34),
    },
    "ppi5k": {
        "rows": (271_666, 249_396),
        "exact": (0.137, 0.139),
        "inverse": (0.875, 0.013),
        "pair": 0.955,
        "negatives": (1_772, 0.082),
        "floor": 0.72,
        "constant": (0.0448, 0.159),
        "mode": (0.329, 0.04),
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_finds_what_is_known_of_the_benchmarks(benchmark_data: Path, name: str) -> None:
    """Every figure that was measured of these data sets before this audit existed."""
    known = KNOWN[name]
    found = audit(read_folder(benchmark_data / name, undirected="none"))
    test = found.parts[2]
    twins = found.twins[1]
    negatives = found.negatives
    assert negatives is not None
    assert (found.whole.rows, found.whole.distinct) == known["rows"]
    for twin, expected in ((twins.exact, known["exact"]), (twins.inverse, known["inverse"])):
        assert isinstance(expected, tuple)
        assert round(twin.share, 3) == expected[0]
        if expected[1] is not None:
            assert twin.gap is not None
            assert round(twin.gap, 3) == expected[1]
    assert round(twins.pair.share, 3) == known["pair"]
    assert (negatives.facts, round(negatives.share, 3)) == known["negatives"]
    assert round(100 * negatives.floor_mse, 2) == known["floor"]
    mean = baseline(found, "constant, mean", "train+val")
    median = baseline(found, "constant, median", "train+val")
    assert (round(mean.positives.mse, 4), round(median.positives.mae, 3)) == known["constant"]
    assert test.mode_share is not None
    assert (test.mode, round(test.mode_share, 2)) == known["mode"]
    if name == "ppi5k":
        assert (found.parts[0].rows, found.parts[0].distinct) == (230_929, 214_661)
