"""The softmax of FocusE in phase 1: a fact among all its corruptions, which are scored before any has a slope."""

from __future__ import annotations

import math

import numpy as np

from ukge.learning.engines.fused.links import sigmoid, softplus
from ukge.learning.engines.fused.ops import coefficient, compare, compiled, push_query


@compiled
def among_corruptions(work, i, confidence, g, each):  # type: ignore[no-untyped-def]
    """Compare fact i, of plausibility g, with its corruptions of both sides; return the loss and ∂J/∂g of the fact.

    The coefficients of the corruptions are kept, and the gradients of both queries begun.
    """
    drawn, query, entity = work.batch.drawn, work.scratch.query, work.tables.entity
    kept, grad, beta = work.scratch.coefficients, work.scratch.query_gradient, work.objective.beta
    rest, n = np.float32(1.0) - beta, drawn.shape[2]
    mine = beta + (np.float32(1.0) - confidence) * rest
    theirs = beta + confidence * rest
    own = mine * softplus(g)
    top = own
    for side in range(2):
        k = side * work.batch.n_facts + i
        for j in range(n):
            e = np.int64(drawn[side, i, j])
            found = compare(work.compare, query, k, entity, e ^ (e >> 63))
            kept[k * n + j] = found
            top = max(top, theirs * softplus(found))
    own_share = math.exp(own - top)
    whole = own_share
    for side in range(2):
        first = (side * work.batch.n_facts + i) * n
        for j in range(n):
            whole += math.exp(theirs * softplus(kept[first + j]) - top)
    for side in range(2):
        k = side * work.batch.n_facts + i
        for j in range(n):
            e = np.int64(drawn[side, i, j])
            found = kept[k * n + j]
            share = math.exp(theirs * softplus(found) - top) / whole
            c = coefficient(work.compare, each * share * theirs * sigmoid(found), found)
            kept[k * n + j] = c
            push_query(work.compare, c, query, k, entity, e ^ (e >> 63), grad, work.own + side)
    slope = each * (own_share / whole - np.float32(1.0)) * mine * sigmoid(g)
    return each * (math.log(whole) + top - own), slope


@compiled
def cubes(weight, tables, fact, scratch, i):  # type: ignore[no-untyped-def]
    """Add the gradients of the weighted cubes of a fact's rows to row i of the gradients, and return their sum."""
    entity, relation = tables.entity, tables.relation
    total, three = np.float32(0.0), np.float32(3.0) * weight
    for d in range(entity.shape[1]):
        x, y = entity[fact.head, d], entity[fact.tail, d]
        total += abs(x) * x * x + abs(y) * y * y
        scratch.to_head[i, d] += three * x * abs(x)
        scratch.to_tail[i, d] += three * y * abs(y)
    for d in range(relation.shape[1]):
        x = relation[fact.relation, d]
        total += abs(x) * x * x
        scratch.to_relation[i, d] += three * x * abs(x)
    return weight * total
