"""What a fact's own two entities say: repeats, the inverse fact, and other relations between them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.evidence.kernels import kernel, prange
from ukge.evidence.lookup import FactBatch, find_rows
from ukge.evidence.tables import UNIT, Added, Tables
from ukge.graph.index import FactIndex
from ukge.graph.keys import pair_keys
from ukge.graph.queries import Places
from ukge.graph.vocabulary import Ids

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

FACT, STEP = 1e-5, 2e-5
"""Seconds that a fact, and a fact between the same two entities, takes without the compiler."""


@kernel()
def _forget(sums, r, other, n, total, squares, rows, fact_relation, fact_confidence):  # type: ignore[no-untyped-def]
    """Take out of an entry what the fact's own n rows added to it: as y, and for its own relation as x too."""
    for row in rows:
        if fact_relation[row] != other:
            continue
        x = np.int64(np.rint(fact_confidence[row] * UNIT))
        sums[0] -= n
        sums[1] -= n * x
        sums[2] -= total
        sums[3] -= n * x * x
        sums[4] -= x * total
        sums[5] -= squares
        if other == r:
            sums[0] -= n
            sums[1] -= total
            sums[2] -= n * x
            sums[3] -= squares
            sums[4] -= x * total
            sums[5] -= n * x * x


@kernel(parallel=True)
def _fill(  # type: ignore[no-untyped-def] # noqa: PLR0912, PLR0915
    relation, own, added_count, added_total, added_squares, ranges, rows, fact, fact_relation, fact_confidence,
    undirected, n_relations, key, sums, count, mean, variance, out,
):  # fmt: skip
    for q in prange(len(relation)):
        r, mine = relation[q], own[q]
        n_twin = n_inverse = n_same = n_turned = 0
        s_twin = s_inverse = s_pair = 0.0
        lowest, highest = np.nan, np.nan
        share, missed, weight, weighted, best, spread = 0.0, 1.0, 0.0, 0.0, np.nan, np.nan
        for side in range(2):
            for k in range(ranges[2 * side, q], ranges[2 * side + 1, q]):
                row = rows[k]
                if mine >= 0 and fact[row] == mine:
                    continue
                other, c = fact_relation[row], fact_confidence[row]
                if side == 1 and undirected[other]:  # seen in the other direction already
                    continue
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
                    # Without a direction, the fact meets the other from both its ends.
                    for end in range(2) if undirected[r] else range(side, side + 1):
                        pair = rows[ranges[2 * end, q] : ranges[2 * end + 1, q]]
                        _forget(
                            seen, r, other, added_count[q], added_total[q], added_squares[q],
                            pair, fact_relation, fact_confidence,
                        )  # fmt: skip
                    having -= added_count[q] * (other == r)
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


def pair_ranges(index: FactIndex, head: Ids, tail: Ids) -> tuple[Places, Places, Places, Places]:
    """Return begin and end of the rows of (h, t), and of those of (t, h); the latter are empty for loops."""
    forward = find_rows(index.by_pair, pair_keys(head, tail, index.n_entities, directed=True))
    begin, end = find_rows(index.by_pair, pair_keys(tail, head, index.n_entities, directed=True))
    return *forward, begin, np.where(head == tail, begin, end)


def pair_columns(
    index: FactIndex,
    tables: Tables,
    count: npt.NDArray[np.int64],
    asked: FactBatch,
    added: Added,
    expected: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    out: npt.NDArray[np.float32],
) -> None:
    """Fill the columns `NAMES`.

    `count` says how many rows of the index each relation has, `added` what each fact itself gave to the sums, and
    `expected` mean and variance of the confidences of its relation without it.
    """
    ranges = np.stack(pair_ranges(index, asked.head, asked.tail))
    found = np.empty((len(asked.head), len(NAMES)), dtype=np.float32)  # in one piece: kernels are compiled for that
    steps = int((ranges[1] - ranges[0] + ranges[3] - ranges[2]).sum())
    _fill.within(FACT * len(asked.head) + STEP * steps)(
        asked.relation,
        asked.own,
        added.count,
        added.total,
        added.squares,
        ranges,
        index.by_pair.rows,
        index.fact,
        index.relation,
        index.confidence,
        index.graph.undirected_relations,
        index.n_relations,
        tables.implications.key,
        tables.implications.sums,
        count,
        *expected,
        found,
    )
    out[:] = found
