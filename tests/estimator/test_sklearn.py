"""The estimator among those of scikit-learn, and its keywords."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import warnings
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

from ukge.errors import ConfigError, UkgeWarning
from ukge.learning.estimator import UKGE
from ukge.settings.config import Config, knobs
from ukge.settings.knobs import ModelName
from ukge.settings.variants import variant, variants


def test_the_keywords_are_the_settings() -> None:
    """Names, types and order: what an editor offers cannot differ from what can be set."""
    parameters = list(inspect.signature(UKGE).parameters.values())
    hints = get_type_hints(UKGE)
    assert [each.name for each in parameters[:2]] == ["model", "config"]
    assert [each.name for each in parameters[2:]] == [knob.name for knob in knobs()]
    for each, knob in zip(parameters[2:], knobs(), strict=True):
        kinds = get_args(hints[each.name])
        plain = [kind for kind in kinds if get_origin(kind) is not Literal]
        assert set(plain) == {knob.type, type(None)}
        assert each.default is None
        assert each.kind is inspect.Parameter.KEYWORD_ONLY
        offered = [name for kind in kinds if get_origin(kind) is Literal for name in get_args(kind)]
        assert offered == ([] if knob.choices is None else list(knob.choices.own))
    assert set(get_args(ModelName)) <= set(variants.names())


def test_parameters_are_kept_as_given() -> None:
    config = Config()
    model = UKGE("ukge-logi", config=config, dim=64)
    given = model.get_params()
    assert {name: value for name, value in given.items() if value is not None} == {
        "model": "ukge-logi",
        "config": config,
        "dim": 64,
    }
    assert model.config is config
    assert UKGE("ukge-logi", dim=64).settings == variant("ukge-logi").replace(dim=64, probe="both")
    assert model.settings == config.replace(dim=64)


def test_parameters_can_be_changed() -> None:
    model = UKGE(dim=8)
    assert model.set_params(dim=16, model="ukge-logi") is model
    assert model.settings == variant("ukge-logi").replace(dim=16, probe="both")
    with pytest.raises(ConfigError, match=r"unknown setting 'dimm'\nWhat to do: Did you mean 'dim'\?"):
        model.set_params(dimm=3)
    with pytest.raises(ConfigError, match="dim must be at least 1"):
        model.set_params(lr=0.5, dim=0)
    assert (model.dim, model.lr) == (16, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"link": "rectifer"}, "Did you mean 'rectifier'"),
        ({"model": "ukge-rec"}, "Did you mean 'ukge-rect'"),
        ({"tau": 2.0}, "tau must be at least 0 and at most 1"),
    ],
)
def test_settings_are_refused_when_the_model_is_made(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        UKGE(**settings)


def test_it_is_a_regressor_that_can_be_cloned(model: UKGE) -> None:
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.trained is None
    assert is_regressor(model)
    assert not is_classifier(model)
    check_is_fitted(model)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(again)


def test_a_trained_model_can_be_pickled_and_copied(model: UKGE, frame: pd.DataFrame) -> None:
    expected = model.predict(frame)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        pd.testing.assert_frame_equal(again.predict(frame), expected)


def test_settings_changed_later_leave_what_was_learnt(frame: pd.DataFrame, quick: dict[str, Any]) -> None:
    fitted = UKGE(**quick).fit(frame)
    before = fitted.predict(frame)
    fitted.set_params(link="logistic", dim=32)
    pd.testing.assert_frame_equal(fitted.predict(frame), before)


def test_cross_validation_and_grid_search(frame: pd.DataFrame, quick: dict[str, Any]) -> None:
    triples, confidences = frame[["head", "relation", "tail"]], frame["confidence"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UkgeWarning)
        scores = cross_val_score(UKGE(**quick), triples, confidences, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    assert any("stands for their prediction" in str(each.message) for each in caught)  # names of one fold alone
    grid = {"dim": np.array([2, 4]), "link": ["rectifier", "logistic"], "lr": [np.float64(0.01)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UkgeWarning)
        search = GridSearchCV(UKGE(**quick), grid, cv=2, error_score="raise").fit(triples, confidences)
    assert search.cv_results_["mean_test_score"].shape == (4,)
    assert isinstance(search.best_estimator_, UKGE)
    assert search.predict(triples)["confidence"].notna().all()


def test_a_list_of_facts_is_cross_validated_too(frame: pd.DataFrame, quick: dict[str, Any]) -> None:
    facts = list(frame.itertuples(index=False, name=None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UkgeWarning)
        assert np.isfinite(cross_val_score(UKGE(**quick), facts, cv=2, error_score="raise")).all()


def test_the_estimator_loads_neither_scikit_learn_nor_pandas() -> None:
    code = "import sys; import ukge; ukge.UKGE(dim=8).get_params(); print({'sklearn', 'pandas'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
