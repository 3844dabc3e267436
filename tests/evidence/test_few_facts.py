"""Few facts are judged without the compiler: by the same numbers, to the bit."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pytest
from tests.evidence.conftest import asked

from ukge.evidence import Evidence, kernels
from ukge.evidence.explain import explain_all
from ukge.graph.dataset import Dataset


class Both(Protocol):
    """Calls something without the compiler, and with it."""

    def __call__(self, question: Any, *given: Any, **named: Any) -> tuple[Any, Any]: ...


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    """Return what is called both ways."""

    def ask(question: Any, *given: Any, **named: Any) -> tuple[Any, Any]:
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "COMPILER", "a compiler that is never loaded")
            patch.setattr(kernels, "PATIENCE", np.inf)
            plain = question(*given, **named)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "PATIENCE", -1.0)
            return plain, question(*given, **named)

    return ask


@pytest.mark.parametrize("count_itself", [False, True])
def test_evidence(both: Both, evidence: Evidence, dataset: Dataset, count_itself: bool) -> None:
    for facts in (dataset.test, dataset.train[:300]):
        plain, compiled = both(evidence.columns, facts, count_itself=count_itself)
        for name, column in plain.items():
            np.testing.assert_array_equal(column, compiled[name], err_msg=name)


@pytest.mark.parametrize("n", [0, 1, 350])
def test_confidences_and_bounds(both: Both, evidence: Evidence, dataset: Dataset, n: int) -> None:
    np.testing.assert_array_equal(*both(evidence.predict, dataset.test[:n]))
    np.testing.assert_array_equal(*both(evidence.interval, dataset.test[:n], assume_holds=True))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_contributions(both: Both, evidence: Evidence, dataset: Dataset, n: int) -> None:
    plain, compiled = both(evidence.contributions, dataset.test[:n])
    assert plain.base == compiled.base
    np.testing.assert_array_equal(plain.parts, compiled.parts)


def test_answers(both: Both, evidence: Evidence, dataset: Dataset) -> None:
    for fact in dataset.test[:10]:
        for query in ({"head": fact.head}, {"tail": fact.tail}):
            plain, compiled = both(asked(evidence).rank, relation=fact.relation, **query)
            assert plain == compiled


def test_reasons(both: Both, evidence: Evidence, dataset: Dataset) -> None:
    plain, compiled = both(lambda: list(explain_all(evidence, dataset.test[:5])))
    assert plain == compiled


@pytest.mark.parametrize(("work", "pays"), [([0.9], False), ([1.1], True), ([0.6, 0.6], True)])
def test_the_compiler_pays_once_it_took_no_longer_to_load(
    monkeypatch: pytest.MonkeyPatch, work: list[float], pays: bool
) -> None:
    monkeypatch.setattr(kernels, "COMPILER", "a compiler that is never loaded")
    monkeypatch.setattr(kernels, "PATIENCE", 1.0)
    monkeypatch.setattr(kernels, "_spent", 0.0)
    assert [kernels.compiler_pays(seconds) for seconds in work][-1] == pays
