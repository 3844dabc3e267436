"""What each optimiser does to one row of a table, and to the moments that it keeps beside it."""

from __future__ import annotations

import math

import numpy as np

from ukge.learning.engines.fused.ops import inlined
from ukge.learning.engines.fused.prefetch import prefetch_far_row

ADAM, LAZY_ADAM, ADAGRAD, ROWWISE_ADAGRAD = range(4)


@inlined
def optimise_row(code, table, first, second, row, acc, a, hyper, touched):  # type: ignore[no-untyped-def]
    """Apply the optimiser to table[row] with gradient acc[a]; `first` and `second` are its moments."""
    rate, beta1, beta2, eps, correction1, correction2 = hyper[0], hyper[1], hyper[2], hyper[3], hyper[4], hyper[5]
    width = table.shape[1]
    one = np.float32(1.0)
    if code in (ADAM, LAZY_ADAM):
        step, root = rate / correction1, one / math.sqrt(correction2)
        if touched:
            for d in range(width):
                gradient = acc[a, d]
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
    elif code == ADAGRAD:
        for d in range(width):
            gradient = acc[a, d]
            v = second[row, d] + gradient * gradient
            second[row, d] = v
            table[row, d] -= rate * gradient / (math.sqrt(v) + eps)
    else:
        squares = np.float32(0.0)
        for d in range(width):
            squares += acc[a, d] * acc[a, d]
        total = second[row, 0] + squares / np.float32(width)
        second[row, 0] = total
        scale = rate / (math.sqrt(total) + eps)
        for d in range(width):
            table[row, d] -= scale * acc[a, d]


@inlined
def prefetch_moments(optimiser, first, second, e):  # type: ignore[no-untyped-def]
    """Ask for the moments of an entity that will be optimised."""
    if optimiser == LAZY_ADAM:
        prefetch_far_row(first, e)
    prefetch_far_row(second, e)
