"""What the model says of fresh corruptions of a batch, for a pool: drawn and scored as in training, and no more."""

from __future__ import annotations

import numpy as np

from ukge.compiled import kernel
from ukge.learning.engines.fused.links import link_predict
from ukge.learning.engines.fused.ops import FAST, compare
from ukge.learning.engines.fused.prepare import draw_corruptions, mix
from ukge.learning.engines.fused.queries import head_query, tail_query
from ukge.learning.engines.fused.records import Link, Triple

STREAM = 0x3C6EF372FE94F82B
"""What sets these corruptions apart from those that the batch learnt from."""


@kernel(nogil=True, error_model="numpy", fastmath=FAST)
def guess(  # type: ignore[no-untyped-def]
    query_code, compare_code, link_code, start, n_facts, n_negatives, epoch, facts, sampling, tables, query
):
    """Return the corrupted tails of the facts at places `start` … of an epoch, then their corrupted heads.

    They come with what the model says of them; fact i's are those from n_negatives · i on. `query` has two rows.
    """
    entity, relation = tables.entity, tables.relation
    entities = np.empty(2 * n_facts * n_negatives, np.int32)
    confidences = np.empty(2 * n_facts * n_negatives, np.float32)
    link, key = Link(link_code, tables.link[0, 0], tables.link[1, 0]), mix(epoch.key ^ np.uint64(STREAM))
    for i in range(n_facts):
        place = epoch.order[start + i]
        fact = Triple(facts.head[place], facts.relation[place], facts.tail[place])
        counter = key + np.uint64(start + i) * np.uint64(2 * n_negatives)
        draw_corruptions(fact, counter, sampling, n_negatives, entities, i * n_negatives, (n_facts + i) * n_negatives)
        tail_query(query_code, entity, fact.head, relation, fact.relation, query, 0)
        head_query(query_code, relation, fact.relation, entity, fact.tail, query, 1)
        for side in range(2):
            first = (side * n_facts + i) * n_negatives
            for j in range(first, first + n_negatives):
                confidences[j] = link_predict(link, compare(compare_code, query, side, entity, np.int64(entities[j])))
    return entities, confidences
