"""Where keys stand among sorted ones: a search of many at once, on all cores."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.engines.compiled import kernel
from ukge.graph.keys import Keys

FEW = 256
"""Keys up to which other threads are not worth waking."""


def find(known: Keys, wanted: Keys) -> npt.NDArray[np.int64]:
    """Return the place of each key among sorted ones without repeats; −1 for one that is not there."""
    places = np.full(len(wanted), -1, dtype=np.int64)
    if len(known):
        (_find if len(wanted) <= FEW else _find_in_parallel)(known, wanted, places)
    return places


@kernel(nogil=True, inline="always")
def _place(known, wanted):  # type: ignore[no-untyped-def]
    """Halve what is left of the keys, without a choice that could be guessed wrong."""
    at, left = 0, len(known)
    while left > 1:
        half = left // 2
        at += half * (known[at + half] <= wanted)
        left -= half
    return at if known[at] == wanted else -1


@kernel(nogil=True)
def _find(known, wanted, places):  # type: ignore[no-untyped-def]
    for i in range(len(wanted)):
        places[i] = _place(known, wanted[i])


@kernel(nogil=True, parallel=True)
def _find_in_parallel(known, wanted, places):  # type: ignore[no-untyped-def]
    for i in nb.prange(len(wanted)):
        places[i] = _place(known, wanted[i])
