"""Few facts are judged without the compiler: by the same numbers, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ukge.evidence import Evidence, kernels
from ukge.evidence.explain import explain_all
from ukge.graph.dataset import Dataset

Both = Callable[[Callable[[], Any]], tuple[Any, Any]]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    """Ask something without the compiler, and with it."""

    def ask(question: Callable[[], Any]) -> tuple[Any, Any]:
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "COMPILER", "a compiler that is never loaded")
            patch.setattr(kernels, "PATIENCE", np.inf)
            plain = question()
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "PATIENCE", -1.0)
            return plain, question()

    return ask


def test_evidence(both: Both, evidence: Evidence, dataset: Dataset) -> None:
    for facts in (dataset.test, dataset.train[:300]):
        for leave_out in (False, True):
            plain, compiled = both(lambda facts=facts, leave_out=leave_out: evidence.features(facts, leave_out=leave_out))
            for name, column in plain.items():
                np.testing.assert_array_equal(column, compiled[name], err_msg=name)


def test_confidences_and_bounds(both: Both, evidence: Evidence, dataset: Dataset) -> None:
    for facts in (dataset.test, dataset.test[:1]):
        np.testing.assert_array_equal(*both(lambda facts=facts: evidence.predict(facts)))
        np.testing.assert_array_equal(*both(lambda facts=facts: evidence.interval(facts, assume_holds=True)))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_contributions(both: Both, evidence: Evidence, dataset: Dataset, n: int) -> None:
    plain, compiled = both(lambda: evidence.contributions(dataset.test[:n]))
    assert plain.base == compiled.base
    np.testing.assert_array_equal(plain.parts, compiled.parts)


def test_answers(both: Both, evidence: Evidence, dataset: Dataset) -> None:
    for fact in dataset.test[:10]:
        for query in ({"head": fact.head}, {"tail": fact.tail}):
            plain, compiled = both(lambda query=query, fact=fact: evidence.rank(relation=fact.relation, **query))
            assert plain == compiled


def test_reasons(both: Both, evidence: Evidence, dataset: Dataset) -> None:
    plain, compiled = both(lambda: list(explain_all(evidence, dataset.test[:5])))
    assert plain == compiled
