"""Fused claims of known truth: better than what they are made of, copies once, order nothing, kept and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from ukge import Claims, DataError, Fusion, UncertainGraph, fuse
from ukge.fusing.copies import find_copies
from ukge.fusing.labels import labels_of
from ukge.fusing.scores import Scores
from ukge.fusing.voices import MOST_VOICES, OTHERS, Voices
from ukge.fusing.weighing import AGREED, KEPT
from ukge.graph.claims import join
from ukge.graph.synthetic import ClaimedWorld, generate_claims

Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def made() -> ClaimedWorld:
    return generate_claims(8_000, seed=2)


def brier(confidence: Floats, truth: npt.NDArray[np.bool_]) -> float:
    return float(np.mean((confidence - truth) ** 2))


def labels(made: ClaimedWorld, number: int) -> Floats:
    label = np.full(len(made.holds), np.nan)
    rows = np.random.default_rng(0).permutation(len(label))[:number]
    label[rows] = made.holds[rows]
    return label


def by_name(claims: Claims, values: Floats) -> dict[tuple[str, ...], float]:
    return {fact[:3]: float(value) for fact, value in zip(claims.facts, values, strict=True)}


def test_without_labels_it_is_far_better_than_the_claims(made: ClaimedWorld) -> None:
    fused = fuse(made.claims)
    assert fused.structure
    assert fused.weighing is None
    assert brier(fused.confidence, made.holds) < 0.6 * brier(made.claims.facts.confidence, made.holds)
    assert [each.holds for each in fused.sources] == sorted((each.holds for each in fused.sources), reverse=True)
    best = {each.name for each in fused.sources[:6]}
    assert {"curated-1", "curated-2"} <= best
    assert all(each.low < each.holds < each.high for each in fused.sources)


def test_copies_are_found_and_only_they(made: ClaimedWorld) -> None:
    voices = Voices.of(made.claims)
    found = {(voices.names[each.copier], voices.names[each.original]) for each in find_copies(voices)}
    names = list(made.claims.sources)
    real = {(names[at], names[model]) for at, model in enumerate(made.copies) if model >= 0}
    assert real <= found
    together = {frozenset(pair) for pair in real} | {
        frozenset((one, other)) for one, model in real for other, same in real if model == same and one != other
    }
    assert {frozenset(pair) for pair in found} <= together


def test_a_source_that_is_repeated_counts_once(made: ClaimedWorld) -> None:
    claims = made.claims
    worst = claims[claims.source == claims.sources.id("overconfident-1")]
    head, relation, tail, confidence = (worst.table()[name] for name in ("head", "relation", "tail", "confidence"))
    twice = join([claims, Claims.from_columns(head, relation, tail, confidence, "parrot")])
    before, after = fuse(claims), fuse(twice)
    assert np.abs(before.confidence - after.confidence).mean() < 0.02
    told = {each.name: dict(each.copies) for each in after.sources}
    assert told["parrot"].get("overconfident-1") == 1.0 or told["overconfident-1"].get("parrot") == 1.0


def test_the_order_of_claims_and_the_names_of_sources_decide_nothing(made: ClaimedWorld) -> None:
    claims = made.claims[:2_500]
    order = np.random.default_rng(0).permutation(len(claims))
    one, other = fuse(claims), fuse(claims[order])
    expected, found = by_name(claims, one.confidence), by_name(other.claims, other.confidence)
    assert expected.keys() == found.keys()
    assert np.mean([abs(expected[fact] - found[fact]) for fact in expected]) < 1e-3
    table = claims.table()
    renamed = [f"{len(name)}{name[::-1]}" for name in table["source"].to_pylist()]
    head, relation, tail, confidence = (table[name] for name in table.column_names[:4])
    again = fuse(Claims.from_columns(head, relation, tail, confidence, renamed))
    assert np.abs(again.confidence - one.confidence).mean() < 1e-3


def test_labels_help_or_leave_it_and_every_way_is_judged_by_labels_it_did_not_see(made: ClaimedWorld) -> None:
    label = labels(made, 400)
    fused = fuse(made.claims, labelled=label)
    assert fused.weighing is not None
    assert fused.weighing.before.labels == 400
    assert not fused.weighing.after.is_worse_than(fused.weighing.before)
    unseen = np.isnan(label)
    assert brier(fused.confidence[unseen], made.holds[unseen]) < 0.5 * brier(
        made.claims.facts.confidence[unseen], made.holds[unseen]
    )


def test_nothing_is_made_worse_where_claims_are_right_already() -> None:
    # Every source knows each fact's exact chance: nobody can do better than their word.
    rng = np.random.default_rng(0)
    chance = rng.random(600)
    columns = [f"a{i}" for i in range(600)] * 3, ["r"] * 1800, [f"b{i}" for i in range(600)] * 3
    claims = Claims.from_columns(*columns, np.tile(chance, 3), np.repeat(["x", "y", "z"], 600))
    truth = (rng.random(600) < chance).astype(np.float64)
    label = np.where(rng.random(600) < 0.5, truth, np.nan)
    fused = fuse(claims, labelled=label)
    assert fused.weighing is not None
    assert not fused.weighing.after.is_worse_than(fused.weighing.before)
    unseen = np.isnan(label)
    assert brier(fused.confidence[unseen], truth[unseen] > 0) < brier(chance[unseen], truth[unseen] > 0) + 0.005


def test_one_source_alone_keeps_its_word() -> None:
    graph = UncertainGraph.from_facts([(f"a{i}", "r", f"b{i}", i / 100, "x") for i in range(100)])
    fused = fuse(graph)
    assert fused.fusion.weights.way == KEPT
    assert fused.confidence.tolist() == graph.confidence.tolist()


def test_a_graph_that_knows_is_listened_to_and_one_that_does_not_is_not(made: ClaimedWorld) -> None:
    rng = np.random.default_rng(0)
    truth = made.holds
    knows = 1 / (1 + np.exp(-(np.where(truth, 2.0, -2.0) + rng.normal(0, 1.5, len(truth)))))
    plain = brier(fuse(made.claims).confidence, truth)
    assert brier(fuse(made.claims, graph=knows).confidence, truth) < 0.8 * plain
    assert brier(fuse(made.claims, graph=rng.random(len(truth))).confidence, truth) < 1.1 * plain


def test_what_was_learnt_is_kept_and_fuses_tomorrows_claims(made: ClaimedWorld, tmp_path: Path) -> None:
    today, tomorrow = made.claims[:6_000], made.claims[6_000:]
    fusion = fuse(today).fusion
    fusion.save(tmp_path / "fusion.json")
    loaded = Fusion.load(tmp_path / "fusion.json")
    fused = loaded(tomorrow)
    np.testing.assert_array_equal(fused.confidence, fusion(tomorrow).confidence)
    truth = by_name(made.claims, made.holds.astype(np.float64))
    holds = np.array([truth[fact[:3]] for fact in tomorrow.facts]) > 0
    assert brier(fused.confidence, holds) < 0.8 * brier(tomorrow.facts.confidence, holds)
    stranger = Claims.from_columns(["a"], ["r"], ["b"], [0.3], ["nobody"])
    assert loaded(stranger).confidence.tolist() == [0.3]
    assert loaded.unknown(stranger) == ["nobody"]


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-40], lambda text: text.replace('"prior"', '"x"'), lambda _: "[]"]
)
def test_a_damaged_fusion_is_refused(made: ClaimedWorld, tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "fusion.json"
    fuse(made.claims[:500]).fusion.save(file)
    file.write_text(damage(file.read_text()))
    with pytest.raises(DataError, match="fusion"):
        Fusion.load(file)


def test_labels_are_matched_by_name_and_mistakes_are_named(made: ClaimedWorld) -> None:
    facts = made.claims.facts
    frame = pd.DataFrame([(*fact[:3], float(holds)) for fact, holds in zip(facts, made.holds, strict=True)])
    frame.columns = pd.Index(["head", "relation", "tail", "label"])
    beside = pd.DataFrame([("nobody", "r", "x", 1.0)], columns=frame.columns)
    found = labels_of(pd.concat([frame[:50][::-1], beside]), facts)
    assert found.missed == 1
    np.testing.assert_array_equal(found.label[:50], made.holds[:50])
    assert np.isnan(found.label[50:]).all()
    with pytest.raises(DataError, match="too few"):
        labels_of(frame[:5], facts)
    with pytest.raises(DataError, match="equal"):
        labels_of(frame[frame["label"] == 1], facts)
    with pytest.raises(DataError, match="no claims"):
        fuse(made.claims[:0])


def test_sources_beyond_a_number_share_a_voice() -> None:
    rows = [(f"a{i}", "r", "b", 0.5, f"s{i}") for i in range(MOST_VOICES + 20)]
    voices = Voices.of(Claims.of_graph(UncertainGraph.from_facts(rows)))
    assert len(voices.names) == MOST_VOICES
    assert voices.names[-1] == OTHERS
    assert voices.sizes[-1] == 21


def test_scores_are_those_of_the_books() -> None:
    scores = Scores.of(np.array([0.8, 0.4]), np.array([1.0, 0.0]))
    assert scores.brier == pytest.approx((0.04 + 0.16) / 2)
    assert scores.log == pytest.approx(-(np.log(0.8) + np.log(0.6)) / 2)
    assert scores.calibration == pytest.approx(0.1)  # one bin: 0.6 said, 0.5 held
    assert AGREED != KEPT
