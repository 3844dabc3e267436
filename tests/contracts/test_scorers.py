"""What every registered scorer keeps to, with every registered link."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ukge.models.links import links
from ukge.models.scorers import base, scorers

DIM = 5


def rows(name: str, n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    scorer = scorers.get(name)
    generator = torch.Generator().manual_seed(seed)
    widths = (scorer.entity_width(DIM), scorer.relation_width(DIM), scorer.entity_width(DIM))
    head, relation, tail = (torch.randn(n, width, generator=generator, dtype=torch.float64) for width in widths)
    return head, relation, tail


@pytest.mark.parametrize("block", [1, 64, base.BLOCK])
@pytest.mark.parametrize("name", scorers.names())
def test_all_scoring_paths_agree(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BLOCK", block)
    scorer = scorers.get(name)
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
    scorer = scorers.get(name)
    head, relation, tail = rows(name, 7)
    arrays = [each.numpy() for each in (head, relation, tail)]
    tail_query, head_query = scorer.tail_query(head, relation), scorer.head_query(relation, tail)
    queries = scorer.tail_query(*arrays[:2]), scorer.head_query(*arrays[1:])
    found = (*queries, scorer.plausibility(*arrays), scorer.compare_all(queries[0], arrays[2]))
    expected = (tail_query, head_query, scorer.plausibility(head, relation, tail), scorer.compare_all(tail_query, tail))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12)
        assert ours.dtype == np.float64
    assert scorer.compare(queries[0].astype(np.float32), arrays[2].astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("name", scorers.names())
def test_every_pair_is_compared_as_it_would_be_alone(name: str) -> None:
    scorer = scorers.get(name)
    head, relation, _ = rows(name, 4)
    candidates, _, _ = rows(name, 6, seed=1)
    query = scorer.tail_query(head, relation)
    expected = torch.stack([torch.stack([scorer.compare(q, c) for c in candidates]) for q in query])
    torch.testing.assert_close(scorer.compare_all(query, candidates), expected)
    torch.testing.assert_close(scorer.compare(query[:, None], candidates), expected)
    torch.testing.assert_close(scorer.compare_all(query.float(), candidates.float()), expected.float())


@pytest.mark.parametrize("link_name", links.names())
@pytest.mark.parametrize("name", scorers.names())
def test_gradients_are_those_of_finite_differences(name: str, link_name: str) -> None:
    scorer, link = scorers.get(name), links.get(link_name)
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
    scorer = scorers.get(name)
    head, relation, _ = rows(name, 2)
    query = scorer.tail_query(head, relation)
    candidate = (query if query.shape == head.shape else head).clone().requires_grad_()
    loss = scorer.compare(query, candidate).sum() + scorer.compare_all(query, candidate).sum()
    (gradient,) = torch.autograd.grad(loss, candidate)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", scorers.names())
def test_queries_of_both_sides_are_equally_wide(name: str) -> None:
    scorer = scorers.get(name)
    head, relation, tail = rows(name, 2)
    asked = scorer.tail_query(head, relation)
    assert asked.shape == scorer.head_query(relation, tail).shape
    assert not scorer.inner_product or asked.shape == head.shape


def test_distances_are_never_positive_and_scorers_say_which_they_are() -> None:
    for name in scorers.names():
        scorer = scorers.get(name)
        head, relation, tail = rows(name, 20)
        assert scorer.inner_product or (scorer.plausibility(head, relation, tail) <= 0).all()


@pytest.mark.parametrize("name", scorers.names())
def test_a_symmetric_scorer_and_no_other_takes_a_fact_for_its_mirror(name: str) -> None:
    scorer = scorers.get(name)
    head, relation, tail = rows(name, 9)
    here, there = scorer.plausibility(head, relation, tail), scorer.plausibility(tail, relation, head)
    assert torch.allclose(here, there, rtol=1e-12) == scorer.symmetric
