"""What every registered model keeps to, from training to the service: a file under `models` is all that one needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tests.serve.small_run import doubt_with_few_trees

from ukge import UKGE, Predictor
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.runs.directory import Run
from ukge.serve.server import create_app
from ukge.serve.settings import Limits
from ukge.settings.variants import variants

SMALL: dict[str, Any] = {"dim": 8, "epochs": 4, "every": 2, "batch_size": 256, "negatives": 2, "threads": 1, "seed": 3}
TREES: dict[str, Any] = {
    "iterations": 3,
    "leaves": 4,
    "folds": 2,
    "negatives_per_fact": 1.0,
    "expectation_trees": 0,
    "min_hit_ratio": 1.0,
    "rank_queries": 10,
    "rank_candidates": 5,
}
OWN = {
    "passleaf": {"loss": "semi-supervised:gather=1,use=2,capacity=500"},
    "sscdl": {"scorer": "distribution:wide=32,narrow=16", "loss": "distribution:since=1,every=2"},
}
"""Settings that let a short training see what a long one would."""


class StopError(Exception):
    """Stands for a kill."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return split(generate(n_entities=200, n_facts=1500, seed=3).graph, val=0.15, test=0.1, seed=1, name="world")


@pytest.fixture(autouse=True, scope="module")
def _few_trees_of_doubt() -> Iterator[None]:
    """Every service looks for doubtful facts when it starts."""
    with pytest.MonkeyPatch.context() as patch:
        doubt_with_few_trees(patch)
        yield


def small(name: str) -> UKGE:
    """Return a model that is trained in a moment, by PyTorch: the fused engine has a contract of its own."""
    engine = "queries" if name == "complex-all" else "torch"
    settings = {**SMALL, **OWN.get(name, {})}
    if name.startswith("pykeen:"):
        pytest.importorskip("pykeen", reason="PyKEEN is not installed: pip install 'ukge[pykeen]'")
        name, settings = "ukge-logi", {**settings, "scorer": name}
    return UKGE(name, **settings, engine=engine, probe="none", checkpoint_seconds=0.0)


@pytest.mark.parametrize("name", [*variants.names(), "pykeen:mure", "pykeen:um", "pykeen:conve"])
def test_a_model_learns_is_kept_resumed_asked_and_rested_upon(name: str, data: Dataset, tmp_path: Path) -> None:
    whole = small(name).fit(data, out=tmp_path / "whole", progress=False)
    assert whole.trained is not None
    assert all(np.isfinite(array).all() for array in whole.trained.parameters.as_dict().values())

    def stop(event: Any) -> None:
        if event.epoch == 3:
            raise StopError

    with pytest.raises(StopError):
        small(name).fit(data, out=tmp_path / "cut", progress=False, callbacks=[stop])
    resumed = UKGE.resume(tmp_path / "cut", progress=False)
    assert resumed.trained is not None
    weights = [Run.open(tmp_path / each).load_weights().as_dict() for each in ("whole", "cut")]
    for key, array in weights[0].items():
        assert np.array_equal(array, weights[1][key]), key

    loaded = UKGE.load(tmp_path / "whole")
    model, facts = loaded.predictor, data.test[:20]
    asked = facts.head, facts.relation, facts.tail
    np.testing.assert_array_equal(model.confidence(*asked), whole.predictor.confidence(*asked))
    rows = np.arange(len(facts))
    for scores, answer in (
        (model.tail_scores(facts.head, facts.relation), facts.tail),
        (model.head_scores(facts.relation, facts.tail), facts.head),
    ):
        np.testing.assert_allclose(scores[rows, answer], model.strength(*asked), rtol=1e-4, atol=1e-5)

    evidence = Evidence.fit([str(tmp_path / "whole")], data, **TREES)
    evidence.save(tmp_path / "whole")
    names = data.entities.decode(facts.head[:1]), data.relations.decode(facts.relation[:1])
    triple = names[0][0].as_py(), names[1][0].as_py(), data.entities.decode(facts.tail[:1])[0].as_py()
    expected = evidence.predict([triple])
    np.testing.assert_allclose(Predictor.open(tmp_path / "whole").predict([triple]), expected, rtol=1e-6)
    app, service = create_app(tmp_path / "whole", explorer=False, limits=Limits(seconds=600))
    with TestClient(app) as client:
        for later in (service.snapshot.rulebook, service.snapshot.doubts, service.snapshot.audit):
            later.get()
        told = client.get("/v1/confidence", params=dict(zip(("head", "relation", "tail"), triple, strict=True))).json()
    assert told["confidence"] == pytest.approx(float(expected[0]), abs=1e-6)
