"""Facts chosen by name, by confidence and by source; and choices that would silently choose nothing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.uncertain import UncertainGraph

GRAPH = UncertainGraph.from_facts(
    [
        ("Ada", "worksFor", "Acme", 0.9, "hr"),
        ("Bob", "worksFor", "Acme", 0.4, "web"),
        ("Ada", "knows", "Bob", 0.7, "web"),
        ("Bob", "knows", "Ada", 0.2, None),
        ("Acme", "ownedBy", "Ada", 1.0, "hr"),
    ]
)


@pytest.mark.parametrize(
    ("conditions", "rows"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"relation": "worksFor"}, [0, 1]),
        ({"relation": ["knows", "ownedBy"]}, [2, 3, 4]),
        ({"relation": []}, []),
        ({"head": "Ada"}, [0, 2]),
        ({"tail": "Ada"}, [3, 4]),
        ({"entity": "Ada"}, [0, 2, 3, 4]),
        ({"entity": "Ada", "relation": "knows"}, [2, 3]),
        ({"min_confidence": 0.7}, [0, 2, 4]),
        ({"max_confidence": 0.4}, [1, 3]),
        ({"min_confidence": 0.4, "max_confidence": 0.9}, [0, 1, 2]),
        ({"source": "web"}, [1, 2]),
        ({"source": ["hr", "web"], "head": "Bob"}, [1]),
    ],
)
def test_where(conditions: dict[str, Any], rows: list[int]) -> None:
    found = GRAPH.where(**conditions)
    assert list(found) == [GRAPH[row] for row in rows]
    assert found.entities is GRAPH.entities


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"relation": "worksfor"}, r"unknown relation 'worksfor'\nWhat to do: Near names: worksFor"),
        ({"entity": ["Ada", "Adaa"]}, r"unknown entity 'Adaa'\nWhat to do: Near names: Ada"),
        ({"source": "wep"}, r"no fact comes from 'wep'\nWhat to do: Did you mean 'web'\? Known: hr, web"),
    ],
)
def test_an_unknown_name_is_no_empty_answer(conditions: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        GRAPH.where(**conditions)


@pytest.mark.parametrize("bounds", [(80, None), (0.9, 0.1), (None, -0.1), (float("nan"), None)])
def test_bounds_that_hold_nothing_are_refused(bounds: tuple[float | None, float | None]) -> None:
    with pytest.raises(ConfigError, match="no confidence lies between min_confidence="):
        GRAPH.where(min_confidence=bounds[0], max_confidence=bounds[1])


def test_a_graph_without_sources_says_so() -> None:
    plain = UncertainGraph.from_facts([("a", "r", "b", 0.5)])
    with pytest.raises(DataError, match="no fact of this graph says where it came from"):
        plain.where(source="web")


@pytest.mark.parametrize("other", ["worksFor", ["worksFor", "knows"], np.array(["worksFor"]), "Acme"])
@pytest.mark.parametrize("column", ["head", "relation", "tail"])
def test_ids_are_not_compared_with_names(column: str, other: Any) -> None:
    """NumPy answers False everywhere, and the graph of no facts that it chose went unnoticed."""
    ids = getattr(GRAPH, column)
    for compare in (operator.eq, operator.ne):
        for some in (ids, ids[:2]):
            with pytest.raises(DataError, match=r"graph\.where: by relation"):
                compare(some, other)
    assert (ids == 0).tolist() == [i == 0 for i in ids.tolist()]


def test_what_is_computed_from_ids_is_plain() -> None:
    ids = GRAPH.head
    assert type(ids.max()) is np.int32
    for computed in (ids + 1, ids == 0, np.unique(ids), ids * len(GRAPH) + GRAPH.tail):
        assert type(computed) is np.ndarray


@pytest.mark.parametrize("rows", [True, False, np.False_, np.array(False), "worksFor", ["worksFor"], np.ones((5, 5))])
def test_keys_that_choose_no_rows_are_refused(rows: Any) -> None:
    with pytest.raises(DataError, match=r"graph\.where:"):
        GRAPH[rows]


def test_masks_and_rows_still_choose() -> None:
    assert len(GRAPH[GRAPH.confidence > 0.5]) == 3
    assert len(GRAPH[pd.Series([True, False, False, False, True])]) == 2
    assert GRAPH[[-1]][0].relation == "ownedBy"
    assert len(GRAPH[GRAPH.confidence > 2.0]) == 0
