"""What each optimiser does to one row of a table and to the moments beside it, and asking for rows before that.

The tables of a large graph fit into no cache, and rows come at random. Numba has no prefetch of its own, so this hands
LLVM's to the kernels. It changes no result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic

from ukge.learning.engines.fused.ops import inlined

ADAM, LAZY_ADAM, ADAGRAD, ROWWISE_ADAGRAD, NONE = range(5)
"""NONE hands out the gradient in the place of the first moment, and optimises nothing."""

LINE = 16
"""Floats per cache line."""

READ, DATA = 0, 1
NEAR, FAR = 3, 2
"""What LLVM's `prefetch` is told: for reading, data rather than code, and into the first or the second cache."""


def _prefetch(level: int) -> Any:
    """Return a compiled function that prefetches the cache line of table[row, column]."""

    def line(_: Any, table: Any, row: Any, column: Any) -> Any:  # noqa: ARG001 — Numba wants them by name
        return types.void(table, types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item_pointer: Any = cgutils.get_item_pointer
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        place = item_pointer(context, builder, kind, array, arguments[1:])
        pointer = builder.bitcast(place, cgutils.voidptr_t)
        word = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], form)
        builder.call(prefetch, [pointer, word(READ), word(level), word(DATA)])
        return context.get_dummy_value()

    return intrinsic(line)


near_line = _prefetch(NEAR)
far_line = _prefetch(FAR)


@inlined
def prefetch_row(table, row):  # type: ignore[no-untyped-def]
    """Ask for a row of a float32 table that is needed at once; rows need not begin at a cache line."""
    width = table.shape[1]
    for d in range(0, width, LINE):
        near_line(table, row, d)
    near_line(table, row, width - 1)


@inlined
def prefetch_far_row(table, row):  # type: ignore[no-untyped-def]
    """Ask for a row that is needed later: the second cache can wait for more lines at once than the first."""
    width = table.shape[1]
    for d in range(0, width, LINE):
        far_line(table, row, d)
    far_line(table, row, width - 1)


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
