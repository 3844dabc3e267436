"""How one tree is grown: the leaf whose parting gains most is parted, again and again.

Histogram boosting as in Ke, Meng, Finley, Wang, Chen, Ma, Ye, Liu: LightGBM. NIPS 2017, with gain and leaf values of
Chen, Guestrin: XGBoost. KDD 2016 (eqs. 5 to 7). Categories are ordered by their mean gradient and parted like numbers
(Fisher: On Grouping for Maximum Homogeneity. 1958). A test holds the trees equal to scikit-learn's.

One thread grows a tree. Several wait for each other at every node, and where another process wants a core too, nearly
all their time goes into that; so many trees grow side by side instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ukge.evidence.binning import CATEGORY, CODES, MISSING, Binned
from ukge.evidence.kernels import kernel

FEWEST_IN_LEAF = 20
LEAST_HESSIAN = 1e-3
FEWEST_IN_CATEGORY = 10.0
"""Weight that a category needs to be placed by its mean; it is also how far means of categories are drawn to 0."""

L2 = 1.0
"""Draws the values of small leaves to 0."""

GRADIENT, HESSIAN, COUNT = 0, 1, 2

# What is known of a node: whole numbers, and others.
FEATURE, LIMIT, CHILD, MISSING_LEFT, BEGIN, END, SLOT, DEPTH, INTS = 0, 1, 2, 3, 4, 5, 6, 7, 8
GAIN, SUM_G, SUM_H, VALUE, LOW, HIGH, LEFT_G, LEFT_H, FLOATS = 0, 1, 2, 3, 4, 5, 6, 7, 8
LEAF = -1
"""The feature of a node that asks nothing."""

SET = 8
"""Words of a set of categories."""


Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class GrownTree:
    """One tree. Nodes that are as deep as each other stand together, and so do the two children of one."""

    feature: npt.NDArray[np.int64]
    threshold: Floats
    left: npt.NDArray[np.int64]
    leaf: npt.NDArray[np.bool_]
    categorical: npt.NDArray[np.bool_]
    missing_left: npt.NDArray[np.int64]
    bits: npt.NDArray[np.uint32]
    value: Floats
    count: Floats
    depth: int
    rows: tuple[Rows, ...]
    """the rows of each leaf"""

    def with_values(self, of_leaves: Sequence[float]) -> GrownTree:
        """Return the tree with other values in its leaves."""
        value = self.value.copy()
        value[self.leaf] = of_leaves
        return replace(self, value=value)

    def shrunk(self, rate: float) -> GrownTree:
        """Return the tree with values that go as far as the rate lets them."""
        return replace(self, value=self.value * rate)

    def alone(self) -> GrownTree:
        """Return the tree without the rows that it was grown over."""
        return replace(self, rows=())


class Grower:
    """Grows trees over the same rows, one after the other."""

    def __init__(self, binned: Binned, rising: npt.NDArray[np.int8], leaves: int) -> None:
        self._binned, self._rising, self._leaves = binned, rising, leaves
        n, nodes = len(binned), 2 * leaves - 1
        self._rows, self._spare = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        self._sums = np.empty((leaves, int(binned.first[-1]), 3))
        self._ints, self._floats = np.zeros((nodes, INTS), dtype=np.int64), np.zeros((nodes, FLOATS))
        self._sets = np.zeros((nodes, SET), dtype=np.uint32)

    def grow(self, gradient: Floats, hessian: Floats) -> GrownTree:
        """Return the tree that makes the loss smaller, given its derivatives by the prediction of each row."""
        data = self._binned
        found = data.codes, data.first, data.usual, data.missing, data.start, data.entry, self._rising
        room = self._rows, self._spare, self._sums, self._ints, self._floats, self._sets
        n = grow_tree(*found, gradient, hessian, self._leaves, *room)
        order, place = [0], np.zeros(n, dtype=np.int64)
        child = self._ints[:n, CHILD].tolist()
        for old in order:
            if child[old]:
                place[child[old]] = len(order)
                order += [child[old], child[old] + 1]
        ints, floats = self._ints[order], self._floats[order]
        leaf = ints[:, CHILD] == 0
        ints[leaf, FEATURE] = LEAF
        categorical = ~leaf & (ints[:, FEATURE] == CATEGORY)
        limits = data.limits
        threshold = [_threshold(limits[each[FEATURE]], each[LIMIT]) if each[FEATURE] > 0 else np.inf for each in ints]
        return GrownTree(
            feature=np.where(leaf, 0, ints[:, FEATURE]),
            threshold=np.array(threshold),
            left=place[ints[:, CHILD]],
            leaf=leaf,
            categorical=categorical,
            missing_left=np.where(leaf, 1, ints[:, MISSING_LEFT]),
            bits=self._sets[order][categorical].reshape(-1),
            value=floats[:, VALUE],
            count=(ints[:, END] - ints[:, BEGIN]).astype(np.float64),
            depth=int(ints[:, DEPTH].max()),
            rows=tuple(self._rows[each[BEGIN] : each[END]] for each in ints[leaf]),
        )


def _threshold(limits: Floats, code: int) -> float:
    """Return what values that go left are not above; beyond the last bin only missing values go right."""
    return float(limits[code]) if code < len(limits) else np.inf


@kernel()
def grow_tree(  # type: ignore[no-untyped-def]
    codes, first, usual, missing, start, entry, rising, gradient, hessian, leaves, rows, spare, sums, ints, floats, sets
):
    """Grow a tree over all rows; return its number of nodes. `rows` are in the order of its leaves then.

    A node's children stand side by side. `sums` has room for the histograms of as many nodes as there may be leaves.
    """
    n = codes.shape[1]
    for i in range(n):
        rows[i] = i
    ints[0, BEGIN], ints[0, END], ints[0, SLOT], ints[0, DEPTH] = 0, n, 0, 0
    ints[0, CHILD] = 0
    _sum_up(sums[0], first, usual, start, entry, gradient, hessian, rows[:n])
    total_g, total_h = 0.0, 0.0
    for at in range(first[1]):
        total_g += sums[0, at, GRADIENT]
        total_h += sums[0, at, HESSIAN]
    floats[0, SUM_G], floats[0, SUM_H], floats[0, VALUE] = total_g, total_h, 0.0
    floats[0, LOW], floats[0, HIGH] = -np.inf, np.inf
    _find_split(0, sums[0], first, rising, ints, floats, sets)
    nodes, slots = 1, 1
    while nodes < 2 * leaves - 1:
        node = 0
        for each in range(1, nodes):
            if floats[each, GAIN] > floats[node, GAIN]:
                node = each
        if floats[node, GAIN] <= 0.0:
            break
        left, right = nodes, nodes + 1
        _part(node, left, codes, missing, rising, rows, spare, ints, floats, sets)
        nodes += 2
        more = nodes < 2 * leaves - 1
        n_left, n_right = ints[left, END] - ints[left, BEGIN], ints[right, END] - ints[right, BEGIN]
        if not more or max(n_left, n_right) < 2 * FEWEST_IN_LEAF:
            continue
        small, large = (left, right) if n_left < n_right else (right, left)
        ints[small, SLOT], ints[large, SLOT] = slots, ints[node, SLOT]
        own, rest = sums[slots], sums[ints[node, SLOT]]
        slots += 1
        _sum_up(own, first, usual, start, entry, gradient, hessian, rows[ints[small, BEGIN] : ints[small, END]])
        for at in range(len(rest)):
            rest[at, GRADIENT] -= own[at, GRADIENT]
            rest[at, HESSIAN] -= own[at, HESSIAN]
            rest[at, COUNT] -= own[at, COUNT]
        for child in (left, right):
            if ints[child, END] - ints[child, BEGIN] >= 2 * FEWEST_IN_LEAF:
                _find_split(child, sums[ints[child, SLOT]], first, rising, ints, floats, sets)
    return nodes


@kernel()
def _sum_up(sums, first, usual, start, entry, gradient, hessian, rows):  # type: ignore[no-untyped-def]
    """Sum up gradients, hessians and rows of every bin; the usual bin of a column has what the others leave.

    A single hessian is that of every row.
    """
    sums[:] = 0.0
    total_g, total_h = 0.0, 0.0
    if len(hessian) == 1:
        for row in rows:
            g = gradient[row]
            total_g += g
            for i in range(start[row], start[row + 1]):
                sums[entry[i], GRADIENT] += g
                sums[entry[i], COUNT] += 1.0
        total_h = hessian[0] * len(rows)
        for at in range(len(sums)):
            sums[at, HESSIAN] = sums[at, COUNT] * hessian[0]
    else:
        for row in rows:
            g, h = gradient[row], hessian[row]
            total_g += g
            total_h += h
            for i in range(start[row], start[row + 1]):
                sums[entry[i], GRADIENT] += g
                sums[entry[i], HESSIAN] += h
                sums[entry[i], COUNT] += 1.0
    for column in range(len(usual)):
        g, h, count = total_g, total_h, float(len(rows))
        for at in range(first[column], first[column + 1]):
            g -= sums[at, GRADIENT]
            h -= sums[at, HESSIAN]
            count -= sums[at, COUNT]
        at = min(first[column] + usual[column], first[column + 1] - 1)
        sums[at, GRADIENT], sums[at, HESSIAN], sums[at, COUNT] = g, h, count


@kernel(inline="always")
def _value(g, h, low, high):  # type: ignore[no-untyped-def]
    return min(max(-g / (h + L2), low), high)


@kernel()
def _find_split(node, sums, first, rising, ints, floats, sets):  # type: ignore[no-untyped-def]
    """Find how a node is parted best, and write it down; no gain says that it stays a leaf."""
    floats[node, GAIN] = 0.0
    best = 0.0
    count = ints[node, END] - ints[node, BEGIN]
    total_g, total_h = floats[node, SUM_G], floats[node, SUM_H]
    low, high = floats[node, LOW], floats[node, HIGH]
    now = total_g * floats[node, VALUE]
    for column in range(len(rising)):
        if column == CATEGORY:
            best = _part_categories(node, sums, first[1], count, now, ints, floats, sets)
            continue
        begin, end = first[column], first[column + 1] - 1
        unknown = sums[end, COUNT] > 0.0
        # From the left on missing values go right; if there are any, from the right on they go left.
        for turn in range(2 if unknown else 1):
            g, h, c = 0.0, 0.0, 0.0
            for code in range(end - begin if unknown and turn == 0 else end - begin - 1):
                at = end - 1 - code if turn else begin + code
                if sums[at, COUNT] == 0.0:
                    continue
                g += sums[at, GRADIENT]
                h += sums[at, HESSIAN]
                c += sums[at, COUNT]
                if c < FEWEST_IN_LEAF or h < LEAST_HESSIAN:
                    continue
                if count - c < FEWEST_IN_LEAF or total_h - h < LEAST_HESSIAN:
                    break
                passed, other = _value(g, h, low, high), _value(total_g - g, total_h - h, low, high)
                gain = now - g * passed - (total_g - g) * other
                if gain > best and not (rising[column] and (passed < other if turn else passed > other)):
                    best = gain
                    ints[node, FEATURE], ints[node, LIMIT], ints[node, MISSING_LEFT] = column, at - begin - turn, turn
                    floats[node, LEFT_G], floats[node, LEFT_H] = (total_g - g, total_h - h) if turn else (g, h)
    floats[node, GAIN] = best


@kernel()
def _part_categories(node, sums, bins, count, now, ints, floats, sets):  # type: ignore[no-untyped-def]
    """Part categories by their mean gradient; those with hardly any rows stay with the greater part of the others."""
    known = np.empty(CODES, dtype=np.int64)
    mean = np.empty(CODES)
    total_g, total_h = floats[node, SUM_G], floats[node, SUM_H]
    low, high = floats[node, LOW], floats[node, HIGH]
    used = 0
    for code in range(bins):
        if sums[code, HESSIAN] * (count / total_h) >= FEWEST_IN_CATEGORY:
            known[used] = code
            mean[used] = sums[code, GRADIENT] / (sums[code, HESSIAN] + FEWEST_IN_CATEGORY)
            used += 1
    if used < 2:
        return 0.0
    order = np.argsort(mean[:used], kind="mergesort")
    best, many, turned = 0.0, 0, 0
    for turn in range(2):
        g, h, c = 0.0, 0.0, 0.0
        for i in range((used + 1) // 2 - turn):
            code = known[order[used - 1 - i if turn else i]]
            g += sums[code, GRADIENT]
            h += sums[code, HESSIAN]
            c += sums[code, COUNT]
            if c < FEWEST_IN_LEAF or h < LEAST_HESSIAN:
                continue
            if count - c < FEWEST_IN_LEAF or total_h - h < LEAST_HESSIAN:
                break
            to_left, to_right = _value(g, h, low, high), _value(total_g - g, total_h - h, low, high)
            gain = now - g * to_left - (total_g - g) * to_right
            if gain > best:
                best, many, turned = gain, i + 1, turn
                floats[node, LEFT_G], floats[node, LEFT_H] = g, h
    if best > 0.0:
        ints[node, FEATURE], ints[node, MISSING_LEFT] = CATEGORY, 0
        sets[node] = 0
        for i in range(many):
            code = known[order[used - 1 - i if turned else i]]
            sets[node, code >> 5] |= np.uint32(1) << np.uint32(code & 31)
            if code == MISSING:
                ints[node, MISSING_LEFT] = 1
    return best


@kernel()
def _part(node, left, codes, missing, rising, rows, spare, ints, floats, sets):  # type: ignore[no-untyped-def]
    """Part the rows of a node among its two children, in their order."""
    begin, end, column = ints[node, BEGIN], ints[node, END], ints[node, FEATURE]
    at, others = begin, 0
    limit, of_missing = ints[node, LIMIT], ints[node, MISSING_LEFT] == 1
    for i in range(begin, end):
        code = codes[column, rows[i]]
        if column == CATEGORY:
            goes_left = (sets[node, code >> 5] >> np.uint32(code & 31)) & np.uint32(1) == 1
        elif code == MISSING:
            goes_left = of_missing
        else:
            goes_left = code <= limit
        if goes_left:
            rows[at] = rows[i]
            at += 1
        else:
            spare[others] = rows[i]
            others += 1
    rows[at:end] = spare[:others]
    right = left + 1
    ints[node, CHILD] = left
    floats[node, GAIN] = 0.0
    if not missing[column]:  # whoever asks about a value that was always known goes where most go
        ints[node, MISSING_LEFT] = 1 if at - begin > end - at else 0
    low, high = floats[node, LOW], floats[node, HIGH]
    for child in (left, right):
        ints[child, CHILD], ints[child, DEPTH] = 0, ints[node, DEPTH] + 1
        floats[child, GAIN], floats[child, LOW], floats[child, HIGH] = 0.0, low, high
    ints[left, BEGIN], ints[left, END], ints[right, BEGIN], ints[right, END] = begin, at, at, end
    floats[left, SUM_G], floats[left, SUM_H] = floats[node, LEFT_G], floats[node, LEFT_H]
    floats[right, SUM_G] = floats[node, SUM_G] - floats[node, LEFT_G]
    floats[right, SUM_H] = floats[node, SUM_H] - floats[node, LEFT_H]
    for child in (left, right):
        floats[child, VALUE] = _value(floats[child, SUM_G], floats[child, SUM_H], low, high)
    if rising[column]:
        middle = (floats[left, VALUE] + floats[right, VALUE]) / 2
        floats[left, HIGH], floats[right, LOW] = middle, middle
