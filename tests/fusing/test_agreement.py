"""Who is to be believed: by hand, by another implementation, and by recovering what drew the claims."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ukge.fusing.agreement import MUTE, PULL, SAID, SILENT, Bins, agree


def test_with_labels_the_worth_of_words_is_counted() -> None:
    # One source: it claims 3 of 4 true facts and 1 of 4 false ones, and two more of which nothing is known.
    codes = np.array([[SAID]] * 3 + [[SILENT]] + [[SAID]] + [[SILENT]] * 3 + [[SAID], [MUTE]])
    label = np.array([1.0] * 4 + [0.0] * 4 + [np.nan] * 2)
    found, log_odds = agree(codes, [3], np.full(10, 0.5), label=label)
    # Of nine facts it has a voice in, it claims five; the unknown fact counts by its own chance x, a silent one by ½.
    usual = 5 / 9
    chance = 1 / (1 + math.exp(-log_odds[8]))
    true = (3 + chance + PULL * usual) / (4 + chance + PULL)
    false = (1 + 1 - chance + PULL * usual) / (4 + 1 - chance + PULL)
    assert found.worth[0][SAID] == pytest.approx(math.log(true / false), abs=1e-3)
    assert found.worth[0][MUTE] == 0.0
    assert log_odds[9] == pytest.approx(math.log(found.prior / (1 - found.prior)))
    np.testing.assert_allclose(found.log_odds(codes), log_odds)


def test_what_is_found_satisfies_both_equations() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.4
    codes = np.where(rng.random((300, 4)) < np.where(truth, 0.7, 0.2)[:, None], SAID, SILENT)
    codes[:20, 0] = MUTE
    found, log_odds = agree(codes, [3] * 4, np.where(codes == SAID, 0.8, 0.2).mean(axis=1))
    chance = 1 / (1 + np.exp(-log_odds))
    for view in range(4):
        for code in (SILENT, SAID):
            heard = [i for i in range(300) if codes[i, view] != MUTE]
            usual = sum(codes[i, view] == code for i in heard) / len(heard)
            shares = []
            for weight in (chance, 1 - chance):
                said = sum(weight[i] for i in heard if codes[i, view] == code)
                shares.append((said + PULL * usual) / (sum(weight[i] for i in heard) + PULL))
            assert found.worth[view][code] == pytest.approx(math.log(shares[0] / shares[1]), abs=0.01)
    assert found.prior == pytest.approx(chance.mean(), abs=0.01)


def test_skill_is_found_without_labels() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(4000) < 0.5
    skill = [(0.8, 0.1), (0.7, 0.3), (0.5, 0.5), (0.3, 0.6), (0.9, 0.4)]  # how often it claims true and false facts
    claimed = np.stack([rng.random(4000) < np.where(truth, yes, no) for yes, no in skill], axis=1)
    found, log_odds = agree(np.where(claimed, SAID, SILENT), [3] * 5, claimed.mean(axis=1))
    for worth, (yes, no) in zip(found.worth, skill, strict=True):
        assert worth[SAID] == pytest.approx(math.log(yes / no), abs=0.15)
    assert np.mean((log_odds > 0) == truth) > 0.85


def test_bins_hold_about_the_same_number_and_tell_repeats() -> None:
    bins = Bins.of(np.linspace(0, 1, 200))
    once = bins.code(np.linspace(0, 1, 200), np.ones(200, np.int64))
    assert np.bincount(once)[SAID:].min() >= 30
    assert bins.code(np.array([0.0]), np.array([2]))[0] == SAID + len(bins.edges) + 1
    assert bins.size == SAID + 2 * (len(bins.edges) + 1)
    assert len(Bins.of(np.full(500, 0.9)).edges) <= 1
