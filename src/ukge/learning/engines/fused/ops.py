"""Each scorer's comparator and its pull-backs, row by row, for the fused kernels; what is asked is in `queries`.

A scorer is two codes: how a query is made from two rows, and how a query is compared with a candidate row. A code is a
tuple of that length, so that it is part of the type: Numba drops every other branch before it compiles, and caches each
scorer's kernels apart. The functions take whole tables and a row number, because a view per row would cost a reference
count in the innermost loops. The formulas are those of `ukge.models.scorers`; the contract tests hold the two together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ukge.compiled import kernel

DOT, L1, L2, MODULUS, UNIT_L1 = range(1, 6)
COMPARATORS = {"dot": DOT, "l1": L1, "l2": L2, "modulus": MODULUS, "unit l1": UNIT_L1}
EPS = np.float32(1e-12)

# NaN and infinity keep their meaning, so that divergence is seen; only the order of sums is free.
FAST = {"reassoc", "contract", "arcp", "nsz"}
# Without Numba's run-time memory, that is without reference counts: they are atomic and shared between the threads, and
# slowed a step by half. These functions allocate nothing, and are called from compiled code only: what would make them
# callable from Python need not be compiled.
OPTIONS: dict[str, Any] = {
    "fastmath": FAST,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
compiled = kernel(**OPTIONS)
inlined = kernel(**OPTIONS, forceinline=True)


def as_type(code: int) -> tuple[int, ...]:
    """Return a code as a tuple of that length."""
    return (0,) * code


@inlined
def clear(table, row):  # type: ignore[no-untyped-def]
    """Set a row to zero; an explicit loop, because a slice assignment would become a parallel region of its own."""
    for d in range(table.shape[1]):
        table[row, d] = np.float32(0.0)


@inlined
def first_at_least(numbers, n, value):  # type: ignore[no-untyped-def]
    """Return the first place in the ascending numbers[:n] whose number is at least `value`."""
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def one_over_length(table, row):  # type: ignore[no-untyped-def]
    """Return what a row is multiplied by to have a length of 1."""
    total = np.float32(0.0)
    for d in range(table.shape[1]):
        total += table[row, d] * table[row, d]
    return np.float32(1.0) / math.sqrt(total + EPS)


@inlined
def pull_direction(grad, g, table, row, out, k):  # type: ignore[no-untyped-def]
    """Add to out[k] what the gradient grad[g] of a row of length 1 means for the row as it is stored."""
    scale, along = one_over_length(table, row), np.float32(0.0)
    for d in range(table.shape[1]):
        along += grad[g, d] * table[row, d]
    along *= scale * scale
    for d in range(table.shape[1]):
        out[k, d] += (grad[g, d] - along * table[row, d]) * scale


@inlined
def compare(code, query, k, entity, e):  # type: ignore[no-untyped-def]
    """Return the plausibility of candidate row e for query row k."""
    width = query.shape[1]
    total = np.float32(0.0)
    if len(code) == DOT:
        for d in range(width):
            total += query[k, d] * entity[e, d]
        return total
    if len(code) == L1:
        for d in range(width):
            total += abs(query[k, d] - entity[e, d])
        return -total
    if len(code) == L2:
        for d in range(width):
            gap = query[k, d] - entity[e, d]
            total += gap * gap
        return -math.sqrt(total + EPS)
    if len(code) == UNIT_L1:
        scale = one_over_length(entity, e)
        for d in range(width):
            total += abs(query[k, d] - scale * entity[e, d])
        return -total
    n = width // 2
    for d in range(n):
        x, y = query[k, d] - entity[e, d], query[k, n + d] - entity[e, n + d]
        total += math.sqrt(x * x + y * y + EPS)
    return -total


@inlined
def coefficient(code, slope, plausibility):  # type: ignore[no-untyped-def]
    """Return ∂loss/∂g in the form that `push_query` and `push_candidate` want: L2 divides by the norm once."""
    return -slope / plausibility if len(code) == L2 else slope


@inlined
def push_query(code, c, query, k, entity, e, grad, g):  # type: ignore[no-untyped-def]
    """Add c · ∂g/∂query to grad[g]."""
    width = query.shape[1]
    if len(code) == DOT:
        for d in range(width):
            grad[g, d] += c * entity[e, d]
    elif len(code) == L1:
        for d in range(width):
            grad[g, d] -= c * np.sign(query[k, d] - entity[e, d])
    elif len(code) == L2:
        for d in range(width):
            grad[g, d] -= c * (query[k, d] - entity[e, d])
    elif len(code) == UNIT_L1:
        scale = one_over_length(entity, e)
        for d in range(width):
            grad[g, d] -= c * np.sign(query[k, d] - scale * entity[e, d])
    else:
        n = width // 2
        for d in range(n):
            x, y = query[k, d] - entity[e, d], query[k, n + d] - entity[e, n + d]
            scaled = c / math.sqrt(x * x + y * y + EPS)
            grad[g, d] -= scaled * x
            grad[g, n + d] -= scaled * y


@inlined
def push_candidate(code, c, query, k, entity, e, grad, g):  # type: ignore[no-untyped-def]
    """Add c · ∂g/∂candidate to grad[g]: for inner products the query itself, for distances minus `push_query`.

    Where only a candidate's direction counts, nothing is left of what would make it longer.
    """
    if len(code) == DOT:
        for d in range(query.shape[1]):
            grad[g, d] += c * query[k, d]
    elif len(code) == UNIT_L1:
        # As `pull_direction` does, of a gradient that is nowhere kept.
        scale, along = one_over_length(entity, e), np.float32(0.0)
        for d in range(query.shape[1]):
            along += np.sign(query[k, d] - scale * entity[e, d]) * entity[e, d]
        along *= scale * scale
        for d in range(query.shape[1]):
            sign = np.sign(query[k, d] - scale * entity[e, d])
            grad[g, d] += c * scale * (sign - along * entity[e, d])
    else:
        push_query(code, -c, query, k, entity, e, grad, g)


@inlined
def compare_four(code, query, k, entity, four):  # type: ignore[no-untyped-def]
    """Return the plausibilities of four candidates for query row k: an inner product then loads the query once."""
    e0, e1, e2, e3 = four
    if len(code) == DOT:
        a, b, c, f = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for d in range(query.shape[1]):
            q = query[k, d]
            a += q * entity[e0, d]
            b += q * entity[e1, d]
            c += q * entity[e2, d]
            f += q * entity[e3, d]
        return a, b, c, f
    return (
        compare(code, query, k, entity, e0),
        compare(code, query, k, entity, e1),
        compare(code, query, k, entity, e2),
        compare(code, query, k, entity, e3),
    )


@inlined
def compare_two(code, query, k, entity, two):  # type: ignore[no-untyped-def]
    """Return the plausibilities of two candidates for query row k."""
    e0, e1 = two
    if len(code) == DOT:
        a, b = np.float32(0.0), np.float32(0.0)
        for d in range(query.shape[1]):
            q = query[k, d]
            a += q * entity[e0, d]
            b += q * entity[e1, d]
        return a, b
    return compare(code, query, k, entity, e0), compare(code, query, k, entity, e1)


@inlined
def push_query_four(code, coefficients, query, k, entity, four, grad, g):  # type: ignore[no-untyped-def]
    """Do as `push_query` for four candidates: an inner product then loads and stores the gradient once."""
    c0, c1, c2, c3 = coefficients
    e0, e1, e2, e3 = four
    if len(code) == DOT:
        for d in range(query.shape[1]):
            grad[g, d] += (c0 * entity[e0, d] + c1 * entity[e1, d]) + (c2 * entity[e2, d] + c3 * entity[e3, d])
    else:
        push_query(code, c0, query, k, entity, e0, grad, g)
        push_query(code, c1, query, k, entity, e1, grad, g)
        push_query(code, c2, query, k, entity, e2, grad, g)
        push_query(code, c3, query, k, entity, e3, grad, g)


@inlined
def push_query_two(code, coefficients, query, k, entity, two, grad, g):  # type: ignore[no-untyped-def]
    """Do as `push_query` for two candidates."""
    c0, c1 = coefficients
    e0, e1 = two
    if len(code) == DOT:
        for d in range(query.shape[1]):
            grad[g, d] += c0 * entity[e0, d] + c1 * entity[e1, d]
    else:
        push_query(code, c0, query, k, entity, e0, grad, g)
        push_query(code, c1, query, k, entity, e1, grad, g)


@inlined
def weigh_four(table, coefficients, rows, grad, g, fresh):  # type: ignore[no-untyped-def]
    """Add to grad[g], or if it is `fresh` write to it, four rows of a table by their coefficients."""
    c0, c1, c2, c3 = coefficients
    k0, k1, k2, k3 = rows
    if fresh:
        for d in range(table.shape[1]):
            grad[g, d] = (c0 * table[k0, d] + c1 * table[k1, d]) + (c2 * table[k2, d] + c3 * table[k3, d])
    else:
        for d in range(table.shape[1]):
            grad[g, d] += (c0 * table[k0, d] + c1 * table[k1, d]) + (c2 * table[k2, d] + c3 * table[k3, d])
