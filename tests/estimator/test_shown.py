"""What objects say of themselves, in a terminal and in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from ukge.evidence.explain import Explanation
from ukge.evidence.reasons import Reason
from ukge.graph.dataset import Dataset
from ukge.graph.readers import read
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.html.pictures import curve
from ukge.learning.estimator import UKGE

STRANGE = "<script>alert('x')</script>"


def parsed(shown: Any) -> ElementTree.Element:
    """Return the HTML an object shows, which must be well formed."""
    return ElementTree.fromstring(f"<all>{shown._repr_html_()}</all>")


def texts(shown: Any) -> list[str]:
    return [each.text or "" for each in parsed(shown).iter() if each.text]


def test_a_model_says_what_it_is(frame: pd.DataFrame, model: UKGE, tmp_path: Path) -> None:
    assert repr(UKGE()) == "UKGE('ukge-rect')"
    assert repr(UKGE("ukge-logi", dim=64, link="logistic", lr=0.001)) == "UKGE('ukge-logi', dim=64)"
    assert model.trained is not None
    expected = (
        "UKGE('ukge-rect', dim=8, lr=0.02, batch_size=256, epochs=4, every=2, threads=1), trained on 930 facts of "
        f"{len(model.entities or ())} entities and 20 relations: validation mse {model.trained.best:.5f} "
        f"in epoch {model.trained.best_epoch} of 4"
    )
    assert repr(model) == expected
    assert repr(model.trained) == (
        f"Trained(validation mse {model.trained.best:.5f} in epoch {model.trained.best_epoch}, 4 epochs)"
    )
    model.save(tmp_path / "run")
    loaded = UKGE.load(tmp_path / "run")
    assert repr(loaded) == expected
    assert repr(loaded.set_params(model="of-a-plugin")).startswith("UKGE('of-a-plugin', dim=8")


def test_a_notebook_shows_how_the_training_went(model: UKGE) -> None:
    shown = parsed(model)
    lines = [each.get("points", "") for each in shown.iter("polyline")]
    assert [len(line.split()) for line in lines] == [4, 2]  # losses, and a validation every second epoch
    assert len(list(shown.iter("circle"))) == 1
    assert not list(parsed(UKGE()).iter("svg"))


def test_graphs_show_confidences_and_facts(frame: pd.DataFrame) -> None:
    graph = read(frame)
    shown = parsed(graph)
    assert repr(graph) in texts(graph)
    counts = [int(title.text.split()[-1].replace(",", "")) for title in shown.iter("title") if title.text]
    assert sum(counts) == 1000
    assert "… and 995 more" in texts(graph)
    assert graph[0].head in texts(graph)
    dataset = split(graph, seed=0, name="world")
    assert len(list(parsed(dataset).iter("svg"))) == 3
    assert len(list(parsed(split(graph, test=0.0, seed=0)).iter("svg"))) == 2  # no empty picture


def test_names_are_no_markup() -> None:
    graph = UncertainGraph.from_facts([(STRANGE, "r&d", '"b"', 0.5)])
    assert STRANGE in texts(graph)  # as text: the parser would have made elements of it
    assert "r&d" in texts(graph)
    reason = Reason("rule", f"Because {STRANGE}.", -0.2)
    why = Explanation((STRANGE, "r", "b"), 0.3, (0.1, 0.5), 0.5, (reason,), observed=0.4)
    assert f"Because {STRANGE}." in texts(why)
    dataset = Dataset(STRANGE, graph, graph[:0], graph[:0])
    assert not list(parsed(dataset).iter("script"))


def test_reasons_are_bars_to_both_sides() -> None:
    reasons = (Reason("a", "For it.", 0.2), Reason("b", "Against it.", -0.4))
    why = Explanation(("h", "r", "t"), 0.3, (0.1, 0.5), 0.5, reasons)
    assert repr(why).startswith("Explanation((h, r, t): confidence 0.30")
    bars = [(each.get("class"), each.get("x"), each.get("width")) for each in parsed(why).iter("rect")]
    assert bars == [("bar", "60.0", "60.0"), ("bar", "60.0", "24.0"), ("warn", "12.0", "48.0")]


def test_vocabularies_tell_their_first_names() -> None:
    assert repr(Vocabulary(["a", "b"])) == "Vocabulary(2 entity names: 'a', 'b')"
    assert repr(Vocabulary(list("abcd"), kind="relation")) == "Vocabulary(4 relation names: 'a', 'b', 'c', …)"


def test_a_curve_lies_within_its_picture() -> None:
    drawn = curve([(1, 3.0), (2, float("nan")), (3, 1.0), (4, 2.0)], "loss", best=3)
    (line,) = re.findall(r'points="([^"]*)"', drawn)
    assert line == "4.0,10.0 166.7,88.0 248.0,49.0"  # the highest on top, the lowest above the axis, the middle between
    assert 'cx="166.7" cy="88.0"' in drawn
    assert curve([(1, 3.0)], "loss") == ""
    assert "nan" not in curve([(1, 2.0), (2, 2.0)], "flat")
