"""Which facts of a graph: by row, by mask, or by the names, confidences and sources they must have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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
HINT = "Choose facts by name with graph.where: by relation, head, tail or entity."


class IdColumn(np.ndarray[tuple[int, ...], np.dtype[np.int32]]):
    """Ids that refuse to be compared with names: NumPy's answer, False everywhere, would silently select nothing.

    What is computed from them is a plain array.
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return a result as a plain array, or as a number."""
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __eq__(self, other: object) -> Any:
        _refuse_names(other)
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        _refuse_names(other)
        return super().__ne__(other)

    __hash__ = None


def _refuse_names(other: object) -> None:
    first = other[0] if isinstance(other, (list, tuple)) and other else other
    if isinstance(first, str) or getattr(getattr(other, "dtype", None), "kind", "") in ("U", "T"):
        raise DataError(f"a column of ids is compared with {first!r}, a name", hint=HINT)


def chosen_rows(rows: Any, length: int) -> npt.NDArray[np.int64]:
    """Return the rows that a mask or a list of indices chooses among `length`; negative indices count from the end."""
    picks = np.asarray(rows)
    if picks.ndim != 1:
        raise DataError(f"facts are chosen by a mask or by a list of rows, not by {rows!r}", hint=HINT)
    if picks.dtype == np.bool_:
        if len(picks) != length:
            raise DataError(f"a mask of {len(picks):,} cannot choose among {length:,} facts")
        return np.flatnonzero(picks)
    if picks.size == 0:
        return np.zeros(0, dtype=np.int64)
    if not np.issubdtype(picks.dtype, np.integer):
        raise DataError(f"facts are chosen by a mask or by whole numbers, not by {picks.dtype}", hint=HINT)
    if picks.min() < -length or picks.max() >= length:
        wrong = picks[(picks < -length) | (picks >= length)][0]
        raise DataError(f"there is no fact {wrong} among {length:,}")
    return np.where(picks < 0, picks + length, picks).astype(np.int64)


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
