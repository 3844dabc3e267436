"""What stands behind each column of the evidence about one fact: known facts, ground rules, analogues, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ukge.evidence import pairs
from ukge.evidence.backbones import MOST, Backbone
from ukge.evidence.features import EXPECTED, Features
from ukge.evidence.lookup import FactBatch, find
from ukge.evidence.walks import Walks
from ukge.graph.fact import Fact
from ukge.graph.queries import SIDES, Places, Side
from ukge.graph.vocabulary import Ids

SHOWN = 3
"""Known facts that a reason quotes when it rests on many."""

OTHER = "other"

SMALL = 5e-4
"""A contribution that two printed digits would show as nothing."""

NAMED = 0.1
"""A reason that names facts goes before a heavier one that does not, if it weighs at least this share of it."""

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "repeat": ("twins", "twin_confidence"),
    "inverse": ("inverse_twins", "inverse_confidence", "inverse_lowest", "inverse_highest", "inverse_unmatched"),
    "pair": pairs.NAMES[pairs.NAMES.index("pair_facts") :],
    "rule": ("rules", "rule_best", "rule_or", "rule_body"),
    "neighbours": ("common_neighbours", "common_neighbours_rare", "neighbours_shared", "best_path"),
    "query": ("query_facts", "query_confidence", "query_spread"),
    "inverse query": ("inverse_query_facts", "inverse_query_confidence", "inverse_query_spread"),
    "head": ("head_facts", "head_confidence", "head_as_tail", "head_as_any_tail"),
    "tail": ("tail_facts", "tail_confidence", "tail_as_head", "tail_as_any_head"),
    "relation": ("relation", "relation_facts", "relation_confidence", "relation_spread"),
    "expectation": (EXPECTED,),
    "analogue tail": ("nearest_tail", "nearest_tail_confidence", "similar_tails_confidence"),
    "analogue head": ("nearest_head", "nearest_head_confidence", "similar_heads_confidence"),
}
"""The columns of evidence by what they speak of; a model's column speaks of itself."""

_SUBJECT = {column: subject for subject, columns in SUBJECTS.items() for column in columns}


@dataclass(frozen=True)
class Reason:
    """One thing that moved a confidence, by how much, and the known facts (and the rule) it rests on.

    Where nothing is fitted that could say by how much, there is no contribution.
    """

    kind: str
    sentence: str
    contribution: float | None
    facts: tuple[Fact, ...] = ()
    rule: str | None = None

    @property
    def weight(self) -> float:
        """How far it moved the confidence, up or down."""
        return abs(self.contribution or 0.0)


def in_order(reasons: Iterable[Reason]) -> list[Reason]:
    """Return reasons in the order in which they are told, each group by falling weight.

    Those that name facts or rules come first, but for such as moved the confidence hardly, or not a tenth as far as
    the heaviest of all did.
    """
    every = list(reasons)
    least = max(SMALL, NAMED * max((each.weight for each in every), default=0.0))
    return sorted(every, key=lambda each: (not (each.facts and each.weight >= least), -each.weight))


def subject_of(column: str) -> str:
    """Return what a column speaks of."""
    return column if column.startswith("model:") else _SUBJECT.get(column, OTHER)


class Witness:
    """One fact, as the graph would hold it, beside everything that is known: says what its evidence rests on.

    `own` is its place among the distinct known facts if it does not count for itself, else −1.
    """

    def __init__(self, features: Features, fact: tuple[int, int, int], values: Mapping[str, float], own: int) -> None:
        self._features = features
        self._index = features.index
        self._head, self._relation, self._tail = fact
        self._values = values
        self._own = own
        self._walks = Walks(features, fact)
        graph = self._index.graph
        self._spoken = graph.nodes.spoken
        ends = (self._spoken(graph.entities[fact[end]]) for end in (0, 2))
        self._names = next(ends), graph.relations[fact[1]], next(ends)

    def reasons(self, parts: Mapping[str, float]) -> list[Reason]:
        """Return the reasons that share the parts; what no reason takes is left to the caller."""
        return [reason for _, tell in self._tellers(parts) for reason in tell()]

    def top(self, parts: Mapping[str, float]) -> Reason:
        """Return the reason that is told first; those that cannot be it are not worked out."""
        told: list[Reason] = []
        for most, tell in sorted(self._tellers(parts), key=lambda teller: -teller[0]):
            named = max((each.weight for each in told if each.facts), default=0.0)
            heaviest = max((each.weight for each in told), default=0.0)
            if told and (named >= most or max(SMALL, heaviest * NAMED) > most):
                break
            told += tell()
        return in_order(told)[0]

    def _tellers(self, parts: Mapping[str, float]) -> list[tuple[float, Callable[[], list[Reason]]]]:
        """Return what tells the reasons, each with the most that one of its reasons can have moved the confidence."""
        of_pair = sum(abs(parts.get(kind, 0.0)) for kind in ("repeat", "inverse", "pair"))
        found: list[tuple[float, Callable[[], list[Reason]]]] = [
            (of_pair, lambda: self._pair(parts)),
            (abs(parts.get("rule", 0.0)), lambda: self._rules(parts.get("rule", 0.0))),
        ]
        simple: dict[str, Callable[[], tuple[str, tuple[Fact, ...]]]] = {}
        if self._features.backbones:
            simple |= {f"analogue {side}": partial(self._analogue, side) for side in SIDES}
        simple |= {
            "neighbours": self._neighbours,
            "query": partial(self._query, "tail"),
            "inverse query": partial(self._query, "head"),
            "head": partial(self._entity, "head"),
            "tail": partial(self._entity, "tail"),
            "relation": self._of_relation,
        }
        simple |= {f"model:{each.name}": partial(self._belief, each) for each in self._features.backbones}
        for subject, told in simple.items():
            part = parts.get(subject, 0.0)
            found.append((abs(part), partial(_alone, subject, told, part)))
        return found

    def _belief(self, backbone: Backbone) -> tuple[str, tuple[Fact, ...]]:
        head, relation, tail = (np.array([each]) for each in self._fact)
        if backbone.learns_confidence:
            value = float(backbone.model.confidence(head, relation, tail)[0])
            return f"Model {backbone.name} gives it a confidence of {value:.2f}.", ()
        scores = backbone.model.tail_scores(head, relation)[0]
        place = 1 + int((scores > scores[self._tail]).sum())
        return f"Model {backbone.name} puts the tail at place {place:,} of {len(scores):,}.", ()

    @property
    def _fact(self) -> tuple[int, int, int]:
        return self._head, self._relation, self._tail

    def _ids(self) -> tuple[Ids, Ids, Ids]:
        head, relation, tail = (np.array([each], dtype=np.int32) for each in self._fact)
        return head, relation, tail

    def _quote(self, rows: Sequence[int]) -> tuple[Fact, ...]:
        return tuple(self._index.named(row) for row in rows)

    def _counted(self, rows: Places) -> list[int]:
        """Return the rows that count: all but the fact's own, if it does not count for itself."""
        return [int(row) for row in rows if self._own < 0 or self._index.fact[row] != self._own]

    def _pair(self, parts: Mapping[str, float]) -> list[Reason]:
        """Facts between the same two entities, each with its share of what the columns about the pair did."""
        head, _, tail = self._ids()
        ranges = [int(each[0]) for each in pairs.pair_ranges(self._index, head, tail)]
        undirected = self._index.graph.undirected_relations
        steps = [
            (row, side)
            for side in range(2)
            for row in self._counted(self._index.by_pair.rows[ranges[2 * side] : ranges[2 * side + 1]])
            if side == 0 or not undirected[self._index.relation[row]]
        ]
        if not steps:
            said = f"No other fact links {self._names[0]} and {self._names[2]}."
            return [Reason("pair", said, sum(parts.get(kind, 0.0) for kind in ("repeat", "inverse", "pair")))]
        kinds = [self._kind_of_step(row, side) for row, side in steps]
        strength = [self._strength(row, side) for row, side in steps]
        own = {kind: _shares(strength, [each == kind for each in kinds]) for kind in ("repeat", "inverse")}
        every = _shares(strength, [True] * len(kinds))
        found = []
        for at, ((row, side), kind) in enumerate(zip(steps, kinds, strict=True)):
            part = parts.get("pair", 0.0) * every[at]
            part += sum(parts.get(each, 0.0) * shares[at] for each, shares in own.items())
            (fact,) = self._quote([row])
            found.append(Reason(kind, self._of_step(fact, kind, side, strength[at]), part, (fact,)))
        return found

    def _kind_of_step(self, row: int, side: int) -> str:
        if self._index.relation[row] != self._relation:
            return "pair"
        return "inverse" if side else "repeat"

    def _of_step(self, fact: Fact, kind: str, side: int, strength: float) -> str:
        said = self._said(fact)
        if kind == "repeat":
            return f"It is known: {said}."
        if kind == "inverse":
            return f"The inverse fact is known: {said}."
        turned = " in the other direction" if side else ""
        if not strength:
            return f"The same two are linked by {said}, which never goes with {self._names[1]}."
        return (
            f"The same two are linked by {said}; of the {fact.relation} facts {strength:.0%} go with {self._names[1]}"
            f"{turned}."
        )

    def _strength(self, row: int, side: int) -> float:
        """Return how often facts of a step come with facts of this relation."""
        implied, n = self._features.tables.implications, self._index.n_relations
        other = int(self._index.relation[row])
        at = int(find(implied.key, np.array([self._relation * 2 * n + other + side * n]))[0])
        if at < 0:
            return 0.0
        return min(float(implied.sums[at, 0]) / max(int(self._features.rows_of_relation[other]), 1), 1.0)

    def _rules(self, part: float) -> list[Reason]:
        """Ground rules that conclude the fact, each with the share of its trust."""
        truest = self._walks.bodies()
        if not truest:
            return [Reason("rule", "No mined rule concludes it.", part)]
        weight = self._features.rules.weight
        places = sorted(truest, key=lambda place: -weight[place] * truest[place][0])
        trust = np.array([weight[place] * truest[place][0] for place in places])
        found = []
        for place, share in zip(places, trust / trust.sum(), strict=True):
            body, walk = truest[place]
            rule, facts = self._walks.rule(place), self._quote(self._walks.rows(walk))
            said = " and ".join(self._said(fact) for fact in facts)
            sentence = f"A rule concludes it from {said} (weight {rule.weight:.2f}, body {body:.2f})."
            found.append(Reason("rule", sentence, part * float(share), facts, str(rule)))
        return found

    def _neighbours(self) -> tuple[str, tuple[Fact, ...]]:
        if not self._walks.all:
            return f"{self._names[0]} and {self._names[2]} have no neighbour in common.", ()
        facts = self._quote(self._walks.surest())
        n = int(self._values["common_neighbours"])
        return (
            f"They have {_count(n, 'neighbour')} in common; the surest way: {' and '.join(map(self._said, facts))}.",
            facts,
        )

    def _query(self, side: Side) -> tuple[str, tuple[Fact, ...]]:
        """What is known of (h, r, ?) if `side` is "tail", else of (?, r, t)."""
        rows = self._answers(side)
        given = self._names[0] if side == "tail" else self._names[2]
        if not rows:
            return f"No other fact of {self._names[1]} with {given}{self._as(side)} is known.", ()
        surest = sorted(rows, key=lambda row: -self._index.confidence[row])
        mean = float(np.mean(self._index.confidence[rows]))
        known = _count(len(rows), "known fact")
        said = f"{known} of {self._names[1]} with {given}{self._as(side)}: confidence {mean:.2f} on average."
        return said, self._quote(surest[:SHOWN])

    def _answers(self, side: Side, most: int | None = None) -> list[int]:
        """Return the rows with known answers of (h, r, ?) or of (?, r, t); of more than `most`, some at equal steps."""
        head, relation, tail = self._ids()
        groups, given = (self._index.by_query, head) if side == "tail" else (self._index.by_inverse_query, tail)
        rows = groups.of_key(int(self._index.query_keys(given, relation)[0]))
        return self._counted(rows[:: max(1, len(rows) // (most or len(rows) or 1))])

    def _analogue(self, side: Side) -> tuple[str, tuple[Fact, ...]]:
        """The known answer that is nearest in embedding space, as the columns of agreement compare them."""
        backbone, index = self._features.backbones[0], self._index
        asked, column = (self._tail, index.tail) if side == "tail" else (self._head, index.head)
        rows = self._answers(side, MOST)
        if not rows:
            kind = "entity" if self._undirected else side
            return f"There is no other {kind} to compare {self._name(side)} with.", ()
        likeness = backbone.directions_of(column[rows]) @ backbone.directions_of(np.array([asked]))[0]
        nearest = int(np.argmax(likeness))
        facts = self._quote([rows[nearest]])
        if column[rows[nearest]] == asked:  # it is an observed fact that counts for itself
            return f"The fact itself is known: {self._said(facts[0])}.", facts
        other = self._spoken(index.graph.entities[int(column[rows[nearest]])])
        return (
            f"{self._name(side)} is like {other} (similarity {likeness[nearest]:.2f}): {self._said(facts[0])}.",
            facts,
        )

    def _as(self, side: Side) -> str:
        """Say at which end the entity of a query stands, where that means something."""
        if self._undirected:
            return ""
        return " as head" if side == "tail" else " as tail"

    @property
    def _undirected(self) -> bool:
        return bool(self._index.graph.undirected_relations[self._relation])

    def _said(self, fact: Fact) -> str:
        head, tail = self._spoken(fact.head), self._spoken(fact.tail)
        return f"({head}, {fact.relation}, {tail}) {fact.confidence:.2f}"

    def _name(self, side: str) -> str:
        return self._names[0] if side == "head" else self._names[2]

    def _entity(self, side: str) -> tuple[str, tuple[Fact, ...]]:
        n, mean = int(self._values[f"{side}_facts"]), self._values[f"{side}_confidence"]
        sure = f": confidence {mean:.2f} on average" if n else ""
        place = "in" if self._index.graph.undirected_relations.all() else f"the {side} of"
        return f"{self._name(side)} is {place} {_count(n, 'known fact')}{sure}.", ()

    def _of_relation(self) -> tuple[str, tuple[Fact, ...]]:
        n, mean = int(self._values["relation_facts"]), self._values["relation_confidence"]
        sure = f": confidence {mean:.2f} on average" if n else ""
        return f"{self._names[1]} has {_count(n, 'known fact')}{sure}.", ()


def _alone(subject: str, told: Callable[[], tuple[str, tuple[Fact, ...]]], contribution: float) -> list[Reason]:
    """Return the one reason of a subject; those of models and analogues are of one kind each."""
    sentence, facts = told()
    kind = next((each for each in ("model", "analogue") if subject.startswith(each)), subject)
    return [Reason(kind, sentence, contribution, facts)]


def witness(
    features: Features, asked: FactBatch, row: int, columns: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> Witness:
    """Return the witness of one of the facts asked about."""
    head, relation, tail = features.index.graph.as_stored(*(column[row : row + 1] for column in asked[:3]))
    fact = int(head[0]), int(relation[0]), int(tail[0])
    values = dict(zip(features.names, columns[row].tolist(), strict=True))
    return Witness(features, fact, values, int(asked.own[row]))


def _shares(strength: Sequence[float], counted: Sequence[bool]) -> list[float]:
    """Return the share of each step that counts: in proportion to its strength, and equal where none has any."""
    own = [each if counts else 0.0 for each, counts in zip(strength, counted, strict=True)]
    if not any(own):
        own = [float(counts) for counts in counted]
    return [each / (sum(own) or 1.0) for each in own]


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
