"""Where keys stand among sorted ones: a search of many at once, on all cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.evidence.kernels import kernel, prange
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
