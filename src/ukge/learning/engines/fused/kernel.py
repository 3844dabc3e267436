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
from ukge.learning.engines.fused.entities import entities_chunk, relations_chunk, shared_parameters
from ukge.learning.engines.fused.rows import rows_chunk, thread_count


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
