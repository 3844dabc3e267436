"""Errors by kind of negative links: hand-computed, weighted, and told of every kind, fitted to or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ukge.errors import ConfigError, UkgeError
from ukge.evidence import Evidence
from ukge.evidence.kinds import errors_by_kind
from ukge.evidence.settings import MIXTURE, EvidenceSettings, as_shares
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import KINDS

EVERY = [kind for kind in KINDS.names() if kind != "mixture"]


def test_links_of_a_kind_weigh_as_much_as_the_facts() -> None:
    # Facts are off by .1 and .3, the four links of a kind by .2 each, the one link of another by .6.
    facts, observed = np.array([0.9, 0.5]), np.array([1.0, 0.8])
    found = errors_by_kind(facts, observed, {"many": np.full(4, 0.2), "one": np.array([0.6])})
    assert found["many"].mse == pytest.approx(((0.01 + 0.09) / 2 + 0.04) / 2)
    assert found["many"].mae == pytest.approx((0.2 + 0.2) / 2)
    assert found["one"].mse == pytest.approx(((0.01 + 0.09) / 2 + 0.36) / 2)
    # Every prediction of "one" has a bin of its own: |−.1|/4 + |−.3|/4 + |.6|/2.
    assert found["one"].ece == pytest.approx(0.1 / 4 + 0.3 / 4 + 0.6 / 2)
    assert (found["many"].links, found["one"].links) == (4, 1)


def test_every_kind_is_in_the_mixture() -> None:
    assert sorted([*MIXTURE, "fitting"]) == EVERY  # which is for telling facts that do not hold, not for evidence
    assert sum(MIXTURE.values()) == pytest.approx(1.0)


def test_kinds_that_were_not_learnt_from_are_told_too(dataset: Dataset, small: dict[str, Any]) -> None:
    fitted = Evidence.fit([], dataset, **{**small, "rank_queries": 0, "negatives": {"uniform": 1.0}})
    found = fitted.errors_by_kind()
    assert list(found) == EVERY
    # The brittleness that one kind alone brings: what keeps an end of a fact looks true to it.
    assert found["corruption"].mse > 1.2 * found["uniform"].mse


def test_a_saved_one_tells_the_same(evidence: Evidence, tmp_path: Any) -> None:
    evidence.save(tmp_path / "kept")
    assert Evidence.load(tmp_path / "kept").errors_by_kind() == evidence.errors_by_kind()


def test_shares_are_said_in_words() -> None:
    assert as_shares("corruption") == {"corruption": 1.0}
    assert as_shares("corruption=3, paper=1") == {"corruption": 3.0, "paper": 1.0}
    with pytest.raises(ConfigError, match="share of paper is 'many'"):
        as_shares("paper=many")
    for wrong in ("corupted", "paper=-1", "paper=nan", "paper=0"):
        with pytest.raises(UkgeError):
            EvidenceSettings(negatives=as_shares(wrong))
