"""Entities as people name them, by their name or by a label that only one has; and those that may be answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.graph.nodes import Nodes
from ukge.graph.queries import Side
from ukge.graph.vocabulary import Vocabulary

Ids = npt.NDArray[np.int64]

ANY, FITTING = "any", "fitting"
TYPES = (
    "‹type› is `any`; `fitting`, the entities observed at this place of the relation; `heads:RELATION` or "
    "`tails:RELATION`, those observed there; or a type of the node data, `Disease` or `type:Disease`."
)

_LISTED = 10


class Kind(NamedTuple):
    """Which entities may be answers, and of which relation or type."""

    how: Literal["any", "fitting", "heads", "tails", "type"]
    name: str = ""

    @classmethod
    def of(cls, text: str) -> Kind:
        """Return what a text asks for; whatever has no form of its own is a type of the node data."""
        how, colon, name = text.partition(":")
        if text == ANY:
            return cls("any")
        if text == FITTING:
            return cls("fitting")
        if not text.strip():
            raise ConfigError("an empty ‹type› says nothing", hint=TYPES)
        for each in ("heads", "tails", "type"):
            if colon and name and how == each:
                return cls(each, name)
        return cls("type", text)


@dataclass(frozen=True, eq=False)
class Naming:
    """The names of a graph's entities with what is known of them."""

    entities: Vocabulary
    relations: Vocabulary
    nodes: Callable[[], Nodes]
    """asked for only where a name is none, or a type is asked for"""

    def name(self, given: Any) -> Any:
        """Return the name of an entity that is given by its name, or by a label that no other has.

        What is no text is left to whoever checks names; an unknown name is an error that suggests near ones.
        """
        if not isinstance(given, str) or self._known(given):
            return given
        found = self.nodes().called(given)
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(found[:_LISTED]) + (", …" if len(found) > _LISTED else "")
            raise DataError(
                f"{given!r} is the label of {len(found):,} entities: {listed}", hint="Give the name of one."
            )
        raise self._unknown(given)

    def id(self, given: Any) -> int:
        """Return the id of an entity that is given by its name or by its label."""
        return self.entities.id(str(self.name(given)))

    def candidates(
        self, types: str | Sequence[str], relation: int, side: Side, of_relation: Callable[[int, Side], Ids]
    ) -> Ids | None:
        """Return the entities that may be answers to a query, sorted; None for all. Of several types, any will do."""
        found: list[Ids] = []
        for kind in map(Kind.of, [types] if isinstance(types, str) else types):
            if kind.how == "any":
                return None
            if kind.how == "type":
                found.append(self.of_type(kind.name))
            elif kind.how == "fitting":
                found.append(of_relation(relation, side))
            else:
                found.append(of_relation(self.relations.id(kind.name), "head" if kind.how == "heads" else "tail"))
        return np.unique(np.concatenate(found)).astype(np.int64) if found else None

    def of_type(self, wanted: str | Sequence[str]) -> Ids:
        """Return the entities of a type, or of any of several, sorted."""
        return np.sort(self.entities.encode(self.nodes().of_type(wanted))).astype(np.int64)

    def _known(self, name: str) -> bool:
        try:
            return bool(self.entities.encode([name])[0] >= 0)
        except UnicodeEncodeError:
            return False

    def _unknown(self, given: str) -> DataError:
        near = dict.fromkeys(self.entities.near(given))
        nodes = self.nodes()
        called = nodes.near(given)
        shown = [
            f"{label} ({name})" if label else name for name, label in zip(called, nodes.labels(called), strict=True)
        ]
        listed = ", ".join([*shown, *(name for name in near if name not in called)][:_LISTED])
        hint = f"Near names: {listed}." if listed else "Names and labels are compared exactly, case included."
        return DataError(f"unknown entity {given!r}", hint=hint)
