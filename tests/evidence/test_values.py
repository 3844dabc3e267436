"""Medians where confidences are a few values: the cells, what the trees for them see, and the head made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ukge.errors import RunError
from ukge.evidence import Evidence
from ukge.evidence.binning import Binned
from ukge.evidence.cells import STEPS, Cells, Question
from ukge.evidence.evidence import HeldFacts
from ukge.evidence.lookup import FactBatch
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.spelling import NAMES, Spelling
from ukge.evidence.surroundings import GROUPS, Surroundings
from ukge.evidence.values import CellTrees, cell_fits
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.storage.arrays import StoredArrays, save_arrays

THREE = Cells.of(np.repeat([0.2, 0.5, 0.9], [30, 30, 40]))


def logit(chance: float) -> float:
    return float(np.log(chance / (1.0 - chance)))


def test_common_values_are_cells_and_what_is_between_them_is_cut() -> None:
    rare = np.linspace(0.1, 0.4, 200).round(4)
    found = Cells.of(np.concatenate([np.full(700, 0.7), np.full(100, 1.0), rare]))
    assert found.share == pytest.approx([0.067, 0.066, 0.067, 0.7, 0.1], abs=0.002)
    assert found.quantile[3] == pytest.approx(np.full(STEPS + 1, 0.7))
    assert (found.quantile[2][0], found.quantile[2][-1]) == pytest.approx((0.3, 0.4), abs=0.01)
    assert list(found.find(np.array([0.1, 0.39, 0.7, 0.7 + 1e-9, 1.0]))) == [0, 2, 3, 3, 4]
    assert found.bands() == pytest.approx([0.55, 0.85])
    assert len(Cells.of(np.full(10, 0.3))) == 1


def test_values_without_common_ones_are_cut_into_even_parts() -> None:
    found = Cells.of(np.random.default_rng(0).random(5000))
    assert len(found) == 15
    assert found.share.max() < 0.08
    assert len(found.questions) == 14


def test_chances_of_the_answers_make_those_of_the_cells() -> None:
    assert THREE.questions == (Question(0, 2, 3), Question(0, 1, 2))
    # 0.4 in the upper cell; of the other 0.6, half in each
    odds = np.array([[logit(0.4), logit(0.5)], [logit(0.1), logit(0.25)]])
    chances = THREE.chances(odds)
    assert chances == pytest.approx(np.array([[0.3, 0.3, 0.4], [0.675, 0.225, 0.1]]))
    assert THREE.median(chances) == pytest.approx([0.5, 0.2])
    assert THREE.mean(chances[:1]) == pytest.approx([0.3 * 0.2 + 0.3 * 0.5 + 0.4 * 0.9])


def test_the_median_lies_within_its_cell_as_far_up_as_the_chances_say() -> None:
    cells = Cells(np.array([0.45]), np.stack([np.linspace(0.0, 0.4, STEPS + 1), np.full(STEPS + 1, 0.9)]), np.ones(2))
    # 0.5 of 0.8 is five eighths of the way up; where the upper cell has more than half, the median is its value
    assert cells.median(np.array([[0.8, 0.2], [0.5, 0.5], [0.4, 0.6]])) == pytest.approx([0.25, 0.4, 0.9])


def test_no_constant_has_a_smaller_absolute_error_than_the_median() -> None:
    confidence = np.concatenate([np.repeat([0.3, 0.7], [45, 40]), np.linspace(0.71, 0.9, 30)])
    cells = Cells.of(confidence)
    median = float(cells.median(cells.share[None])[0])
    errors = [np.abs(confidence - each).mean() for each in np.linspace(0.0, 1.0, 1001)]
    assert np.abs(confidence - median).mean() <= min(errors) + 1e-12


def test_questions_that_no_fact_comes_to_are_answered_all_the_same() -> None:
    columns = np.random.default_rng(0).random((60, 2), dtype=np.float32)
    confidence = np.full(60, 0.9)  # the question between 0.2 and 0.5 is about none of them
    fits = cell_fits(THREE, Binned.of(columns), confidence, EvidenceSettings(iterations=2, leaves=3))
    head = CellTrees(THREE, tuple(each() for each in fits))
    assert head.predict(columns) == pytest.approx(np.full(60, 0.9))


def test_names_are_compared_by_hand() -> None:
    spelling = Spelling.of(["olive branch", "Olive", "oak_tree", "x"])
    found = spelling.columns(np.array([0, 1, 0], dtype=np.int32), np.array([1, 3, 2], dtype=np.int32))
    first = dict(zip(NAMES, found[0].tolist(), strict=True))
    assert (first["head_words"], first["head_letters"], first["tail_words"], first["tail_letters"]) == (2, 12, 1, 5)
    assert (first["same_beginning"], first["same_ending"], first["same_words"]) == (1.0, 0.0, 1.0)
    # <ol, oli, liv, ive are in both; 12 triples and 5, of which 4 are the same
    assert first["same_letters"] == pytest.approx(4 / 13)
    assert first["in_alphabetical_order"] == 0.0
    assert first["head_ending"] == 256 * ord("h") + ord("c")
    second = dict(zip(NAMES, found[1].tolist(), strict=True))
    assert (second["tail_ending"], second["same_letters"], second["in_alphabetical_order"]) == (
        256 * ord("x") + 32,
        0,
        1,
    )
    assert found[2, NAMES.index("tail_words")] == 2


def _graph(rows: list[tuple[str, str, str, float]], undirected: tuple[str, ...] = ()) -> UncertainGraph:
    directed = UncertainGraph.from_facts(rows)
    named = directed[:0].taken_as_undirected(undirected)
    return named.with_facts(directed.head, directed.relation, directed.tail, directed.confidence)


FACTS = [
    ("a", "r", "b", 0.9),
    ("a", "r", "b", 0.2),  # a repeat
    ("a", "r", "c", 0.5),
    ("a", "s", "c", 0.9),
    ("c", "s", "b", 0.2),
    ("b", "r", "a", 0.9),
    ("b", "s", "d", 0.5),
    ("d", "r", "a", 0.2),
    ("d", "r", "d", 0.9),
]


def test_shares_and_common_neighbours_by_hand() -> None:
    graph = _graph(FACTS)
    index = FactIndex(graph)
    ids = graph.head[:1], graph.relation[:1], graph.tail[:1]
    (found,) = Surroundings.of(index, THREE).columns(FactBatch.of(*ids, index.find(*ids)))
    head, tail, query, inverse, common = np.split(found, [3, 6, 9, 12])
    assert head.tolist() == [0.0, 0.5, 0.5]  # of a: 0.5 and 0.9, without its two rows
    assert tail.tolist() == [1.0, 0.0, 0.0]  # to b: 0.2
    assert query.tolist() == [0.0, 1.0, 0.0]  # (a, r): 0.5
    assert np.isnan(inverse).all()  # (r, b): nothing else
    # c is linked to a by 0.5 and 0.9 and to b by 0.2; d to a by 0.2 and to b by 0.5
    expected = np.zeros((3, 3))
    expected[1, 0] = expected[2, 0] = expected[0, 1] = 1
    assert common.reshape(3, 3).tolist() == expected.tolist()


@pytest.mark.parametrize("undirected", [(), ("r",), ("r", "s")])
def test_leaving_a_fact_out_is_the_same_as_never_having_had_it(undirected: tuple[str, ...]) -> None:
    graph = _graph(FACTS, undirected)
    index = FactIndex(graph)
    whole = Surroundings.of(index, THREE)
    own = index.find(graph.head, graph.relation, graph.tail)
    for row in range(len(graph)):
        ids = graph.head[row : row + 1], graph.relation[row : row + 1], graph.tail[row : row + 1]
        without = Surroundings.of(FactIndex(graph[np.flatnonzero(own != own[row])]), THREE)
        stored = graph.as_stored(*ids)
        kept = whole.columns(FactBatch.of(*stored, own[row : row + 1]))
        never = without.columns(FactBatch.of(*stored))
        assert kept.shape == (1, GROUPS * 3 + 9)
        np.testing.assert_array_equal(kept, never)


@pytest.fixture(scope="module")
def told_by_names() -> Dataset:
    """Facts in a ring, each of other entities: names with the same first word have one confidence, others another."""
    rng = np.random.default_rng(0)
    names = [f"{first} {number}" for number, first in enumerate(rng.choice(["red", "blue", "pale"], 1200))]
    rows = []
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        rows.append((name, "near", other, 0.893 if name.split()[0] == other.split()[0] else 0.343))
    return split(_graph(rows), val=0.15, test=0.1, seed=1, name="names")


TREES = {"error": "absolute", "iterations": 20, "leaves": 7, "folds": 2, "expectation_trees": 20, "rank_queries": 0}


@pytest.fixture(scope="module")
def by_names(told_by_names: Dataset) -> Evidence:
    return Evidence.fit([], told_by_names, **TREES)  # type: ignore[arg-type]


def test_names_tell_where_nothing_else_does(by_names: Evidence, told_by_names: Dataset) -> None:
    test = told_by_names.test
    blind = Evidence.fit([], told_by_names, **TREES, names=False)  # type: ignore[arg-type]
    seen, unseen = (
        np.abs(each.predict(test, assume_holds=True) - test.confidence).mean() for each in (by_names, blind)
    )
    assert isinstance(by_names.regressor.level, CellTrees)
    assert seen < 0.05
    assert unseen > 0.15
    # the median is a value of the graph, to the digit
    assert set(np.round(by_names.predict(test, assume_holds=True), 6)) <= {0.893, 0.343}
    assert by_names.unseen_errors()["mae_if_held"] < 0.05


def test_contributions_through_cells_add_up(by_names: Evidence, told_by_names: Dataset) -> None:
    for assume_holds in (False, True):
        taken = by_names.contributions(told_by_names.test, assume_holds=assume_holds)
        whole = taken.base + taken.parts.sum(axis=1)
        assert whole == pytest.approx(by_names.predict(told_by_names.test, assume_holds=assume_holds), abs=1e-9)
    head, relation, tail = told_by_names.test.head[0], told_by_names.test.relation[0], told_by_names.test.tail[0]
    entities, relations = told_by_names.entities, told_by_names.relations
    told = by_names.explain(entities[int(head)], relations[int(relation)], entities[int(tail)])
    moved = sum(each.contribution or 0.0 for each in told.reasons)
    assert told.base is not None
    assert told.base + moved == pytest.approx(told.confidence)


def test_only_medians_need_the_values(by_names: Evidence) -> None:
    assert by_names.features.values is not None
    assert by_names.refit(error="squared").features.values is None


def test_saved_values_say_the_same(by_names: Evidence, told_by_names: Dataset, tmp_path: Path) -> None:
    by_names.save(tmp_path / "kept")
    test = told_by_names.test
    loaded = Evidence.load(tmp_path / "kept")
    assert loaded.feature_names == by_names.feature_names
    np.testing.assert_array_equal(loaded.predict(test), by_names.predict(test))
    held = HeldFacts.load(tmp_path / "kept").confidence(test.head, test.relation, test.tail)
    np.testing.assert_array_equal(held, by_names.predict(test, assume_holds=True, count_itself=True))


@pytest.mark.parametrize("name", ["values.cells.edge", "head.level.cells.edge"])
def test_cells_that_do_not_fit_their_edges_are_refused(name: str, by_names: Evidence, tmp_path: Path) -> None:
    by_names.save(tmp_path / "kept")
    file = tmp_path / "kept" / "evidence.safetensors"
    stored = StoredArrays(file, copied=True)
    arrays = {each: stored[each] for each in stored}
    save_arrays(file, arrays | {name: arrays[name][:0]}, stored.notes)
    with pytest.raises(RunError, match=name.replace(".", r"\.")):
        Evidence.load(tmp_path / "kept").check()
