"""Finding names as people type them: by their beginning, by a word within, or misspelt."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz import process
from rapidfuzz.distance import OSA

from ukge.graph.arrow import from_names, to_numpy
from ukge.graph.nodes import ALIASES, LABEL, Nodes
from ukge.graph.vocabulary import Vocabulary

FUZZY_UP_TO = 2_000_000
"""Names among which misspelt ones are looked for; among more it would take too long."""

CLOSE = 0.6
"""Least similarity, from 0 to 1, of a name that is offered for a misspelt one."""

MOST_NEAR = 200
"""Near names that are looked at to choose the best known among them."""

AT_ONCE = 2_000
"""Names that are compared before other threads get their turn."""

LONGEST_LABEL = 120
SEPARATORS = re.compile(r"[:/#]")
READABLE = re.compile(r"[_\s]+")


How = Literal["exact", "prefix", "word", "inside", "near"]


class Match(NamedTuple):
    """A name that fits what was typed: exactly, as its beginning, by a word, within, or nearly."""

    name: str
    how: How
    alias: str | None = None
    """the alias that fits, where neither name nor label fits as well"""


NOBODY: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
_NO_NAMES = from_names([])

HOW: tuple[How, ...] = ("exact", "prefix", "word", "inside")


def label(name: str) -> str:
    """Return what people call it: the last part of a name such as `concept:city:new_york`, with spaces."""
    last = SEPARATORS.split(name.rstrip(":/#"))[-1]
    return shortened(READABLE.sub(" ", last).strip() or name)


def shortened(shown: str) -> str:
    """Return a label that is not too long to be read."""
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1].rstrip() + "…"


def category(name: str) -> str:
    """Return the part before the last of a name such as `concept:city:new_york`, or nothing."""
    parts = name.split(":")
    return parts[-2] if len(parts) > 2 and "/" not in name else ""


class NameIndex:
    """The names of a vocabulary, folded for searching; of names that fit alike, those with more facts come first."""

    def __init__(
        self, vocabulary: Vocabulary, weight: npt.NDArray[np.integer[Any]], nodes: Nodes | None = None
    ) -> None:
        self._vocabulary = vocabulary
        self._weight = weight
        self._names = _folded(vocabulary.names)
        known = nodes if nodes is not None and len(nodes) else None
        own = _labels(vocabulary.names)
        self._labels = _folded(own if known is None else pc.coalesce(known.aligned(vocabulary.names, LABEL), own))
        lists = None if known is None else known.aligned(vocabulary.names, ALIASES)
        self._aliases = _NO_NAMES if lists is None else lists.flatten()
        self._folded_aliases = _folded(self._aliases)
        self._of_alias = NOBODY if lists is None else to_numpy(pc.list_parent_indices(lists)).astype(np.int64)
        self._by_length: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[str]] | None = None

    def search(self, text: str, limit: int, *, fuzzy: bool = True) -> list[Match]:
        """Return up to `limit` names that fit what was typed, the best first."""
        typed = READABLE.sub(" ", text.casefold()).strip()
        if not typed or limit < 1:
            return []
        ids, how, alias = self._literal(typed)
        order = np.lexsort((ids, -self._weight[ids], how))[:limit]
        names = self._vocabulary.decode(ids[order]).to_pylist()
        called = [None if place < 0 else self._aliases[place].as_py() for place in alias[order].tolist()]
        found = [Match(name, HOW[kind], by) for name, kind, by in zip(names, how[order], called, strict=True)]
        if fuzzy and len(found) < limit and len(typed) > 2 and len(self._vocabulary) <= FUZZY_UP_TO:
            known = {match.name for match in found}
            near = self._near(label(typed), limit + len(found))
            found += [Match(name, "near") for name in near if name not in known][: limit - len(found)]
        return found

    def _literal(self, typed: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Return what fits, how, and which alias does where nothing else fits as well, else −1."""
        how = np.full(len(self._vocabulary), len(HOW), dtype=np.int8)
        for texts in (self._labels, self._names):
            inside, kinds = _fitting(texts, typed)
            how[inside] = np.minimum(how[inside], kinds)
        alias = np.full(len(how), -1, dtype=np.int64)
        places, kinds = _fitting(self._folded_aliases, typed)
        for place, kind in sorted(zip(places.tolist(), kinds.tolist(), strict=True), key=lambda each: each[1]):
            one = int(self._of_alias[place])
            if kind < how[one]:
                how[one], alias[one] = kind, place
        ids = np.flatnonzero(how < len(HOW))
        return ids, how[ids], alias[ids]

    def _near(self, typed: str, limit: int) -> list[str]:
        ids, lengths, labels = self._sorted_by_length()
        first = int(np.searchsorted(lengths, CLOSE * len(typed)))
        last = int(np.searchsorted(lengths, len(typed) / CLOSE, side="right"))
        close: list[tuple[float, int, int]] = []
        for start in range(first, last, AT_ONCE):
            some = labels[start : min(start + AT_ONCE, last)]
            found = process.extract(typed, some, scorer=OSA.normalized_similarity, score_cutoff=CLOSE, limit=MOST_NEAR)
            places = ((likeness, int(ids[start + place])) for _, likeness, place in found)
            close += [(-likeness, -int(self._weight[place]), place) for likeness, place in places]
        return [self._vocabulary[place] for _, _, place in sorted(close)[:limit]]

    def _sorted_by_length(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[str]]:
        """Return ids, lengths and labels by rising length: names of very different lengths are not near each other."""
        if self._by_length is None:
            lengths = pc.utf8_length(self._labels).to_numpy(zero_copy_only=False).astype(np.int64)
            ids = np.argsort(lengths, kind="stable")
            self._by_length = ids, lengths[ids], self._labels.take(pa.array(ids)).to_pylist()
        return self._by_length


def _fitting(texts: pa.Array, typed: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Return the places of texts that hold what was typed, and how: as its place in `HOW`."""
    inside = np.flatnonzero(pc.match_substring(texts, typed).to_numpy(zero_copy_only=False))
    some = texts.take(pa.array(inside))
    kinds = np.full(len(inside), 3, dtype=np.int8)
    kinds[pc.match_substring(some, f" {typed}").to_numpy(zero_copy_only=False)] = 2
    kinds[pc.starts_with(some, typed).to_numpy(zero_copy_only=False)] = 1
    kinds[pc.equal(some, typed).to_numpy(zero_copy_only=False)] = 0
    return inside, kinds


def _labels(names: pa.Array) -> pa.Array:
    trimmed = pc.utf8_rtrim(names, ":/#")
    return pc.replace_substring_regex(trimmed, r"^.*[:/#]", "")


def _folded(names: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(names), r"[_\s]+", " "))
