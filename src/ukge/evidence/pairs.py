"""What a fact's own two entities say: repeats, the inverse fact, and other relations between them."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.engines.compiled import kernel
from ukge.evidence.index import Asked, FactIndex
from ukge.evidence.tables import UNIT, Tables

NAMES = (
    "twins",
    "twin_confidence",
    "inverse_twins",
    "inverse_confidence",
    "inverse_lowest",
    "inverse_highest",
    "inverse_unmatched",
    "pair_facts",
    "pair_facts_inverse",
    "pair_confidence",
    "implied_share",
    "implied_or",
    "implied_confidence",
    "implied_best",
    "implied_spread",
)

BELIEF = 3.0
"""Facts that the relation's own mean and spread are worth when few facts show how two relations go together."""

RIDGE = 0.02
"""Spread of confidences that is added to the observed one when a slope is fitted to few facts."""

FLOOR = 1e-4
"""Least variance: no relation implies another exactly."""


@kernel(nogil=True)
def _forget(sums, mine, other, r, rows, fact_relation, fact_confidence):  # type: ignore[no-untyped-def]
    """Take out of an entry what the fact itself added to it: as y, and for its own relation as x too."""
    for row in rows:
        if row == mine or fact_relation[row] != other:
            continue
        x = np.int64(np.rint(fact_confidence[row] * UNIT))
        y = np.int64(np.rint(fact_confidence[mine] * UNIT))
        for _ in range(2 if other == r else 1):
            sums[0] -= 1
            sums[1] -= x
            sums[2] -= y
            sums[3] -= x * x
            sums[4] -= x * y
            sums[5] -= y * y
            x, y = y, x


@kernel(nogil=True, parallel=True)
def _fill(  # type: ignore[no-untyped-def] # noqa: PLR0915
    relation, own, ranges, rows, fact_relation, fact_confidence, n_relations, key, sums, count, mean, variance, out
):
    for q in nb.prange(len(relation)):
        r, mine = relation[q], own[q]
        n_twin = n_inverse = n_same = n_turned = 0
        s_twin = s_inverse = s_pair = 0.0
        lowest, highest = np.nan, np.nan
        share, missed, weight, weighted, best, spread = 0.0, 1.0, 0.0, 0.0, np.nan, np.nan
        for side in range(2):
            for k in range(ranges[2 * side, q], ranges[2 * side + 1, q]):
                row = rows[k]
                if row == mine:
                    continue
                other, c = fact_relation[row], fact_confidence[row]
                if other == r and side == 0:
                    n_twin += 1
                    s_twin += c
                elif other == r:
                    lowest = c if n_inverse == 0 else min(lowest, c)
                    highest = c if n_inverse == 0 else max(highest, c)
                    n_inverse += 1
                    s_inverse += c
                else:
                    n_same += side == 0
                    n_turned += side == 1
                    s_pair += c
                wanted = np.int64(r) * 2 * n_relations + other + side * n_relations
                at = np.searchsorted(key, wanted)
                if at == len(key) or key[at] != wanted:
                    continue
                seen, having = sums[at].copy(), count[other]
                if mine >= 0:
                    pair = rows[ranges[2 * side, q] : ranges[2 * side + 1, q]]
                    _forget(seen, mine, other, r, pair, fact_relation, fact_confidence)
                    having -= other == r
                if seen[0] < 1:
                    continue
                n, sx, sy = float(seen[0]), seen[1] / UNIT, seen[2] / UNIT
                sxx, sxy, syy = seen[3] / UNIT**2, seen[4] / UNIT**2, seen[5] / UNIT**2
                if other != r or side == 1:
                    hit = min(n / max(having, 1.0), 1.0) * n / (n + 1.0)
                    share = max(share, hit)
                    missed *= 1.0 - hit
                cov, spread_x = sxy - sx * sy / n, max(sxx - sx * sx / n, 0.0)
                slope = cov / (spread_x + BELIEF * RIDGE)
                level = (sy + BELIEF * mean[q]) / (n + BELIEF)
                guess = min(max(level + slope * (c - sx / n), 0.0), 1.0)
                left = max(syy - sy * sy / n - slope * cov, 0.0)
                doubt = (left + BELIEF * variance[q]) / (n + BELIEF) + FLOOR
                weight += 1.0 / doubt
                weighted += guess / doubt
                if np.isnan(spread) or doubt < spread:
                    best, spread = guess, doubt
        out[q, 0] = n_twin
        out[q, 1] = s_twin / n_twin if n_twin else np.nan
        out[q, 2] = n_inverse
        out[q, 3] = s_inverse / n_inverse if n_inverse else np.nan
        out[q, 4] = lowest
        out[q, 5] = highest
        # Where a graph says both directions of a fact several times, repeats of one account for repeats of the other.
        out[q, 6] = (s_inverse - s_twin) / (n_inverse - n_twin) if n_inverse > n_twin else np.nan
        out[q, 7] = n_same
        out[q, 8] = n_turned
        out[q, 9] = s_pair / (n_same + n_turned) if n_same + n_turned else np.nan
        out[q, 10] = share
        out[q, 11] = 1.0 - missed
        out[q, 12] = weighted / weight if weight > 0.0 else np.nan
        out[q, 13] = best
        out[q, 14] = np.sqrt(spread)


def pair_columns(
    index: FactIndex,
    tables: Tables,
    asked: Asked,
    expected: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    out: npt.NDArray[np.float32],
) -> None:
    """Fill the columns `NAMES`.

    `expected` are mean and variance of the confidences of each fact's relation, without its own row.
    """
    ranges = np.stack(index.pair_ranges(asked.head, asked.tail))
    count = np.zeros(index.n_relations, dtype=np.int64)
    count[tables.by_relation.key] = tables.by_relation.count
    found = np.empty((len(asked.head), len(NAMES)), dtype=np.float32)  # in one piece: kernels are compiled for that
    _fill(
        asked.relation,
        asked.own,
        ranges,
        index.by_pair.rows,
        index.relation,
        index.confidence,
        index.n_relations,
        tables.implications.key,
        tables.implications.sums,
        count,
        *expected,
        found,
    )
    out[:] = found
