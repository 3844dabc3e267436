"""What each optimiser does to one row of a table, and to the moments that it keeps beside it."""

from __future__ import annotations

import math

import numpy as np

from ukge.learning.engines.fused.ops import inlined
from ukge.learning.engines.fused.prefetch import prefetch_far_row

ADAM, LAZY_ADAM, ADAGRAD, ROWWISE_ADAGRAD, NONE = range(5)
"""NONE hands out the gradient in the place of the first moment, and optimises nothing."""


@inlined
def optimise_row(optimiser, table, first, second, row, gradients, g, touched):  # type: ignore[no-untyped-def]
    """Apply the optimiser to table[row] with gradient gradients[g]; `first` and `second` are its moments."""
    hyper = optimiser.hyper[0]
    beta1, beta2, eps = hyper.beta1, hyper.beta2, hyper.eps
    width = table.shape[1]
    one = np.float32(1.0)
    if optimiser.code in (ADAM, LAZY_ADAM):
        step, root = hyper.rate / hyper.correction1, one / math.sqrt(hyper.correction2)
        if touched:
            for d in range(width):
                gradient = gradients[g, d]
                m = beta1 * first[row, d] + (one - beta1) * gradient
                v = beta2 * second[row, d] + (one - beta2) * gradient * gradient
                first[row, d] = m
                second[row, d] = v
                table[row, d] -= step * m / (math.sqrt(v) * root + eps)
        else:
            for d in range(width):
                m = beta1 * first[row, d]
                v = beta2 * second[row, d]
                first[row, d] = m
                second[row, d] = v
                table[row, d] -= step * m / (math.sqrt(v) * root + eps)
    elif optimiser.code == ADAGRAD:
        for d in range(width):
            gradient = gradients[g, d]
            v = second[row, d] + gradient * gradient
            second[row, d] = v
            table[row, d] -= hyper.rate * gradient / (math.sqrt(v) + eps)
    elif optimiser.code == ROWWISE_ADAGRAD:
        squares = np.float32(0.0)
        for d in range(width):
            squares += gradients[g, d] * gradients[g, d]
        total = second[row, 0] + squares / np.float32(width)
        second[row, 0] = total
        scale = hyper.rate / (math.sqrt(total) + eps)
        for d in range(width):
            table[row, d] -= scale * gradients[g, d]
    else:
        for d in range(width):
            first[row, d] = gradients[g, d]


@inlined
def prefetch_moments(code, first, second, e):  # type: ignore[no-untyped-def]
    """Ask for the moments of an entity that will be optimised."""
    if code == LAZY_ADAM:
        prefetch_far_row(first, e)
    prefetch_far_row(second, e)
