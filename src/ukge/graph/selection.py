"""Which facts of a graph: by the names, confidences and sources they must have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import ConfigError, DataError, known_names
from ukge.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

Names = str | Iterable[str]
Mask = npt.NDArray[np.bool_]


def mask_of(
    graph: UncertainGraph,
    head: Names | None,
    relation: Names | None,
    tail: Names | None,
    entity: Names | None,
    least: float | None,
    most: float | None,
    source: Names | None,
) -> Mask:
    """Return which facts meet every condition that is given (see `UncertainGraph.where`)."""
    mask = np.ones(len(graph), dtype=np.bool_)
    for names, column, vocabulary in (
        (head, graph.head, graph.entities),
        (relation, graph.relation, graph.relations),
        (tail, graph.tail, graph.entities),
    ):
        if names is not None:
            mask &= np.isin(column, _ids(names, vocabulary))
    if entity is not None:
        ids = _ids(entity, graph.entities)
        mask &= np.isin(graph.head, ids) | np.isin(graph.tail, ids)
    low, high = _bounds(least, most)
    if (low, high) != (0.0, 1.0):
        mask &= (graph.confidence >= low) & (graph.confidence <= high)
    if source is not None:
        mask &= _from(graph, source)
    return mask


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _ids(names: Names, vocabulary: Vocabulary) -> list[int]:
    return [vocabulary.id(name) for name in _listed(names)]


def _bounds(least: float | None, most: float | None) -> tuple[float, float]:
    low, high = 0.0 if least is None else least, 1.0 if most is None else most
    if not 0.0 <= low <= high <= 1.0:
        raise ConfigError(
            f"no confidence lies between ‹min_confidence={low:g}› and ‹max_confidence={high:g}›",
            hint="Confidences are numbers from 0 to 1, and the lower bound comes first.",
        )
    return low, high


def _from(graph: UncertainGraph, source: Names) -> Mask:
    if graph.source is None:
        raise DataError("no fact of this graph says where it came from", hint="Leave out ‹source›.")
    known = graph.source.dictionary.to_pylist()
    wanted = _listed(source)
    for name in wanted:
        if name not in known:
            raise DataError(f"no fact comes from {name!r}", hint=known_names(name, known))
    found = pc.is_in(graph.source.cast(pa.large_string()), value_set=pa.array(wanted, pa.large_string()))
    return np.asarray(found, dtype=np.bool_)
