"""Learning from relations without a direction: the same model however a file writes the facts, equal both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.small import scorer_of

from ukge import UKGE, open_dataset
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import take_undirected
from ukge.graph.writers import write
from ukge.learning.engines import engines
from ukge.learning.sampling import Facts, samplers
from ukge.learning.train import training_data
from ukge.logic.ground_rules import GroundRules
from ukge.models.links import links
from ukge.models.model import Model, init
from ukge.models.scorers import scorers
from ukge.models.tensors import TensorTables
from ukge.settings.variants import variant

Rows = list[tuple[str, str, str, float]]


def proteins(n: int = 300, facts: int = 4000, seed: int = 0) -> Rows:
    """Interactions like those of STRING: confidences are a function of latent vectors, pairs stand in A–Z order."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, 8))
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(len(i))[:facts]
    score = (latent[i[chosen]] * latent[j[chosen]]).sum(axis=1)
    confidence = np.round(1 / (1 + np.exp(-score)), 3)
    rows = zip(i[chosen], j[chosen], confidence, strict=True)
    return [(f"p{a:03}", "interacts", f"p{b:03}", float(c)) for a, b, c in rows]


def ways_to_write(rows: Rows) -> dict[str, tuple[Rows, str]]:
    rng = np.random.default_rng(5)
    turned = [(t, r, h, c) if rng.random() < 0.5 else (h, r, t, c) for h, r, t, c in rows]
    both = rows + [(t, r, h, c) for h, r, t, c in rows]
    return {
        "once": (rows, "auto"),
        "in any direction": ([turned[at] for at in rng.permutation(len(turned))], "interacts"),
        "twice": (both, "auto"),
        "shuffled": ([both[at] for at in rng.permutation(len(both))], "auto"),
    }


SMALL: dict[str, Any] = {"dim": 8, "epochs": 3, "batch_size": 512, "threads": 1}


@pytest.mark.parametrize(("model", "engine"), [("ukge-rect", "fused"), ("complex", "torch")])
def test_however_the_facts_are_written_the_model_is_the_same(model: str, engine: str, tmp_path: Path) -> None:
    """Same split, same weights to the bit, same metrics, and the run finds its data again."""
    found = {}
    for name, (rows, undirected) in ways_to_write(proteins()).items():
        file = tmp_path / name / "proteins.tsv"
        file.parent.mkdir()
        write(UncertainGraph.from_facts(rows), file)
        dataset = open_dataset(file, undirected=undirected)
        fresh = UKGE(model, engine=engine, **SMALL)
        trained = fresh.fit(file, undirected=undirected, out=tmp_path / name / "run", rules="none")
        plan = prepare(dataset, "positives")
        judged = evaluate(plan, {"it": trained.predictor}, bootstrap=Bootstrap(replicates=0)).row("it")
        figures = {table: [each.value for each in row] for table, row in judged.figures.items()}
        weights = trained.learnt.trained.parameters
        sizes = {part: len(facts) for part, facts in dataset.parts.items()}
        found[name] = (sizes, weights.entity.tobytes(), weights.relation.tobytes(), figures)
        again = UKGE.load(tmp_path / name / "run")
        here, there = again.predict(("p000", "interacts", "p001")), again.predict(("p001", "interacts", "p000"))
        assert here == there == trained.predict(("p001", "interacts", "p000"))
    assert found["once"][0] == {"train": 3400, "val": 280, "test": 320}
    for each in found.values():
        assert each == found["once"]


def test_a_relation_with_a_direction_keeps_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(300, size=(400, 2))
    beside = [(f"p{a:03}", "regulates", f"p{b:03}", 0.5) for a, b in ends if a != b]
    weights = []
    for name, (rows, undirected) in ways_to_write(proteins(facts=1500)).items():
        write(UncertainGraph.from_facts([*rows, *beside]), tmp_path / f"{name}.tsv")
        trained = UKGE("transe", engine="torch", **SMALL).fit(tmp_path / f"{name}.tsv", undirected=undirected)
        weights.append(trained.learnt.trained.parameters.entity.tobytes())
        assert trained.learnt.note.undirected == ("interacts",)
        one, other = beside[0], (beside[0][2], "regulates", beside[0][0])
        assert trained.predict(one[:3]) != trained.predict(other)
    assert len(set(weights)) == 1


@pytest.mark.parametrize("name", scorers.names())
@pytest.mark.parametrize("device", [None, "cpu"])
def test_both_directions_are_equal_to_the_bit(name: str, device: str | None) -> None:
    scorer, link = scorer_of(name), links.get("logistic")
    weights = init(scorer, 40, 2, 8, 0.5, 0)
    undirected = np.array([False, True])
    tables = weights if device is None else TensorTables.of(weights, device)
    model = Model(tables, scorer, link, undirected)
    plain = Model(weights, scorer, link)
    rng = np.random.default_rng(0)
    head, tail = rng.integers(40, size=(2, 500))
    for relation in (np.zeros(500, dtype=np.int64), np.ones(500, dtype=np.int64), rng.integers(2, size=500)):
        here, there = model.confidence(head, relation, tail), model.confidence(tail, relation, head)
        no_direction = undirected[relation]
        np.testing.assert_array_equal(here[no_direction], there[no_direction])
        mean = (plain.plausibility(head, relation, tail) + plain.plausibility(tail, relation, head)) / 2
        np.testing.assert_allclose(
            here[no_direction], link.predict(mean, weights.link[0], weights.link[1])[no_direction], rtol=1e-5
        )
        np.testing.assert_allclose(
            here[~no_direction], plain.confidence(head, relation, tail)[~no_direction], rtol=1e-5
        )
    few, kind = np.arange(7), np.array([1, 0, 1, 1, 0, 1, 1])
    tails, heads = model.tail_scores(few, kind), model.head_scores(kind, few)
    np.testing.assert_array_equal(tails[undirected[kind]], heads[undirected[kind]])
    everyone = np.arange(40)
    asked = zip(few, kind, strict=True)
    scores = np.stack([model.plausibility(np.full(40, h), np.full(40, r), everyone) for h, r in asked])
    sign = link.ranking_sign(float(weights.link[0]))
    np.testing.assert_allclose(tails, sign * scores, rtol=1e-4, atol=1e-5)
    best, same = model.rank_tails(few, kind, 5), model.rank_heads(kind, few, 5)
    np.testing.assert_array_equal(best.entity[undirected[kind]], same.entity[undirected[kind]])
    np.testing.assert_array_equal(best.confidence[undirected[kind]], same.confidence[undirected[kind]])


def test_a_fact_is_learnt_once_or_in_both_directions() -> None:
    graph = take_undirected(
        UncertainGraph.from_facts([("b", "near", "a", 0.2), ("c", "near", "c", 0.3), ("b", "likes", "a", 0.5)]), "near"
    )
    head, relation, tail = (np.array([at], dtype=np.int32) for at in (1, graph.relations.id("near"), 0))
    half = np.full(1, 0.5, dtype=np.float32)
    rules = GroundRules(head, relation, tail, half, half)
    once = training_data(graph, variant("ukge-rect"), rules)
    assert list(zip(once.head, once.tail, strict=True)) == [(1, 0), (0, 1), (2, 2)]
    both = training_data(graph, variant("ukge-rect").replace(scorer="complex"))
    assert list(zip(both.head, both.tail, strict=True)) == [(1, 0), (0, 1), (2, 2), (1, 0)]
    assert both.confidence == pytest.approx([0.5, 0.2, 0.3, 0.2])
    near, likes = graph.relations.id("near"), graph.relations.id("likes")
    for data in (once, both):
        assert set(zip(*(column.tolist() for column in data.observed()), strict=True)) == {
            (1, likes, 0),
            (0, near, 1),
            (1, near, 0),
            (2, near, 2),
        }
    assert once.rules is not None
    assert (once.rules.head[0], once.rules.tail[0]) == (0, 1)


@pytest.mark.parametrize("sampler", ["independent", "shared", "exhaustive"])
def test_no_mirror_of_a_fact_is_drawn_for_an_unseen_one(sampler: str) -> None:
    """Of five entities all but one are near the first, told in one direction: the last is the only one to be drawn."""
    told = [("a", "near", name, 1.0) for name in "abcd"] + [("b", "likes", "e", 1.0)]
    graph = take_undirected(UncertainGraph.from_facts(told), "near")
    config = variant("ukge-rect").replace(filter_observed=True, negatives=64)
    near = torch.tensor([graph.relations.id("near")])
    drawn = samplers.get(sampler)(training_data(graph, config), config.sampling, torch.device("cpu")).sample(
        Facts(torch.tensor([0]), near, torch.tensor([1])), torch.Generator().manual_seed(0)
    )
    assert drawn is not None
    assert drawn.counts is not None or sampler == "independent"
    tails = drawn.entities[-1].flatten()
    heads = drawn.entities[0].flatten()
    counts = torch.ones(len(heads) + len(tails), dtype=torch.bool) if drawn.counts is None else drawn.counts.flatten()
    assert set(tails[counts[len(heads) :]].tolist()) == {4}, "a is near to all others"
    assert set(heads[counts[: len(heads)]].tolist()) == {1, 2, 3, 4}, "b is near to a alone"


def test_the_fused_engine_knows_both_directions() -> None:
    graph = take_undirected(UncertainGraph.from_facts([("a", "near", name, 1.0) for name in "abcd"]), "near")
    config = variant("ukge-rect").replace(filter_observed=True, in_range=True, threads=1, dim=4)
    engine = engines.get("fused")(init(scorers.get("distmult"), 4, 1, 4, 0.3, 0), training_data(graph, config), config)
    sampling = engine._new_sampling()  # type: ignore[attr-defined]
    assert sampling.observed.tolist() == [0, 1, 2, 3, 4, 8, 12]
    assert sampling.heads.entities.tolist() == sampling.tails.entities.tolist() == [0, 1, 2, 3]
