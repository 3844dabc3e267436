"""Compiled once: a question about one fact, or about stored evidence, must not wait for a compiler again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.evidence.conftest import asked as ask

from ukge.evidence import Evidence, backbones, bit_vector_trees, lookup, pairs, paths, ranking, shap
from ukge.graph.dataset import Dataset

KERNELS: dict[str, Any] = {
    "find": lookup._find,
    "pairs": pairs._fill,
    "paths": paths._fill,
    "agreement": backbones._agree,
    "candidates": ranking._propose,
    "trees": bit_vector_trees._add,
    "contributions": shap._shap,
}


@pytest.fixture
def asked(evidence: Evidence, dataset: Dataset, tmp_path: Path) -> None:
    """Evidence that was fitted, and the same from its files, asked in every way about few facts and many."""
    evidence.save(tmp_path)
    for each in (evidence, Evidence.load(tmp_path)):
        each.predict(dataset.train)  # enough to look keys up on all cores
        for facts in (dataset.test, dataset.test[:2], dataset.test[:1]):
            each.interval(facts)
            each.interval([(fact.head, fact.relation, fact.tail) for fact in facts], assume_holds=True)
            each.contributions(facts)
        fact = dataset.test[0]
        predictor = ask(each)
        predictor.rank(fact.head, fact.relation)
        predictor.rank(relation=fact.relation, tail=fact.tail, seen="exclude")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_compiled_for_one_kind_of_arrays(name: str) -> None:
    assert len(KERNELS[name].compiled.signatures) == 1
