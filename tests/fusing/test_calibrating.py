"""One source's confidences made to mean what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ukge import Calibrator, DataError
from ukge.fusing.calibrating import BETA, ISOTONIC, KEPT, METHODS, PLATT


def drawn(bend: str, number: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """Confidences, and whether what they speak of holds: by another chance than they say, unless they are honest."""
    rng = np.random.default_rng(0)
    said = rng.uniform(0.02, 0.98, number)
    chance = {
        "honest": said,
        "overconfident": 1 / (1 + np.exp(-(0.4 * np.log(said / (1 - said)) - 0.7))),
        "steps": np.where(said < 0.5, 0.1, np.where(said < 0.8, 0.3, 0.95)),
    }[bend]
    return said, (rng.random(number) < chance).astype(np.float64)


@pytest.mark.parametrize(
    ("bend", "methods"), [("honest", METHODS), ("overconfident", (PLATT, BETA)), ("steps", (ISOTONIC,))]
)
def test_the_best_way_is_chosen_and_nothing_is_made_worse(bend: str, methods: tuple[str, ...]) -> None:
    said, label = drawn(bend)
    made = Calibrator.fit(said, label)
    assert made.method in methods
    assert not made.scores[made.method].is_worse_than(made.scores[KEPT])
    grid = np.linspace(0.01, 0.99, 99)
    assert (np.diff(made(grid)) >= 0).all()
    if bend != "honest":
        assert made.scores[made.method].calibration < 0.5 * made.scores[KEPT].calibration


def test_platt_finds_slope_and_offset() -> None:
    made = Calibrator.fit(*drawn("overconfident", 20_000))
    assert made(np.array([0.5]))[0] == pytest.approx(1 / (1 + np.exp(0.7)), abs=0.02)
    if made.method == PLATT:
        assert made.weights == pytest.approx([0.4, -0.7], abs=0.05)


@pytest.mark.parametrize("bend", ["honest", "overconfident", "steps"])
def test_it_is_kept_and_read_again(bend: str, tmp_path: Path) -> None:
    made = Calibrator.fit(*drawn(bend), source="x")
    made.save(tmp_path / "cal.json")
    loaded = Calibrator.load(tmp_path / "cal.json")
    grid = np.linspace(0, 1, 11)
    np.testing.assert_array_equal(loaded(grid), made(grid))
    assert (loaded.method, loaded.source) == (made.method, "x")


def test_mistakes_are_named(tmp_path: Path) -> None:
    said, label = drawn("honest", 100)
    with pytest.raises(DataError, match="too few"):
        Calibrator.fit(said[:5], label[:5])
    with pytest.raises(DataError, match="equal"):
        Calibrator.fit(said, np.ones(100))
    (tmp_path / "x.json").write_text('{"kind": "ukge calibration", "version": 1, "method": "platt", "weights": [1]}')
    for name in ("x.json", "missing.json"):
        with pytest.raises(DataError, match=r"calibration|cannot be read"):
            Calibrator.load(tmp_path / name)
