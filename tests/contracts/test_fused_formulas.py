"""Every scorer's compiled query, comparator and pull-backs, by themselves, against PyTorch's gradients.

A whole step takes long to compile, and knows of a scorer only whether its comparator is the inner product and whether
its relations are angles: `test_engines.py` holds two scorers for that. All else that differs from scorer to scorer is
in `queries.py` and `ops.py`, and is compiled here for each of them in a moment.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ukge.compiled import kernel
from ukge.learning.engines.fused import ops, queries
from ukge.models.scorers import scorers
from ukge.models.tables import Floats

N_ENTITIES, N_RELATIONS, N_FACTS, DIM = 12, 3, 9, 5
CANDIDATES = 7
"""Four together, two together and one alone, as the kernels take them."""


@kernel(fastmath=ops.FAST, error_model="numpy")
def score_and_pull_back(  # type: ignore[no-untyped-def]
    query_code, compare_code, facts, candidates, slopes, entity, relation, query, grad, found, to_entity, to_relation
):
    """Score each fact's candidates on either side; add up the gradients of Σ slope · plausibility."""
    for i in range(len(facts)):
        h, r, t = facts[i, 0], facts[i, 1], facts[i, 2]
        queries.tail_query(query_code, entity, h, relation, r, query, 0)
        queries.head_query(query_code, relation, r, entity, t, query, 1)
        for side in range(2):
            ops.clear(grad, side)
            e, s = candidates[side, i], slopes[side, i]
            four, two = (e[0], e[1], e[2], e[3]), (e[4], e[5])
            g0, g1, g2, g3 = ops.compare_four(compare_code, query, side, entity, four)
            g4, g5 = ops.compare_two(compare_code, query, side, entity, two)
            g6 = ops.compare(compare_code, query, side, entity, e[6])
            for place, g in enumerate((g0, g1, g2, g3, g4, g5, g6)):
                found[side, i, place] = g
                c = ops.coefficient(compare_code, s[place], g)
                ops.push_candidate(compare_code, c, query, side, entity, e[place], to_entity, e[place])
            c0, c1 = ops.coefficient(compare_code, s[0], g0), ops.coefficient(compare_code, s[1], g1)
            c2, c3 = ops.coefficient(compare_code, s[2], g2), ops.coefficient(compare_code, s[3], g3)
            ops.push_query_four(compare_code, (c0, c1, c2, c3), query, side, entity, four, grad, side)
            c4, c5 = ops.coefficient(compare_code, s[4], g4), ops.coefficient(compare_code, s[5], g5)
            ops.push_query_two(compare_code, (c4, c5), query, side, entity, two, grad, side)
            ops.push_query(compare_code, ops.coefficient(compare_code, s[6], g6), query, side, entity, e[6], grad, side)
        to_end, to_own = np.zeros((1, entity.shape[1]), np.float32), np.zeros((1, relation.shape[1]), np.float32)
        queries.pull_tail_query(query_code, grad, 0, entity, h, relation, r, to_end, to_own, 0)
        to_entity[h] += to_end[0]
        ops.clear(to_end, 0)
        queries.pull_head_query(query_code, grad, 1, relation, r, entity, t, to_own, to_end, 0)
        to_entity[t] += to_end[0]
        to_relation[r] += to_own[0]


@pytest.mark.parametrize("name", [name for name in scorers if scorers.get(name).fused is not None])
def test_plausibilities_and_gradients_are_those_of_the_formula(name: str) -> None:
    scorer, rng = scorers.get(name), np.random.default_rng(0)
    assert scorer.fused is not None
    codes = ops.as_type(queries.QUERIES[scorer.fused[0]]), ops.as_type(ops.COMPARATORS[scorer.fused[1]])

    def floats(*shape: int) -> Floats:
        return rng.normal(size=shape).astype(np.float32)

    width = scorer.entity_width(DIM)
    entity, relation = floats(N_ENTITIES, width), floats(N_RELATIONS, scorer.relation_width(DIM))
    slopes, found = floats(2, N_FACTS, CANDIDATES), floats(2, N_FACTS, CANDIDATES)
    facts = rng.integers((N_ENTITIES, N_RELATIONS, N_ENTITIES), size=(N_FACTS, 3))
    candidates = rng.integers(N_ENTITIES, size=(2, N_FACTS, CANDIDATES))
    to_entity, to_relation = np.zeros_like(entity), np.zeros_like(relation)
    score_and_pull_back(
        *codes, facts, candidates, slopes, entity, relation, floats(2, width), floats(2, width), found, to_entity,
        to_relation,
    )  # fmt: skip

    entities, relations = (torch.tensor(table, dtype=torch.float64, requires_grad=True) for table in (entity, relation))
    h, r, t = torch.from_numpy(facts).T
    asked = scorer.tail_query(entities[h], relations[r]), scorer.head_query(relations[r], entities[t])
    truth = torch.stack(
        [scorer.compare(asked[side][:, None], entities[torch.from_numpy(candidates[side])]) for side in range(2)]
    )
    np.testing.assert_allclose(found, truth.detach().numpy(), rtol=1e-5, atol=1e-5)
    (truth * torch.from_numpy(slopes)).sum().backward()  # type: ignore[no-untyped-call]
    for ours, table in ((to_entity, entities), (to_relation, relations)):
        theirs = np.zeros_like(ours) if table.grad is None else table.grad.numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
