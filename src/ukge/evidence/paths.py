"""What the neighbours of a fact's two entities say: common neighbours, and rules whose bodies lead over one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.evidence.kernels import kernel, prange
from ukge.evidence.lookup import FactBatch
from ukge.graph.index import FactIndex
from ukge.graph.keys import Keys
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.rules import Rule
from ukge.logic.weights import Prior

if TYPE_CHECKING:
    from ukge.logic.measures import ScoredRule

NAMES = (
    "common_neighbours",
    "common_neighbours_rare",
    "neighbours_shared",
    "best_path",
    "rules",
    "rule_best",
    "rule_or",
    "rule_body",
)

DENSE = 1 << 23
"""Entries up to which the table from (relation, step, step) to rules is kept whole."""

CHUNK = 256
"""Facts that share one scratch table of rules."""

SKEW = 16
"""How many times longer one list of neighbours must be to be searched instead of read."""

FACT, STEP = 1e-5, 5e-7
"""Seconds that a fact, and a neighbour that is looked at, takes without the compiler."""


@dataclass(frozen=True, eq=False)
class PathRules:
    """Rules whose body is a walk of two steps from the head's subject to its object, by (r, p, p').

    Of a relation r without a direction, a rule is the same from both ends and stands under the lower of its two keys.
    `shown` and `implied` are Σ min(body, head) and Σ body over the facts a rule implies: what its weight rests on.
    Bodies are made of facts with a confidence above `strong`.
    """

    key: Keys
    shown: npt.NDArray[np.float64]
    implied: npt.NDArray[np.float64]
    prior: Prior
    strong: float

    @classmethod
    def of(
        cls,
        scored: Sequence[ScoredRule],
        prior: Prior,
        strong: float,
        relations: Vocabulary,
        undirected: Sequence[str] = (),
    ) -> PathRules:
        """Take the rules of two body atoms that form a walk; others are left to other evidence."""
        found: dict[int, ScoredRule] = {}
        for one in scored:
            key = walk_key(one.rule, relations, undirected)
            if key is not None:
                found.setdefault(key, one)
        keys = np.array(sorted(found), dtype=np.int64)
        measures = [found[int(key)].measures for key in keys]
        shown = np.array([each.overlap for each in measures], dtype=np.float64)
        implied = np.array([each.body_sum for each in measures], dtype=np.float64)
        return cls(keys, shown, implied, prior, strong)

    def __len__(self) -> int:
        return len(self.key)

    @property
    def weight(self) -> npt.NDArray[np.float64]:
        """How far to trust each rule's conclusions (see `ukge.logic.weights`)."""
        prior = self.prior
        return (self.shown + prior.strength * prior.mean) / (self.implied + prior.strength)

    def among(self, before: int, now: int) -> PathRules:
        """Return the same rules where there were `before` relations and are `now`, the new ones at the end."""
        rest, second = np.divmod(self.key, 2 * before)
        relation, first = np.divmod(rest, 2 * before)
        first, second = (step + (now - before) * (step >= before) for step in (first, second))
        return replace(self, key=(relation * 2 * now + first) * 2 * now + second)

    def table(self, n_relations: int) -> npt.NDArray[np.int32]:
        """Return the place of the rule of every (r, p, p'), −1 where there is none; empty if that were too large."""
        size = n_relations * (2 * n_relations) ** 2
        if size > DENSE:
            return np.zeros(0, dtype=np.int32)
        table = np.full(size, -1, dtype=np.int32)
        table[self.key] = np.arange(len(self.key), dtype=np.int32)
        return table


def inverse_steps(undirected: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return each step as it is from the other end: R + r for r, r for R + r, and r itself without a direction."""
    n = len(undirected)
    forth = np.arange(n, dtype=np.int32)
    return np.concatenate([np.where(undirected, forth, forth + np.int32(n)), forth])


def walk_key(rule: Rule, relations: Vocabulary, undirected: Sequence[str] = ()) -> int | None:
    """Return (r·2R + p)·2R + p' of a rule p(A, Z) & p'(Z, B) → r(A, B); None for a rule of another shape.

    A rule that concludes an undirected relation has two such keys, one from each end: it gets the lower one.
    """
    ids = [relations.index.get(name) for name in rule.relations]
    if len(rule.body) != 2 or len(rule.variables) != 3 or rule.negated or None in ids:
        return None
    subject, target = rule.head.subject, rule.head.object
    steps: dict[str, int] = {}
    turns = {name: name not in undirected for name in rule.relations}
    for atom, relation in zip(rule.body, ids, strict=False):
        ends = (atom.subject, atom.object)
        if subject in ends and target not in ends:
            steps["first"] = int(relation or 0) + len(relations) * (atom.object == subject and turns[atom.relation])
        elif target in ends and subject not in ends:
            steps["second"] = int(relation or 0) + len(relations) * (atom.subject == target and turns[atom.relation])
    if len(steps) != 2 or ids[-1] is None:
        return None
    wide = 2 * len(relations)
    key = (ids[-1] * wide + steps["first"]) * wide + steps["second"]
    if turns[rule.head.relation]:
        return key
    inverse = inverse_steps(np.array([name in undirected for name in relations]))
    return min(key, int((ids[-1] * wide + inverse[steps["second"]]) * wide + inverse[steps["first"]]))


@kernel()
def rule_at(table, key, wanted):  # type: ignore[no-untyped-def]
    """Return the place of a rule by its key, −1 if there is none."""
    if len(table) > 0:
        return table[wanted]
    at = np.searchsorted(key, wanted)
    return at if at < len(key) and key[at] == wanted else -1


@kernel()
def rule_key(r, first, second, inverse, both_ways, wide):  # type: ignore[no-untyped-def]
    """Return the key of the rules that a walk of two steps is a body of: without a direction, the lower of the two."""
    key = (np.int64(r) * wide + first) * wide + second
    if both_ways:
        key = min(key, (np.int64(r) * wide + inverse[second]) * wide + inverse[first])
    return key


@kernel()
def _seek(entity, begin, end, wanted):  # type: ignore[no-untyped-def]
    """Return the first place from `begin` on whose entity is not below `wanted`, by steps that double."""
    step = 1
    while begin + step < end and entity[begin + step] < wanted:
        step *= 2
    low, high = begin + (step // 2 if step > 1 else 0), min(begin + step, end)
    while low < high:
        middle = (low + high) // 2
        if entity[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(parallel=True)
def _fill(  # type: ignore[no-untyped-def] # noqa: PLR0912, PLR0915
    head, relation, tail, own, own_confidence, undirected, inverse,
    links, near, first, surest, step, rarity, confidence, n_relations,
    table, key, shown, implied, prior_mean, prior_strength, strong, out,
):  # fmt: skip
    n, wide = len(head), 2 * n_relations
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        truest = np.zeros(len(key), dtype=np.float64)
        fired = np.zeros(len(key), dtype=np.int64)
        for q in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            h, r, t, mine = head[q], relation[q], tail[q], own[q]
            both_ways = undirected[r]
            i, i_end, j, j_end = links[h], links[h + 1], links[t], links[t + 1]
            n_h, n_t = i_end - i, j_end - j
            skewed = n_h > SKEW * n_t or n_t > SKEW * n_h
            common, n_fired, rare, path = 0, 0, 0.0, 0.0
            while h != t and i < i_end and j < j_end:
                z, other = near[i], near[j]
                if z != other:
                    if not skewed:  # sums instead of a choice, which would be guessed wrong every other time
                        i += z < other
                        j += other < z
                    elif z < other:
                        i = _seek(near, i, i_end, other)
                    else:
                        j = _seek(near, j, j_end, z)
                    continue
                common += 1
                rare += rarity[z]
                c_most, d_most = surest[i], surest[j]
                path = max(path, c_most * d_most)
                i += 1
                j += 1
                if c_most <= strong or d_most <= strong:
                    continue
                for a in range(first[i - 1], first[i]):
                    c = confidence[a]
                    if c <= strong or c + d_most - 1.0 <= 0.0:
                        continue
                    for b in range(first[j - 1], first[j]):
                        d = confidence[b]
                        body = c + d - 1.0
                        if d <= strong or body <= 0.0:
                            continue
                        wanted = rule_key(r, step[a], inverse[step[b]], inverse, both_ways, wide)
                        rule = rule_at(table, key, wanted)
                        if rule >= 0:
                            if truest[rule] == 0.0:
                                fired[n_fired] = rule
                                n_fired += 1
                            truest[rule] = max(truest[rule], body)
            missed, best, best_body = 1.0, 0.0, 0.0
            for k in range(n_fired):
                rule = fired[k]
                body = truest[rule]
                truest[rule] = 0.0
                has, of = shown[rule], implied[rule]
                if mine >= 0:  # the fact itself is one of those the rule's weight rests on
                    has, of = max(has - min(body, own_confidence[q]), 0.0), max(of - body, 0.0)
                trust = body * (has + prior_strength * prior_mean) / (of + prior_strength)
                missed *= 1.0 - trust
                best = max(best, trust)
                best_body = max(best_body, body)
            # That two entities are each other's neighbours is left out, so that the fact itself has no part in it.
            linked = _seek(near, links[h], i_end, t)
            adjacent = h != t and linked < i_end and near[linked] == t
            either = n_h + n_t - common - 2 * adjacent
            out[q, 0] = common
            out[q, 1] = rare
            out[q, 2] = common / either if either > 0 else 0.0
            out[q, 3] = path
            out[q, 4] = n_fired
            out[q, 5] = best
            out[q, 6] = 1.0 - missed
            out[q, 7] = best_body


def path_columns(
    index: FactIndex,
    rules: PathRules,
    table: npt.NDArray[np.int32],
    inverse: npt.NDArray[np.int32],
    asked: FactBatch,
    out: npt.NDArray[np.float32],
) -> None:
    """Fill the columns `NAMES`; `table` is that of the rules, and `inverse` the steps from the other end.

    A walk leads over a third entity, so no fact is part of one between its own ends. Only the weights of rules rest on
    the facts that they conclude: from these what the fact itself added is taken out.
    """
    near = index.neighbours
    confidence = np.append(index.triples.mean, 0.0)[asked.own] if (asked.own >= 0).any() else np.zeros(len(asked.own))
    found = np.empty((len(asked.head), len(NAMES)), dtype=np.float32)  # in one piece: kernels are compiled for that
    n_head, n_tail = (near.links[entity + 1] - near.links[entity] for entity in (asked.head, asked.tail))
    steps = int(np.minimum(n_head + n_tail, 2 * SKEW * np.minimum(n_head, n_tail)).sum())
    _fill.within(FACT * len(asked.head) + STEP * steps)(
        *asked,
        confidence,
        index.graph.undirected_relations,
        inverse,
        near.links,
        near.near,
        near.first,
        near.surest,
        near.step,
        near.rarity,
        near.confidence,
        index.n_relations,
        table,
        rules.key,
        rules.shown,
        rules.implied,
        rules.prior.mean,
        rules.prior.strength,
        rules.strong,
        found,
    )
    out[:] = found
