"""Phase 1 of a step: the batch's facts with their corruptions, and its ground rules."""

from __future__ import annotations

import numpy as np

from ukge.learning.engines.fused.links import (
    LOGISTIC,
    SQUARED,
    link_forward,
    negative_slope,
    sigmoid,
    softplus,
    through_link,
)
from ukge.learning.engines.fused.ops import (
    ROTATION,
    clear,
    coefficient,
    compare,
    compare_four,
    compare_two,
    compiled,
    head_query,
    inlined,
    pull_head_query,
    pull_tail_query,
    push_candidate,
    push_query,
    push_query_four,
    push_query_two,
    tail_query,
)
from ukge.learning.engines.fused.optimisers import optimise_row, prefetch_moments
from ukge.learning.engines.fused.prefetch import prefetch_far_row

SPREAD = 4
"""Rows from one thread's scratch to the next one's: two threads that write to one cache line hold each other up."""

# How far ahead rows are asked for: those of a later fact from memory. Measured with a million entities.
FACTS_AHEAD = 2
CACHED = 4_000_000
"""Elements of a table that the caches hold, more or less: asking ahead for its rows only costs time."""


@compiled
def optimise_lone(  # type: ignore[no-untyped-def]
    compare_code, c, query, k, entity, e, optimiser, first, second, hyper, acc, a
):
    """Optimise entity e, which occurs once in the batch, as a corruption with coefficient c, while it is in cache.

    Nobody else reads or writes its row in this batch, and phase 2 would sum and do just the same.
    """
    clear(acc, a)
    push_candidate(compare_code, c, query, k, entity, e, acc, a)
    optimise_row(optimiser, entity, first, second, e, acc, a, hyper, True)


@inlined
def unmarked(e):  # type: ignore[no-untyped-def]
    """Return the entity behind a corruption that `prepare_batch` may have marked: e or ~e, without a branch."""
    return e ^ (e >> 63)


@inlined
def drawn_entity(drawn, batch, side, i, j):  # type: ignore[no-untyped-def]
    """Return the entity of corruption j of fact i, marked or not."""
    return unmarked(np.int64(drawn[batch, side, i, j]))


@inlined
def prefetch_corruption(drawn, entity, optimiser, first, second):  # type: ignore[no-untyped-def]
    """Ask for the rows that a corruption will need: the entity's and, if it is marked, its moments'."""
    marked = np.int64(drawn)
    e = unmarked(marked)
    prefetch_far_row(entity, e)
    if marked < 0:
        prefetch_moments(optimiser, first, second, e)


@inlined
def negative_side(  # type: ignore[no-untyped-def]
    compare_code, link_code, loss_code, n, n_facts, query, k, entity, drawn, batch, side, i, coefficients, grad, g_row,
    w, b, scale, margin, observed_g, link_grad, optimiser, first, second, hyper, acc, a,
):  # fmt: skip
    """Score the n corruptions of one side of fact i against query k, and optimise those that occur nowhere else.

    Returns their loss and the sum of ∂J/∂g over them.
    """
    loss, slopes = np.float32(0.0), np.float32(0.0)
    following = min(i + FACTS_AHEAD, n_facts - 1)
    base = k * n
    quads = n - n % 4
    if entity.size > CACHED:
        for j in range(n):
            prefetch_corruption(drawn[batch, side, following, j], entity, optimiser, first, second)
    for j in range(0, quads, 4):
        e0, e1 = drawn_entity(drawn, batch, side, i, j), drawn_entity(drawn, batch, side, i, j + 1)
        e2, e3 = drawn_entity(drawn, batch, side, i, j + 2), drawn_entity(drawn, batch, side, i, j + 3)
        g0, g1, g2, g3 = compare_four(compare_code, query, k, entity, e0, e1, e2, e3)
        l0, s0 = negative_slope(link_code, loss_code, g0, w, b, scale, margin, observed_g, link_grad, i)
        l1, s1 = negative_slope(link_code, loss_code, g1, w, b, scale, margin, observed_g, link_grad, i)
        l2, s2 = negative_slope(link_code, loss_code, g2, w, b, scale, margin, observed_g, link_grad, i)
        l3, s3 = negative_slope(link_code, loss_code, g3, w, b, scale, margin, observed_g, link_grad, i)
        loss += (l0 + l1) + (l2 + l3)
        slopes += (s0 + s1) + (s2 + s3)
        c0, c1 = coefficient(compare_code, s0, g0), coefficient(compare_code, s1, g1)
        c2, c3 = coefficient(compare_code, s2, g2), coefficient(compare_code, s3, g3)
        coefficients[base + j], coefficients[base + j + 1] = c0, c1
        coefficients[base + j + 2], coefficients[base + j + 3] = c2, c3
        push_query_four(compare_code, c0, c1, c2, c3, query, k, entity, e0, e1, e2, e3, grad, g_row)
    pairs = n - n % 2
    for j in range(quads, pairs, 2):
        e0, e1 = drawn_entity(drawn, batch, side, i, j), drawn_entity(drawn, batch, side, i, j + 1)
        g0, g1 = compare_two(compare_code, query, k, entity, e0, e1)
        l0, s0 = negative_slope(link_code, loss_code, g0, w, b, scale, margin, observed_g, link_grad, i)
        l1, s1 = negative_slope(link_code, loss_code, g1, w, b, scale, margin, observed_g, link_grad, i)
        loss += l0 + l1
        slopes += s0 + s1
        c0, c1 = coefficient(compare_code, s0, g0), coefficient(compare_code, s1, g1)
        coefficients[base + j], coefficients[base + j + 1] = c0, c1
        push_query_two(compare_code, c0, c1, query, k, entity, e0, e1, grad, g_row)
    for j in range(pairs, n):
        e = drawn_entity(drawn, batch, side, i, j)
        g = compare(compare_code, query, k, entity, e)
        lost, slope = negative_slope(link_code, loss_code, g, w, b, scale, margin, observed_g, link_grad, i)
        loss += lost
        slopes += slope
        c = coefficient(compare_code, slope, g)
        coefficients[base + j] = c
        push_query(compare_code, c, query, k, entity, e, grad, g_row)
    for j in range(n):
        marked = np.int64(drawn[batch, side, i, j])
        if marked < 0:
            e = unmarked(marked)
            optimise_lone(
                compare_code, coefficients[base + j], query, k, entity, e, optimiser, first, second, hyper, acc, a
            )
    return loss * scale, slopes


@inlined
def begin_gradients(  # type: ignore[no-untyped-def]
    query_code, shrink, entity, h, relation, r, t, to_head, to_relation, to_tail, link_grad, i
):
    """Begin the gradients of fact i with those of the regulariser, and return its loss."""
    squares = np.float32(0.0)
    for d in range(entity.shape[1]):
        squares += entity[h, d] * entity[h, d] + entity[t, d] * entity[t, d]
        to_head[i, d] = shrink * entity[h, d]
        to_tail[i, d] = shrink * entity[t, d]
    if len(query_code) == ROTATION:  # angles are left alone
        clear(to_relation, i)
    else:
        for d in range(relation.shape[1]):
            squares += relation[r, d] * relation[r, d]
            to_relation[i, d] = shrink * relation[r, d]
    clear(link_grad, i)
    return np.float32(0.5) * shrink * squares


@inlined
def fact_row(  # type: ignore[no-untyped-def]
    query_code, compare_code, i, h, r, t, s, codes, n_facts, n_negatives, weights, entity, relation, w, b, batch, drawn,
    query, coefficients, to_head, to_relation, to_tail, grad, chunk, link_grad, losses, optimiser,
    first, second, hyper, acc, a,
):  # fmt: skip
    """Phase 1 for one observed fact and its corruptions."""
    link_code, loss_code = codes[0], codes[1]
    negative_weight, l2, margin = weights[0], weights[1], weights[2]
    each = np.float32(1.0) / np.float32(n_facts)
    each_negative = negative_weight * each / np.float32(max(2 * n_negatives, 1))
    losses[i, 3] = begin_gradients(
        query_code, l2 * each, entity, h, relation, r, t, to_head, to_relation, to_tail, link_grad, i
    )
    tail_query(query_code, entity, h, relation, r, query, i)
    g = compare(compare_code, query, i, entity, t)
    clear(grad, chunk)
    unseen, slopes = np.float32(0.0), np.float32(0.0)
    if n_negatives > 0:
        head_query(query_code, relation, r, entity, t, query, n_facts + i)
        clear(grad, chunk + 1)
        for side in range(2):
            more, further = negative_side(
                compare_code, link_code, loss_code, n_negatives, n_facts, query, side * n_facts + i, entity, drawn,
                batch, side, i, coefficients, grad, chunk + side, w, b, each_negative, margin, g, link_grad, optimiser,
                first, second, hyper, acc, a,
            )  # fmt: skip
            unseen += more
            slopes += further
        pull_head_query(query_code, grad, chunk + 1, relation, r, entity, t, to_relation, to_tail, i)
    if loss_code == SQUARED:
        f = link_forward(link_code, g, w, b)
        losses[i, 0] = (f - s) * (f - s) * each
        slope = through_link(link_code, np.float32(2.0) * (f - s) * each, f, g, w, link_grad, i)
    elif loss_code == LOGISTIC:
        losses[i, 0] = softplus(-g) * each
        slope = -sigmoid(-g) * each
    else:
        losses[i, 0] = np.float32(0.0)
        slope = -slopes
    losses[i, 1], losses[i, 2] = unseen, np.float32(0.0)
    c = coefficient(compare_code, slope, g)
    push_query(compare_code, c, query, i, entity, t, grad, chunk)
    push_candidate(compare_code, c, query, i, entity, t, to_tail, i)
    pull_tail_query(query_code, grad, chunk, entity, h, relation, r, to_head, to_relation, i)


@compiled
def rule_row(  # type: ignore[no-untyped-def]
    query_code, compare_code, i, k, h, r, t, body, rule_weight, codes, n_rules, weights, entity, relation, w, b, query,
    to_head, to_relation, to_tail, grad, chunk, link_grad, losses,
):  # fmt: skip
    """Phase 1 for one ground rule: its weighted squared distance to satisfaction and the prior ¬l on its head."""
    link_code = codes[0]
    each = np.float32(1.0) / np.float32(n_rules)
    tail_query(query_code, entity, h, relation, r, query, k)
    g = compare(compare_code, query, k, entity, t)
    f = link_forward(link_code, g, w, b)
    distance = max(body - f, np.float32(0.0))
    squared_weight = weights[3] * rule_weight * rule_weight * each
    prior = weights[4] * each
    losses[i, 2] = squared_weight * distance * distance + prior * f * f
    slope = through_link(link_code, np.float32(2.0) * (prior * f - squared_weight * distance), f, g, w, link_grad, i)
    c = coefficient(compare_code, slope, g)
    clear(grad, chunk)
    push_query(compare_code, c, query, k, entity, t, grad, chunk)
    push_candidate(compare_code, c, query, k, entity, t, to_tail, i)
    pull_tail_query(query_code, grad, chunk, entity, h, relation, r, to_head, to_relation, i)


@compiled
def rows_chunk(  # type: ignore[no-untyped-def]
    query_code, compare_code, chunk, threads, batch, n_facts, n_rules, n_negatives, codes, weights, facts, rules,
    entity, relation, link, optimising, prepared, scratch,
):  # fmt: skip
    """Phase 1 for one thread's share of a batch: as many facts, and as many ground rules, as every other one's."""
    fact_head, fact_relation, fact_tail, fact_confidence = facts
    rule_head, rule_relation, rule_tail, rule_body, rule_weight = rules
    out_facts, out_rules, drawn = prepared
    _, query, coefficients, to_head, to_relation, to_tail, grad, acc, _, link_grad, losses = scratch
    optimiser, hyper, first, second = optimising
    w, b = link[0, 0], link[1, 0]
    own = SPREAD * chunk
    for i in range(chunk * n_facts // threads, (chunk + 1) * n_facts // threads):
        fact = out_facts[batch, i]
        following = out_facts[batch, min(i + FACTS_AHEAD, n_facts - 1)]
        prefetch_far_row(entity, np.int64(fact_head[following]))
        prefetch_far_row(entity, np.int64(fact_tail[following]))
        fact_row(
            query_code, compare_code, i, fact_head[fact], fact_relation[fact], fact_tail[fact], fact_confidence[fact],
            codes, n_facts, n_negatives, weights, entity, relation, w, b, batch, drawn, query,
            coefficients, to_head, to_relation, to_tail, grad, own, link_grad, losses, optimiser, first, second, hyper,
            acc, own,
        )  # fmt: skip
    for j in range(chunk * n_rules // threads, (chunk + 1) * n_rules // threads):
        i = n_facts + j
        clear(to_head, i)
        clear(to_relation, i)
        clear(to_tail, i)
        clear(link_grad, i)
        clear(losses, i)
        rule = out_rules[batch, j]
        rule_row(
            query_code, compare_code, i, n_facts + i, rule_head[rule], rule_relation[rule], rule_tail[rule],
            rule_body[rule], rule_weight[rule], codes, n_rules, weights, entity, relation, w, b, query, to_head,
            to_relation, to_tail, grad, own, link_grad, losses,
        )  # fmt: skip
