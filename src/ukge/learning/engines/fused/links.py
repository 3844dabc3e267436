"""Each link and loss of one fact, and their slopes, for the fused kernels; formulas as in `ukge.models.links`."""

from __future__ import annotations

import math

import numpy as np

from ukge.learning.engines.fused.ops import inlined

LOGISTIC_LINK, RECTIFIER_LINK, IDENTITY_LINK = range(3)
SQUARED, LOGISTIC, MARGIN = range(3)


@inlined
def link_forward(code, g, w, b):  # type: ignore[no-untyped-def]
    """Return f as the loss sees it: eq. 3, or eq. 4 without its bounds (clamped, its gradient would die)."""
    if code == LOGISTIC_LINK:
        return np.float32(1.0) / (np.float32(1.0) + math.exp(-(w * g + b)))
    if code == RECTIFIER_LINK:
        return w * g + b
    return g


@inlined
def link_slope(code, f):  # type: ignore[no-untyped-def]
    """Return ∂f/∂(w g + b)."""
    return f * (np.float32(1.0) - f) if code == LOGISTIC_LINK else np.float32(1.0)


@inlined
def softplus(x):  # type: ignore[no-untyped-def]
    """Return log(1 + exp(x)) without overflow."""
    return max(x, np.float32(0.0)) + math.log1p(math.exp(-abs(x)))


@inlined
def sigmoid(x):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(−x))."""
    return np.float32(1.0) / (np.float32(1.0) + math.exp(-x))


@inlined
def through_link(link_code, slope_f, f, g, w, link_grad, i):  # type: ignore[no-untyped-def]
    """Turn ∂J/∂f into ∂J/∂g, adding ∂J/∂w and ∂J/∂b to link_grad[i]."""
    inner = slope_f * link_slope(link_code, f)
    if link_code == IDENTITY_LINK:
        return inner
    link_grad[i, 0] += inner * g
    link_grad[i, 1] += inner
    return inner * w


@inlined
def negative_slope(link_code, loss_code, g, w, b, scale, margin, observed_g, link_grad, i):  # type: ignore[no-untyped-def]
    """Return the loss of an unseen fact with plausibility g (before `scale`) and ∂J/∂g."""
    if loss_code == SQUARED:
        f = link_forward(link_code, g, w, b)
        return f * f, through_link(link_code, np.float32(2.0) * scale * f, f, g, w, link_grad, i)
    if loss_code == LOGISTIC:
        return softplus(g), scale * sigmoid(g)
    short = margin - observed_g + g
    return max(short, np.float32(0.0)), scale if short > 0 else np.float32(0.0)
