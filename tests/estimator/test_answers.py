"""`predict`, `score`, `rank`, `history` and `embeddings` of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ukge.errors import ConfigError, DataError, KindError, RunError, UkgeWarning
from ukge.graph.readers import read
from ukge.learning.estimator import UKGE


def test_a_frame_goes_in_and_comes_out(frame: pd.DataFrame, model: UKGE) -> None:
    answered = model.predict(frame)
    assert list(answered.columns) == ["head", "relation", "tail", "given", "confidence"]
    pd.testing.assert_series_equal(answered["given"], frame["confidence"], check_names=False)
    assert answered.index.equals(frame.index)
    np.testing.assert_array_equal(answered["confidence"], model.predict(read(frame)))
    first = tuple(frame.iloc[0][["head", "relation", "tail"]])
    assert model.predict(first) == answered["confidence"].iloc[0]
    assert model.predict([first]).tolist() == [answered["confidence"].iloc[0]]


def test_unknown_names_of_a_frame_are_told(frame: pd.DataFrame, model: UKGE) -> None:
    some = frame[:3].copy()
    some.loc[5001, "tail"] = "Atlantis"
    with pytest.warns(UkgeWarning, match="1 of 3 facts have names that were never seen"):
        answered = model.predict(some)
    assert answered["confidence"].isna().tolist() == [False, True, False]
    assert answered.loc[5001, "unknown"] == "tail 'Atlantis'"


def test_the_score_is_r_squared(frame: pd.DataFrame, model: UKGE) -> None:
    given, predicted = frame["confidence"], model.predict(frame)["confidence"]
    expected = 1 - ((given - predicted) ** 2).sum() / ((given - given.mean()) ** 2).sum()
    assert model.score(frame) == pytest.approx(expected)
    assert model.score(frame[["head", "relation", "tail"]], given.tolist()) == pytest.approx(expected)
    assert model.score(read(frame)) == pytest.approx(expected)
    with pytest.raises(DataError, match="the facts to score have no confidence"):
        model.score(frame[["head", "relation", "tail"]])


def test_facts_of_unknown_names_are_scored_by_the_mean(
    frame: pd.DataFrame, model: UKGE, quick: dict[str, Any], tmp_path: Path
) -> None:
    mean = UKGE(**quick).fit(frame, out=tmp_path / "run").learnt.mean
    assert 0.4 < mean < 0.8
    strange = pd.DataFrame({"head": ["x", "y"], "relation": ["r", "r"], "tail": ["z", "z"]})
    y = [mean - 0.1, mean + 0.3]  # around the mean + 0.1: R² = 1 − (0.1² + 0.3²) / (0.2² + 0.2²)
    model.save(tmp_path / "saved")
    for known in (model, UKGE.load(tmp_path / "run"), UKGE.load(tmp_path / "saved")):
        with pytest.warns(UkgeWarning, match=rf"2 of 2 facts .* the mean confidence of the training facts, {mean:.3f}"):
            assert known.score(strange, y) == pytest.approx(1 - 0.1 / 0.08)


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ({"head": ["a"], "relation": "r"}, KindError, "rank takes one name as head, not a list"),
        ({"head": "a", "relation": ("r",)}, KindError, "rank takes one name as relation, not a tuple"),
        ({"head": "a", "relation": "r", "k": 2.5}, KindError, "rank takes a whole number of answers as k, not a float"),
        ({"head": "a", "relation": "r", "k": 0}, ConfigError, "k is 0"),
        ({"head": "a"}, DataError, "a query needs a relation and either a head or a tail"),
    ],
)
def test_queries_that_are_none_are_told(model: UKGE, query: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        model.rank(**query)


def test_names_may_be_whole_numbers(quick: dict[str, Any]) -> None:
    numbers = pd.DataFrame(
        {"head": np.arange(60) % 7, "relation": "next", "tail": np.arange(60) % 11, "confidence": 0.5}
    )
    fitted = UKGE(**quick).fit(numbers)
    assert fitted.predict(numbers)["confidence"].notna().all()
    assert isinstance(fitted.predict((3, "next", 10)), float)
    assert {answer.entity for answer in fitted.rank(3, "next", k=20)} == {str(i) for i in range(11)}  # type: ignore[arg-type]


def test_the_history_has_a_row_per_epoch(model: UKGE, tmp_path: Path) -> None:
    history = model.history
    assert model.trained is not None
    assert history["epoch"].tolist() == [1, 2, 3, 4]
    assert history["value"].isna().tolist() == [True, False, True, False]
    assert history["best"].iloc[-1] == model.trained.best
    terms = [name for name in history if name.startswith("loss_")]
    np.testing.assert_allclose(history[terms].sum(axis=1), history["loss"], rtol=1e-5)
    assert {"metric", "seconds", "facts_per_second"} < set(history)
    model.save(tmp_path / "saved")
    pd.testing.assert_frame_equal(UKGE.load(tmp_path / "saved").history, history)


@pytest.mark.parametrize(
    ("scorer", "entity", "relation"),
    [
        ("distmult", ["x"], ["x"]),
        ("complex", ["real", "imaginary"], ["real", "imaginary"]),
        ("rotate", ["real", "imaginary"], ["phase"]),
    ],
)
def test_embeddings_have_names(
    frame: pd.DataFrame, quick: dict[str, Any], scorer: str, entity: list[str], relation: list[str]
) -> None:
    fitted = UKGE(**{**quick, "epochs": 1, "dim": 2}, scorer=scorer, engine="torch").fit(frame[:200])
    assert fitted.trained is not None
    for kind, parts, names in (("entity", entity, fitted.entities), ("relation", relation, fitted.relations)):
        table = fitted.embeddings(kind)  # type: ignore[arg-type]
        assert list(table.columns) == [f"{part}{at}" for part in parts for at in range(2)]
        assert table.index.tolist() == list(names or ())
        assert table.index.name == kind
        np.testing.assert_array_equal(table, fitted.trained.parameters.as_dict()[kind])
        table.loc[:] = 0.0
        assert fitted.trained.parameters.as_dict()[kind].any()  # the model keeps its own
    with pytest.raises(ConfigError, match="no embeddings of kind 'head'"):
        fitted.embeddings("head")  # type: ignore[arg-type]


def test_a_model_that_is_not_trained_says_so(frame: pd.DataFrame) -> None:
    fresh = UKGE()
    for ask in (
        lambda: fresh.predict(frame),
        lambda: fresh.score(frame),
        lambda: fresh.rank("a", "r"),
        lambda: fresh.history,
        fresh.embeddings,
        lambda: fresh.save("nowhere"),
    ):
        with pytest.raises(RunError, match="the model is not trained\nWhat to do: Call fit first, or load a run"):
            ask()
