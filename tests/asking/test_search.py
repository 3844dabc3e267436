"""Exact search finds what sorting all scores finds, for one query and for many together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.small import scorer_of

from ukge.asking.rank import ExactSearch, Wanted
from ukge.graph.queries import Side
from ukge.models.links import links
from ukge.models.model import Model
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters
from ukge.serve.problems import TimeLimitError
from ukge.serve.work import Deadline


def random_model(scorer: str, n: int = 97, dim: int = 8, weight: float = 1.5) -> Model:
    draw = np.random.default_rng(1)
    chosen = scorer_of(scorer)
    entity = draw.normal(size=(n, chosen.entity_width(dim))).astype(np.float32)
    relation = draw.normal(size=(5, chosen.relation_width(dim))).astype(np.float32)
    shared = {part.name: part.start.draw(draw, part.shape) for part in chosen.shared_parts(dim)}
    link = np.array([weight, 0.1], np.float32)
    return Model(Parameters(entity, relation, link, shared), chosen, links.get("logistic"))


@pytest.mark.parametrize("scorer", scorers.names())
@pytest.mark.parametrize("weight", [1.5, -1.5])
@pytest.mark.parametrize("side", ["tail", "head"])
def test_every_scorer_ranks_by_confidence(scorer: str, weight: float, side: Side) -> None:
    model = random_model(scorer, weight=weight)
    found = ExactSearch(model, block_elements=20).search([Wanted(side, 3, 2, 10)])[0]
    every, three, two = np.arange(model.n_entities), np.full(model.n_entities, 3), np.full(model.n_entities, 2)
    confidence = model.confidence(three, two, every) if side == "tail" else model.confidence(every, two, three)
    by_score = model.link.predict(np.float32(model.sign) * found.score, *model.tables.link)
    assert by_score == pytest.approx(np.sort(confidence)[::-1][:10], abs=1e-5)
    assert confidence[found.entity] == pytest.approx(by_score, abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(
    block=st.integers(1, 400),
    queries=st.lists(
        st.tuples(
            st.sampled_from(["tail", "head"]),
            st.integers(1, 120),
            st.none() | st.lists(st.integers(0, 96), unique=True),
            st.lists(st.integers(0, 96), unique=True),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_queries_answered_together_do_not_mix(
    block: int, queries: list[tuple[Side, int, list[int] | None, list[int]]]
) -> None:
    model = random_model("complex")
    wanted = [
        Wanted(
            side,
            at,
            at % 5,
            k,
            None if among is None else np.array(sorted(among), dtype=np.int64),
            np.array(without, dtype=np.int64),
        )
        for at, (side, k, among, without) in enumerate(queries)
    ]
    found = ExactSearch(model, block_elements=block).search(wanted)
    for at, (side, k, among, without) in enumerate(queries):
        ids = np.full(97, at), np.full(97, at % 5), np.arange(97)
        scores = model.strength(*(ids if side == "tail" else ids[::-1]))
        allowed = sorted((set(range(97)) if among is None else set(among)) - set(without))
        expected = sorted(scores[allowed].tolist(), reverse=True)[:k]
        assert scores[found[at].entity] == pytest.approx(expected, abs=1e-4)
        assert set(found[at].entity.tolist()) <= set(allowed)


def test_the_search_stops_at_its_deadline() -> None:
    with pytest.raises(TimeLimitError):
        ExactSearch(random_model("distmult")).search([Wanted("tail", 0, 0, 1)], Deadline(-1).check)
