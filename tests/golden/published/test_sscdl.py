"""ssCDL: its targets and its line by hand, its networks by an independent pass, its losses by finite differences."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ukge import UKGE
from ukge.errors import ConfigError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.engines import engines, resolve
from ukge.learning.engines.torch_engine import differentiate
from ukge.learning.objective import Batch, Weights, build_objective, score_batch
from ukge.learning.sampling import Facts, PerFact
from ukge.learning.train import training_data
from ukge.models.links import links
from ukge.models.losses import losses
from ukge.models.model import Model, init
from ukge.models.published import sscdl
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters, shared_of
from ukge.runs.directory import Run
from ukge.settings.variants import variant
from ukge.storage.arrays import load_arrays, save_arrays

SMALL = "distribution:wide=6,narrow=5"
LOSS = "distribution:since=1,threshold=0,step=0.5"


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """More threads would wait for each other longer than such small products take."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return split(generate(n_entities=120, n_facts=500, seed=3).graph, seed=1, name="world")


def test_targets_and_the_line_are_those_of_the_paper() -> None:
    confidence = np.array([0.1, 0.5, 1.0])
    found = sscdl.target(confidence)
    for c, row in zip(confidence, found, strict=True):
        heights = [math.exp(-((each / 100 - c) ** 2) / (2 * 0.6**2)) for each in range(101)]
        np.testing.assert_allclose(row, np.array(heights) / math.fsum(heights), rtol=1e-12)
    np.testing.assert_allclose(found.max(axis=1), [0.0132, 0.0111, 0.0146], atol=5e-5)
    assert found @ np.linspace(0, 1, 101) == pytest.approx([0.41562477969017253, 0.5, 0.604478177772596], abs=1e-12)
    link = links.get("expectation")
    told = np.array([0.4156248, 0.51005, 0.6044782, 0.2, 0.9])
    one, zero = np.ones(()), np.zeros(())
    assert link.forward(told, one, zero)[:3] == pytest.approx([0.1, 0.55, 1.0], abs=1e-5)
    assert link.predict(told, one, zero)[3:] == pytest.approx([0.0, 1.0])


def by_hand(tables: dict[str, Any], net: str, h: Any, r: Any, t: Any) -> Any:
    """Pass one fact through a network, layer by layer."""
    x = np.concatenate([h, r, t])
    for layer in (1, 2, 3):
        x = np.array([x @ column for column in tables[f"{net}_weight{layer}"].T]) + tables[f"{net}_bias{layer}"]
        x = np.maximum(x, 0) if layer < 3 else x
    return x


def test_a_model_says_what_its_networks_say_from_both_sides() -> None:
    scorer = scorers.get(SMALL)
    start = init(scorer, 9, 2, 4, 0.5, 1)
    rng = np.random.default_rng(0)
    head, tail, relation = rng.integers(9, size=5), rng.integers(9, size=5), rng.integers(2, size=5)
    model = Model(start, scorer, links.get("expectation"))
    ranked = Model(start, scorers.get(f"{SMALL},ranking=true"), links.get("logistic"))
    rows = [(start.entity[h], start.relation[r], start.entity[t]) for h, r, t in zip(head, relation, tail, strict=True)]
    heights = np.exp([by_hand(start.shared, "confidence", *row) for row in rows])
    chances = heights / heights.sum(axis=1, keepdims=True)
    mean = chances @ np.linspace(0, 1, 101)
    np.testing.assert_allclose(model.plausibility(head, relation, tail), mean, rtol=1e-5)
    expected = np.clip(0.1 + (mean - 0.41562478) * 0.9 / (0.60447818 - 0.41562478), 0, 1)
    np.testing.assert_allclose(model.confidence(head, relation, tail), expected, atol=1e-5)
    own = np.array([by_hand(start.shared, "ranking", *row)[0] for row in rows])
    np.testing.assert_allclose(ranked.confidence(head, relation, tail), 1 / (1 + np.exp(-own)), rtol=1e-5)
    for each, wanted in ((model, mean), (ranked, own)):
        np.testing.assert_allclose(each.tail_scores(head, relation)[range(5), tail], wanted, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(each.head_scores(relation, tail)[range(5), head], wanted, rtol=1e-4, atol=1e-6)
    assert isinstance(model.scorer, sscdl.Distribution)
    found = model.scorer.distribution(start.entity[head], start.relation[relation], start.entity[tail])
    np.testing.assert_allclose(found, chances, rtol=1e-4)


def small_batch(epoch: int = 2) -> Batch:
    rng = np.random.default_rng(5)
    head, tail, other_head, other_tail = (torch.tensor(rng.integers(7, size=4)) for _ in range(4))
    relation = torch.tensor(rng.integers(2, size=4))
    unseen = PerFact(*(torch.tensor(rng.integers(7, size=(4, 3))) for _ in range(2)))
    confidence = torch.tensor(rng.random(4))
    loss = losses.get(LOSS)
    return Batch(
        Facts(head, relation, tail),
        confidence,
        unseen,
        epoch=epoch,
        unlabelled=Facts(other_head, relation, other_tail),
        of_unseen=loss.of_unseen,  # type: ignore[attr-defined]
    )


def exact_tables(scorer: Any) -> dict[str, torch.Tensor]:
    start = init(scorer, 7, 2, 3, 0.7, 2)
    return {name: torch.tensor(array, dtype=torch.float64) for name, array in start.as_dict().items()}


def test_terms_are_the_published_sums() -> None:
    scorer, batch = scorers.get(SMALL), small_batch()
    tables = exact_tables(scorer)
    plain = {name: table.numpy() for name, table in tables.items()}
    shared, entity, relation = shared_of(plain), plain["entity"], plain["relation"]
    terms = build_objective(variant("sscdl").replace(loss=LOSS).objective, unseen=True, rules=False)
    values, _ = differentiate(tables, scorer, links.get("expectation"), terms, batch)
    found = dict(zip([term.name for term in terms], values.tolist(), strict=True))
    bins = np.linspace(0, 1, 101)

    def said(net: str, h: int, r: int, t: int) -> Any:
        x = np.exp(by_hand(shared, net, entity[h], relation[r], entity[t]))
        return x / x.sum()

    def score(h: int, r: int, t: int) -> float:
        return float(1 / (1 + np.exp(-by_hand(shared, "ranking", entity[h], relation[r], entity[t])[0])))

    def error(wanted: Any, c: float, p: Any) -> float:
        line = 0.1 + (p @ bins - sscdl.LOW) * 0.9 / (sscdl.HIGH - sscdl.LOW)
        return float(0.5 * ((wanted * np.log(wanted / p)).sum() + (line - c) ** 2))

    facts = list(zip(*(each.tolist() for each in batch.facts), strict=True))
    confidence = batch.confidence.tolist()
    targets = sscdl.target(batch.confidence.numpy())
    observed = [error(w, c, said("confidence", *fact)) for w, c, fact in zip(targets, confidence, facts, strict=True)]
    assert found["observed"] == pytest.approx(np.mean(observed), rel=1e-9)
    assert isinstance(batch.negatives, PerFact)
    order = []
    for (h, r, t), c, heads, tails in zip(
        facts, confidence, batch.negatives.heads.tolist(), batch.negatives.tails.tolist(), strict=True
    ):
        corrupted = [(each, r, t) for each in heads] + [(h, r, each) for each in tails]
        order += [c * max(0.0, 0.1 + score(*each) - score(h, r, t)) for each in corrupted]
    assert found["unseen"] == pytest.approx(2.5 * np.mean(order), rel=1e-9)
    assert batch.unlabelled is not None
    guessed = []
    for fact in zip(*(each.tolist() for each in batch.unlabelled), strict=True):
        label = said("generator", *fact)
        own = 0.1 + (label @ bins - sscdl.LOW) * 0.9 / (sscdl.HIGH - sscdl.LOW)
        guessed.append(error(label, own, said("confidence", *fact)))
    assert found["guesses"] == pytest.approx(0.7 * np.mean(guessed), rel=1e-9)


def test_gradients_are_those_of_finite_differences_through_the_look_ahead_too() -> None:
    scorer, link, batch = scorers.get(SMALL), links.get("expectation"), small_batch()
    tables = exact_tables(scorer)
    terms = build_objective(variant("sscdl").replace(loss=LOSS).objective, unseen=True, rules=False)
    observed, unseen, guesses, generator = terms
    rng = np.random.default_rng(1)
    # Labels are given: what makes them does not learn from how they are met, nor anything else from the look-ahead.
    for kind, asked in (
        (("entity", "relation", "link", "shared.ranking"), [observed, unseen]),
        (("shared.confidence",), [observed, guesses]),
        (("shared.generator",), [generator]),
    ):
        _, gradients = differentiate(tables, scorer, link, asked, batch)
        for name, table in tables.items():
            if not name.startswith(kind):
                continue
            numbers = table.view(-1)
            gradient = gradients[name].values.reshape(-1) if name in gradients else torch.zeros_like(numbers)
            assert name == "link" or gradient.abs().max() > 0
            for at in rng.integers(len(numbers), size=3):
                kept, found = float(numbers[at]), []
                for moved in (kept + 1e-5, kept - 1e-5):
                    numbers[at] = moved
                    found.append(float(differentiate(tables, scorer, link, asked, batch)[0].sum()))
                numbers[at] = kept
                slope = (found[0] - found[1]) / 2e-5
                assert float(gradient[at]) == pytest.approx(slope, rel=1e-4, abs=1e-9), (name, at)
    every = differentiate(tables, scorer, link, terms, batch)[1]
    without = differentiate(tables, scorer, link, terms[:-1], batch)[1]
    alone = differentiate(tables, scorer, link, terms[-1:], batch)[1]
    assert {name for name in tables if name.startswith("shared.generator")} == alone.keys()
    assert every.keys() == without.keys() | alone.keys()
    assert not without.keys() & alone.keys()


def test_labels_less_sharp_than_the_threshold_do_not_count() -> None:
    scorer, batch = scorers.get(SMALL), small_batch()
    tables = exact_tables(scorer)
    for threshold, counts in ((0.0, True), (0.9, False)):
        loss = f"distribution:threshold={threshold}"
        terms = build_objective(variant("sscdl").replace(loss=loss).objective, unseen=True, rules=False)
        values, _ = differentiate(tables, scorer, links.get("expectation"), terms, batch)
        assert (float(values[[term.name for term in terms].index("guesses")]) > 0) == counts


def test_dropout_takes_part_in_learning_alone_and_is_the_same_when_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scorer, batch = scorers.get("distribution:wide=40,narrow=30"), small_batch()
    tables = exact_tables(scorer)
    weights = Weights(tables["entity"][torch.cat(batch.entity_ids())], tables["relation"], tables["link"])

    def gradient(seed: int) -> torch.Tensor:
        shared = {name: table.clone().requires_grad_() for name, table in shared_of(tables).items()}
        learning = scorer.learning(torch.Generator().manual_seed(seed)).bound(shared)
        scores = score_batch(learning, links.get("expectation"), weights, batch)
        assert scores.unseen_plausibility is not None
        (found,) = torch.autograd.grad(scores.unseen_plausibility.square().sum(), [shared["ranking_weight2"]])
        return found

    monkeypatch.setattr(sscdl, "BLOCK", 1)  # every fact is a block of its own, computed again for its gradient
    again = gradient(3)
    assert not torch.equal(again, gradient(4))
    monkeypatch.setattr("torch.utils.checkpoint.checkpoint", lambda function, *given, **_: function(*given))
    torch.testing.assert_close(again, gradient(3))
    monkeypatch.setattr(sscdl, "BLOCK", 1 << 22)
    bound = scorer.bound(shared_of(tables))
    rows = tables["entity"][:3], tables["relation"][[0, 1, 0]], tables["entity"][3:6]
    assert torch.equal(bound.plausibility(*rows), bound.plausibility(*rows))
    learning = bound.learning(torch.Generator().manual_seed(0))
    drawn = torch.stack([learning.plausibility(*rows) for _ in range(200)])
    assert drawn.std(dim=0).min() > 0
    torch.testing.assert_close(drawn.mean(dim=0), bound.plausibility(*rows), atol=0.02, rtol=0)
    pairs = learning.compare_all(learning.tail_query(*rows[:2]), rows[2])
    assert pairs.shape == (3, 3)


TRAINED: dict[str, Any] = {
    "scorer": "distribution:wide=24,narrow=16",
    "loss": "distribution:since=2,every=2",
    "dim": 8,
    "epochs": 5,
    "every": 1,
    "batch_size": 64,
    "negatives": 2,
    "threads": 1,
}


def test_the_same_corruptions_are_kept_for_some_epochs_and_seen_by_no_other_loss(data: Dataset) -> None:
    config = variant("sscdl").replace(**TRAINED)
    scorer = scorers.get(config.model.scorer)
    known = training_data(data.train, config)
    start = init(scorer, known.n_entities, known.n_relations, 8, 0.3, 0)
    engine: Any = engines.get("torch")(start, known, config)
    picks, drawn = torch.arange(20), {}
    for epoch in (0, 1, 2, 3, 4):
        batch = engine._batches.draw(picks, torch.Generator().manual_seed(epoch), epoch)
        drawn[epoch] = batch.unlabelled
    assert drawn[0] is drawn[1] is None
    assert torch.equal(drawn[2].head, drawn[3].head)
    assert torch.equal(drawn[2].tail, drawn[3].tail)
    assert not torch.equal(torch.cat(drawn[3][::2]), torch.cat(drawn[4][::2]))
    changed = (drawn[2].head != batch.facts.head).int() + (drawn[2].tail != batch.facts.tail).int()
    assert changed.tolist() == [1] * 20
    again: Any = engines.get("torch")(start.copy(), known, config)
    late = again._batches.draw(picks, torch.Generator(), 3).unlabelled
    assert torch.equal(late.head, drawn[3].head)


def test_it_learns_by_itself_and_with_mapped_tables_alike(data: Dataset, tmp_path: Path) -> None:
    weights = []
    for mapped in (False, True):
        out = tmp_path / str(mapped)
        fitted = UKGE("sscdl", **{**TRAINED, "lr": 0.01, "memory_map": mapped}).fit(data, out=out, progress=False)
        weights.append(Run.open(out).load_weights().as_dict())
        values = [event.losses["observed"] for event in fitted.learnt.trained.events]
        assert values[-1] < values[0]
        assert fitted.learnt.trained.events[-1].losses["generator"] > 0
    assert weights[0].keys() == weights[1].keys()
    assert sum(name.startswith("shared.generator") for name in weights[0]) == 6
    for name, array in weights[0].items():
        np.testing.assert_array_equal(array, weights[1][name], err_msg=name)
    first = init(scorers.get(TRAINED["scorer"]), len(data.entities), len(data.relations), 8, 0.3, 0)
    last = Run.open(tmp_path / "False").load_checkpoint()  # the best epoch may be one before the generator begins
    assert last is not None
    for name in ("confidence_weight2", "ranking_weight2", "generator_weight2"):
        assert not np.array_equal(last[0].shared[name], first.shared[name])


@pytest.fixture(scope="module")
def trained(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    UKGE("sscdl", **{**TRAINED, "epochs": 1}).fit(data, out=out, progress=False)
    return out


@pytest.fixture
def finished(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda arrays: arrays.pop("shared.confidence_bias1"), "'shared.confidence_bias1' is missing"),
        (lambda arrays: arrays.update({"shared.more": np.zeros(2, np.float32)}), "'shared.more' is not one of its"),
        (lambda arrays: arrays.update({"shared.ranking_bias2": np.zeros(3, np.float32)}), r"has the shape \(3,\)"),
        (lambda arrays: arrays.update({"shared.ranking_bias3": np.zeros(1)}), "is float64"),
        (lambda arrays: arrays["shared.generator_weight2"].fill(np.nan), "not finite"),
    ],
)
def test_a_crafted_file_of_weights_is_refused(finished: Path, change: Any, said: str) -> None:
    arrays, _ = load_arrays(finished / "weights.safetensors")
    change(arrays)
    save_arrays(finished / "weights.safetensors", arrays)
    with pytest.raises(RunError, match=said):
        Run(finished).load_weights()


def test_engines_that_cannot_say_so(data: Dataset) -> None:
    config = variant("sscdl").replace(**TRAINED)
    assert resolve(config.replace(device="cpu")) == "torch"
    known = training_data(data.train, config)
    start = init(scorers.get(config.model.scorer), known.n_entities, known.n_relations, 8, 0.3, 0)
    for engine, said in (("fused", "does not know this combination"), ("queries", "tables that all facts share")):
        with pytest.raises(ConfigError, match=said):
            engines.get(engine)(start, known, config.replace(engine=engine))
    plain = config.replace(loss="softmax", sampler="exhaustive", engine="queries")
    with pytest.raises(ConfigError, match="tables that all facts share"):
        engines.get("queries")(start, known, plain)
    with pytest.raises(ConfigError, match="no tables besides"):
        engines.get("torch")(start, known, config.replace(encoder="attention"))
    with pytest.raises(ConfigError, match="needs unseen facts"):
        engines.get("torch")(start, known, config.replace(sampler="none"))


def test_no_other_model_has_shared_tables() -> None:
    assert [name for name in scorers.names() if scorers.get(name).shared_parts(4)] == ["distribution"]
    start = init(scorers.get("distmult"), 3, 2, 4, 0.3, 0)
    assert list(start.as_dict()) == ["entity", "relation", "link"]
    assert Parameters.of(start.as_dict()).shared == start.copy().shared == {}
    assert scorers.get("distmult").bound({}) is scorers.get("distmult")
