"""What the graph that the claims make says of each of them: facts that hold have others beside them that fit.

Columns are read off the other facts with what is believed of them at present: of the same two entities, of the same
head, tail and relation, and walks of two and three steps from head to tail. Trees learn from them what the sources
believe. Facts are cut into parts; those of a part are seen from the facts of the others alone and judged by trees that
learnt from these, so that no fact is evidence for itself. What is learnt from beliefs is weaker than what the truth
would teach: with p the sources' chance that a fact holds,

    E[p | columns]  =  P(holds | columns) · E[p | holds]  +  P(does not | columns) · E[p | does not]

and P(holds | columns) follows, because the sources' p says what both means are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ukge.evidence.binning import Binned
from ukge.evidence.fuse import logit, sigmoid
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Matrix, grow
from ukge.fusing.voices import Flags, Floats
from ukge.graph.uncertain import UncertainGraph

FEWEST = 400
"""Facts that a graph has at least before anything is read off it."""

PARTS = 5
TREES = EvidenceSettings(iterations=60, leaves=15, learning_rate=0.1)
MOST_RELATIONS = 254
"""Relations that trees tell apart; those beyond it are one to them."""

DIGITS = 6
"""Digits of a column: beyond them is how numbers were added up, which is not to decide anything."""

MOST_STEPS = 50_000_000
"""Products of sparse matrices that take more steps are left out: walks over entities that everything is joined to."""

BOUND = 0.02
"""The structure alone never says less than this, nor more than 1 minus it."""

SLOPES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""How far what trees say is taken at its word: as far as is best for facts that they did not see."""

LABEL_WEIGHT = 3.0
"""How much a label counts beside what the sources believe of another fact."""


@dataclass(frozen=True, eq=False)
class Structure:
    """The graph of the facts, ready to be read with any beliefs, and the part of each fact."""

    facts: UncertainGraph
    part: npt.NDArray[np.int64]

    @classmethod
    def of(cls, facts: UncertainGraph, seed: int = 0) -> Structure | None:
        """Cut facts into parts; None if they are too few to say anything."""
        if len(facts) < FEWEST:
            return None
        return cls(facts, np.random.default_rng(seed).permutation(len(facts)) % PARTS)

    def columns(self, belief: Floats) -> Matrix:
        """Return what is seen of every fact from those of the other parts; column 0 is the relation."""
        found = None
        for number in range(PARTS):
            rows = self.part == number
            seen = _columns(self.facts, belief, ~rows)
            found = np.zeros(seen.shape, np.float32) if found is None else found
            found[rows] = seen[rows]
        assert found is not None
        return found

    def log_odds(self, columns: Matrix, believed: Floats, label: Floats | None = None) -> Floats:
        """Return what the columns add to the log-odds that facts hold, as learnt from what the sources believe.

        Facts with a label teach that instead, and count more.
        """
        known = np.zeros(len(believed), np.bool_) if label is None else ~np.isnan(label)
        target = believed if label is None else np.where(known, label, believed)
        weight = np.where(known, LABEL_WEIGHT, 1.0)
        binned, said = Binned.of(columns), np.empty(len(target))
        for number in range(PARTS):
            rows = self.part == number
            learnt = np.flatnonzero(~rows)
            trees = grow("squared_error", binned.pick(learnt), target[learnt], TREES, weight=weight[learnt])
            said[rows] = trees.predict(columns[rows])
        if_true = float(np.average(target, weights=weight * target))
        if_false = float(np.average(target, weights=weight * (1.0 - target)))
        if if_true - if_false < BOUND:
            return np.zeros(len(target))
        chance = np.clip((said - if_false) / (if_true - if_false), BOUND, 1.0 - BOUND)
        usual = float(logit(np.array([np.average(target, weights=weight)]))[0])
        beyond = np.asarray(logit(chance) - usual)

        def error(slope: float) -> float:
            expected = if_false + (if_true - if_false) * sigmoid(usual + slope * beyond)
            return float(np.average((target - expected) ** 2, weights=weight))

        return beyond * min(SLOPES, key=error)


def _columns(facts: UncertainGraph, belief: Floats, seen: Flags) -> Matrix:
    """Return what is known of every fact from those that are `seen`."""
    n, relations = facts.n_entities, facts.n_relations
    head, relation, tail = (np.asarray(ids).astype(np.int64) for ids in (facts.head, facts.relation, facts.tail))
    weight, usual = np.where(seen, belief, 0.0), float(belief.mean())
    by_name = np.argsort(np.argsort(np.array(facts.relations.names.to_pylist())))
    columns = [np.minimum(by_name[relation], MOST_RELATIONS).astype(np.float64)]
    pair = np.minimum(head, tail) * n + np.maximum(head, tail)
    for key in (pair, head * relations + relation, tail * relations + relation, head, tail, relation):
        _, group = np.unique(key, return_inverse=True)
        held = np.asarray(np.bincount(group, weight)[group], np.float64)
        number = np.bincount(group, seen)[group]
        columns += [held, np.asarray(number, np.float64), (held + 3.0 * usual) / (number + 3.0)]
    columns += _alike_walks(n, (head, relation, tail), weight, seen)
    columns += _any_walks(n, (head, tail), weight, seen)
    return np.round(np.stack(columns, axis=1), DIGITS).astype(np.float32)


Ids = npt.NDArray[np.int64]


def _alike_walks(n: int, ids: tuple[Ids, Ids, Ids], weight: Floats, seen: Flags) -> list[Floats]:
    """Return the walks head – t′ – h′ – tail over facts of the same relation: whoever shares tails shares more."""
    head, relation, tail = ids
    walks, share = np.zeros(len(head)), np.zeros(len(head))
    order = np.argsort(relation, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(relation[order])) + 1):
        used = rows[seen[rows]]
        steps = sparse.csr_array((weight[used], (head[used], tail[used])), shape=(n, n))
        out, into = np.asarray(steps.sum(axis=1)).ravel(), np.asarray(steps.sum(axis=0)).ravel()
        heads_of = np.bincount(tail[used], minlength=n).astype(np.float64)
        if float(heads_of @ heads_of) * max(1.0, len(used) / max(int((out > 0).sum()), 1)) > MOST_STEPS:
            continue
        walks[rows] = _entries(steps @ steps.T @ steps, head[rows], tail[rows])
        share[rows] = (walks[rows] + 0.05) / (out[head[rows]] * into[tail[rows]] + 0.5)
    return [walks, share]


def _any_walks(n: int, ends: tuple[Ids, Ids], weight: Floats, seen: Flags) -> list[Floats]:
    """Return the walks of two steps between the ends of each fact, over facts of any relation in either direction."""
    used, (head, tail) = np.flatnonzero(seen), ends
    steps = sparse.csr_array((weight[used], (head[used], tail[used])), shape=(n, n))
    steps = steps + steps.T
    degree = np.bincount(np.concatenate([head[used], tail[used]]), minlength=n).astype(np.float64)
    if float(degree @ degree) > MOST_STEPS:
        return [np.zeros(len(head)), np.zeros(len(head))]
    walks, strength = _entries(steps @ steps, head, tail), np.asarray(steps.sum(axis=1)).ravel()
    return [walks, walks / (np.sqrt(strength[head] * strength[tail]) + 1.0)]


def _entries(matrix: sparse.csr_array, row: Ids, column: Ids) -> Floats:
    return np.asarray(sparse.csr_array(matrix)[row, column], np.float64).ravel()
