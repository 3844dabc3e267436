"""What the names of two entities look like: how long they are, and what they share.

Names are evidence where they are words. Sources write them differently (phrases, single words, plurals), and a name
that is made from another (`olive branch`, `olive`) goes with other facts than two that have nothing in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from ukge.evidence.kernels import kernel, prange
from ukge.evidence.trees import Matrix
from ukge.graph.queries import Places
from ukge.graph.vocabulary import Ids

NAMES = (
    "head_words",
    "head_letters",
    "head_ending",
    "tail_words",
    "tail_letters",
    "tail_ending",
    "same_beginning",
    "same_ending",
    "same_letters",
    "same_words",
    "in_alphabetical_order",
)

SECONDS = 4e-5
"""What two names take to be compared without the compiler."""

ENDING = 2
"""Letters of an ending."""

LETTERS = 256
"""Letters told apart in an ending; those of other scripts are one."""

_PARTS = re.compile(r"[\W_]+")


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of numbers for each entity: those of entity e are `items[start[e]:start[e + 1]]`."""

    items: npt.NDArray[np.int64]
    start: Places

    @classmethod
    def of(cls, lists: Sequence[Iterable[int]]) -> Lists:
        """Put lists one after the other."""
        whole = [list(each) for each in lists]
        start = np.concatenate([[0], np.cumsum([len(each) for each in whole])]).astype(np.int64)
        return cls(np.fromiter(chain.from_iterable(whole), dtype=np.int64, count=int(start[-1])), start)


@dataclass(frozen=True, eq=False)
class Spelling:
    """The names of all entities, ready to be compared."""

    letters: Lists
    triples: Lists
    """of letters, with the ends of the name; sorted, each once"""
    words: Lists
    """sorted, each once"""
    ending: npt.NDArray[np.float32]
    """a number for the last letters, ordered by the last one: names that come later do not change it"""
    place: npt.NDArray[np.int64]
    """in the alphabet"""

    @classmethod
    def of(cls, names: Iterable[str]) -> Spelling:
        """Take names apart."""
        small = [each.lower() for each in names]
        number: dict[str, int] = {}

        def numbered(parts: Iterable[str]) -> list[int]:
            return sorted({number.setdefault(each, len(number)) for each in parts})

        triples = [numbered(each[at : at + 3] for at in range(len(each) - 2)) for each in (f"<{n}>" for n in small)]
        words = [numbered(f" {each}" for each in _PARTS.split(name) if each) for name in small]
        ending = [[min(ord(letter), LETTERS - 1) for letter in f"  {name}"[-ENDING:]] for name in small]
        place = np.unique(small, return_inverse=True)[1].astype(np.int64)
        endings = (np.array(ending).reshape(-1, ENDING) @ [1, LETTERS]).astype(np.float32)
        letters = [[ord(letter) for letter in name] for name in small]
        return cls(Lists.of(letters), Lists.of(triples), Lists.of(words), endings, place)

    def columns(self, head: Ids, tail: Ids) -> Matrix:
        """Return the columns `NAMES` of pairs of entities."""
        out = np.empty((len(head), len(NAMES)), dtype=np.float32)
        lists = self.letters, self.triples, self.words
        flat = (array for each in lists for array in (each.items, each.start))
        _compare.within(SECONDS * len(head))(head, tail, *flat, self.ending, self.place, out)
        return out


@kernel()
def _shared(items, a, a_end, b, b_end):  # type: ignore[no-untyped-def]
    """Return how many items two sorted lists share."""
    found = 0
    while a < a_end and b < b_end:
        if items[a] == items[b]:
            found += 1
            a += 1
            b += 1
        elif items[a] < items[b]:
            a += 1
        else:
            b += 1
    return found


@kernel(parallel=True)
def _compare(  # type: ignore[no-untyped-def]
    head, tail, letters, letters_start, triples, triples_start, words, words_start, ending, place, out
):
    for q in prange(len(head)):
        h, t = head[q], tail[q]
        a, a_end, b, b_end = letters_start[h], letters_start[h + 1], letters_start[t], letters_start[t + 1]
        shorter = min(a_end - a, b_end - b)
        beginning, end = 0, 0
        while beginning < shorter and letters[a + beginning] == letters[b + beginning]:
            beginning += 1
        while end < shorter and letters[a_end - 1 - end] == letters[b_end - 1 - end]:
            end += 1
        c, c_end, d, d_end = triples_start[h], triples_start[h + 1], triples_start[t], triples_start[t + 1]
        same = _shared(triples, c, c_end, d, d_end)
        e, e_end, f, f_end = words_start[h], words_start[h + 1], words_start[t], words_start[t + 1]
        out[q, 0] = e_end - e
        out[q, 1] = a_end - a
        out[q, 2] = ending[h]
        out[q, 3] = f_end - f
        out[q, 4] = b_end - b
        out[q, 5] = ending[t]
        out[q, 6] = beginning / max(shorter, 1)
        out[q, 7] = end / max(shorter, 1)
        out[q, 8] = same / max(c_end - c + d_end - d - same, 1)
        out[q, 9] = _shared(words, e, e_end, f, f_end)
        out[q, 10] = place[h] < place[t]
