"""A hash table from names to ids for millions of names, compiled.

A look-up costs one cache miss: an entry is half a cache line and holds the name itself (up to 24 bytes) beside its id.
Longer names are compared with the stored name, so no two names ever share an id, whatever their hash. Names are taken
in blocks whose slots are all touched before any is compared, so that the misses of a block overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ukge.compiled import kernel

U = np.uint64
_MULTIPLY_1 = U(0x9E3779B97F4A7C15)
_MULTIPLY_2 = U(0xFF51AFD7ED558CCD)
_MULTIPLY_3 = U(0xC4CEB9FE1A85EC53)
_BLOCK = 256
_INLINE = 24
_SLOTS = 1 << 21  # untouched slots cost no memory, so a table starts large

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


@numba.njit(inline="always")
def _word(data: Any, at: Any) -> Any:
    i = U(at)
    return (
        U(data[i])
        | U(data[i + U(1)]) << U(8)
        | U(data[i + U(2)]) << U(16)
        | U(data[i + U(3)]) << U(24)
        | U(data[i + U(4)]) << U(32)
        | U(data[i + U(5)]) << U(40)
        | U(data[i + U(6)]) << U(48)
        | U(data[i + U(7)]) << U(56)
    )


@numba.njit(inline="always")
def _key(data: Any, at: Any, length: Any) -> Any:
    """Return three words that, with the length, are the name itself up to 24 bytes; beyond, the middle is hashed."""
    if length < 8:
        word = U(0)
        for k in range(length):
            word = (word << U(8)) | U(data[U(at + k)])
        return word, U(0), U(0)
    first = _word(data, at)
    last = _word(data, at + length - 8)
    if length <= 16:
        return first, last, U(0)
    if length <= _INLINE:
        return first, _word(data, at + 8), last
    middle = U(length)
    for k in range(8, length - 8, 8):
        middle = (middle ^ _word(data, at + k)) * _MULTIPLY_2
        middle ^= middle >> U(32)
    return first, middle, last


@numba.njit(inline="always")
def _hash(first: Any, middle: Any, last: Any, length: Any) -> Any:
    h = (first ^ _MULTIPLY_1) * _MULTIPLY_2
    h ^= h >> U(32)
    h = (h ^ middle) * _MULTIPLY_3
    h ^= h >> U(29)
    h = (h ^ last) * _MULTIPLY_2
    h ^= h >> U(32)
    h = (h ^ length) * _MULTIPLY_3
    return h ^ (h >> U(29))


@numba.njit(inline="always")
def _same(known: Any, end: Any, data: Any, at: Any, length: Any) -> Any:
    same = True
    for k in range(8, length - 8):
        same = same and known[end + k] == data[at + k]
    return same


@kernel(nogil=True)
def _encode(
    offsets: Any, data: Any, start: Any, ids: Any, table: Any, known: Any, ends: Any, count: Any, part: Any, parts: Any
) -> Any:
    """Write the ids of this part's names from `start` on, adding new ones; stop when table or name store is full.

    `table` holds four words per slot: the key and (length, number + 1). The bytes of name i are
    `known[ends[i]:ends[i + 1]]`, its id is `i * parts + part`. Returns the next name to take and how many are known.
    """
    slots = len(table) // 4
    mask = U(slots - 1)
    total = len(offsets) - 1
    keys = np.empty((_BLOCK, 4), np.uint64)
    seen = np.empty(_BLOCK, np.uint64)
    mine = np.empty(_BLOCK, np.int64)
    while start < total:
        size = 0
        stop = min(start + _BLOCK, total)
        for name in range(start, stop):
            at = offsets[name]
            length = offsets[name + 1] - at
            first, middle, last = _key(data, at, length)
            h = _hash(first, middle, last, U(length))
            keys[size, 0] = first
            keys[size, 1] = middle
            keys[size, 2] = last
            keys[size, 3] = h & mask
            mine[size] = name
            size += (h >> U(48)) & U(parts - 1) == U(part)
        for i in range(size):
            seen[i] = table[keys[i, 3] * U(4) + U(3)]
        for i in range(size):
            name = mine[i]
            at = offsets[name]
            length = offsets[name + 1] - at
            slot = keys[i, 3]
            meta = seen[i]
            while True:
                entry = slot * U(4)
                if meta == U(0):
                    meta = table[entry + U(3)]
                if meta == U(0):
                    end = ends[count]
                    if 2 * count >= slots or count + 2 > len(ends) or end + length > len(known):
                        return name, count
                    for k in range(length):
                        known[end + k] = data[at + k]
                    table[entry] = keys[i, 0]
                    table[entry + U(1)] = keys[i, 1]
                    table[entry + U(2)] = keys[i, 2]
                    ids[name] = count * parts + part
                    count += 1
                    table[entry + U(3)] = (U(length) << U(32)) | U(count)
                    ends[count] = end + length
                    break
                if (
                    meta >> U(32) == U(length)
                    and table[entry] == keys[i, 0]
                    and table[entry + U(1)] == keys[i, 1]
                    and table[entry + U(2)] == keys[i, 2]
                ):
                    found = np.int64(meta & U(0xFFFFFFFF)) - 1
                    if length <= _INLINE or _same(known, ends[found], data, at, length):
                        ids[name] = found * parts + part
                        break
                slot = (slot + U(1)) & mask
                meta = table[slot * U(4) + U(3)]
        start = stop
    return start, count


@kernel(nogil=True)
def _rehash(old: Any, new: Any) -> Any:
    mask = U(len(new) // 4 - 1)
    for entry in range(0, len(old), 4):
        meta = old[entry + 3]
        if meta != U(0):
            slot = _hash(old[entry], old[entry + 1], old[entry + 2], meta >> U(32)) & mask
            while new[slot * U(4) + U(3)] != U(0):
                slot = (slot + U(1)) & mask
            for k in range(4):
                new[slot * U(4) + U(k)] = old[entry + k]


@kernel(nogil=True)
def _renumber(ids: Any, new: Any, order: Any, count: Any) -> Any:
    for i in range(len(ids)):
        old = ids[i]
        if new[old] < 0:
            new[old] = count
            order[count] = old
            count += 1
        ids[i] = new[old]
    return count


class NameTable:
    """Distinct names, numbered in the order in which they were first seen.

    Of `parts` tables (a power of two) each knows the names whose hash falls to its `part`, so that threads can share
    the work. The id of the part's name number i is `i * parts + part`.
    """

    def __init__(self, part: int = 0, parts: int = 1, *, slots: int = _SLOTS) -> None:
        self._part = part
        self._parts = parts
        self._table = np.zeros(4 * slots // parts, np.uint64)
        self._known: Bytes = np.empty(1 << 16, np.uint8)
        self._ends: Offsets = np.zeros(1 << 12, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def names(self) -> tuple[Offsets, Bytes]:
        """Return the known names as offsets and bytes."""
        ends = self._ends[: self._count + 1]
        return ends, self._known[: int(ends[-1])]

    def encode(self, offsets: npt.NDArray[np.integer], data: Bytes, ids: npt.NDArray[np.int32]) -> None:
        """Write the ids of the names `data[offsets[i]:offsets[i + 1]]` that are this part's, adding new ones."""
        at = np.array(offsets, dtype=np.int64)
        data = data.view()
        data.flags.writeable = False  # one type of argument, hence one compilation
        start = 0
        while True:
            own = (self._table, self._known, self._ends, self._count, self._part, self._parts)
            start, self._count = _encode(at, data, start, ids, *own)
            if start == len(at) - 1:
                return
            self._grow(int(at[start + 1] - at[start]))

    def _grow(self, length: int) -> None:
        if 2 * self._count >= len(self._table) // 4:
            table = np.zeros(2 * len(self._table), np.uint64)
            _rehash(self._table, table)
            self._table = table
        if self._count + 2 > len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        used = int(self._ends[self._count])
        if used + length > len(self._known):
            room = np.empty(max(2 * len(self._known), used + length), np.uint8)
            room[:used] = self._known[:used]
            self._known = room


def renumber(columns: Sequence[npt.NDArray[np.int32]], size: int) -> npt.NDArray[np.int32]:
    """Renumber ids below `size` in place by first occurrence, column by column; return the old ids in the new order."""
    new = np.full(size, -1, np.int32)
    order = np.empty(size, np.int32)
    count = 0
    for ids in columns:
        count = _renumber(ids, new, order, count)
    return order[:count]
