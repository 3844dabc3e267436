"""Each scorer's query, comparator and their pull-backs, row by row, for the fused kernels.

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

PRODUCT, COMPLEX_PRODUCT, TRANSLATION, ROTATION, COPY = range(1, 6)
DOT, L1, L2, MODULUS = range(1, 5)
QUERIES = {
    "product": PRODUCT,
    "complex product": COMPLEX_PRODUCT,
    "translation": TRANSLATION,
    "rotation": ROTATION,
    "copy": COPY,
}
COMPARATORS = {"dot": DOT, "l1": L1, "l2": L2, "modulus": MODULUS}
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
def tail_query(code, head, i, relation, j, query, k):  # type: ignore[no-untyped-def]
    """Write the query vector of (h, r, ?) to query[k]."""
    width = query.shape[1]
    if len(code) == PRODUCT:
        for d in range(width):
            query[k, d] = head[i, d] * relation[j, d]
    elif len(code) == TRANSLATION:
        for d in range(width):
            query[k, d] = head[i, d] + relation[j, d]
    elif len(code) == COMPLEX_PRODUCT:
        n = width // 2
        for d in range(n):
            query[k, d] = head[i, d] * relation[j, d] - head[i, n + d] * relation[j, n + d]
            query[k, n + d] = head[i, d] * relation[j, n + d] + head[i, n + d] * relation[j, d]
    elif len(code) == ROTATION:
        n = width // 2
        for d in range(n):
            c, s = math.cos(relation[j, d]), math.sin(relation[j, d])
            query[k, d] = head[i, d] * c - head[i, n + d] * s
            query[k, n + d] = head[i, d] * s + head[i, n + d] * c
    else:
        for d in range(width):
            query[k, d] = head[i, d]


@inlined
def head_query(code, relation, j, tail, i, query, k):  # type: ignore[no-untyped-def]
    """Write the query vector of (?, r, t) to query[k]."""
    width = query.shape[1]
    if len(code) == PRODUCT:
        for d in range(width):
            query[k, d] = tail[i, d] * relation[j, d]
    elif len(code) == TRANSLATION:
        for d in range(width):
            query[k, d] = tail[i, d] - relation[j, d]
    elif len(code) == COMPLEX_PRODUCT:
        n = width // 2
        for d in range(n):
            query[k, d] = relation[j, d] * tail[i, d] + relation[j, n + d] * tail[i, n + d]
            query[k, n + d] = relation[j, d] * tail[i, n + d] - relation[j, n + d] * tail[i, d]
    elif len(code) == ROTATION:
        n = width // 2
        for d in range(n):
            c, s = math.cos(relation[j, d]), math.sin(relation[j, d])
            query[k, d] = tail[i, d] * c + tail[i, n + d] * s
            query[k, n + d] = tail[i, n + d] * c - tail[i, d] * s
    else:
        for d in range(width):
            query[k, d] = tail[i, d]


@inlined
def pull_tail_query(code, grad, g, head, i, relation, j, to_head, to_relation, k):  # type: ignore[no-untyped-def]
    """Add the pull-back of the gradient grad[g] of a tail query to to_head[k] and to_relation[k]."""
    width = grad.shape[1]
    if len(code) == PRODUCT:
        for d in range(width):
            to_head[k, d] += grad[g, d] * relation[j, d]
            to_relation[k, d] += grad[g, d] * head[i, d]
    elif len(code) == TRANSLATION:
        for d in range(width):
            to_head[k, d] += grad[g, d]
            to_relation[k, d] += grad[g, d]
    elif len(code) == COMPLEX_PRODUCT:
        n = width // 2
        for d in range(n):
            a, b = grad[g, d], grad[g, n + d]
            to_head[k, d] += a * relation[j, d] + b * relation[j, n + d]
            to_head[k, n + d] += b * relation[j, d] - a * relation[j, n + d]
            to_relation[k, d] += a * head[i, d] + b * head[i, n + d]
            to_relation[k, n + d] += b * head[i, d] - a * head[i, n + d]
    elif len(code) == ROTATION:
        n = width // 2
        for d in range(n):
            c, s = math.cos(relation[j, d]), math.sin(relation[j, d])
            a, b = grad[g, d], grad[g, n + d]
            x, y = head[i, d], head[i, n + d]
            to_head[k, d] += a * c + b * s
            to_head[k, n + d] += b * c - a * s
            to_relation[k, d] += b * (x * c - y * s) - a * (x * s + y * c)
    else:
        for d in range(width):
            to_head[k, d] += grad[g, d]


@inlined
def pull_head_query(code, grad, g, relation, j, tail, i, to_relation, to_tail, k):  # type: ignore[no-untyped-def]
    """Add the pull-back of the gradient grad[g] of a head query to to_relation[k] and to_tail[k]."""
    width = grad.shape[1]
    if len(code) == PRODUCT:
        for d in range(width):
            to_tail[k, d] += grad[g, d] * relation[j, d]
            to_relation[k, d] += grad[g, d] * tail[i, d]
    elif len(code) == TRANSLATION:
        for d in range(width):
            to_tail[k, d] += grad[g, d]
            to_relation[k, d] -= grad[g, d]
    elif len(code) == COMPLEX_PRODUCT:
        n = width // 2
        for d in range(n):
            a, b = grad[g, d], grad[g, n + d]
            to_tail[k, d] += a * relation[j, d] - b * relation[j, n + d]
            to_tail[k, n + d] += a * relation[j, n + d] + b * relation[j, d]
            to_relation[k, d] += a * tail[i, d] + b * tail[i, n + d]
            to_relation[k, n + d] += a * tail[i, n + d] - b * tail[i, d]
    elif len(code) == ROTATION:
        n = width // 2
        for d in range(n):
            c, s = math.cos(relation[j, d]), math.sin(relation[j, d])
            a, b = grad[g, d], grad[g, n + d]
            x, y = tail[i, d], tail[i, n + d]
            to_tail[k, d] += a * c - b * s
            to_tail[k, n + d] += a * s + b * c
            to_relation[k, d] += a * (y * c - x * s) - b * (x * c + y * s)
    else:
        for d in range(width):
            to_tail[k, d] += grad[g, d]


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
    else:
        n = width // 2
        for d in range(n):
            x, y = query[k, d] - entity[e, d], query[k, n + d] - entity[e, n + d]
            scaled = c / math.sqrt(x * x + y * y + EPS)
            grad[g, d] -= scaled * x
            grad[g, n + d] -= scaled * y


@inlined
def push_candidate(code, c, query, k, entity, e, grad, g):  # type: ignore[no-untyped-def]
    """Add c · ∂g/∂candidate to grad[g]: for inner products the query itself, for distances minus `push_query`."""
    if len(code) == DOT:
        for d in range(query.shape[1]):
            grad[g, d] += c * query[k, d]
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
