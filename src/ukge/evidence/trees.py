"""Boosted trees as plain arrays: how they are grown, stored without pickle and asked.

Many rows are asked by bit vectors, few by NumPy: all trees at once, level by level. The sums are made in the same
order, so the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from os import cpu_count
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge.evidence.binning import Binned
from ukge.evidence.bit_vector_trees import UNKNOWN, WORD, BitVectorTrees
from ukge.evidence.growing import SET, Grower, GrownTree
from ukge.evidence.kernels import compiler_pays
from ukge.evidence.settings import EvidenceSettings

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Loss = Literal["log_loss", "squared_error", "absolute_error"]

STEP = 1e-7
"""Seconds that a row takes for a step down a tree without the compiler."""


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of regression trees and a baseline.

    The nodes of tree k are `root[k]:root[k + 1]`; children of a node are `left` and `left` + 1. A leaf is its own child
    on both ways (`step` 0). A category goes left if its bit is set.
    """

    root: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]
    threshold: Floats
    left: npt.NDArray[np.int32]
    step: npt.NDArray[np.int32]
    missing_left: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint32]
    value: Floats
    count: Floats
    baseline: Floats

    @classmethod
    def joined(cls, grown: Sequence[GrownTree], baseline: float) -> Trees:
        """Make one sum of trees that were grown one after the other."""
        root = np.concatenate([[0], np.cumsum([len(each.feature) for each in grown])])
        leaf = np.concatenate([each.leaf for each in grown])
        asks = np.concatenate([each.categorical for each in grown])
        category = np.full(len(leaf), -1, dtype=np.int32)
        category[asks] = SET * np.arange(int(asks.sum()))
        left = np.concatenate([each.left + top for each, top in zip(grown, root[:-1], strict=True)])
        return cls(
            root=root,
            depth=np.array([each.depth for each in grown], dtype=np.int64),
            feature=np.concatenate([each.feature for each in grown]).astype(np.int32),
            threshold=np.concatenate([each.threshold for each in grown]),
            left=np.where(leaf, np.arange(root[-1]), left).astype(np.int32),
            step=(~leaf).astype(np.int32),
            missing_left=np.concatenate([each.missing_left for each in grown]).astype(np.uint8),
            category=category,
            bits=np.concatenate([each.bits for each in grown]),
            value=np.concatenate([each.value for each in grown]),
            count=np.concatenate([each.count for each in grown]),
            baseline=np.array([baseline]),
        )

    def __len__(self) -> int:
        return len(self.depth)

    def predict(self, columns: Matrix) -> Floats:
        """Return the sum of the trees for each row, log-odds where they tell a class."""
        out = np.full(len(columns), self.baseline[0])
        if compiler_pays(STEP * len(columns) * int(self.depth.sum())):
            self._bit_vectors.add_to(out, np.ascontiguousarray(columns, dtype=np.float32))
        else:
            out += self._by_level(columns)
        return out

    def _by_level(self, columns: Matrix) -> Floats:
        """Return the sum of the trees for each row, without the baseline."""
        node = np.repeat(self.root[:-1, None], len(columns), axis=1)
        tree, row = np.nonzero(self.step[node])
        while len(tree):
            above = node[tree, row]
            at = self.left[above] + self.goes_right(above, columns[row, self.feature[above]])
            node[tree, row] = at
            inner = self.step[at] == 1
            tree, row = tree[inner], row[inner]
        total: Floats = self.value[node].cumsum(axis=0)[-1]  # unlike a sum, it adds one tree after the other
        return total

    def goes_right(self, node: npt.NDArray[Any], values: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """Return whether each value goes to the right child of its node."""
        right: npt.NDArray[np.bool_] = values > self.threshold[node]
        category = self.category[node]
        strange = np.isnan(values) | ((category >= 0) & ~((values >= 0) & (values < UNKNOWN)))
        right[strange] = self.missing_left[node[strange]] == 0
        asked = np.flatnonzero((category >= 0) & ~strange)
        code = values[asked].astype(np.int64)
        word = self.bits[category[asked] + code // WORD]
        right[asked] = (word >> (code % WORD).astype(np.uint32)) & np.uint32(1) == 0
        return right

    @cached_property
    def _bit_vectors(self) -> BitVectorTrees:
        return BitVectorTrees.of(self)


def grow(
    loss: Loss,
    columns: Matrix | Binned,
    target: npt.ArrayLike,
    settings: EvidenceSettings,
    *,
    weight: Floats | None = None,
    rising: npt.NDArray[np.int8] | None = None,
    on_share: Callable[[float], None] = lambda _: None,
) -> Trees:
    """Return boosted trees with the settings of evidence; column 0 is a category.

    With the loss `log_loss` the target is a class, 0 or 1, and the trees give its log-odds. Columns that several fits
    share are put into bins once, by `Binned.of`.
    """
    binned = columns if isinstance(columns, Binned) else Binned.of(columns)
    aim = np.asarray(target, dtype=np.float64)
    of_rows = np.ones(1) if weight is None else np.asarray(weight, dtype=np.float64)
    baseline = _baseline(loss, aim, of_rows)
    now = np.full(len(aim), baseline)
    grower = Grower(binned, np.zeros(len(binned.codes), dtype=np.int8) if rising is None else rising, settings.leaves)
    grown = []
    for number in range(settings.iterations):
        on_share(number / settings.iterations)
        tree = grower.grow(*_slopes(loss, aim, now, of_rows))
        if loss == "absolute_error":
            tree = tree.with_values([float(np.median((aim - now)[rows])) for rows in tree.rows])
        tree = tree.shrunk(settings.learning_rate)
        for value, rows in zip(tree.value[tree.leaf], tree.rows, strict=True):
            now[rows] += value
        grown.append(tree.alone())
    return Trees.joined(grown, baseline)


def side_by_side(
    fits: Sequence[Callable[[], Trees]], on_share: Callable[[float], None] = lambda _: None
) -> list[Trees]:
    """Return the trees of several fits, which run at the same time, one to a core; in order, whoever is done first."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        try:
            running = [pool.submit(each) for each in fits]
            for done, _ in enumerate(as_completed(running), start=1):
                on_share(done / len(fits))
        except BaseException:  # whoever interrupts waits for the fits that run, not for those that were to come
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [each.result() for each in running]


def _baseline(loss: Loss, target: Floats, weight: Floats) -> float:
    """Return the best constant."""
    if loss == "absolute_error":
        return float(np.median(target))
    mean = float(np.average(target, weights=np.broadcast_to(weight, target.shape)))
    if loss == "squared_error":
        return mean
    least = np.finfo(np.float64).eps
    return float(np.log(max(mean, least) / max(1.0 - mean, least)))


def _slopes(loss: Loss, target: Floats, now: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the first and the second derivative of the loss of each row by its prediction."""
    if loss == "log_loss":
        chance = 1.0 / (1.0 + np.exp(-now))
        return (chance - target) * weight, chance * (1.0 - chance) * weight
    if loss == "squared_error":
        return (now - target) * weight, weight
    return np.where(now < target, -1.0, 1.0) * weight, weight
