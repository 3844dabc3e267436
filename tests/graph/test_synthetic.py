"""The synthetic world: its truth is the documented function, its planted rules hold and no others, it can be learnt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from tests.graph.path_rules import PathRule, Step, consequences, read_rule

from ukge.errors import ConfigError, DataError
from ukge.graph.negatives import with_negatives
from ukge.graph.split import split
from ukge.graph.synthetic import World, generate, stream_parquet
from ukge.graph.synthetic.latent import ASPECTS, DOUBT, SLOPE
from ukge.graph.synthetic.schema import CENTRES, MORE_CENTRES, RELATIONS
from ukge.graph.uncertain import UncertainGraph

Matrix = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def world() -> World:
    return generate()


def members(world: World, kind: str) -> npt.NDArray[np.int64]:
    return np.flatnonzero(np.array(world.types) == kind)


def observed(world: World, step: Step) -> Matrix:
    """Observed confidences as a matrix from the start type to the end type of a step; −1 where nothing is observed."""
    graph, number = world.graph, world.graph.relations.id(step.relation)
    kind = RELATIONS[number]
    rows = graph.relation == number
    full = np.full((graph.n_entities, graph.n_entities), -1.0, dtype=np.float32)
    full[graph.head[rows], graph.tail[rows]] = graph.confidence[rows]
    matrix = full[np.ix_(members(world, kind.head_type), members(world, kind.tail_type))].astype(np.float64)
    return matrix.T if step.back else matrix


def truth(world: World, step: Step) -> Matrix:
    number = world.graph.relations.id(step.relation)
    heads, tails = members(world, RELATIONS[number].head_type), members(world, RELATIONS[number].tail_type)
    matrix = world.true_confidence(heads[:, None], number, tails[None, :])
    return matrix.T if step.back else matrix


def ends(step: Step) -> tuple[str, str]:
    kind = next(relation for relation in RELATIONS if relation.name == step.relation)
    return (kind.tail_type, kind.head_type) if step.back else (kind.head_type, kind.tail_type)


def candidates() -> Iterator[PathRule]:
    """Every rule with one or two body atoms that the types allow, once."""
    steps = [Step(relation.name, back) for relation in RELATIONS for back in (False, True)]
    seen: set[PathRule] = set()
    paths: list[tuple[Step, ...]] = [(a,) for a in steps]
    paths += [(a, b) for a, b in product(steps, steps) if ends(a)[1] == ends(b)[0]]
    for path, head in product(paths, steps):
        rule = PathRule(path, head).canonical()
        if ends(head) == (ends(path[0])[0], ends(path[-1])[1]) and path != (head,) and rule not in seen:
            seen.add(rule)
            yield rule


class Mined(NamedTuple):
    support: int
    hit_ratio: float


def mine(world: World, threshold: float) -> dict[PathRule, Mined]:
    """Count, for every candidate, the ground bodies of strong facts, and how many of them have their head observed."""
    steps = [Step(relation.name, back) for relation in RELATIONS for back in (False, True)]
    seen = {step: observed(world, step) for step in steps}
    strong = {step: (seen[step] > threshold).astype(np.float32) for step in steps}
    found = {}
    for path, rules in groupby(sorted(candidates()), key=lambda rule: rule.path):
        bodies = strong[path[0]] if len(path) == 1 else strong[path[0]] @ strong[path[1]]
        if ends(path[0])[0] == ends(path[-1])[1]:
            bodies = bodies * (1.0 - np.eye(len(bodies), dtype=np.float32))
        support = bodies.sum()
        for rule in rules:
            hits = bodies[seen[rule.head] >= 0.0].sum()
            found[rule] = Mined(int(support), float(hits / support) if support else 0.0)
    return found


def holding(world: World) -> set[PathRule]:
    return {read_rule(text).canonical() for text in world.planted_rules + world.implied_rules}


def violation(world: World, rule: PathRule) -> float:
    """The largest amount by which any ground body exceeds its head in the true confidences."""
    head = truth(world, rule.head)
    if len(rule.path) == 1:
        body = truth(world, rule.path[0])
    else:
        first, second = truth(world, rule.path[0]), truth(world, rule.path[1])
        best = (first[:, :, None] + second[None, :, :]).max(axis=1)
        body = np.maximum(0.0, best - 1.0)
    gap = body - head
    if ends(rule.head)[0] == ends(rule.head)[1]:
        np.fill_diagonal(gap, 0.0)
    return float(gap.max())


def test_default_size_types_and_names(world: World) -> None:
    assert (len(world.graph), world.graph.n_entities, world.graph.n_relations) == (20_000, 1_000, 20)
    assert len(world.types) == 1_000
    assert set(world.types) == {"sport", "person", "athlete", "team", "city", "country", "company", "university"}
    names = list(world.graph.entities)
    assert len(set(names)) == 1_000
    assert all(name == name.strip() and "\t" not in name for name in names)
    assert len(np.unique(world.graph.keys())) == 20_000


def test_the_seed_decides(world: World) -> None:
    assert generate().graph == world.graph
    other = generate(seed=1)
    assert other.graph != world.graph
    assert list(other.graph.entities) != list(world.graph.entities)


def test_names_stay_unique_when_there_are_many() -> None:
    many = generate(n_entities=40_000, n_facts=40_000)
    assert len(set(many.graph.entities)) == 40_000


def test_true_confidence_is_the_documented_function() -> None:
    """Against plain Python, for every relation, on facts, on random triples, across regions, types and loops."""
    world = generate(n_entities=400, n_facts=2_000)
    latent = world.blueprint.latent
    assert latent.layout.n_regions == 2
    rng = np.random.default_rng(0)
    random = rng.integers(0, [400, 20, 400], (3_000, 3))
    loops = np.stack([np.arange(400), rng.integers(0, 20, 400), np.arange(400)], axis=1)
    facts = np.stack([world.graph.head, world.graph.relation, world.graph.tail], axis=1)
    triples = np.concatenate([random, loops, facts])
    found = world.true_confidence(*triples.T)
    for (head, number, tail), value in zip(triples.tolist(), found.tolist(), strict=True):
        relation = RELATIONS[number]
        expected = 1.0 - DOUBT * (float(latent.doubt[head]) + float(latent.doubt[tail]))
        for aspect in relation.aspects:
            around = MORE_CENTRES.get(aspect.name, CENTRES)
            place = latent.place[ASPECTS.index(aspect.name)]
            forward = (float(place[head]) + aspect.steps - float(place[tail])) % around
            expected -= SLOPE * min(forward, around - forward)
        regions = {int(latent.layout.region_of[head]), int(latent.layout.region_of[tail])} - {-1}
        fits = (world.types[head], world.types[tail]) == (relation.head_type, relation.tail_type)
        possible = fits and head != tail and len(regions) <= 1
        assert value == pytest.approx(max(0.0, expected) if possible else 0.0, abs=1e-9)
    assert (world.true_confidence(*facts.T) >= 0.05).all()
    with pytest.raises(DataError, match="entity ids run from 0 to 399, not -1 to 400"):
        world.true_confidence([-1, 400], 0, 1)


def test_most_triples_are_false_and_confidences_are_spread(world: World) -> None:
    rng = np.random.default_rng(0)
    anything = world.true_confidence(*rng.integers(0, [1_000, 20, 1_000], (100_000, 3)).T)
    assert np.mean(anything > 0.0) < 0.05
    shares = np.histogram(world.graph.confidence, bins=[0.0, 0.3, 0.7, 0.85, 1.0])[0] / len(world.graph)
    assert shares.min() > 0.05


def test_observed_is_true_plus_noise() -> None:
    exact = generate(noise=0.0)
    graph = exact.graph
    assert graph.confidence.tolist() == exact.true_confidence(graph.head, graph.relation, graph.tail).tolist()
    noisy = generate(noise=0.05)
    true = noisy.true_confidence(noisy.graph.head, noisy.graph.relation, noisy.graph.tail)
    error = (noisy.graph.confidence - true)[(true > 0.3) & (true < 0.7)]
    assert abs(error.mean()) < 0.003
    assert error.std() == pytest.approx(0.05, abs=0.003)
    assert noisy.graph.confidence.min() > 0.0


def test_planted_and_implied_rules_hold_in_the_truth() -> None:
    world = generate(n_entities=300, n_facts=3_000)
    assert "athletePlaysForTeam(A, B) & athletePlaysSport(A, C) -> teamPlaysSport(B, C)" in world.planted_rules
    for rule in holding(world):
        assert violation(world, rule) < 1e-6, str(rule)
    turned = read_rule("athletePlaysForTeam(A, B) & teamPlaysSport(B, C) -> athletePlaysSport(A, C)")
    assert violation(world, turned) > 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_brute_force_mining_finds_exactly_the_rules_that_hold(seed: int) -> None:
    world = generate(seed=seed)
    rules = holding(world)
    for threshold in (0.7, 0.85):
        found = mine(world, threshold)
        assert rules <= set(found)
        for rule, (support, hit_ratio) in found.items():
            if rule in rules:
                assert support >= 50, str(rule)
                assert hit_ratio > 0.8, str(rule)
            elif support >= 20:
                assert hit_ratio < 0.35, str(rule)


def test_rules_survive_a_split() -> None:
    world = generate()
    train = World(world.blueprint, split(world.graph).train)
    found = mine(train, 0.85)
    for rule in holding(world):
        assert found[rule].support >= 40, str(rule)
        assert found[rule].hit_ratio > 0.65, str(rule)


def test_rules_are_read_written_and_compared() -> None:
    for text in ("r(A, B) -> r(B, A)", "r(A, B) & s(B, C) -> t(A, C)", "r(A, B) & s(A, C) -> t(B, C)"):
        assert str(read_rule(text)) == text
    assert read_rule("s(A, B) & r(A, C) -> t(C, B)").canonical() == read_rule(text).canonical()
    assert read_rule("s(X, Z) & r(X, Y) -> t(Z, Y)").canonical() != read_rule(text).canonical()
    with pytest.raises(ValueError, match="does not lead from A to C"):
        read_rule("r(A, B) & s(A, D) -> t(A, C)")


def test_consequences_by_hand() -> None:
    rules = [read_rule(t) for t in ("r(A, B) -> p(B, A)", "p(A, B) -> q(A, B)", "q(A, B) & s(B, C) -> t(A, C)")]
    expected = ["r(A, B) -> q(B, A)", "p(A, B) & s(B, C) -> t(A, C)", "r(A, B) & s(A, C) -> t(B, C)"]
    assert set(consequences(rules)) == {read_rule(text).canonical() for text in expected}


def test_the_implied_rules_are_all_that_follow_from_the_planted_ones(world: World) -> None:
    assert world.implied_rules == tuple(map(str, consequences([read_rule(text) for text in world.planted_rules])))


class ComplEx(torch.nn.Module):
    """A bilinear model in 16 complex dimensions with a logistic link, just for this test."""

    def __init__(self, n_entities: int, n_relations: int) -> None:
        super().__init__()
        self.entity = torch.nn.Parameter(0.3 * torch.randn(n_entities, 16, 2))
        self.relation = torch.nn.Parameter(0.3 * torch.randn(n_relations, 16, 2))
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, head: torch.Tensor, relation: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        entity, kinds = torch.view_as_complex(self.entity), torch.view_as_complex(self.relation)
        return torch.sigmoid((entity[head] * kinds[relation] * entity[tail].conj()).real.sum(-1) + self.bias)


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_small_bilinear_model_explains_most_of_it(world: World) -> None:
    """Trained briefly on train facts and random negatives, it explains two thirds of unseen facts and negatives."""
    torch.manual_seed(0)
    dataset = with_negatives(split(world.graph), "range")
    model = ComplEx(1_000, 20)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    train = dataset.train
    facts = torch.from_numpy(np.stack([train.head, train.relation, train.tail]).astype(np.int64))
    target = torch.from_numpy(train.confidence.astype(np.float32))
    for _ in range(10):
        order = torch.randperm(len(train))
        for start in range(0, len(train), 1_024):
            h, r, t = facts[:, order[start : start + 1_024], None]
            other = torch.randint(1_000, (len(h), 6))
            loss = ((model(h, r, t)[:, 0] - target[order[start : start + 1_024]]) ** 2).mean()
            loss = loss + (model(other, r, t) ** 2).mean() / 2 + (model(h, r, other) ** 2).mean() / 2
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    judged = dataset.test_with_negatives()
    triples = np.stack([judged.head, judged.relation, judged.tail]).astype(np.int64)
    with torch.no_grad():
        predicted = model(*torch.from_numpy(triples)).numpy()
    assert np.mean((predicted - judged.confidence) ** 2) < np.var(judged.confidence) / 3


def test_worlds_of_many_regions_hang_together() -> None:
    world = generate(n_entities=2_000, n_facts=10_000)
    layout = world.blueprint.latent.layout
    assert (layout.n_regions, layout.n_entities) == (8, 2_000)
    graph = world.graph
    sport = graph.relation == graph.relations.id("teamPlaysSport")
    regions = layout.region_of[graph.head[sport]]
    shared = [set(regions[graph.tail[sport] == tail].tolist()) for tail in np.unique(graph.tail[sport])]
    assert max(map(len, shared)) == 8


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"has 100 to 2,147,483,647 entities, not 99"):
        generate(n_entities=99)
    with pytest.raises(ConfigError, match=r"a world of 200 entities holds about .* facts, fewer than asked"):
        generate(n_entities=200, n_facts=50_000)
    with pytest.raises(ConfigError, match="a world needs facts"):
        generate(n_facts=0)
    with pytest.raises(ConfigError, match="noise 2 is not"):
        generate(noise=2.0)


def test_streaming_writes_the_generated_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.graph.synthetic.world._CHUNK", 3_000)
    expected = generate(n_entities=2_000, n_facts=10_000, seed=4).graph
    named = tmp_path / "deep" / "facts.parquet"
    blueprint = stream_parquet(named, 2_000, 10_000, seed=4)
    assert pq.ParquetFile(named).metadata.num_row_groups > 1
    table = pq.read_table(named)
    assert table.column_names == ["head", "relation", "tail", "confidence"]
    assert UncertainGraph.from_columns(*(table[name] for name in table.column_names)) == expected
    assert blueprint.entities == expected.entities
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]


def test_streaming_into_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.graph.synthetic.world._CHUNK", 1_000)
    expected = generate(n_entities=1_000, n_facts=5_000).graph
    target = tmp_path / "facts"
    stream_parquet(target, 1_000, 5_000, partition_by="relation")
    table = ds.dataset(target, partitioning="hive").to_table()
    columns = [table[name].to_pylist() for name in ("head", "relation", "tail", "confidence")]
    assert sorted(zip(*columns, strict=True)) == sorted(fact[:4] for fact in expected)
    with pytest.raises(ConfigError, match="exists already"):
        stream_parquet(target, 1_000, 5_000, partition_by="relation")
    with pytest.raises(ConfigError, match="cannot partition by 'head'"):
        stream_parquet(target, 1_000, 5_000, partition_by="head")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="fewer than asked"):
        stream_parquet(tmp_path / "more", 200, 50_000, partition_by="relation")
    assert [path.name for path in tmp_path.iterdir()] == ["facts"]


def test_a_failed_stream_leaves_nothing_and_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "facts.parquet"
    target.write_text("old")
    with pytest.raises(ConfigError, match="fewer than asked"):
        stream_parquet(target, 200, 50_000)
    assert [path.name for path in tmp_path.iterdir()] == ["facts.parquet"]
    assert target.read_text() == "old"
