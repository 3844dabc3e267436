"""Each scorer's query and its pull-backs, row by row, for the fused kernels: what `ops` compares candidates with."""

from __future__ import annotations

import math

from ukge.learning.engines.fused.ops import inlined, one_over_length, pull_direction

PRODUCT, COMPLEX_PRODUCT, TRANSLATION, ROTATION, COPY, UNIT_TRANSLATION = range(1, 7)
QUERIES = {
    "product": PRODUCT,
    "complex product": COMPLEX_PRODUCT,
    "translation": TRANSLATION,
    "rotation": ROTATION,
    "copy": COPY,
    "unit translation": UNIT_TRANSLATION,
}


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
    elif len(code) == UNIT_TRANSLATION:
        scale = one_over_length(head, i)
        for d in range(width):
            query[k, d] = scale * head[i, d] + relation[j, d]
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
    elif len(code) == UNIT_TRANSLATION:
        scale = one_over_length(tail, i)
        for d in range(width):
            query[k, d] = scale * tail[i, d] - relation[j, d]
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
    elif len(code) == UNIT_TRANSLATION:
        pull_direction(grad, g, head, i, to_head, k)
        for d in range(width):
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
    elif len(code) == UNIT_TRANSLATION:
        pull_direction(grad, g, tail, i, to_tail, k)
        for d in range(width):
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
