"""Plausibilities worked out by hand; a scorer without one fails."""

from __future__ import annotations

import math
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

import pytest
import torch

from ukge.models import published
from ukge.models.scorers import scorers
from ukge.settings.knobs import ScorerName

TRANSLATED = ([1.0, 2.0], [3.0, -1.0], [1.0, 5.0])  # h + r − t = (3, −4)

GOLDEN: dict[str, tuple[list[float], list[float], list[float], float]] = {
    # 1·3·0.5 + 2·(−1)·4
    "distmult": ([1.0, 2.0], [3.0, -1.0], [0.5, 4.0], -6.5),
    # Re((1+2i)(3−i)(0.5−4i)) = Re((5+5i)(0.5−4i)) = 22.5; Re((−1)(2i)(1−i)) = −2; rows are [real | imaginary]
    "complex": ([1.0, -1.0, 2.0, 0.0], [3.0, 0.0, -1.0, 2.0], [0.5, 1.0, 4.0, 1.0], 20.5),
    "transe": (*TRANSLATED, -7.0),
    "transe-l1": (*TRANSLATED, -7.0),
    "transe-l2": (*TRANSLATED, -5.0),
    # 1 turned by π/2 is i, |i − (3−3i)| = |−3+4i| = 5; 2i turned by π is −2i, |−2i − i| = 3
    "rotate": ([1.0, 0.0, 0.0, 2.0], [math.pi / 2, math.pi], [3.0, 0.0, -3.0, 1.0], -8.0),
    # 1·1 + 2·5, whatever the relation
    "dot": (*TRANSLATED, 11.0),
}


def test_every_scorer_of_our_own_has_a_golden_value() -> None:
    assert set(GOLDEN) == set(get_args(ScorerName))


def test_every_published_model_has_a_test_of_its_own() -> None:
    for each in iter_modules(published.__path__):
        assert Path(__file__).with_name("published").joinpath(f"test_{each.name}.py").is_file()


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_plausibility_is_the_one_worked_out_by_hand(name: str) -> None:
    *rows, expected = GOLDEN[name]
    head, relation, tail = (torch.tensor(row, dtype=torch.float64) for row in rows)
    assert scorers.get(name).plausibility(head, relation, tail).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_widths_fit_the_golden_rows(name: str) -> None:
    head, relation, tail, _ = GOLDEN[name]
    assert scorers.get(name).entity_width(2) == len(head) == len(tail)
    assert scorers.get(name).relation_width(2) == len(relation)
