"""UPGAT: attention worked out by hand and by another implementation, its gradients, and what a student is taught."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch._C._distributed_c10d import HashStore

from ukge.distributed.engine import _check as check_by_ranks
from ukge.distributed.world import World
from ukge.errors import ConfigError
from ukge.graph.synthetic import generate
from ukge.learning.data import TrainingData
from ukge.learning.engines import engines
from ukge.learning.engines.encoding_engine import EncodingEngine
from ukge.learning.pseudo import PseudoFacts
from ukge.learning.train import train
from ukge.models.encoders import encoders
from ukge.models.losses import BatchScores, Given, PseudoSettings, losses
from ukge.models.model import as_model, init
from ukge.models.neighbourhood import Edges
from ukge.models.published.upgat import Attention, PseudoNeighbours
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters
from ukge.settings.config import Config, ObjectiveConfig
from ukge.settings.variants import variant

CPU = torch.device("cpu")
Table = npt.NDArray[np.float64]


def small(seed: int, n: int, m: int, facts: int, **settings: Any) -> tuple[Config, TrainingData, Parameters]:
    """Return a small UPGAT, distinct facts and first weights."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(n * m * n, facts, replace=False)
    head, relation, tail = (part.astype(np.int32) for part in (keys // (m * n), keys // n % m, keys % n))
    data = TrainingData(head, relation, tail, rng.random(facts).astype(np.float32), n, m)
    base = {"dim": 4, "batch_size": 8, "negatives": 2, "threads": 1, "device": "cpu", "epochs": 4}
    config = variant("upgat").replace(**{**base, **settings})
    return config, data, init(scorers.get("distmult"), n, m, config.model.dim, 0.5, seed)


def test_attention_on_three_edges_by_hand() -> None:
    # a likes b, a likes c, b knows c, in one dimension with W₁ = 2, W_a = 1, W_E = 3, W_R = 5, g₀ = 0.5.
    one = {"message": 2.0, "score": 1.0, "own": 3.0, "kind": 5.0, "baseline": 0.5}
    tables = {name: torch.tensor([[value]], dtype=torch.float64) for name, value in one.items()}
    tables["entity"] = torch.tensor([[1.0], [0.5], [-1.0]], dtype=torch.float64)
    tables["relation"] = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    edges = Edges(np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([1, 2, 2]), 3, CPU)
    found = Attention().entities(tables, edges.around(torch.arange(3)))
    # a: v is 1 by b, −2 by c and 1 by the baseline; the scores are tanh 1, 0.2·tanh −2 and tanh 1.
    high, low = math.exp(math.tanh(1)), math.exp(-0.2 * math.tanh(2))
    a = 3.0 + (high - 2 * low + high) / (high + low + high)
    # b: v is −4 by c and 0.5 by the baseline; the scores are 0.2·0.5·tanh −4 and 0.5·tanh 0.5.
    far, own = math.exp(-0.1 * math.tanh(4)), math.exp(0.5 * math.tanh(0.5))
    b = 1.5 + math.expm1((-4 * far + 0.5 * own) / (far + own))
    # c has no edge: its baseline gets all attention, and says 2·(−1·0.5) = −1.
    c = -3.0 + math.expm1(-1.0)
    assert found.squeeze().tolist() == pytest.approx([a, b, c])
    assert Attention().relations(tables).squeeze().tolist() == [5.0, 10.0]


def by_numpy(tables: dict[str, Table], data: TrainingData, *, unkr: bool = False) -> Table:
    """Encode entity by entity, with nothing shared between edges."""
    entity = tables["entity"]
    if unkr:
        entity = entity / np.linalg.norm(entity, axis=1, keepdims=True)
    rows = []
    for i, own in enumerate(entity):
        out = data.head == i
        messages = [tables["message"] @ (own * tables["baseline"][0])]
        for r, t in zip(data.relation[out], data.tail[out], strict=True):
            messages.append(tables["message"] @ (entity[t] * tables["relation"][r]))
        scores = np.array([float(tables["score"][0] @ (own * np.tanh(v))) for v in messages])
        scores = np.where(scores > 0, scores, 0.2 * scores) * (-1 if unkr else 1)
        share = np.exp(scores) / np.exp(scores).sum()
        heard = sum(weight * v for weight, v in zip(share, messages, strict=True))
        row = tables["own"] @ own + np.where(heard > 0, heard, np.expm1(np.minimum(heard, 0)))
        rows.append(row / np.linalg.norm(row) if unkr else row)
    return np.stack(rows)


@pytest.mark.parametrize("unkr", [False, True])
def test_what_is_synced_is_what_numpy_encodes_whatever_is_dropped_in_training(unkr: bool) -> None:
    config, data, parameters = small(1, 12, 3, 40, encoder=f"attention:dropout=0.5,unkr={str(unkr).lower()}")
    engine = engines.get("auto")(parameters, data, config)
    assert isinstance(engine, EncodingEngine)
    engine.epoch(0)
    engine.sync()
    tables = {name: table.double().numpy() for name, table in engine.tables.items()}
    np.testing.assert_allclose(engine.parameters.entity, by_numpy(tables, data, unkr=unkr), rtol=2e-4, atol=1e-5)
    relation = tables["relation"] @ tables["kind"].T
    np.testing.assert_allclose(engine.parameters.relation, relation, rtol=2e-4, atol=1e-6)
    some = torch.tensor([7, 2])  # a batch encodes its own entities alone, to the same rows
    found = Attention(unkr=unkr).entities(engine.tables, engine._edges.around(some))
    np.testing.assert_allclose(found.numpy(), engine.parameters.entity[[7, 2]], rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_finite_differences() -> None:
    _, data, _ = small(2, 7, 2, 15)
    edges = Edges(*data.observed(), 7, CPU)
    rng = np.random.default_rng(0)
    sizes = {"entity": (7, 3), "relation": (2, 3)} | {t.name: (t.rows, t.columns) for t in Attention().tables(3)}
    leaves = [torch.from_numpy(rng.normal(0, 0.7, size)).requires_grad_() for size in sizes.values()]

    def encoded(*tables: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        named = dict(zip(sizes, tables, strict=True))
        dropping = torch.Generator().manual_seed(5)
        near = edges.around(torch.tensor([1, 4, 5, 6]))
        return Attention(dropout=0.3).entities(named, near, dropping), Attention().relations(named)

    assert torch.autograd.gradcheck(encoded, leaves)


def test_optimisers_of_rows_take_the_step_of_the_dense_one() -> None:
    # Without moments of the past, a first step of Adam is the same whichever rows it is told about.
    found = []
    for optimiser in ("adam", "lazy-adam"):
        config, data, parameters = small(3, 12, 3, 8, optimiser=optimiser)
        engine = engines.get("torch")(parameters, data, config)
        engine.epoch(0)
        engine.sync()
        found.append(engine.parameters)
    np.testing.assert_allclose(found[0].entity, found[1].entity, rtol=1e-4, atol=1e-5)


def test_the_loss_is_the_one_worked_out_by_hand() -> None:
    terms = losses.get("pseudo:weight=3")(ObjectiveConfig(negative_weight=2.0), Given(True))
    rows = (torch.zeros(1, 1),) * 3
    known: dict[str, Any] = {"unseen_plausibility": torch.tensor([[0.2, 0.4]])}
    guessed: dict[str, Any] = {
        "labelled_plausibility": torch.tensor([0.5, 0.1]),
        "labelled_confidence": torch.tensor([0.9, 0.4]),
    }
    for more, last in ((known, 0.0), (known | guessed, 3 * (0.16 + 0.09) / 2)):
        scores = BatchScores(
            lambda x: x, torch.tensor([0.7]), torch.tensor([1.0]), rows, scorers.get("distmult"), **more
        )
        assert [term.value(scores).item() for term in terms] == pytest.approx([0.09, 2 * (0.04 + 0.16) / 2, last])
    with pytest.raises(ConfigError, match="needs unseen facts"):
        losses.get("pseudo")(ObjectiveConfig(), Given(False))
    assert [PseudoNeighbours(teacher=share).pseudo.epochs(10) for share in (0.05, 0.5, 0.99)] == [1, 5, 9]


def test_a_teachers_likeliest_tails_that_are_no_facts_are_pseudo_facts() -> None:
    # One dimension, g = h·r·t: the best tails of 0 are 0 and 1, those of 1 are 3 and 2.
    parameters = Parameters(np.array([[-3.0], [1.0], [2.0], [3.0]], np.float32), np.ones((1, 1), np.float32))
    config = Config().replace(scorer="distmult", link="logistic", dim=1)

    def data(undirected: bool) -> TrainingData:
        ids = np.array([1, 1, 0], np.int32), np.zeros(3, np.int32), np.array([3, 0, 0], np.int32)
        return TrainingData(*ids, np.ones(3, np.float32), 4, 1, undirected=np.array([True]) if undirected else None)

    pseudo = PseudoFacts(PseudoSettings(2, 0.5, 1.0), data(False))
    assert not pseudo.taught
    assert len(pseudo) == 0
    pseudo.ask(as_model(parameters, config))
    # of (1, 0): 3 (a fact) and 2; of (0, 0): 0 (a fact) and 1
    columns = pseudo.columns
    triples = list(zip(*(columns[name].tolist() for name in ("head", "relation", "tail")), strict=True))
    assert triples == [(0, 0, 1), (1, 0, 2)]
    assert columns["confidence"].tolist() == pytest.approx([1 / (1 + math.exp(3)), 1 / (1 + math.exp(-2))])
    again = PseudoFacts(PseudoSettings(2, 0.5, 1.0), data(False))
    again.load_state(pseudo.state())
    assert again.taught
    drawn = again.draw(9, torch.Generator().manual_seed(1), CPU)
    assert drawn is not None
    assert set(zip(drawn.facts.head.tolist(), drawn.facts.tail.tolist(), strict=True)) <= {(0, 1), (1, 2)}

    both = PseudoFacts(PseudoSettings(2, 0.5, 1.0), data(True))
    both.ask(as_model(parameters, config, undirected=np.array([True])))
    # 3 is a head now, too: its best are 3 and 2; (0, 1) and (1, 0) are one fact, and each edge leads both ways
    columns = both.columns
    found = set(zip(columns["head"].tolist(), columns["tail"].tolist(), strict=True))
    assert found == {(1, 2), (2, 1), (3, 3), (3, 2), (2, 3)}


def test_a_student_begins_anew_with_the_teachers_edges_and_goes_on_from_a_state() -> None:
    config, data, parameters = small(4, 12, 3, 40, loss="pseudo:top=3,teacher=0.25")
    first = parameters.copy()
    engine = engines.get("torch")(parameters, data, config)
    assert isinstance(engine, EncodingEngine)
    before = {name: table.clone() for name, table in engine.tables.items()}
    result = engine.epoch(0)
    assert (result.pseudo, result.losses["pseudo"]) == (0, 0.0)
    assert not engine.has_taught(0, tired=False)
    assert engine.has_taught(0, tired=True)
    assert engine.has_taught(1, tired=False)
    engine.sync()
    edges = len(engine._edges)
    # The student starts as the engine would that was given the first weights of the settings' own seed.
    engine.begin_student(as_model(engine.parameters, config))
    assert not engine.has_taught(2, tired=True)
    anew = init(scorers.get("distmult"), 12, 3, 4, config.model.init_scale, config.runtime.seed)
    assert torch.equal(engine.tables["entity"], torch.from_numpy(anew.entity))
    assert torch.equal(engine.tables["message"], before["message"])
    assert "entity.exp_avg" not in engine.state()  # the optimiser, too
    assert edges == len(data)
    pseudo = len(engine.state()["pseudo.head"])
    assert pseudo > 0
    assert len(engine._edges) == edges + pseudo

    result = engine.epoch(1)
    assert result.pseudo == pseudo
    assert result.losses["pseudo"] > 0.0
    state = {name: array.copy() for name, array in engine.state().items()}
    other = engines.get("torch")(first, data, config)
    other.load_state(state)
    for each in (engine, other):
        each.epoch(2)
        each.sync()
    for name, array in engine.parameters.as_dict().items():
        assert np.array_equal(array, other.parameters.as_dict()[name]), name
    assert all(other.state()[name].tobytes() == array.tobytes() for name, array in engine.state().items())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"engine": "fused"}, "the fused engine trains no encoder"),
        ({"engine": "queries"}, "the engine by query trains no encoder"),
        ({"scorer": "rotate"}, "needs rows of entities and relations that are alike"),
    ],
)
def test_what_cannot_train_an_encoder_says_so(settings: dict[str, Any], told: str) -> None:
    config, data, parameters = small(5, 6, 2, 9, **settings)
    with pytest.raises(ConfigError, match=told):
        engines.get(config.runtime.engine)(parameters, data, config)


def test_neither_mapped_tables_nor_ranks_have_an_encoder_or_a_student() -> None:
    graph = generate(n_entities=100, n_facts=200, seed=1).graph
    world = World(0, 1, CPU, 1, HashStore())
    changes: list[dict[str, Any]] = [{}, {"encoder": "none"}, {"loss": "squared"}]
    for settings in changes:
        config = variant("upgat").replace(dim=16, **settings)
        with pytest.raises(ConfigError, match="trains neither encoders nor students"):
            train(graph, graph[:0], config.replace(memory_map=True))
        with pytest.raises(ConfigError, match="ranks train neither encoders nor students"):
            check_by_ranks(config, world)


def test_settings_stand_behind_the_name() -> None:
    assert encoders.get("attention:dropout=0.3,backwards=true") == Attention(dropout=0.3, backwards=True)
    config, data, parameters = small(6, 12, 3, 40, encoder="attention:backwards=true")
    engine = engines.get("torch")(parameters, data, config)
    assert isinstance(engine, EncodingEngine)
    edges = {*zip(data.head, data.relation, data.tail, strict=True)}
    edges |= {(t, r, h) for h, r, t in edges}
    assert len(engine._edges) == len(edges)
    with pytest.raises(ConfigError, match="dropout must be at least 0"):
        Config().replace(encoder="attention:dropout=2")
