"""Does a fact hold at all: shares of kinds by a small program, false facts found, chances that mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ukge.errors import ConfigError, DataError
from ukge.evidence.doubt import SETTINGS, judge
from ukge.evidence.doubt_sources import UNNAMED, doubt_by_source
from ukge.evidence.false_facts import largest_shares
from ukge.evidence.fitting import gather
from ukge.evidence.holding import Holding, corrected, judge_holding
from ukge.graph.negatives import negative_links
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph, concat

QUICK = replace(SETTINGS, iterations=40, leaves=15, folds=2)


@pytest.fixture(autouse=True)
def _few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.evidence.doubt.PARTS", 5)


@pytest.fixture(scope="module")
def extracted() -> tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """A world with as many facts again that are false, said by two sources of different skill, equally sure."""
    world = generate(300, 3_000, seed=5)
    false = negative_links(world.graph, kind="mixture", n=3_000, seed=6)
    rng = np.random.default_rng(7)
    both = concat([world.graph, false.with_confidence(rng.choice(world.graph.confidence, len(false)))])
    is_false = np.arange(len(both)) >= len(world.graph)
    source = np.where(rng.random(len(both)) < np.where(is_false, 0.8, 0.3), "careless", "careful")
    names = both.facts()
    named = UncertainGraph.from_columns(
        names["head"], names["relation"], names["tail"], names["confidence"].to_numpy(), source=source.tolist()
    )
    order = rng.permutation(len(both))
    return named[order], is_false[order]


@pytest.fixture(scope="module")
def holding(extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]]) -> Holding:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ukge.evidence.doubt.PARTS", 5)
        return judge_holding(gather(extracted[0]), QUICK)


def test_false_facts_come_first(
    holding: Holding, extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]]
) -> None:
    """Doubt of confidences cannot: the false facts have confidences like any other."""
    graph, false = extracted
    worst = np.argsort(holding.odds)[:200]
    assert false[worst].mean() > 0.9
    doubted = np.argsort(-judge(gather(graph), QUICK).surprise)[:200]
    assert false[doubted].mean() < false[worst].mean() - 0.15


def test_chances_mean_what_they_say(
    holding: Holding, extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]]
) -> None:
    _, false = extracted
    assert abs(holding.false - false.mean()) < 0.15
    for band in np.array_split(np.argsort(holding.chance), 6):
        assert abs(holding.chance[band].mean() - (~false[band]).mean()) < 0.25
    assert ((holding.chance > 0) & (holding.chance < 1)).all()


def test_the_list_and_its_choices(
    holding: Holding, extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]]
) -> None:
    graph, _ = extracted
    found = holding.likely_false(10**6)
    assert sorted((each.head, each.relation, each.tail) for each in found) == sorted(fact[:3] for fact in graph)
    chances = [each.chance for each in found]
    assert chances == sorted(chances)
    relation = graph.relations[0]
    some = holding.likely_false(3, relations=[relation], sources="careless")
    assert some == [each for each in found if (each.relation, each.source) == (relation, "careless")][:3]
    assert "holds with a chance of" in str(some[0])
    assert str(some[0]).endswith("by careless.")
    with pytest.raises(DataError, match="no fact comes from 'nobody'"):
        holding.likely_false(sources="nobody")
    with pytest.raises(ConfigError, match="1 or more"):
        holding.likely_false(0)


def test_by_source(
    holding: Holding, extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]]
) -> None:
    graph, false = extracted
    judged = judge(gather(graph), QUICK)
    lines = doubt_by_source(judged, holding)
    assert [each.source for each in lines] == ["careless", "careful"]
    said = [each.source for each in graph]
    of = {name: np.array([each == name for each in said]) for name in ("careless", "careful")}
    for each in lines:
        own = of[each.source]
        assert each.facts == own.sum()
        assert each.false == pytest.approx(1 - holding.chance[own].mean())
        assert abs(each.false - false[own].mean()) < 0.25
        high = (judged.surprise > 0) & (graph.confidence > judged.expected)
        assert each.too_high == pytest.approx(high[own].mean())
        assert each.gap == pytest.approx((graph.confidence - judged.expected)[own].mean())
    plain = graph.where(source="careful").facts()
    unnamed = UncertainGraph.from_columns(plain["head"], plain["relation"], plain["tail"], plain["confidence"])
    alone = replace(holding, graph=unnamed, chance=holding.chance[of["careful"]])
    rows = {name: getattr(judged, name)[of["careful"]] for name in ("expected", "error", "surprise")}
    assert [each.source for each in doubt_by_source(replace(judged, graph=unnamed, **rows), alone)] == [UNNAMED]


def test_shares_of_kinds_by_hand() -> None:
    """Half of the facts are sound, three in ten like the first kind, two in ten like the second, none like the third.

    Log-odds of a kind are high for whatever is not of it, and low for what is; places are spread a little.
    """
    rng = np.random.default_rng(0)

    def odds(of: int, n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        found = 3.0 + rng.random((n, 3))
        if of >= 0:
            found[:, of] -= 6.0
        return found

    facts = np.concatenate([odds(-1, 5_000), odds(0, 3_000), odds(1, 2_000)])
    shares = largest_shares(facts, [odds(kind, 4_000) for kind in range(3)])
    assert shares == pytest.approx([0.3, 0.2, 0.0], abs=0.03)
    assert largest_shares(odds(-1, 5_000), [odds(0, 4_000)]) == pytest.approx([0.0], abs=0.01)
    assert largest_shares(odds(1, 5_000), [odds(0, 100), odds(1, 4_000), np.empty((0, 3))]) == pytest.approx(
        [0.0, 1.0, 0.0], abs=0.05
    )


def test_labels_correct_chances_that_are_too_high() -> None:
    rng = np.random.default_rng(1)
    chance = rng.uniform(0.3, 0.99, 4_000)
    raw = np.log(chance / (1 - chance))
    true = 1 / (1 + np.exp(-(0.7 * raw - 1.0)))
    holds = (rng.random(4_000) < true).astype(float)
    labels = np.where(np.arange(4_000) < 400, holds, np.nan)
    found = corrected(chance, labels)
    assert np.mean((found - true) ** 2) < 0.1 * np.mean((chance - true) ** 2)
    assert (np.diff(found[np.argsort(chance)]) >= 0).all()
    few = np.where(np.arange(4_000) < 1, holds, np.nan)
    assert np.abs(corrected(chance, few) - chance).max() < 0.15  # one label moves little


def test_labels_that_decide_nothing_correct_nothing(
    extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]],
) -> None:
    features = gather(extracted[0][:1_200])
    fast = replace(QUICK, iterations=5)
    labels = np.full(1_200, np.nan)
    labels[:19] = np.arange(19) % 2
    assert judge_holding(features, fast, labels=labels).labels == 0
    labels[:60] = 1.0
    assert judge_holding(features, fast, labels=labels).labels == 0  # all hold
    labels[:60] = ~extracted[1][:60]
    assert judge_holding(features, fast, labels=labels).labels == 60


def test_too_few_facts_are_named(
    extracted: tuple[UncertainGraph, np.ndarray[tuple[int], np.dtype[np.bool_]]],
) -> None:
    with pytest.raises(DataError, match="too few"):
        judge_holding(gather(extracted[0][:30]), QUICK)
