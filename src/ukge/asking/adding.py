"""Adding: facts taken into a finished run without training it again, journalled, and undone.

What was trained stays as it is. New names get vectors that fit their facts, evidence counts the new facts, and whoever
opens the run finds them known. An addition is there whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ukge.asking.drift import drift
from ukge.errors import ConfigError, DataError, RunError, refuse_unknown_keywords
from ukge.evidence.fold_in import rows_for
from ukge.evidence.new_rows import Sizes
from ukge.evidence.storage import save_sums
from ukge.evidence.tables import Tables
from ukge.graph.index import FactIndex
from ukge.graph.keys import contains, fingerprint
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.runs.additions import Added, joined, tidy, write_addition, write_undoing
from ukge.runs.directory import Run
from ukge.runs.journal import Addition, Journal, now, whoever
from ukge.runs.manifest import FINISHED, WEIGHTS
from ukge.storage.locks import alone

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor
    from ukge.graph.queries import Floats, Places

TAKEN = (
    "a frame or table of head, relation, tail and confidence, a file of facts, tuples of these, or an UncertainGraph"
)
WAIT = "Wait for it, then give the same command again."
IN_MEMORY = "(in memory)"
LONGEST_ID = 200
ENGINE = "duckdb"


class How(TypedDict, total=False):
    """What may be said of an addition."""

    source: str
    """where the facts are from; for a file its path, if nothing is said"""
    who: str
    """who adds them; the user of this process, if nothing is said"""
    id: str | None
    """a name for the addition: the same facts under the same name are added once, however often they are given"""
    reading: Mapping[str, Any] | None
    """what `read` is told about a file or a frame"""


def add(predictor: Predictor, facts: Any, how: How) -> Addition:
    """Take facts into the run that a predictor was opened from; see `Predictor.add`. The predictor knows them then."""
    refuse_unknown_keywords("add", how, How.__annotations__)
    path = predictor.place
    graph, source = _given(facts, how)
    if not len(graph):
        raise DataError("there are no facts to add")
    identity = how.get("id")
    if identity is not None and not 0 < len(identity) <= LONGEST_ID:
        raise ConfigError(f"‹id› is a name of 1 to {LONGEST_ID} characters, not of {len(identity):,}")
    with alone(path, hint=WAIT):
        run = Run.open(path)
        _refuse_unfit(run)
        printed = fingerprint(graph)
        before = _made_before(run, identity, printed)
        if before is not None:
            return before
        if _print(predictor.added) != _print(run.added):
            predictor.open_again()
        made = _Adding(run, predictor, graph).make(source, how.get("who", whoever()), identity, printed)
    if made.number:
        predictor.open_again()
    return made


def undo(predictor: Predictor, steps: int | None, who: str | None = None) -> list[Addition]:
    """Undo the last additions to the run that a predictor was opened from; see `Predictor.undo`."""
    if steps is not None and steps < 1:
        raise ConfigError(f"‹steps› is {steps}: there is no such number of additions", hint="Give 1 or more.")
    path = predictor.place
    with alone(path, hint=WAIT):
        standing = Journal(path).standing
        if not standing:
            raise RunError(f"nothing is added to {path}", hint="There is nothing to undo.")
        if steps is not None and steps > len(standing):
            count = f"{len(standing):,} addition{'s' if len(standing) != 1 else ''}"
            raise RunError(f"{path} has {count}, of which {steps:,} cannot be undone", hint="Undo ‹all› of them.")
        undone = list(reversed(standing if steps is None else standing[-steps:]))
        write_undoing(path, [each.number for each in undone], whoever() if who is None else who)
        tidy(path)
        predictor.open_again()
        if predictor.evidence is not None and predictor.added is not None:
            save_sums(path, predictor.evidence.features.tables, predictor.added.print)
    return undone


def _given(facts: Any, how: How) -> tuple[UncertainGraph, str]:
    """Return the facts as a graph, and where they are from."""
    from ukge.graph.given import as_graph  # noqa: PLC0415
    from ukge.graph.readers import read  # noqa: PLC0415

    if isinstance(facts, (str, os.PathLike)):
        return read(facts, **(how.get("reading") or {})), how.get("source", os.fspath(facts))
    return as_graph(facts, None, "add", TAKEN, how.get("reading")), how.get("source", IN_MEMORY)


def _refuse_unfit(run: Run) -> None:
    status = run.manifest()["status"]
    if status != FINISHED:
        raise RunError(
            f"{run.path} is not finished (status: {status})", hint=f"Go on with it: ukge train --resume {run.path}"
        )
    if run.kept is None:
        raise RunError(
            f"{run.path} refers to facts elsewhere, which are too large to be kept in it",
            hint="Add to these, and train again.",
        )


def _made_before(run: Run, identity: str | None, printed: str) -> Addition | None:
    """Return the addition that was made under a name already; other facts under the same name are refused."""
    if identity is None:
        return None
    found = next((each for each in Journal(run.path).standing if each.id == identity), None)
    if found is not None and found.print != printed:
        raise DataError(
            f"other facts were added to {run.path} as {identity!r}: they are addition {found.number}",
            hint="Give these another ‹id›.",
        )
    return found


def _print(added: Added | None) -> str:
    return "" if added is None else added.print


class _Adding:
    """One addition in the making."""

    def __init__(self, run: Run, predictor: Predictor, graph: UncertainGraph) -> None:
        self.run, self.predictor = run, predictor
        self.table = graph.facts()
        self.trained = Sizes(*map(len, run.trained_vocabularies))
        self.incoming = joined(predictor.names, [self.table], predictor.dataset.undirected)
        self.names = self.incoming.entities, self.incoming.relations
        self.stored = self._stored()
        self.repeated = self.stored == self.incoming.confidence

    def _stored(self) -> Floats:
        """Return the confidences of incoming facts as the run has them, NaN where it has none."""
        entities, relations = map(len, self.predictor.names)
        facts = self.incoming
        known = (facts.head < entities) & (facts.tail < entities) & (facts.relation < relations)
        found = np.full(len(facts), np.nan)
        found[known] = self.predictor.known.stored(facts.head[known], facts.relation[known], facts.tail[known])
        return found

    def make(self, source: str, who: str, identity: str | None, printed: str) -> Addition:
        """Write the addition, and return what was new."""
        updated = ~np.isnan(self.stored) & ~self.repeated
        kept = np.flatnonzero(~self.repeated)
        facts, standing = self.incoming[kept], self._standing(kept)
        told = {
            "time": now(),
            "who": who,
            "source": source,
            "base": self.run.manifest()["files"][WEIGHTS],
            "print": printed,
            "facts": int(np.isnan(self.stored).sum()),
            "updated": int(updated.sum()),
            "repeated": int(self.repeated.sum()),
            "held_out": self._held_out(facts),
            "entities": len(self.names[0]) - len(self.predictor.entities),
            "relations": len(self.names[1]) - len(self.predictor.relations),
            "id": identity,
            "drift": drift(self.predictor, self.incoming, self.stored, len(standing), self._n_trained()),
        }
        if not len(kept):
            return Addition(0, **told)
        addition = Addition(Journal(self.run.path).next, **told)
        rows = rows_for(self.predictor.models, standing, facts, self.trained, addition.number)
        after = Added(self.run.trained_vocabularies, self.names, standing, (), ())
        tables = None if self.predictor.evidence is None else self._sums(after)

        def before_line(journal: str) -> None:
            if tables is not None:
                save_sums(self.run.path, tables, journal)

        return write_addition(self.run.path, addition, self.table.take(kept), rows, before_line)

    def _n_trained(self) -> int:
        facts = self.run.data.facts
        return len(self.predictor.dataset.train) if facts is None else facts

    def _held_out(self, facts: UncertainGraph) -> int:
        held = self.predictor.dataset
        parts = [self._widened(part) for part in (held.val, held.test)]
        return sum(int(contains(np.sort(facts.keys()), part.keys()).sum()) for part in parts)

    def _standing(self, kept: Places) -> UncertainGraph:
        """Return all added facts that stand once these are taken in."""
        before, facts = self.predictor.added, self.incoming[kept]
        if before is None:
            return facts
        old = self._widened(before.facts)
        return concat([old[~contains(np.sort(facts.keys()), old.keys())], facts])

    def _widened(self, graph: UncertainGraph) -> UncertainGraph:
        """Return facts over the names that the run will have: the ones that it has keep their ids."""
        columns = graph.head, graph.relation, graph.tail, graph.confidence
        wide = UncertainGraph.from_ids(*columns, *self.names, source=graph.source)
        return wide.taken_as_undirected(self.incoming.undirected)

    def _sums(self, after: Added) -> Tables:
        """Return the sums over all facts that will be known."""
        train = self._widened(self.predictor.dataset.train)
        known = concat([train[~contains(after.keys, train.keys())], after.facts])
        return Tables.of(FactIndex(known), ENGINE)
