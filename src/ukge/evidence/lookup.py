"""Where keys stand among sorted ones: a search of many at once, on all cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.evidence.kernels import kernel, prange
from ukge.graph.index import Ranges
from ukge.graph.keys import Keys

FEW = 1024
"""Keys up to which other threads are not worth waking."""


def find(known: Keys, wanted: Keys) -> npt.NDArray[np.int64]:
    """Return the place of each key among sorted ones without repeats; −1 for one that is not there."""
    if len(known) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    if len(wanted) <= FEW:
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[at] == wanted, at, -1)
    places = np.empty(len(wanted), dtype=np.int64)
    _find(known, wanted, places)
    return places


def find_rows(groups: Ranges, keys: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return what `Ranges.find` does, on all cores: of a batch of evidence it takes about half the time."""
    at = find(groups.keys, keys)
    # Place −1 is the last of `start`, and no key: both are replaced.
    return np.where(at >= 0, groups.start[at], 0), np.where(at >= 0, groups.start[at + 1], 0)


@kernel(parallel=True)
def _find(known, wanted, places):  # type: ignore[no-untyped-def]
    """Halve what is left of the keys, without a choice that could be guessed wrong."""
    for i in prange(len(wanted)):
        at, left = 0, len(known)
        while left > 1:
            half = left // 2
            at += half * (known[at + half] <= wanted[i])
            left -= half
        places[i] = at if known[at] == wanted[i] else -1
