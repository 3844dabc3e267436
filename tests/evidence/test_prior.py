"""A prior of its own: how many of the asked links hold changes every reading of a link, the same way, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from ukge.errors import ConfigError
from ukge.evidence import Evidence
from ukge.evidence.explain import explain_all
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
