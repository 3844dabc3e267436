"""Phase 1 of a step: the batch's facts with their corruptions, and its ground rules."""

from __future__ import annotations

import numpy as np

from ukge.learning.engines.fused.focus import among_corruptions, cubes
from ukge.learning.engines.fused.links import (
    FOCUS,
    LOGISTIC,
    SQUARED,
    link_forward,
    negative_slope,
    sigmoid,
    softplus,
    through_link,
)
from ukge.learning.engines.fused.ops import (
    clear,
    coefficient,
    compare,
    compare_four,
    compare_two,
    compiled,
    inlined,
    push_candidate,
    push_query,
    push_query_four,
    push_query_two,
)
from ukge.learning.engines.fused.optimisers import optimise_row, prefetch_far_row, prefetch_moments
from ukge.learning.engines.fused.queries import ROTATION, head_query, pull_head_query, pull_tail_query, tail_query
from ukge.learning.engines.fused.records import SPREAD, Batch, Link, Loss, Triple, Work

OBSERVED, UNSEEN, RULES, L2 = range(4)
"""Places of the `TERMS`."""

# How far ahead rows are asked for: those of a later fact from memory. Measured with a million entities.
FACTS_AHEAD = 2
CACHED = 4_000_000
"""Elements of a table that the caches hold, more or less: asking ahead for its rows only costs time."""


@inlined
def thread_count(scratch):  # type: ignore[no-untyped-def]
    """Return how many threads share a batch: each has its rows of the gradients."""
    return scratch.query_gradient.shape[0] // SPREAD


@compiled
def optimise_lone(compare_code, c, query, k, entity, e, optimiser, first, second, acc, a):  # type: ignore[no-untyped-def]
    """Optimise entity e, which occurs once in the batch, as a corruption with coefficient c, while it is in cache.

    Nobody else reads or writes its row in this batch, and phase 2 would sum and do just the same. It is called for
    every corruption of a large graph, so it is given what it needs alone: each array more is a header more to hand on.
    """
    clear(acc, a)
    push_candidate(compare_code, c, query, k, entity, e, acc, a)
    optimise_row(optimiser, entity, first, second, e, acc, a, True)


@inlined
def unmarked(e):  # type: ignore[no-untyped-def]
    """Return the entity behind a corruption that `prepare_batch` may have marked: e or ~e, without a branch."""
    return e ^ (e >> 63)


@inlined
def drawn_entity(drawn, side, i, j):  # type: ignore[no-untyped-def]
    """Return the entity of corruption j of fact i, marked or not."""
    return unmarked(np.int64(drawn[side, i, j]))


@inlined
def prefetch_corruption(drawn, entity, code, first, second):  # type: ignore[no-untyped-def]
    """Ask for the rows that a corruption will need: the entity's and, if it is marked, those of its moments."""
    marked = np.int64(drawn)
    e = unmarked(marked)
    prefetch_far_row(entity, e)
    if marked < 0:
        prefetch_moments(code, first, second, e)


@inlined
def negative_side(work, link, loss, side, i, scale, observed_g):  # type: ignore[no-untyped-def]
    """Score the corruptions of one side of fact i.

    Returns their loss and the sum of ∂J/∂g over them; `observed_g` is the plausibility of the fact itself.
    """
    code, optimiser = work.compare, work.optimiser
    entity, first, second = work.tables.entity, work.moments.entity_m, work.moments.entity_v
    drawn, query, coefficients = work.batch.drawn, work.scratch.query, work.scratch.coefficients
    grad, g_row, to_link = work.scratch.query_gradient, work.own + side, work.scratch.to_link
    n = drawn.shape[2]
    k = side * work.batch.n_facts + i
    total, slopes = np.float32(0.0), np.float32(0.0)
    following = min(i + FACTS_AHEAD, work.batch.n_facts - 1)
    base = k * n
    quads = n - n % 4
    if entity.size > CACHED:
        for j in range(n):
            prefetch_corruption(drawn[side, following, j], entity, optimiser.code, first, second)
    for j in range(0, quads, 4):
        e0, e1 = drawn_entity(drawn, side, i, j), drawn_entity(drawn, side, i, j + 1)
        e2, e3 = drawn_entity(drawn, side, i, j + 2), drawn_entity(drawn, side, i, j + 3)
        g0, g1, g2, g3 = compare_four(code, query, k, entity, (e0, e1, e2, e3))
        l0, s0 = negative_slope(link, loss, g0, scale, observed_g, to_link, i)
        l1, s1 = negative_slope(link, loss, g1, scale, observed_g, to_link, i)
        l2, s2 = negative_slope(link, loss, g2, scale, observed_g, to_link, i)
        l3, s3 = negative_slope(link, loss, g3, scale, observed_g, to_link, i)
        total += (l0 + l1) + (l2 + l3)
        slopes += (s0 + s1) + (s2 + s3)
        c0, c1 = coefficient(code, s0, g0), coefficient(code, s1, g1)
        c2, c3 = coefficient(code, s2, g2), coefficient(code, s3, g3)
        coefficients[base + j], coefficients[base + j + 1] = c0, c1
        coefficients[base + j + 2], coefficients[base + j + 3] = c2, c3
        push_query_four(code, (c0, c1, c2, c3), query, k, entity, (e0, e1, e2, e3), grad, g_row)
    pairs = n - n % 2
    for j in range(quads, pairs, 2):
        e0, e1 = drawn_entity(drawn, side, i, j), drawn_entity(drawn, side, i, j + 1)
        g0, g1 = compare_two(code, query, k, entity, (e0, e1))
        l0, s0 = negative_slope(link, loss, g0, scale, observed_g, to_link, i)
        l1, s1 = negative_slope(link, loss, g1, scale, observed_g, to_link, i)
        total += l0 + l1
        slopes += s0 + s1
        c0, c1 = coefficient(code, s0, g0), coefficient(code, s1, g1)
        coefficients[base + j], coefficients[base + j + 1] = c0, c1
        push_query_two(code, (c0, c1), query, k, entity, (e0, e1), grad, g_row)
    for j in range(pairs, n):
        e = drawn_entity(drawn, side, i, j)
        g = compare(code, query, k, entity, e)
        lost, slope = negative_slope(link, loss, g, scale, observed_g, to_link, i)
        total += lost
        slopes += slope
        c = coefficient(code, slope, g)
        coefficients[base + j] = c
        push_query(code, c, query, k, entity, e, grad, g_row)
    return total * scale, slopes


@inlined
def lone_corruptions(work, side, i):  # type: ignore[no-untyped-def]
    """Optimise the corruptions of one side of fact i that occur nowhere else; their coefficients are known."""
    entity, first, second = work.tables.entity, work.moments.entity_m, work.moments.entity_v
    drawn, acc, a = work.batch.drawn, work.scratch.entity_gradient, work.own
    n, k = drawn.shape[2], side * work.batch.n_facts + i
    for j in range(n):
        marked = np.int64(drawn[side, i, j])
        if marked < 0:
            c, e = work.scratch.coefficients[k * n + j], unmarked(marked)
            optimise_lone(work.compare, c, work.scratch.query, k, entity, e, work.optimiser, first, second, acc, a)


@inlined
def begin_gradients(query_code, shrink, tables, fact, scratch, i):  # type: ignore[no-untyped-def]
    """Begin the gradients of fact i with those of the regulariser, and return its loss."""
    entity, relation = tables.entity, tables.relation
    squares = np.float32(0.0)
    for d in range(entity.shape[1]):
        squares += entity[fact.head, d] * entity[fact.head, d] + entity[fact.tail, d] * entity[fact.tail, d]
        scratch.to_head[i, d] = shrink * entity[fact.head, d]
        scratch.to_tail[i, d] = shrink * entity[fact.tail, d]
    if len(query_code) == ROTATION:  # angles are left alone
        clear(scratch.to_relation, i)
    else:
        for d in range(relation.shape[1]):
            squares += relation[fact.relation, d] * relation[fact.relation, d]
            scratch.to_relation[i, d] = shrink * relation[fact.relation, d]
    clear(scratch.to_link, i)
    return np.float32(0.5) * shrink * squares


@inlined
def share_of_unseen(work):  # type: ignore[no-untyped-def]
    """Return what an unseen fact counts where some are labelled: as much as any other of the batch."""
    false = 2 * work.batch.n_facts * work.batch.drawn.shape[2]
    return work.objective.negative_weight / np.float32(false + work.batch.n_rules)


@inlined
def fact_row(work, i, fact, confidence):  # type: ignore[no-untyped-def]
    """Phase 1 for one observed fact and its corruptions."""
    objective, scratch, own = work.objective, work.scratch, work.own
    link = Link(objective.link, work.w, work.b)
    # 1 to any power and any number to the power 0 are 1, to the bit: the plain margin is untouched.
    loss = Loss(objective.loss, objective.margin * confidence**objective.power)
    entity, relation, query, grad = work.tables.entity, work.tables.relation, scratch.query, scratch.query_gradient
    h, r, t = fact
    n_facts, n_negatives = work.batch.n_facts, work.batch.drawn.shape[2]
    each = np.float32(1.0) / np.float32(n_facts)
    each_negative = objective.negative_weight * each / np.float32(max(2 * n_negatives, 1))
    if objective.labelled:
        each_negative = share_of_unseen(work)
    scratch.losses[i, L2] = begin_gradients(work.query, objective.l2 * each, work.tables, fact, scratch, i)
    tail_query(work.query, entity, h, relation, r, query, i)
    g = compare(work.compare, query, i, entity, t)
    clear(grad, own)
    unseen, slopes = np.float32(0.0), np.float32(0.0)
    if n_negatives > 0:
        head_query(work.query, relation, r, entity, t, query, n_facts + i)
        clear(grad, own + 1)
        if loss.code == FOCUS:
            unseen, slopes = among_corruptions(work, i, confidence, g, each)
            unseen += cubes(objective.l3 * each, work.tables, fact, scratch, i)
            lone_corruptions(work, 0, i)
            lone_corruptions(work, 1, i)
        else:
            for side in range(2):
                more, further = negative_side(work, link, loss, side, i, each_negative, g)
                lone_corruptions(work, side, i)
                unseen += more
                slopes += further
        pull_head_query(work.query, grad, own + 1, relation, r, entity, t, scratch.to_relation, scratch.to_tail, i)
    if loss.code == SQUARED:
        f = link_forward(link, g)
        scratch.losses[i, OBSERVED] = (f - confidence) * (f - confidence) * each
        slope = through_link(link, np.float32(2.0) * (f - confidence) * each, f, g, scratch.to_link, i)
    elif loss.code == LOGISTIC:
        scratch.losses[i, OBSERVED] = softplus(-g) * each
        slope = -sigmoid(-g) * each
    else:
        scratch.losses[i, OBSERVED] = np.float32(0.0)
        slope = slopes if loss.code == FOCUS else -slopes
    scratch.losses[i, UNSEEN], scratch.losses[i, RULES] = unseen, np.float32(0.0)
    c = coefficient(work.compare, slope, g)
    push_query(work.compare, c, query, i, entity, t, grad, own)
    push_candidate(work.compare, c, query, i, entity, t, scratch.to_tail, i)
    pull_tail_query(work.query, grad, own, entity, h, relation, r, scratch.to_head, scratch.to_relation, i)


@inlined
def rule_row(work, j, rule, body, weight):  # type: ignore[no-untyped-def]
    """Phase 1 for ground rule j: its weighted squared distance to satisfaction and the prior ¬l on its head.

    Or for a labelled fact in the place of one: its squared error.
    """
    objective, scratch, own = work.objective, work.scratch, work.own
    link = Link(objective.link, work.w, work.b)
    entity, relation, query, grad = work.tables.entity, work.tables.relation, scratch.query, scratch.query_gradient
    h, r, t = rule
    i = work.batch.n_facts + j
    k = work.batch.n_facts + i
    clear(scratch.to_head, i)
    clear(scratch.to_relation, i)
    clear(scratch.to_tail, i)
    clear(scratch.to_link, i)
    clear(scratch.losses, i)
    each = np.float32(1.0) / np.float32(work.batch.n_rules)
    tail_query(work.query, entity, h, relation, r, query, k)
    g = compare(work.compare, query, k, entity, t)
    f = link_forward(link, g)
    if objective.labelled:
        share = share_of_unseen(work)
        scratch.losses[i, UNSEEN] = share * (f - body) * (f - body)
        slope_f = np.float32(2.0) * share * (f - body)
    else:
        distance = max(body - f, np.float32(0.0))
        squared_weight = objective.rule_weight * weight * weight * each
        prior = objective.rule_prior * each
        scratch.losses[i, RULES] = squared_weight * distance * distance + prior * f * f
        slope_f = np.float32(2.0) * (prior * f - squared_weight * distance)
    slope = through_link(link, slope_f, f, g, scratch.to_link, i)
    c = coefficient(work.compare, slope, g)
    clear(grad, own)
    push_query(work.compare, c, query, k, entity, t, grad, own)
    push_candidate(work.compare, c, query, k, entity, t, scratch.to_tail, i)
    pull_tail_query(work.query, grad, own, entity, h, relation, r, scratch.to_head, scratch.to_relation, i)


@compiled
def rows_chunk(  # type: ignore[no-untyped-def]
    query_code, compare_code, chunk, number, objective, optimiser, facts, rules, tables, moments, prepared, scratch
):
    """Phase 1 for one thread's share of a batch: as many facts, and as many ground rules, as every other one's."""
    n_facts, n_rules, threads = prepared.n_facts[number], prepared.n_rules[number], thread_count(scratch)
    batch = Batch(n_facts, n_rules, prepared.facts[number], prepared.rules[number], prepared.drawn[number])
    w, b = tables.link[0, 0], tables.link[1, 0]
    work = Work(
        query_code, compare_code, objective[0], optimiser, tables, moments, batch, scratch, w, b, SPREAD * chunk
    )
    for i in range(chunk * n_facts // threads, (chunk + 1) * n_facts // threads):
        fact = batch.facts[i]
        following = batch.facts[min(i + FACTS_AHEAD, n_facts - 1)]
        prefetch_far_row(tables.entity, np.int64(facts.head[following]))
        prefetch_far_row(tables.entity, np.int64(facts.tail[following]))
        fact_row(work, i, Triple(facts.head[fact], facts.relation[fact], facts.tail[fact]), facts.confidence[fact])
    for j in range(chunk * n_rules // threads, (chunk + 1) * n_rules // threads):
        rule = batch.rules[j]
        head = Triple(rules.head[rule], rules.relation[rule], rules.tail[rule])
        rule_row(work, j, head, rules.body[rule], rules.weight[rule])
