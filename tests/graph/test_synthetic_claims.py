"""Claims about the synthetic world: their truth is the world's, and each kind of source is as it is said to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import answered, refused

from ukge.errors import ConfigError
from ukge.graph.readers import read
from ukge.graph.synthetic import ClaimedWorld, generate_claims
from ukge.graph.synthetic.claims import HOLDS


@pytest.fixture(scope="module")
def made() -> ClaimedWorld:
    return generate_claims(10_000, seed=3)


def sources(made: ClaimedWorld, kind: str) -> list[int]:
    return [at for at, name in enumerate(made.kinds) if name == kind]


def test_a_fact_holds_where_the_world_says_so(made: ClaimedWorld) -> None:
    facts = made.claims.facts
    sure = made.world.true_confidence(facts.head, facts.relation, facts.tail)
    np.testing.assert_array_equal(made.holds, sure >= HOLDS)
    assert 0.3 < made.holds.mean() < 0.7
    assert 8_000 < len(made.claims) < 12_000


def test_the_same_seed_makes_the_same_claims() -> None:
    one, again, other = (generate_claims(1_000, seed=seed).claims for seed in (1, 1, 2))
    assert one.table().equals(again.table())
    assert not one.table().equals(other.table())


def test_curated_sources_are_right_and_overconfident_ones_only_sound_so(made: ClaimedWorld) -> None:
    claims, truth = made.claims, made.holds[made.claims.fact]
    for at in sources(made, "curated"):
        assert truth[claims.source == at].mean() > 0.8
    for at in sources(made, "overconfident"):
        assert truth[claims.source == at].mean() < 0.55
        assert claims.confidence[claims.source == at].min() >= 0.8
    vague = np.isin(claims.source, sources(made, "language-model"))
    middle = (claims.confidence[vague] >= 0.4) & (claims.confidence[vague] <= 0.6)
    assert 0.5 < middle.mean() < 0.65
    assert (claims.confidence[vague & (claims.confidence > 0.6)] >= 0.8).all()


def test_a_copying_source_says_most_of_what_another_one_says_alike(made: ClaimedWorld) -> None:
    claims = made.claims
    for at in sources(made, "copy"):
        model = made.copies[at]
        assert model >= 0
        own, others = (np.unique(claims.fact[claims.source == each]) for each in (at, model))
        assert np.isin(own, others).mean() > 0.4
    assert (made.copies[sources(made, "curated")] == -1).all()


def test_the_command_writes_claims_and_their_truth(tmp_path: Path) -> None:
    told = answered("data", "generate", "--claims", "1000", "--out", tmp_path / "claims.tsv.gz").stdout
    assert "claims.truth.tsv.gz" in " ".join(told.split())
    claims, truth = (
        read(tmp_path / "claims.tsv.gz"),
        read(tmp_path / "claims.truth.tsv.gz", columns={"confidence": "label"}),
    )
    assert claims.source is not None
    assert {fact[:3] for fact in claims} == {fact[:3] for fact in truth}
    assert isinstance(
        refused("data", "generate", "--out", tmp_path / "x.tsv", "--truth", tmp_path / "y.tsv"), ConfigError
    )
    assert isinstance(refused("data", "generate", "--claims", "10", "--out", tmp_path / "x.tsv"), ConfigError)
