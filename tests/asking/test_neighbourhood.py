"""The neighbourhood of an entity, and its picture: whatever entities are called, every one of them is in it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.cli.asking import answered, refused

from ukge import UKGE
from ukge.asking import Predictor
from ukge.asking.drawing import Names, draw
from ukge.asking.neighbourhood import Edge, Neighbourhood, in_turn, neighbourhood
from ukge.graph.nodes import Nodes
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph

HOSTILE = ["$x^2", "<script>&amp;\"'", "a\x00b\u202e", "\n\t ", "名前", "x" * 500, "$", "%s {0}", "-", "\\alpha"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    facts = [(f"a{i}", "likes", f"b{j}", float(rng.random())) for i in range(8) for j in range(8) if rng.random() < 0.7]
    facts += [(f"b{i}", "knows", f"a{i}", 0.9) for i in range(6)]
    nodes = Nodes.from_columns(["a0", "b1"], label=["Anna", "Bert"], types=[["x:Person"], ["x:Dog"]])
    dataset = split(UncertainGraph.from_facts(facts).with_nodes(nodes), val=0.1, test=0.1, undirected="none")
    place = tmp_path_factory.mktemp("drawn") / "run"
    UKGE("ukge-rect", dim=4, epochs=1).fit(dataset, out=place)
    return place


def edge(other: str, relation: str = "r", confidence: float = 0.5, *, guess: bool = False) -> Edge:
    return Edge("m", relation, other, other, confidence, guess)


def test_every_relation_has_its_turn_and_no_neighbour_two() -> None:
    groups = {
        ("few", True): [edge("c", "few"), edge("d", "few")],
        ("many", True): [edge("a", "many"), edge("b", "many"), edge("c", "many")],
    }
    assert [each.other for each in in_turn(groups, 3, {"m"})] == ["a", "c", "b"]
    assert [each.other for each in in_turn(groups, 9, {"a", "c"})] == ["b", "d"]


def test_observed_facts_are_the_graphs_and_predicted_ones_are_not(run: Path) -> None:
    predictor = Predictor.open(run)
    known = {fact[:3]: fact.confidence for fact in predictor.dataset.whole()}
    found = neighbourhood(predictor, "a0", k=6)
    assert len(found.edges) <= 6
    assert found.facts == sum("a0" in (head, tail) for head, _, tail in known)
    assert 0 < sum(each.guess for each in found.edges) <= 2
    for each in found.edges:
        fact = each.head, each.relation, each.tail
        assert "a0" in fact
        assert (fact in known) is not each.guess
        assert each.guess or each.confidence == known[fact]
        assert not each.guess or each.confidence == pytest.approx(predictor.predict(fact))
    others = [each.other for each in found.edges]
    assert len(set(others)) == len(others)
    for (one, other), confidence in found.across.items():
        sure = [value for fact, value in known.items() if {fact[0], fact[2]} == {one, other}]
        assert confidence == max(sure)
    twice = neighbourhood(predictor, "a0", k=6, hops=2)
    beyond = [each for edges in twice.further.values() for each in edges]
    assert beyond
    assert all((each.head, each.relation, each.tail) in known for each in beyond)
    assert len(set(twice.names)) == len(twice.names)


def test_the_picture_names_everybody_and_dashes_what_is_predicted(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "anna.svg"
    told = answered("draw", run, "Anna", "--out", target, "-k", 6)
    assert "neighbours" in told.stderr
    texts, dashed = read_svg(target.read_bytes())
    found = neighbourhood(Predictor.open(run), "a0", k=6)
    assert "Anna" in texts
    assert "Person" in texts
    for each in found.edges:
        assert {"b1": "Bert"}.get(each.other, each.other) in texts
    assert dashed == sum(each.guess for each in found.edges) + 4  # and those of the legend
    assert answered("draw", run, "a0", "--out", target, "-k", 6).exit_code == 0
    assert read_svg(target.read_bytes())[0] == texts


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_it_is_drawn_in_any_of_three_formats_the_same_each_time(form: str, start: bytes) -> None:
    found = Neighbourhood("m", (edge("a"), edge("b", guess=True)), {}, {}, 1)
    picture = draw(found, Names({}, {}), "the model", form=form)
    assert picture.startswith(start)
    assert picture == draw(found, Names({}, {}), "the model", form=form)


def test_hostile_names_are_drawn_as_they_are() -> None:
    edges = tuple(edge(name, relation=name, guess=at % 2 == 0) for at, name in enumerate(HOSTILE))
    further = {HOSTILE[1]: (edge("beyond"),)}
    found = Neighbourhood("m", edges, further, {(HOSTILE[1], HOSTILE[3]): 0.4}, 99)
    names = Names({}, dict.fromkeys(HOSTILE, "<type $1$>"), frozenset({"-"}))
    texts, _ = read_svg(draw(found, names, "the model"))
    assert "<script>&amp;\"'" in texts
    assert "$x^2" in texts
    assert "a\u2400b\ufffd" in texts
    assert f"{'x' * 29}…" in texts
    assert "<type $1$>" in texts
    for form in ("png", "pdf"):
        assert draw(found, names, "the model", form=form)


def test_what_cannot_be_drawn_is_said(run: Path, tmp_path: Path) -> None:
    assert "no picture of this format" in refused("draw", run, "a0", "--out", tmp_path / "a.gif").what
    assert refused("draw", run, "Bart", "--out", tmp_path / "a.svg").hint == "Near names: Bert (b1)."
    assert list(tmp_path.iterdir()) == []


def read_svg(picture: bytes) -> tuple[set[str], int]:
    """Return the texts of a picture and how many of its lines are dashed."""
    root = ElementTree.fromstring(picture)
    texts = {"".join(each.itertext()) for each in root.iter(f"{SVG}text")}
    dashed = sum("stroke-dasharray" in each.get("style", "") for each in root.iter(f"{SVG}path"))
    return texts, dashed
