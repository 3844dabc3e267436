"""An approximate index for large graphs: a proximity graph over the entities' vectors (usearch), checked for recall.

Only for scorers whose comparator is the inner product. What it finds is scored again exactly, so confidences are exact
and only the choice of candidates is approximate.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from usearch.index import Index

from ukge.asking.rank import Check, ExactSearch, Found, Wanted
from ukge.errors import RunError
from ukge.graph.index import FactIndex
from ukge.models.model import Model
from ukge.storage.files import replacing_path, sha256, write_atomically

log = logging.getLogger("ukge.serve")

FOLDER = "index"
CONNECTIVITY, EXPANSION_ADD = 24, 96
EXPANSIONS = (64, 128, 256, 512, 1024)
"""Candidates that a search keeps in view, from quick to thorough; the first that reaches the recall wanted is taken."""

RECALL_WANTED = 0.95
CHECKED_QUERIES, CHECKED_K = 200, 10
SPARE = 40
"""Candidates beyond k that are fetched and scored exactly."""

ADDED_AT_ONCE = 10_000


class ApproximateSearch:
    """The same call as the exact search. Queries about some entities only, or for very many answers, go there."""

    def __init__(self, exact: ExactSearch, index: Any, recall: float, expansion: int) -> None:
        self._exact, self._index = exact, index
        self.recall, self.expansion = recall, expansion
        index.expansion_search = expansion

    def describe(self) -> dict[str, object]:
        """Return that the search is approximate, and which share of the ten best answers it finds."""
        return {"kind": "approximate", "recall": self.recall}

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return the answers of each query."""
        found = []
        for one in wanted:
            fetched = one.k + len(one.without) + SPARE
            if one.among is not None or fetched > 4 * self.expansion:
                found += self._exact.search([one], check)
                continue
            check()
            query = self._exact.model.query(one.side, one.given, one.relation)
            keys = np.asarray(self._index.search(query, fetched).keys, dtype=np.int64)
            found.append(self._exact.among(one, np.setdiff1d(keys, one.without)))
        return found


def approximate(run: Path, known: FactIndex, exact: ExactSearch) -> ApproximateSearch:
    """Return the index that the run keeps for its weights, or build it and keep it there if that is possible.

    The weights are those in memory, which were checked, whatever the run's file holds by now.
    """
    hasher = hashlib.sha256()
    for ids in _blocks(exact.model):
        hasher.update(exact.model.tables.rows(ids).tobytes())
    digest = hasher.hexdigest()
    index = _kept(run / FOLDER, digest, exact.model) or _built(run / FOLDER, digest, exact.model)
    recall, expansion = _checked(exact, index, known)
    log.info("approximate index: recall of the ten best answers %.3f at expansion %d", recall, expansion)
    return ApproximateSearch(exact, index, recall, expansion)


def _empty(model: Model) -> Any:
    return Index(
        ndim=model.tables.shape[1],
        metric="ip",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
    )


def _blocks(model: Model) -> Iterator[npt.NDArray[np.int64]]:
    for start in range(0, model.n_entities, ADDED_AT_ONCE):
        yield np.arange(start, min(start + ADDED_AT_ONCE, model.n_entities))


def _built(folder: Path, digest: str, model: Model) -> Any:
    index = _empty(model)
    for ids in _blocks(model):
        # By one thread where that takes no time: equal weights give an equal index.
        index.add(ids, model.tables.rows(ids), threads=1 if model.n_entities < ADDED_AT_ONCE else 0)
    try:
        folder.mkdir(exist_ok=True)
        with replacing_path(folder / "entities.usearch") as temporary:
            index.save(str(temporary))
        told = {"weights": digest, "index": sha256(folder / "entities.usearch")}
        write_atomically(folder / "manifest.json", json.dumps(told).encode())
    except (OSError, RunError, RuntimeError) as error:
        log.warning("the index is not kept in %s: %s", folder, error)
    return index


def _kept(folder: Path, digest: str, model: Model) -> Any | None:
    """Return the index that is kept, if it is of these weights and was not changed since."""
    file = folder / "entities.usearch"
    try:
        told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        content = file.read_bytes()  # not mapped: what was checked is what answers
        if told != {"weights": digest, "index": hashlib.sha256(content).hexdigest()}:
            return None
        index = _empty(model)
        index.load(content)
    except (OSError, ValueError, RuntimeError):
        return None
    return index if len(index) == model.n_entities else None


def _checked(exact: ExactSearch, index: Any, known: FactIndex) -> tuple[float, int]:
    """Return the recall on queries of observed facts, at the quickest setting that is good enough."""
    wanted = _queries(known)
    truth = exact.search(wanted)
    recall, expansion = 1.0, EXPANSIONS[0]
    for expansion in EXPANSIONS:
        found = ApproximateSearch(exact, index, 0.0, expansion).search(wanted)
        shares = [
            np.isin(right.entity, each.entity).mean()
            for right, each in zip(truth, found, strict=True)
            if len(right.entity)
        ]
        recall = float(np.mean(shares)) if shares else 1.0
        if recall >= RECALL_WANTED:
            break
    return recall, expansion


def _queries(known: FactIndex) -> list[Wanted]:
    facts = known.all()
    if len(facts.head) == 0:
        return []
    rows = np.random.default_rng(0).integers(len(facts.head), size=CHECKED_QUERIES)
    drawn = zip(*(column[rows].tolist() for column in facts[:3]), strict=True)
    return [
        Wanted("tail", head, relation, CHECKED_K) if at % 2 else Wanted("head", tail, relation, CHECKED_K)
        for at, (head, relation, tail) in enumerate(drawn)
    ]
