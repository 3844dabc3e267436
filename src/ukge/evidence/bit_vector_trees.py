"""How trees are asked: every question of a tree at once, for many rows, instead of a walk from node to node.

Lucchese, Nardini, Orlando, Perego, Tonellotto, Venturini: QuickScorer: A Fast Algorithm to Rank Documents with Additive
Ensembles of Regression Trees. SIGIR 2015. Here all questions are asked, in an order that vector registers like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.evidence.kernels import kernel, prange

if TYPE_CHECKING:
    from ukge.evidence.trees import Trees

Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROWS = 128
"""Facts that go through the trees together: enough to fill vector registers, few enough for the fastest cache."""

WORD = 32
"""Leaves that one word has bits for; a tree with more of them has several words."""

ALL = np.uint32(0xFFFFFFFF)

UNKNOWN = 256
"""What stands for a category that is none from 0 to 255."""

SEQUENCE, SHIFT = np.uint32(0x077CB531), np.uint32(27)
"""A de Bruijn sequence: times 2^k, its first five bits are another number for each k from 0 to 31."""


@dataclass(frozen=True, eq=False)
class BitVectorTrees:
    """Trees as questions whose answers strike out leaves.

    The leaves of a tree are counted from the left. Whoever goes right at a node is in none of the leaves under its left
    child: their bits are struck out. The first leaf that is left after all questions, asked in any order, is the
    row's own. So no row waits for the memory to tell where it goes next, and many rows are asked at once.
    """

    tree: npt.NDArray[np.int64]
    """Words of tree k are `tree[k]:tree[k + 1]`, from its first leaves on."""
    start: npt.NDArray[np.int64]
    """Questions of word k are `start[k]:start[k + 1]`."""
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    kept: npt.NDArray[np.uint32]
    """What is left of the word of a row that goes right."""
    missing_left: npt.NDArray[np.uint8]
    number: Ints
    """The number of a question about categories among such questions; −1 for one about a threshold."""
    goes_left: npt.NDArray[np.uint32]
    """For each category, and in the last row for those that nobody knows, a bit for every such question."""
    leaf: Floats
    """Values of the leaves, `WORD` to a word, that of bit k at the number that `SEQUENCE` has for it."""

    @classmethod
    def of(cls, trees: Trees) -> BitVectorTrees:
        """Take the questions out of trees."""
        root, left, step, missing_left = trees.root, trees.left, trees.step, trees.missing_left
        first, last = leaf_numbers(root, left, step)
        tree = np.concatenate([[0], np.cumsum((last[root[:-1]] + WORD - 1) // WORD)])
        of_tree = np.repeat(np.arange(len(root) - 1), np.diff(root))
        values = np.zeros(tree[-1] * WORD)
        at_leaf = np.flatnonzero(step == 0)
        word, bit = np.divmod(first[at_leaf], WORD)
        place = (np.uint32(1) << bit.astype(np.uint32)) * SEQUENCE >> SHIFT
        values[(tree[of_tree[at_leaf]] + word) * WORD + place] = trees.value[at_leaf]
        # A node's question concerns each word that has leaves under its left child.
        asks = np.flatnonzero(step == 1)
        begin, end = first[left[asks]], last[left[asks]]
        spans = (end - 1) // WORD - begin // WORD + 1
        node = np.repeat(asks, spans)
        word = np.repeat(begin // WORD, spans) + np.arange(len(node)) - np.repeat(np.cumsum(spans) - spans, spans)
        low = np.maximum(np.repeat(begin, spans) - word * WORD, 0).astype(np.uint64)
        high = np.minimum(np.repeat(end, spans) - word * WORD, WORD).astype(np.uint64)
        struck = (np.uint64(1) << high) - (np.uint64(1) << low)
        word += tree[of_tree[node]]
        order = np.argsort(word, kind="stable")
        node = node[order]
        asked = np.flatnonzero(trees.category[node] >= 0)
        number = np.full(len(node), -1, dtype=np.int32)
        number[asked] = np.arange(len(asked))
        return cls(
            tree=tree,
            start=np.searchsorted(word[order], np.arange(tree[-1] + 1)),
            feature=trees.feature[node],
            threshold=_rounded_down(trees.threshold[node]),
            kept=ALL & ~struck[order].astype(np.uint32),
            missing_left=missing_left[node],
            number=number,
            goes_left=_by_category(trees.bits, trees.category[node[asked]], missing_left[node[asked]]),
            leaf=values,
        )

    def add_to(self, out: Floats, columns: npt.NDArray[np.float32]) -> None:
        """Add the sum of the trees for each row of `columns` to `out`."""
        questions = self.feature, self.threshold, self.kept, self.missing_left, self.number, self.goes_left
        _add(columns, self.tree, self.start, *questions, self.leaf, out)


def _rounded_down(threshold: Floats) -> npt.NDArray[np.float32]:
    """Return thresholds in the precision of columns; rounded down, they send each of those the same way."""
    rounded = threshold.astype(np.float32)
    above = rounded > threshold
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded


def _by_category(
    bits: npt.NDArray[np.uint32], begin: Ints, missing_left: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint32]:
    """Return which questions about categories send each category left; their sets of eight words begin at `begin`."""
    code = np.arange(UNKNOWN)
    left = (bits[begin[:, None] + code // WORD] >> (code % WORD).astype(np.uint32)) & np.uint32(1)
    left = np.column_stack([left, missing_left]).T.astype(np.uint8)
    left = np.pad(left, ((0, 0), (0, -len(begin) % WORD)))
    packed = np.ascontiguousarray(np.packbits(left, axis=1, bitorder="little"))
    return packed.view(np.dtype("<u4")).astype(np.uint32)


def leaf_numbers(root: Places, left: Ints, step: Ints) -> tuple[Places, Places]:
    """Return the first leaf under each node and the one after the last, counted from the left of its tree."""
    levels = [root[:-1]]  # nodes as deep as each other are looked at together
    while len(inner := levels[-1][step[levels[-1]] == 1]):
        levels[-1] = inner
        levels.append(np.concatenate([left[inner], left[inner] + 1]))
    size = (step == 0).astype(np.int64)
    for inner in levels[-2::-1]:
        size[inner] = size[left[inner]] + size[left[inner] + 1]
    first = np.zeros(len(size), dtype=np.int64)
    for inner in levels[:-1]:
        first[left[inner]] = first[inner]
        first[left[inner] + 1] = first[inner] + size[left[inner]]
    return first, first + size


@kernel(inline="always")
def goes_right(x, node, threshold, missing_left, category, bits):  # type: ignore[no-untyped-def]
    """Return 1 if a value goes to the right child of a node, 0 if it goes left."""
    if np.isnan(x):
        return 1 - missing_left[node]
    if category[node] >= 0:
        code = np.int64(x)
        if code < 0 or code > 255:
            return 1 - missing_left[node]
        return 1 - ((bits[category[node] + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1))
    return 1 if x > threshold[node] else 0


@kernel(parallel=True, error_model="numpy")
def _add(  # type: ignore[no-untyped-def] # noqa: PLR0912
    columns, tree, start, feature, threshold, kept, missing_left, number, goes_left, leaf, out
):
    """Add the value of each row's leaf in every tree to `out`. Blocks are always whole, so that loops have no rest."""
    n = len(columns)
    for block in prange((n + ROWS - 1) // ROWS):
        first = block * ROWS
        size = min(n - first, ROWS)
        x = np.zeros((columns.shape[1], ROWS), dtype=np.float32)
        for i in range(size):
            for column in range(columns.shape[1]):
                x[column, i] = columns[first + i, column]
        # answers to 32 questions about the categories of one column
        known, known_column, known_word = np.empty(ROWS, dtype=np.uint32), -1, -1
        left = np.empty(ROWS, dtype=np.uint32)
        at = np.empty(ROWS, dtype=np.int64)
        total = np.zeros(ROWS, dtype=np.float64)
        for at_tree in range(len(tree) - 1):
            # The word with the first leaves comes last: of what is left in several words, the first counts.
            for word in range(tree[at_tree + 1] - 1, tree[at_tree] - 1, -1):
                left[:] = ALL
                for question in range(start[word], start[word + 1]):
                    column, limit, rest = feature[question], threshold[question], kept[question]
                    if number[question] >= 0:
                        word_asked = number[question] // WORD
                        if column != known_column or word_asked != known_word:
                            known_column, known_word = column, word_asked
                            for i in range(ROWS):
                                value = x[column, i]
                                code = np.int64(value) if 0.0 <= value < UNKNOWN else UNKNOWN
                                known[i] = goes_left[code, word_asked]
                        bit = np.uint32(number[question] % WORD)
                        for i in range(ROWS):
                            left[i] &= ALL if (known[i] >> bit) & np.uint32(1) else rest
                    elif missing_left[question]:
                        for i in range(ROWS):
                            left[i] &= rest if x[column, i] > limit else ALL
                    else:
                        for i in range(ROWS):
                            left[i] &= ALL if x[column, i] <= limit else rest
                for i in range(ROWS):
                    if left[i] != 0:
                        lowest = left[i] & (~left[i] + np.uint32(1))
                        at[i] = word * WORD + (np.uint32(lowest * SEQUENCE) >> SHIFT)
            for i in range(ROWS):
                total[i] += leaf[at[i]]
        for i in range(size):
            out[first + i] += total[i]
