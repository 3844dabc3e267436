"""Phase 2 of a step: the gradients of entities, relations and link, and the optimiser on each."""

from __future__ import annotations

import numpy as np

from ukge.learning.engines.fused.ops import DOT, clear, compiled, first_at_least, inlined, push_candidate, weigh_four
from ukge.learning.engines.fused.optimisers import ADAM, LAZY_ADAM, optimise_row, prefetch_moments
from ukge.learning.engines.fused.prefetch import prefetch_row
from ukge.learning.engines.fused.rows import SPREAD

BLOCK = 64
ENTITIES_AHEAD = 8
"""How far ahead the rows of a later entity are asked for. Measured with a million entities."""


@inlined
def query_of(place, n_negatives):  # type: ignore[no-untyped-def]
    """Return the query of a corruption; in 32 bits, because a 64-bit division would cost more than the row."""
    return np.int64(np.uint32(place) // np.uint32(n_negatives))


@inlined
def kept_row(order, o, end, n_rows, n_negatives, coefficients, n_queries, n_kept):  # type: ignore[no-untyped-def]
    """Return the coefficient and the row among all that phase 1 kept of occurrence order[o]; nothing from `end` on."""
    if o >= end:
        return np.float32(0.0), np.int64(0)
    seen = np.int64(order[o])
    place = seen - 2 * n_rows
    if place >= 0:
        return coefficients[place], query_of(place, n_negatives)
    if seen < n_rows:
        return np.float32(1.0), n_queries + seen
    return np.float32(1.0), n_queries + n_kept + seen - n_rows


@inlined
def entity_gradient(  # type: ignore[no-untyped-def]
    compare_code, e, order, begin, end, n_rows, n_negatives, entity, kept, query, coefficients, to_head, to_tail, acc, a
):  # fmt: skip
    """Sum to acc[a] the gradient of entity e over its occurrences order[begin:end]: heads, tails, then corruptions."""
    width = entity.shape[1]
    if len(compare_code) == DOT:
        # ∂g/∂candidate is the query itself: all is a weighted sum of rows that phase 1 kept, four at a time.
        fresh = True
        for o in range(begin, end, 4):
            c0, k0 = kept_row(order, o, end, n_rows, n_negatives, coefficients, len(query), len(to_head))
            c1, k1 = kept_row(order, o + 1, end, n_rows, n_negatives, coefficients, len(query), len(to_head))
            c2, k2 = kept_row(order, o + 2, end, n_rows, n_negatives, coefficients, len(query), len(to_head))
            c3, k3 = kept_row(order, o + 3, end, n_rows, n_negatives, coefficients, len(query), len(to_head))
            weigh_four(kept, c0, c1, c2, c3, k0, k1, k2, k3, acc, a, fresh)
            fresh = False
        return
    corruptions = 2 * n_rows
    clear(acc, a)
    for o in range(begin, end):
        seen = order[o]
        if seen < n_rows:
            for d in range(width):
                acc[a, d] += to_head[seen, d]
        elif seen < corruptions:
            for d in range(width):
                acc[a, d] += to_tail[seen - n_rows, d]
        else:
            place = seen - corruptions
            push_candidate(compare_code, coefficients[place], query, query_of(place, n_negatives), entity, e, acc, a)


@compiled
def entities_chunk(  # type: ignore[no-untyped-def]
    compare_code, chunk, threads, batch, n_rows, n_negatives, entity, optimising, by_entity, scratch, gradients_only,
):  # fmt: skip
    """Phase 2 for every `threads`-th block of the walked entities: all of them for dense Adam, else the touched."""
    kept, query, coefficients, to_head, _, to_tail, _, acc, _, _, _ = scratch
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
                    compare_code, e, order, starts[at], starts[at + 1], n_rows, n_negatives, entity, kept,
                    query, coefficients, to_head, to_tail, acc, own,
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
    _, _, _, _, to_relation, _, _, _, sums, _, _ = scratch
    counts, orders, _, touched_starts = by_relation
    order, starts = orders[batch], touched_starts[batch]
    width = to_relation.shape[1]
    low, high = chunk * width // threads, (chunk + 1) * width // threads
    columns = np.uint64(high - low)
    for at in range(counts[batch]):
        for d in range(columns):
            sums[at, np.uint64(low) + d] = np.float32(0.0)
        for o in range(starts[at], starts[at + 1]):
            row = order[o]
            # Unsigned, because LLVM does not vectorise a column that may be counted from the end of a row.
            for d in range(columns):
                sums[at, np.uint64(low) + d] += to_relation[row, np.uint64(low) + d]


@compiled
def shared_parameters(  # type: ignore[no-untyped-def]
    batch, n_rows, optimiser, hyper, relation, link, moments, by_relation, scratch, losses_out, gradients_only
):  # fmt: skip
    """Optimise the relations and the link, and add up the losses: little work, in a fixed order, by one thread."""
    _, _, _, _, _, _, _, acc, sums, link_grad, losses = scratch
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
