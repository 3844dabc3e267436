"""Each link and loss of one fact, and their slopes, for the fused kernels; formulas as in `ukge.models.links`."""

from __future__ import annotations

import math

import numpy as np

from ukge.learning.engines.fused.ops import inlined

LOGISTIC_LINK, RECTIFIER_LINK, IDENTITY_LINK = range(3)
SQUARED, LOGISTIC, MARGIN, FOCUS = range(4)


@inlined
def link_forward(link, g):  # type: ignore[no-untyped-def]
    """Return f as the loss sees it: eq. 3, or eq. 4 without its bounds (clamped, its gradient would die)."""
    if link.code == LOGISTIC_LINK:
        return np.float32(1.0) / (np.float32(1.0) + math.exp(-(link.w * g + link.b)))
    if link.code == RECTIFIER_LINK:
        return link.w * g + link.b
    return g


@inlined
def link_predict(link, g):  # type: ignore[no-untyped-def]
    """Return f as a prediction: eq. 4 with its bounds."""
    f = link_forward(link, g)
    return min(max(f, np.float32(0.0)), np.float32(1.0)) if link.code == RECTIFIER_LINK else f


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
def through_link(link, slope_f, f, g, to_link, i):  # type: ignore[no-untyped-def]
    """Turn ∂J/∂f into ∂J/∂g, adding ∂J/∂w and ∂J/∂b to to_link[i]."""
    inner = slope_f * link_slope(link.code, f)
    if link.code == IDENTITY_LINK:
        return inner
    to_link[i, 0] += inner * g
    to_link[i, 1] += inner
    return inner * link.w


@inlined
def negative_slope(link, loss, g, scale, observed_g, to_link, i):  # type: ignore[no-untyped-def]
    """Return the loss of an unseen fact with plausibility g (before `scale`) and ∂J/∂g."""
    if loss.code == SQUARED:
        f = link_forward(link, g)
        return f * f, through_link(link, np.float32(2.0) * scale * f, f, g, to_link, i)
    if loss.code == LOGISTIC:
        return softplus(g), scale * sigmoid(g)
    short = loss.margin - observed_g + g
    return max(short, np.float32(0.0)), scale if short > 0 else np.float32(0.0)
