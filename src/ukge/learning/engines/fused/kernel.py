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

from ukge.learning.engines.fused.entities import entities_chunk, relations_chunk, shared_parameters
from ukge.learning.engines.fused.rows import rows_chunk


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
