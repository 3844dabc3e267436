"""A model of PyKEEN, taken in: it scores as PyKEEN does, is asked by name, judged, kept, and opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ukge import UKGE, ConfigError, DataError, Predictor
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=160, n_facts=900, seed=1).graph.compact(), val=0.1, test=0.1, seed=1)


def trained(dataset: Dataset, name: str, *, inverses: bool = False, **settings: Any) -> tuple[Any, Any]:
    """Return a model of PyKEEN, whose rows are chance's, and its factory, whose ids are others than ours."""
    from pykeen.models import model_resolver
    from pykeen.triples import TriplesFactory

    labelled = np.array([(fact.head, fact.relation, fact.tail) for fact in dataset.whole()])
    factory = TriplesFactory.from_labeled_triples(labelled, create_inverse_triples=inverses)
    model = model_resolver.make(name, triples_factory=factory, random_seed=0, **settings)
    return model, factory


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("TransE", {"embedding_dim": 6, "scoring_fct_norm": 2}),
        ("DistMult", {"embedding_dim": 6}),
        ("RotatE", {"embedding_dim": 6}),
        ("TransR", {"embedding_dim": 6, "relation_dim": 4}),
        ("DistMult", {"embedding_dim": 6, "inverses": True}),
    ],
)
def test_it_scores_as_pykeen_does(dataset: Dataset, name: str, settings: dict[str, Any]) -> None:
    model, factory = trained(dataset, name, **settings)
    taken = UKGE.from_pykeen(model, factory, dataset)
    facts = dataset.test
    asked = [
        [factory.entity_to_id[each.head], factory.relation_to_id[each.relation], factory.entity_to_id[each.tail]]
        for each in facts
    ]
    with torch.no_grad():
        theirs = model.eval().predict_hrt(torch.tensor(asked)).numpy().reshape(-1)
    own = taken.predictor.plausibility(facts.head, facts.relation, facts.tail)
    np.testing.assert_allclose(own, theirs, rtol=1e-3, atol=1e-3)


def test_it_is_a_run_like_any_other(dataset: Dataset, tmp_path: Path) -> None:
    model, factory = trained(dataset, "DistMult", embedding_dim=8)
    taken = UKGE.from_pykeen(model, factory, dataset)
    confidences = np.array(taken.predict(dataset.train))
    assert ((confidences > 0) & (confidences < 1)).all()
    taken.save(tmp_path / "run")
    again, fact = Predictor.open(tmp_path / "run"), dataset.test[0]
    ranked = again.rank(fact.head, fact.relation, k=3)
    assert [each.entity for each in ranked] == [name for name, _ in taken.rank(fact.head, fact.relation, k=3)]


def test_a_file_or_other_names_are_refused(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match="pickle"):
        UKGE.from_pykeen("trained_model.pkl", None, dataset)
    model, factory = trained(dataset, "DistMult", embedding_dim=8)
    other = split(generate(n_entities=160, n_facts=900, seed=2).graph.compact(), seed=1)
    with pytest.raises(DataError, match="knows no entity"):
        UKGE.from_pykeen(model, factory, other)
