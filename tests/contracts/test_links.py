"""What every registered link keeps to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.models.links import links

finite = st.floats(-50, 50, allow_nan=False, width=32)


@pytest.mark.parametrize("name", links.names())
@given(g=st.lists(finite, min_size=2, max_size=6), weight=finite, bias=finite)
@settings(deadline=None, max_examples=40)
def test_predictions_are_bounded_and_ordered_as_the_ranking_sign_says(
    name: str, g: list[float], weight: float, bias: float
) -> None:
    link = links.get(name)
    plausibility = torch.tensor(g, dtype=torch.float64).sort().values
    w, b = torch.tensor(weight, dtype=torch.float64), torch.tensor(bias, dtype=torch.float64)
    predicted = link.predict(plausibility, w, b)
    assert (predicted.diff() * link.ranking_sign(weight) >= -1e-12).all()
    from_numpy = link.predict(plausibility.numpy(), w.numpy(), b.numpy())
    np.testing.assert_allclose(from_numpy, predicted.numpy(), rtol=1e-12, atol=1e-300)
    if link.bounded:
        assert predicted.min() >= 0
        assert predicted.max() <= 1


@pytest.mark.parametrize("name", links.names())
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    g = torch.linspace(-2, 2, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(-0.2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(links.get(name).forward, (g, weight, bias))
