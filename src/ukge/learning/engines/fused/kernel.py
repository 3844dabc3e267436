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

import numba as nb
import numpy as np

from ukge.compiled import kernel
from ukge.learning.engines.fused.ops import DOT, clear, compiled, first_at_least, inlined, push_candidate, weigh_four
from ukge.learning.engines.fused.optimisers import ADAM, LAZY_ADAM, optimise_row, prefetch_moments, prefetch_row
from ukge.learning.engines.fused.records import SPREAD, TERMS
from ukge.learning.engines.fused.rows import rows_chunk, thread_count

N_TERMS = len(TERMS)
BLOCK = 64
ENTITIES_AHEAD = 8
"""How far ahead the rows of a later entity are asked for. Measured with a million entities."""


@inlined
def query_of(place, n_negatives):  # type: ignore[no-untyped-def]
    """Return the query of a corruption; in 32 bits, because a 64-bit division would cost more than the row."""
    return np.int64(np.uint32(place) // np.uint32(n_negatives))


@inlined
def kept_row(order, o, end, n_rows, n_negatives, scratch):  # type: ignore[no-untyped-def]
    """Return the coefficient and the row among all that phase 1 kept of occurrence order[o]; nothing from `end` on."""
    if o >= end:
        return np.float32(0.0), np.int64(0)
    seen = np.int64(order[o])
    place = seen - 2 * n_rows
    if place >= 0:
        return scratch.coefficients[place], query_of(place, n_negatives)
    n_queries = len(scratch.query)
    if seen < n_rows:
        return np.float32(1.0), n_queries + seen
    return np.float32(1.0), n_queries + len(scratch.to_head) + seen - n_rows


@inlined
def entity_gradient(  # type: ignore[no-untyped-def]
    compare_code, e, order, begin, end, n_rows, n_negatives, entity, scratch, a
):
    """Sum the gradient of entity e over its occurrences order[begin:end]: heads, tails, then corruptions."""
    width = entity.shape[1]
    acc, coefficients, query = scratch.entity_gradient, scratch.coefficients, scratch.query
    if len(compare_code) == DOT:
        # ∂g/∂candidate is the query itself: all is a weighted sum of rows that phase 1 kept, four at a time.
        fresh = True
        for o in range(begin, end, 4):
            c0, k0 = kept_row(order, o, end, n_rows, n_negatives, scratch)
            c1, k1 = kept_row(order, o + 1, end, n_rows, n_negatives, scratch)
            c2, k2 = kept_row(order, o + 2, end, n_rows, n_negatives, scratch)
            c3, k3 = kept_row(order, o + 3, end, n_rows, n_negatives, scratch)
            weigh_four(scratch.kept, (c0, c1, c2, c3), (k0, k1, k2, k3), acc, a, fresh)
            fresh = False
        return
    corruptions = 2 * n_rows
    clear(acc, a)
    for o in range(begin, end):
        seen = order[o]
        if seen < n_rows:
            for d in range(width):
                acc[a, d] += scratch.to_head[seen, d]
        elif seen < corruptions:
            for d in range(width):
                acc[a, d] += scratch.to_tail[seen - n_rows, d]
        else:
            place = seen - corruptions
            push_candidate(compare_code, coefficients[place], query, query_of(place, n_negatives), entity, e, acc, a)


@compiled
def entities_chunk(  # type: ignore[no-untyped-def]
    compare_code, chunk, number, optimiser, tables, moments, prepared, by_entity, scratch
):
    """Phase 2 for a thread's share of the walked entities' blocks: all entities for dense Adam, else the touched."""
    entity, first, second = tables.entity, moments.entity_m, moments.entity_v
    n_touched, order = by_entity.n[number], by_entity.order[number]
    rows, starts = by_entity.rows[number], by_entity.starts[number]
    n_rows, n_negatives = prepared.n_facts[number] + prepared.n_rules[number], prepared.drawn.shape[3]
    own = SPREAD * chunk
    dense = optimiser.code == ADAM
    n_walked = entity.shape[0] if dense else n_touched
    for block in range(chunk, (n_walked + BLOCK - 1) // BLOCK, thread_count(scratch)):
        low, high = block * BLOCK, min((block + 1) * BLOCK, n_walked)
        at = first_at_least(rows, n_touched, low) if dense else low
        for walked in range(low, high):
            e = walked if dense else np.int64(rows[walked])
            touched = at < n_touched and rows[at] == e
            if not dense:
                later = np.int64(rows[min(walked + ENTITIES_AHEAD, n_touched - 1)])
                prefetch_row(entity, later)
                prefetch_moments(optimiser.code, first, second, later)
            if touched:
                entity_gradient(
                    compare_code, e, order, starts[at], starts[at + 1], n_rows, n_negatives, entity, scratch, own
                )
                at += 1
            optimise_row(optimiser, entity, first, second, e, scratch.entity_gradient, own, touched)


@compiled
def relations_chunk(chunk, number, by_relation, scratch):  # type: ignore[no-untyped-def]
    """Sum the gradients of the touched relations, in one thread's share of the columns: every thread has as much."""
    order, starts = by_relation.order[number], by_relation.starts[number]
    sums, to_relation, threads = scratch.relation_gradient, scratch.to_relation, thread_count(scratch)
    width = to_relation.shape[1]
    low, high = chunk * width // threads, (chunk + 1) * width // threads
    columns = np.uint64(high - low)
    for at in range(by_relation.n[number]):
        for d in range(columns):
            sums[at, np.uint64(low) + d] = np.float32(0.0)
        for o in range(starts[at], starts[at + 1]):
            row = order[o]
            # Unsigned, because LLVM does not vectorise a column that may be counted from the end of a row.
            for d in range(columns):
                sums[at, np.uint64(low) + d] += to_relation[row, np.uint64(low) + d]


@compiled
def shared_parameters(number, optimiser, tables, moments, prepared, by_relation, scratch):  # type: ignore[no-untyped-def]
    """Optimise the relations and the link, and add up the losses: little work, in a fixed order, by one thread."""
    relation, sums = tables.relation, scratch.relation_gradient
    rows = by_relation.rows[number]
    at, n_touched = 0, by_relation.n[number]
    for r in range(relation.shape[0]):
        touched = at < n_touched and rows[at] == r
        # Relations are few: only the entity table is ever treated lazily.
        if touched or optimiser.code in (ADAM, LAZY_ADAM):
            optimise_row(optimiser, relation, moments.relation_m, moments.relation_v, r, sums, at, touched)
        if touched:
            at += 1
    slope_w, slope_b = 0.0, 0.0
    for i in range(prepared.n_facts[number] + prepared.n_rules[number]):
        slope_w += scratch.to_link[i, 0]
        slope_b += scratch.to_link[i, 1]
        for term in range(N_TERMS):
            scratch.totals[term] += scratch.losses[i, term]
    slopes = scratch.entity_gradient
    slopes[0, 0], slopes[1, 0] = np.float32(slope_w), np.float32(slope_b)
    for row in range(2):
        optimise_row(optimiser, tables.link, moments.link_m, moments.link_v, row, slopes, row, True)


@kernel(parallel={"fusion": False}, nogil=True, error_model="numpy")
def run_batches(  # type: ignore[no-untyped-def]
    query_code, compare_code, objective, optimiser, facts, rules, tables, moments, prepared, by_entity, by_relation,
    scratch,
):  # fmt: skip
    """Run all prepared batches one after another.

    The parallel loops hold little but calls, so that little is compiled as parallel code. They must not be fused: no
    thread may begin phase 2 before all have finished phase 1.
    """
    threads, hyper = thread_count(scratch), optimiser.hyper
    for number in range(len(prepared.n_facts)):
        steps = optimiser.steps + number + 1
        hyper[0].correction1 = np.float32(1.0 - float(hyper[0].beta1) ** steps)
        hyper[0].correction2 = np.float32(1.0 - float(hyper[0].beta2) ** steps)
        for chunk in nb.prange(threads):
            rows_chunk(
                query_code, compare_code, np.int64(chunk), number, objective, optimiser, facts, rules, tables, moments,
                prepared, scratch,
            )  # fmt: skip
        for chunk in nb.prange(threads):
            entities_chunk(
                compare_code, np.int64(chunk), number, optimiser, tables, moments, prepared, by_entity, scratch
            )
            relations_chunk(np.int64(chunk), number, by_relation, scratch)
        shared_parameters(number, optimiser, tables, moments, prepared, by_relation, scratch)
