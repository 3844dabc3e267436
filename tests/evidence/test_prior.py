"""A prior of its own: how many of the asked links hold changes every reading of a link, the same way, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from ukge.errors import ConfigError, DataError
from ukge.evidence import Evidence
from ukge.evidence.explain import explain_all
from ukge.evidence.false_links import FalseLinks
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import negative_links
from ukge.graph.uncertain import concat


def test_the_chance_to_hold_is_moved_by_bayes_rule(evidence: Evidence, dataset: Dataset) -> None:
    columns = evidence.matrix(dataset.test.head, dataset.test.relation, dataset.test.tail)
    rare, own = evidence.with_prior(0.1).regressor, evidence.regressor
    chance = own.chance(own.holds.predict(columns))
    odds = chance / (1 - chance) / 9  # of ten links one holds, so the odds are a ninth
    level = np.clip(own.level.predict(columns), 0, 1)
    np.testing.assert_allclose(rare.predict(columns), own.overall(odds / (1 + odds) * level))
    assert (rare.predict(columns) <= own.predict(columns) + 1e-12).all()
    np.testing.assert_array_equal(evidence.with_prior(0.5).regressor.predict(columns), own.predict(columns))
    held, as_rare = (each.predict(dataset.test, assume_holds=True) for each in (evidence, evidence.with_prior(0.1)))
    np.testing.assert_array_equal(held, as_rare)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(ConfigError):
            evidence.with_prior(wrong)


def test_it_is_calibrated_where_one_link_in_ten_holds(evidence: Evidence, dataset: Dataset) -> None:
    negatives = negative_links(dataset, kind="degree", n=9 * len(dataset.test), seed=4)
    links = concat([dataset.test, negatives])
    gaps = [
        abs(float(each.predict(links).mean() - links.confidence.mean()))
        for each in (evidence, evidence.with_prior(0.1))
    ]
    assert gaps[1] < 0.5 * gaps[0]
    low, high = evidence.with_prior(0.1).interval(links, 0.8)
    assert np.mean((low <= links.confidence) & (links.confidence <= high)) > 0.75


def test_reasons_still_add_up(evidence: Evidence, dataset: Dataset) -> None:
    rare = evidence.with_prior(0.05)
    facts = [fact[:3] for fact in dataset.test[:5]]
    for told, said in zip(explain_all(rare, facts), rare.predict(facts), strict=True):
        assert told.confidence == pytest.approx(said)
        assert told.base is not None
        assert told.base + sum(each.contribution or 0.0 for each in told.reasons) == pytest.approx(said, abs=1e-9)


def test_reasons_add_up_where_the_kind_of_false_links_is_told(evidence: Evidence, dataset: Dataset) -> None:
    told = evidence.with_prior(0.2).with_negatives("degree")
    facts = [fact[:3] for fact in dataset.test[:5]]
    for each, said in zip(explain_all(told, facts), told.predict(facts), strict=True):
        assert each.confidence == pytest.approx(said)
        assert each.base is not None
        assert each.base + sum(reason.contribution or 0.0 for reason in each.reasons) == pytest.approx(said, abs=1e-9)


def test_a_kind_that_is_told_moves_the_odds_by_how_much_commoner_its_links_are(
    evidence: Evidence, dataset: Dataset
) -> None:
    columns = evidence.matrix(dataset.test.head, dataset.test.relation, dataset.test.tail)
    own, told = evidence.regressor, evidence.with_negatives("uniform=1,degree=3").regressor
    assert own.false is not None
    names, kinds = own.false.names, own.false.chances(columns)
    np.testing.assert_allclose(kinds.sum(axis=1), 1.0)
    times = sum(
        share * kinds[:, names.index(kind)] / own.false.share[names.index(kind)]
        for kind, share in (("uniform", 0.25), ("degree", 0.75))
    )
    chance = own.chance(own.holds.predict(columns))
    odds = chance / (1 - chance) / times
    expected = own.overall(odds / (1 + odds) * np.clip(own.level.predict(columns), 0, 1))
    np.testing.assert_allclose(told.predict(columns), expected, rtol=1e-6)
    as_fitted = {kind: float(share) for kind, share in zip(names, own.false.share, strict=True)}
    np.testing.assert_allclose(
        evidence.with_negatives(as_fitted).predict(dataset.test), evidence.predict(dataset.test), rtol=1e-4
    )


def test_what_links_are_is_found_from_them(evidence: Evidence, dataset: Dataset) -> None:
    facts = dataset.test
    links = concat([facts, negative_links(dataset, kind="other-relation", n=3 * len(facts), seed=4)])
    adapted = evidence.adapted_to(links)
    assert adapted.asked.prior == pytest.approx(0.25, abs=0.08)
    shares = adapted.asked_negatives
    assert max(shares, key=lambda kind: shares[kind]) == "other-relation"
    assert sum(shares.values()) == pytest.approx(1.0)
    told = evidence.with_prior(0.25).with_negatives("other-relation")
    as_rare, by_told, by_itself = (
        float(np.mean((each.predict(links) - links.confidence) ** 2))
        for each in (evidence.with_prior(0.25), told, adapted)
    )
    assert by_told < 0.9 * as_rare
    assert by_itself < 0.95 * as_rare
    low, high = adapted.interval(links, 0.8)
    assert np.mean((low <= links.confidence) & (links.confidence <= high)) > 0.75
    known = evidence.adapted_to(links, prior=0.25, negatives="other-relation")
    assert known.asked.prior == 0.25
    assert known.asked_negatives["other-relation"] == pytest.approx(1.0)


def test_shares_are_the_likeliest_ones() -> None:
    """Of links that cannot be mistaken the shares are counted; the prior that is known is kept."""
    kinds = np.array([[1.0, 0.0]] * 60 + [[0.0, 1.0]] * 20 + [[0.5, 0.5]] * 120)
    odds = np.array([1e-6] * 80 + [1e6] * 120)  # 80 false ones, of which a quarter are of the second kind
    false = FalseLinks(("one", "other"), np.array([0.5, 0.5]), np.ones(1), ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FalseLinks, "chances", lambda self, columns: columns)
        found = false.likeliest(odds, kinds)
        assert found.prior == pytest.approx(0.6, abs=1e-3)
        assert false.shares(found) == pytest.approx({"one": 0.75, "other": 0.25}, abs=1e-3)
        assert false.likeliest(odds, kinds, prior=0.9).prior == 0.9
        told = false.likeliest(odds, kinds, negatives={"one": 2.0})
        assert false.shares(told) == pytest.approx({"one": 1.0, "other": 0.0})
        with pytest.raises(DataError, match="too few"):
            false.likeliest(odds[:99], kinds[:99])


def test_what_cannot_be_told_is_refused(evidence: Evidence) -> None:
    with pytest.raises(ConfigError, match="has not learnt from negative links of kind 'degrees'"):
        evidence.with_negatives("degrees")
    with pytest.raises(ConfigError, match="all 0"):
        evidence.with_negatives({"degree": 0.0})


@pytest.mark.parametrize("assume_holds", [False, True])
def test_quantiles_rise_and_hold_their_share(evidence: Evidence, dataset: Dataset, assume_holds: bool) -> None:
    links = dataset.test if assume_holds else concat([dataset.test, negative_links(dataset, kind="paper", seed=1)])
    levels = [0.1, 0.5, 0.9]
    found = evidence.quantiles(links, levels, assume_holds=assume_holds)
    assert found.shape == (len(links), 3)
    assert (np.diff(found, axis=1) >= 0).all()
    assert np.mean(links.confidence <= found[:, 2] + 1e-9) > 0.84
    assert np.mean(links.confidence >= found[:, 0] - 1e-9) > 0.84
    with pytest.raises(ConfigError):
        evidence.quantiles(links, [1.5])
