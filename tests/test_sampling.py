"""Unseen facts: where they come from, what they never are, and that (seed, epoch) decides them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from ukge.errors import ConfigError
from ukge.learning.data import TrainingData
from ukge.learning.sampling import (
    Facts,
    Negatives,
    PerFact,
    Sampler,
    epoch_generator,
    epoch_order,
    rule_count,
    samplers,
)
from ukge.models.scorers import scorers
from ukge.settings.config import SamplingConfig

CPU = torch.device("cpu")
N_ENTITIES, N_RELATIONS = 12, 3
DRAWING = [name for name in samplers.names() if name != "none"]


@pytest.fixture
def data() -> TrainingData:
    rng = np.random.default_rng(3)
    n = 80
    # Relation 2 has a narrow range: heads 0–2, tails 5–6.
    relation = rng.integers(0, N_RELATIONS, n)
    head = np.where(relation == 2, rng.integers(0, 3, n), rng.integers(0, N_ENTITIES, n))
    tail = np.where(relation == 2, rng.integers(5, 7, n), rng.integers(0, N_ENTITIES, n))
    return TrainingData(
        head.astype(np.int32),
        relation.astype(np.int32),
        tail.astype(np.int32),
        rng.random(n, dtype=np.float32),
        N_ENTITIES,
        N_RELATIONS,
    )


def sampler(data: TrainingData, name: str, **options: int | float | bool) -> Sampler:
    return samplers.get(name)(data, SamplingConfig(sampler=name, **options), CPU)  # type: ignore[arg-type]


def facts_of(data: TrainingData) -> Facts:
    return Facts(*(torch.from_numpy(column).long() for column in (data.head, data.relation, data.tail)))


def triples(facts: Facts, negatives: Negatives) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The unseen facts that count, spelt out one by one: with another head, with another tail."""
    b = len(facts.head)
    heads, tails = negatives.entities[0], negatives.entities[-1]
    if isinstance(negatives, PerFact):
        heads, tails = heads.view(b, -1), tails.view(b, -1)
    else:
        heads, tails = heads.expand(b, -1), tails.expand(b, -1)
    counts = negatives.counts
    if counts is None:
        counts = torch.ones(b, heads.shape[1] + tails.shape[1], dtype=torch.bool)
    by_head, by_tail = [], []
    for i, (h, r, t) in enumerate(zip(*(column.tolist() for column in facts), strict=True)):
        by_head += [(e, r, t) for e, c in zip(heads[i].tolist(), counts[i].tolist(), strict=False) if c]
        mine = counts[i, heads.shape[1] :].tolist()
        by_tail += [(h, r, e) for e, c in zip(tails[i].tolist(), mine, strict=True) if c]
    return by_head, by_tail


def draw(data: TrainingData, name: str, *, epoch: int = 0, **options: int | float | bool) -> Negatives:
    negatives = sampler(data, name, **options).sample(facts_of(data), epoch_generator(7, epoch, CPU))
    assert negatives is not None
    return negatives


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("in_range", [False, True])
def test_filtering_never_yields_an_observed_fact(data: TrainingData, name: str, in_range: bool) -> None:
    observed = set(zip(data.head.tolist(), data.relation.tolist(), data.tail.tolist(), strict=True))
    by_head, by_tail = triples(facts_of(data), draw(data, name, negatives=8, in_range=in_range, filter_observed=True))
    assert not observed & set(by_head + by_tail)
    assert len(by_head) > 50
    loose = triples(facts_of(data), draw(data, name, negatives=8, in_range=in_range))
    assert observed & set(loose[0]), "without filtering observed facts do occur, so the test above can fail"


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("filter_observed", [False, True])
def test_in_range_keeps_to_the_entities_seen_at_that_place(
    data: TrainingData, name: str, filter_observed: bool
) -> None:
    by_head, by_tail = triples(
        facts_of(data), draw(data, name, negatives=8, in_range=True, filter_observed=filter_observed)
    )
    heads = set(zip(data.relation.tolist(), data.head.tolist(), strict=True))
    tails = set(zip(data.relation.tolist(), data.tail.tolist(), strict=True))
    assert {(r, h) for h, r, _ in by_head} <= heads
    assert {(r, t) for _, r, t in by_tail} <= tails
    loose, _ = triples(facts_of(data), draw(data, name, negatives=8))
    assert not {(r, h) for h, r, _ in loose} <= heads


def test_a_fact_whose_every_corruption_is_observed_gets_none_that_counts() -> None:
    everyone = np.arange(4, dtype=np.int32)
    none = np.zeros(4, dtype=np.int32)
    data = TrainingData(none, none, everyone, np.ones(4, dtype=np.float32), 4, 1)
    negatives = draw(data, "independent", negatives=3, filter_observed=True)
    assert negatives.counts is not None
    by_head, by_tail = triples(facts_of(data), negatives)
    assert not by_tail
    assert by_head
    assert all(h != 0 for h, _, _ in by_head)


def test_independent_draws_are_uniform_on_both_sides(data: TrainingData) -> None:
    negatives = draw(data, "independent", negatives=500)
    for side in negatives.entities:
        assert chisquare(np.bincount(side.numpy(), minlength=N_ENTITIES)).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_draws_by_degree_follow_the_degrees(data: TrainingData, share: float) -> None:
    ends = np.bincount(np.concatenate([data.head, data.tail]), minlength=N_ENTITIES)
    expected = share * ends / ends.sum() + (1.0 - share) / N_ENTITIES
    negatives = draw(data, "independent", negatives=500, by_degree=share)
    for side in negatives.entities:
        counts = np.bincount(side.numpy(), minlength=N_ENTITIES)
        possible = expected > 0
        assert not counts[~possible].any()
        assert chisquare(counts[possible], expected[possible] * counts.sum()).pvalue > 1e-3


@pytest.mark.parametrize("other", [{"in_range": True}, {"sampler": "exhaustive"}, {"by_degree": 1.5}])
def test_ways_to_draw_that_exclude_each_other_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="by_degree"):
        SamplingConfig(**{"by_degree": 0.5, **other})  # type: ignore[arg-type]


def test_in_range_draws_are_uniform_within_the_range(data: TrainingData) -> None:
    facts = facts_of(data)
    of_one = Facts(*(column[facts.relation == 2] for column in facts))
    negatives = sampler(data, "independent", negatives=500, in_range=True).sample(of_one, epoch_generator(1, 0, CPU))
    assert negatives is not None
    assert chisquare(np.bincount(negatives.entities[1].numpy())[5:7]).pvalue > 1e-3


def test_shapes_and_plausibilities_follow_the_sampler(data: TrainingData) -> None:
    scorer, facts = scorers.get("distmult"), facts_of(data)
    table = torch.randn(N_ENTITIES, 4, dtype=torch.float64)
    kinds = torch.randn(N_RELATIONS, 4, dtype=torch.float64)
    relation = kinds[facts.relation]
    head_query = scorer.head_query(relation, table[facts.tail])
    tail_query = scorer.tail_query(table[facts.head], relation)
    for name, per_side in (("independent", 5), ("shared", 5), ("exhaustive", N_ENTITIES)):
        negatives = draw(data, name, negatives=5)
        g = negatives.plausibility(scorer, head_query, tail_query, *(table[ids] for ids in negatives.entities))
        assert g.shape == (len(data), 2 * per_side)
        if negatives.counts is not None:
            g = g[negatives.counts]
        spelt = []
        by_head, by_tail = triples(facts, negatives)
        for h, r, t in by_head + by_tail:
            spelt.append((table[h] * kinds[r] * table[t]).sum())
        torch.testing.assert_close(g.flatten().sort().values, torch.stack(spelt).sort().values)


def test_exhaustive_is_every_entity_but_the_facts_own(data: TrainingData) -> None:
    facts = facts_of(data)
    by_head, by_tail = triples(facts, draw(data, "exhaustive"))
    rows = list(zip(*(column.tolist() for column in facts), strict=True))
    assert by_head == [(e, r, t) for h, r, t in rows for e in range(N_ENTITIES) if e != h]
    assert by_tail == [(h, r, e) for h, r, t in rows for e in range(N_ENTITIES) if e != t]


def test_none_draws_nothing(data: TrainingData) -> None:
    nothing = sampler(data, "none")
    assert not nothing.draws
    assert nothing.sample(facts_of(data), epoch_generator(0, 0, CPU)) is None


@pytest.mark.parametrize("name", ["independent", "shared"])
def test_seed_and_epoch_decide_the_draws(data: TrainingData, name: str) -> None:
    first, again, other = (draw(data, name, epoch=epoch).entities[0] for epoch in (4, 4, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_epoch_order_is_a_permutation_decided_by_seed_and_epoch() -> None:
    order = epoch_order(100, 1, 2)
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() == epoch_order(100, 1, 2).tolist()
    assert order.tolist() != epoch_order(100, 2, 1).tolist()


def test_rule_count_is_at_least_one_unless_none_are_wanted() -> None:
    assert [rule_count(100, 0.1), rule_count(3, 0.1), rule_count(100, 0.0), rule_count(64, 0.25)] == [10, 1, 0, 16]


def test_unknown_sampler_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="exhaustive, independent, none, shared"):
        samplers.get("random")
