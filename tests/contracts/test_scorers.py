"""What every registered scorer keeps to, with every registered link."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.contracts.small import scorer_of
from torch import Tensor

from ukge.models.links import links
from ukge.models.scorers import Scorer, base, scorers

DIM = 5


def rows(name: str, n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    scorer = scorer_of(name)
    generator = torch.Generator().manual_seed(seed)
    widths = (scorer.entity_width(DIM), scorer.relation_width(DIM), scorer.entity_width(DIM))
    head, relation, tail = (torch.randn(n, width, generator=generator, dtype=torch.float64) for width in widths)
    return head, relation, tail


def bound(name: str, dtype: torch.dtype = torch.float64) -> Scorer:
    """Return a scorer with its tables that all facts share, if it has any."""
    scorer, rng = scorer_of(name), np.random.default_rng(2)
    drawn = {part.name: part.start.draw(rng, part.shape) for part in scorer.shared_parts(DIM)}
    return scorer.bound({key: torch.tensor(table, dtype=dtype) for key, table in drawn.items()})


def in_numpy(name: str, dtype: torch.dtype = torch.float64) -> Scorer:
    scorer = bound(name, dtype)
    return scorer.bound({key: table.numpy() for key, table in getattr(scorer, "tables", {}).items()})


@pytest.mark.parametrize("block", [1, 64, base.BLOCK])
@pytest.mark.parametrize("name", scorers.names())
def test_all_scoring_paths_agree(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BLOCK", block)
    scorer = bound(name)
    head, relation, tail = rows(name, 7)
    expected = scorer.plausibility(head, relation, tail)
    tail_query, head_query = scorer.tail_query(head, relation), scorer.head_query(relation, tail)
    assert expected.shape == (7,)
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(scorer.compare(tail_query, tail), expected)
            torch.testing.assert_close(scorer.compare(head_query, head), expected)
            torch.testing.assert_close(scorer.compare_all(tail_query, tail).diagonal(), expected)
            torch.testing.assert_close(scorer.compare_all(head_query, head).diagonal(), expected)


@pytest.mark.parametrize("block", [1, 64, base.BLOCK])
@pytest.mark.parametrize("name", scorers.names())
def test_a_formula_gives_the_same_from_either_library(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BLOCK", 32 * block)  # NumPy's blocks are that much smaller
    scorer = bound(name)
    head, relation, tail = rows(name, 7)
    arrays = [each.numpy() for each in (head, relation, tail)]
    tail_query, head_query = scorer.tail_query(head, relation), scorer.head_query(relation, tail)
    ours = in_numpy(name)
    queries = ours.tail_query(*arrays[:2]), ours.head_query(*arrays[1:])
    found = (*queries, ours.plausibility(*arrays), ours.compare_all(queries[0], arrays[2]))
    expected = (tail_query, head_query, scorer.plausibility(head, relation, tail), scorer.compare_all(tail_query, tail))
    for our, their in zip(found, expected, strict=True):
        np.testing.assert_allclose(our, their.numpy(), rtol=1e-12)
        assert our.dtype == np.float64
    single = in_numpy(name, torch.float32).compare(queries[0].astype(np.float32), arrays[2].astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize("name", scorers.names())
def test_every_pair_is_compared_as_it_would_be_alone(name: str) -> None:
    scorer = bound(name)
    head, relation, _ = rows(name, 4)
    candidates, _, _ = rows(name, 6, seed=1)
    query = scorer.tail_query(head, relation)
    expected = torch.stack([torch.stack([scorer.compare(q, c) for c in candidates]) for q in query])
    torch.testing.assert_close(scorer.compare_all(query, candidates), expected)
    torch.testing.assert_close(scorer.compare(query[:, None], candidates), expected)
    single = bound(name, torch.float32)
    torch.testing.assert_close(single.compare_all(query.float(), candidates.float()), expected.float())


@pytest.mark.parametrize("link_name", links.names())
@pytest.mark.parametrize("name", scorers.names())
def test_gradients_are_those_of_finite_differences(name: str, link_name: str) -> None:
    scorer, link = bound(name), links.get(link_name)
    inputs = [row.requires_grad_() for row in rows(name, 3)]
    w = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    b = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)

    def one_by_one(head: Tensor, relation: Tensor, tail: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return link.forward(scorer.plausibility(head, relation, tail), w, b)

    def all_by_all(head: Tensor, relation: Tensor, tail: Tensor, w: Tensor, b: Tensor) -> Tensor:
        tails = scorer.compare_all(scorer.tail_query(head, relation), tail)
        return link.forward(tails + scorer.compare_all(scorer.head_query(relation, tail), head), w, b)

    assert torch.autograd.gradcheck(one_by_one, (*inputs, w, b))
    assert torch.autograd.gradcheck(all_by_all, (*inputs, w, b))


@pytest.mark.parametrize("name", scorers.names())
def test_gradient_is_finite_where_query_and_candidate_are_equal(name: str) -> None:
    scorer = bound(name)
    head, relation, _ = rows(name, 2)
    query = scorer.tail_query(head, relation)
    candidate = (query if query.shape == head.shape else head).clone().requires_grad_()
    loss = scorer.compare(query, candidate).sum() + scorer.compare_all(query, candidate).sum()
    (gradient,) = torch.autograd.grad(loss, candidate)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", scorers.names())
def test_queries_of_both_sides_are_equally_wide(name: str) -> None:
    scorer = bound(name)
    head, relation, tail = rows(name, 2)
    asked = scorer.tail_query(head, relation)
    assert asked.shape == scorer.head_query(relation, tail).shape
    assert not scorer.inner_product or asked.shape == head.shape


def test_distances_are_never_positive_and_scorers_say_which_they_are() -> None:
    for name in scorers.names():
        scorer = bound(name)
        head, relation, tail = rows(name, 20)
        assert not scorer.distance or (scorer.plausibility(head, relation, tail) <= 0).all()


@pytest.mark.parametrize("name", scorers.names())
def test_a_symmetric_scorer_and_no_other_takes_a_fact_for_its_mirror(name: str) -> None:
    scorer = bound(name)
    head, relation, tail = rows(name, 9)
    here, there = scorer.plausibility(head, relation, tail), scorer.plausibility(tail, relation, head)
    assert torch.allclose(here, there, rtol=1e-12) == scorer.symmetric
