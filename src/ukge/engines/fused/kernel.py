"""One training step without gathers and without gradient tables.

Phase 1 walks the batch's rows (facts, then ground rules): it makes each query once, scores the fact and its corruptions
against it, and keeps only the query, the coefficients ∂J/∂g and the gradients of the row's own three vectors. Phase 2
walks the touched entities: it sums each one's gradient from what phase 1 kept and applies the optimiser at once, while
the row is in cache. In a large graph most corruptions are entities that occur nowhere else in the batch; phase 1
optimises those itself, so that their rows come from memory once. No entity is written by two threads and every sum has
a fixed order, so the result is the same to the bit for any number of threads, and memory beyond the parameters and the
optimiser's moments is that of one batch.
"""

from __future__ import annotations

import math

import numba as nb
import numpy as np

from ukge.engines.fused.ops import (
    ROTATION,
    clear,
    coefficient,
    compare,
    compare_four,
    compiled,
    head_query,
    inlined,
    pull_head_query,
    pull_tail_query,
    push_candidate,
    push_candidate_four,
    push_query,
    push_query_four,
    tail_query,
)
from ukge.engines.fused.optimisers import ADAM, LAZY_ADAM, optimise_row, prefetch_moments
from ukge.engines.fused.prefetch import prefetch_far_row, prefetch_row

LOGISTIC_LINK, RECTIFIER_LINK, IDENTITY_LINK = range(3)
SQUARED, LOGISTIC, MARGIN = range(3)
BLOCK = 64
SPREAD = 4
"""Rows from one thread's scratch to the next one's: two threads that write to one cache line hold each other up."""

# How far ahead rows are asked for: those of a later fact from memory, those of a later corruption from the second
# cache, and those of a later entity in phase 2. Measured with a million entities.
FACTS_AHEAD = 2
CORRUPTIONS_AHEAD = 2
ENTITIES_AHEAD = 8
CACHED = 4_000_000
"""Elements of a table that the caches hold, more or less: asking ahead for its rows only costs time."""


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
def prefetch_corruption(drawn, entity, optimiser, first, second):  # type: ignore[no-untyped-def]
    """Ask for the rows that a corruption will need: the entity's and, if it is marked, its moments'."""
    marked = np.int64(drawn)
    e = unmarked(marked)
    prefetch_far_row(entity, e)
    if marked < 0:
        prefetch_moments(optimiser, first, second, e)


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


@compiled
def negative_side(  # type: ignore[no-untyped-def]
    compare_code, link_code, loss_code, n, n_facts, query, k, entity, drawn, batch, i, coefficients, grad, g_row, w, b,
    scale, margin, observed_g, link_grad, optimiser, first, second, hyper, acc, a,
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
            prefetch_corruption(drawn[batch, following, j], entity, optimiser, first, second)
    for j in range(0, quads, 4):
        e0, e1 = unmarked(np.int64(drawn[batch, i, j])), unmarked(np.int64(drawn[batch, i, j + 1]))
        e2, e3 = unmarked(np.int64(drawn[batch, i, j + 2])), unmarked(np.int64(drawn[batch, i, j + 3]))
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
    for j in range(quads, n):
        e = unmarked(np.int64(drawn[batch, i, j]))
        g = compare(compare_code, query, k, entity, e)
        lost, slope = negative_slope(link_code, loss_code, g, w, b, scale, margin, observed_g, link_grad, i)
        loss += lost
        slopes += slope
        c = coefficient(compare_code, slope, g)
        coefficients[base + j] = c
        push_query(compare_code, c, query, k, entity, e, grad, g_row)
    for j in range(n):
        marked = np.int64(drawn[batch, i, j])
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


@compiled
def fact_row(  # type: ignore[no-untyped-def]
    query_code, compare_code, i, h, r, t, s, codes, n_facts, n_negatives, weights, entity, relation, w, b, batch, heads,
    tails, query, coefficients, to_head, to_relation, to_tail, grad, chunk, link_grad, losses, optimiser,
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
    unseen, slopes = negative_side(
        compare_code, link_code, loss_code, n_negatives, n_facts, query, i, entity, tails, batch, i, coefficients, grad,
        chunk, w, b, each_negative, margin, g, link_grad, optimiser, first, second, hyper, acc, a,
    )  # fmt: skip
    if n_negatives > 0:
        head_query(query_code, relation, r, entity, t, query, n_facts + i)
        clear(grad, chunk + 1)
        more, further = negative_side(
            compare_code, link_code, loss_code, n_negatives, n_facts, query, n_facts + i, entity, heads, batch, i,
            coefficients, grad, chunk + 1, w, b, each_negative, margin, g, link_grad, optimiser, first, second,
            hyper, acc, a,
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


@inlined
def query_of(place, n_negatives):  # type: ignore[no-untyped-def]
    """Return the query of a corruption; in 32 bits, because a 64-bit division would cost more than the row."""
    return np.int64(np.uint32(place) // np.uint32(n_negatives))


@compiled
def entity_gradient(  # type: ignore[no-untyped-def]
    compare_code, e, order, begin, end, n_rows, n_negatives, entity, query, coefficients, to_head, to_tail, acc, a,
):  # fmt: skip
    """Sum to acc[a] the gradient of entity e over its occurrences order[begin:end]."""
    width = entity.shape[1]
    corruptions = 2 * n_rows
    clear(acc, a)
    o = begin
    while o < end and order[o] < corruptions:
        seen = order[o]
        if seen < n_rows:
            for d in range(width):
                acc[a, d] += to_head[seen, d]
        else:
            for d in range(width):
                acc[a, d] += to_tail[seen - n_rows, d]
        o += 1
    while o + 4 <= end:
        p0, p1 = order[o] - corruptions, order[o + 1] - corruptions
        p2, p3 = order[o + 2] - corruptions, order[o + 3] - corruptions
        push_candidate_four(
            compare_code, coefficients[p0], coefficients[p1], coefficients[p2], coefficients[p3], query,
            query_of(p0, n_negatives), query_of(p1, n_negatives), query_of(p2, n_negatives), query_of(p3, n_negatives),
            entity, e, acc, a,
        )  # fmt: skip
        o += 4
    while o < end:
        place = order[o] - corruptions
        push_candidate(compare_code, coefficients[place], query, query_of(place, n_negatives), entity, e, acc, a)
        o += 1


@inlined
def first_at_least(rows, n, value):  # type: ignore[no-untyped-def]
    """Return the first place in the ascending rows[:n] whose row is at least `value`."""
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def rows_chunk(  # type: ignore[no-untyped-def]
    query_code, compare_code, chunk, threads, batch, n_facts, n_rules, n_negatives, codes, weights, facts, rules,
    entity, relation, link, optimising, prepared, scratch,
):  # fmt: skip
    """Phase 1 for one thread's share of a batch: as many facts, and as many ground rules, as every other one's."""
    fact_head, fact_relation, fact_tail, fact_confidence = facts
    rule_head, rule_relation, rule_tail, rule_body, rule_weight = rules
    out_facts, out_rules, out_heads, out_tails = prepared
    query, coefficients, to_head, to_relation, to_tail, grad, acc, _, link_grad, losses = scratch
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
            codes, n_facts, n_negatives, weights, entity, relation, w, b, batch, out_heads, out_tails, query,
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


@compiled
def entities_chunk(  # type: ignore[no-untyped-def]
    compare_code, chunk, threads, batch, n_rows, n_negatives, entity, optimising, by_entity, scratch, gradients_only,
):  # fmt: skip
    """Phase 2 for every `threads`-th block of the walked entities: all of them for dense Adam, else the touched."""
    query, coefficients, to_head, _, to_tail, _, acc, _, _, _ = scratch
    counts, orders, touched_rows, touched_starts = by_entity
    n_touched = counts[batch]
    order, rows, starts = orders[batch], touched_rows[batch], touched_starts[batch]
    optimiser, hyper, first, second = optimising
    own = SPREAD * chunk
    dense = optimiser == ADAM and not gradients_only
    n_walked = entity.shape[0] if dense else n_touched
    for block in range(chunk, (n_walked + BLOCK - 1) // BLOCK, threads):
        low, high = block * BLOCK, min((block + 1) * BLOCK, n_walked)
        at = first_at_least(rows, n_touched, low) if dense else low
        for walked in range(low, high):
            e = walked if dense else np.int64(rows[walked])
            touched = at < n_touched and rows[at] == e
            if not dense:
                later = np.int64(rows[min(walked + ENTITIES_AHEAD, n_touched - 1)])
                prefetch_row(entity, later)
                prefetch_moments(optimiser, first, second, later)
            if touched:
                entity_gradient(
                    compare_code, e, order, starts[at], starts[at + 1], n_rows, n_negatives, entity, query,
                    coefficients, to_head, to_tail, acc, own,
                )  # fmt: skip
                at += 1
            finish_row(optimiser, entity, first, second, e, acc, own, hyper, touched, gradients_only)


@inlined
def finish_row(code, table, first, second, row, acc, a, hyper, touched, gradients_only):  # type: ignore[no-untyped-def]
    """Optimise a row, or hand out its gradient in `first`."""
    if gradients_only:
        for d in range(table.shape[1]):
            first[row, d] = acc[a, d]
    else:
        optimise_row(code, table, first, second, row, acc, a, hyper, touched)


@compiled
def relations_chunk(chunk, threads, batch, by_relation, scratch):  # type: ignore[no-untyped-def]
    """Sum the gradients of the touched relations, in one thread's share of the columns: every thread has as much."""
    _, _, _, to_relation, _, _, _, sums, _, _ = scratch
    counts, orders, _, touched_starts = by_relation
    order, starts = orders[batch], touched_starts[batch]
    width = to_relation.shape[1]
    low, high = chunk * width // threads, (chunk + 1) * width // threads
    for at in range(counts[batch]):
        for d in range(low, high):
            sums[at, d] = np.float32(0.0)
        for o in range(starts[at], starts[at + 1]):
            row = order[o]
            for d in range(low, high):
                sums[at, d] += to_relation[row, d]


@compiled
def shared_parameters(  # type: ignore[no-untyped-def]
    batch, n_rows, optimiser, hyper, relation, link, moments, by_relation, scratch, losses_out, gradients_only
):  # fmt: skip
    """Optimise the relations and the link, and add up the losses: little work, in a fixed order, by one thread."""
    _, _, _, _, _, _, acc, sums, link_grad, losses = scratch
    _, _, relation_m, relation_v, link_m, link_v = moments
    counts, _, touched_rows, _ = by_relation
    rows = touched_rows[batch]
    at, n_touched = 0, counts[batch]
    for r in range(relation.shape[0]):
        touched = at < n_touched and rows[at] == r
        # Relations are few: only the entity table is ever treated lazily.
        if touched or (optimiser in (ADAM, LAZY_ADAM) and not gradients_only):
            finish_row(optimiser, relation, relation_m, relation_v, r, sums, at, hyper, touched, gradients_only)
        if touched:
            at += 1
    slope_w, slope_b = 0.0, 0.0
    for i in range(n_rows):
        slope_w += link_grad[i, 0]
        slope_b += link_grad[i, 1]
        for term in range(4):
            losses_out[term] += losses[i, term]
    # w and b are two rows of one number, so that row-wise optimisers keep them apart.
    acc[0, 0], acc[1, 0] = np.float32(slope_w), np.float32(slope_b)
    finish_row(optimiser, link, link_m, link_v, 0, acc, 0, hyper, True, gradients_only)
    finish_row(optimiser, link, link_m, link_v, 1, acc, 1, hyper, True, gradients_only)


@nb.njit(cache=True, parallel=True, nogil=True, error_model="numpy")
def run_batches(  # type: ignore[no-untyped-def]
    query_code, compare_code, n_batches, batch_sizes, rules_drawn, n_negatives, threads, codes, weights, optimiser,
    hyper, step, facts, rules, entity, relation, link, moments, prepared, by_entity, by_relation, scratch, losses_out,
    gradients_only,
):  # fmt: skip
    """Run prepared batches one after another; return the number of steps taken so far.

    With `gradients_only`, nothing is optimised: the gradients of the one batch are written to the moment tables instead
    (which is how the contract tests look inside). The parallel loops hold one call each, so that little is compiled as
    parallel code.
    """
    for batch in range(n_batches):
        n_facts, n_rules = batch_sizes[batch], rules_drawn[batch]
        n_rows = n_facts + n_rules
        step += 1
        hyper[4] = np.float32(1.0 - float(hyper[1]) ** step)
        hyper[5] = np.float32(1.0 - float(hyper[2]) ** step)
        for chunk in nb.prange(threads):
            rows_chunk(
                query_code, compare_code, np.int64(chunk), threads, batch, n_facts, n_rules, n_negatives, codes,
                weights, facts, rules, entity, relation, link, (optimiser, hyper, moments[0], moments[1]), prepared,
                scratch,
            )  # fmt: skip
        for chunk in nb.prange(threads):
            entities_chunk(
                compare_code, np.int64(chunk), threads, batch, n_rows, n_negatives, entity,
                (optimiser, hyper, moments[0], moments[1]), by_entity, scratch, gradients_only,
            )  # fmt: skip
            relations_chunk(np.int64(chunk), threads, batch, by_relation, scratch)
        shared_parameters(
            batch, n_rows, optimiser, hyper, relation, link, moments, by_relation, scratch, losses_out, gradients_only
        )
    return step
