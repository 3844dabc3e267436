"""Claims about the synthetic world, whose truth is known: what sources of many kinds say of true and of false facts.

A fact holds where its true confidence is one half or more. What is claimed falsely is a near miss (the world thinks
little of it) or a mix-up (a fact of which one end was taken for another of its type). Some facts are known to many and
some errors lie near to many, so that sources that know nothing of each other share both.

A source reads of some entities and not of others, is better at some relations than at others, and says a fact again
when it meets it again. Its confidences may mean something, little or nothing; see `KINDS`. A copying source repeats a
part of what another one said, with the same digits or nearly, and adds claims of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import ConfigError
from ukge.graph.claims import Claims
from ukge.graph.keys import find, triple_keys
from ukge.graph.synthetic.latent import FEWEST_ENTITIES, LEAST_SEEN, TYPES
from ukge.graph.synthetic.schema import RELATIONS
from ukge.graph.synthetic.world import World, generate
from ukge.graph.uncertain import UncertainGraph

HOLDS = 0.5
"""True confidence from which on a fact holds."""

_CLAIMS = 3
"""Keeps the random numbers of claims apart from those of the world."""

FEWEST_CLAIMS, MOST_CLAIMS = 1_000, 10**8
CLAIMS_PER_ENTITY, FACTS_PER_ENTITY = 50, 20
ROOM = 25
"""Pairs of entities to a fact at least: a small world has no room for more."""

DAYS = 30
"""Days over which claims are made."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Kind(NamedTuple):
    """What a kind of source is like: how many there are, the share of claims of each, its bounds, how it sounds."""

    number: int
    share: float
    precision: tuple[float, float]
    covers: tuple[float, float]
    confidence: str


KINDS = {
    "curated": Kind(2, 0.08, (0.88, 0.96), (0.3, 0.6), "honest"),
    "extractor": Kind(3, 0.10, (0.55, 0.80), (0.5, 0.9), "honest"),
    "language-model": Kind(3, 0.11, (0.40, 0.65), (0.6, 1.0), "vague"),
    "overconfident": Kind(2, 0.09, (0.25, 0.45), (0.5, 1.0), "high"),
    "copy": Kind(3, 0.06, (0.30, 0.60), (0.6, 1.0), "vague"),
    "sparse": Kind(4, 0.004, (0.30, 0.95), (0.05, 0.15), "honest"),
}
"""Sources by kind. `honest` confidences rise with the truth, with noise; of `vague` ones 57 % lie in .4–.6 and 42 % at
.8 or more, hardly more often where the fact holds; `high` ones are .8 or more whatever they are about."""

COPIED = (0.6, 0.9)
"""Share of a copying source's claims that it has from another one."""

JITTER = 0.02
"""Deviation of a copied confidence, for copies that change digits."""


@dataclass(frozen=True, eq=False)
class ClaimedWorld:
    """Claims with the truth behind them: `holds` of each fact, and the kind of each source, by id.

    `copies` has for each source the one that it copies, −1 where it copies none.
    """

    world: World
    claims: Claims
    holds: npt.NDArray[np.bool_]
    kinds: tuple[str, ...]
    copies: Ints

    def __repr__(self) -> str:
        return f"ClaimedWorld({self.claims!r}, of which {self.holds.mean():.0%} hold)"

    def truth(self, seed: int = 0) -> pa.Table:
        """Return every fact with its label, 1 where it holds, in an order of chance: any first n are a fair sample."""
        order = np.random.default_rng([seed, _CLAIMS, 1]).permutation(len(self.holds))
        named = self.claims.facts[order].facts().select(["head", "relation", "tail"])
        return named.append_column("label", pa.array(self.holds[order].astype(np.int8)))


class _Pool(NamedTuple):
    """What may be claimed: triples of the world, whether they hold, and how near they lie to anybody."""

    graph: UncertainGraph
    holds: npt.NDArray[np.bool_]
    weight: Floats


def generate_claims(
    n_claims: int = 30_000, n_entities: int | None = None, n_facts: int | None = None, seed: int = 0
) -> ClaimedWorld:
    """Return about so many claims about the world `generate(n_entities, n_facts, seed)`; equal numbers, equal claims.

    Unless it is said otherwise there is an entity to every 50 claims, and there are 20 facts to an entity where a world
    of this size has room for them.
    """
    if not FEWEST_CLAIMS <= n_claims <= MOST_CLAIMS:
        raise ConfigError(f"a world has {FEWEST_CLAIMS:,} to {MOST_CLAIMS:,} claims, not {n_claims:,}")
    n_entities = max(FEWEST_ENTITIES, n_claims // CLAIMS_PER_ENTITY) if n_entities is None else n_entities
    if n_facts is None:
        n_facts = min(FACTS_PER_ENTITY * n_entities, n_entities**2 // ROOM)
    world = generate(n_entities, n_facts, seed)
    rng = np.random.default_rng([seed, _CLAIMS])
    pool = _pool(world, rng)
    total = sum(about.number * about.share for about in KINDS.values())
    names: list[str] = []
    kinds: list[str] = []
    row: list[Ints] = []
    source: list[Ints] = []
    confidence: list[Floats] = []
    copies: list[int] = []
    for kind, about in KINDS.items():
        for number in range(about.number):
            at = len(names)
            names.append(f"{kind}-{number + 1}")
            kinds.append(kind)
            wanted = max(20, int(about.share / total * n_claims * rng.uniform(0.7, 1.3)))
            copied, model = (np.zeros(0, np.int64), np.zeros(0)), -1
            if kind == "copy":
                model = int(rng.integers(KINDS["curated"].number, at - number))
                copied = _copied(row[model], confidence[model], wanted, exact=bool(rng.random() < 0.5), rng=rng)
                wanted -= len(copied[0])
            own = _own(pool, about, wanted, rng)
            row.append(np.concatenate([copied[0], own[0]]))
            confidence.append(np.concatenate([copied[1], own[1]]))
            source.append(np.full(len(row[-1]), at))
            copies.append(model)
    rows, who, sure = np.concatenate(row), np.concatenate(source), np.concatenate(confidence)
    mixed = rng.permutation(len(rows))
    rows, who, sure = rows[mixed], who[mixed], sure[mixed]
    claims = Claims.of_graph(
        _claimed(pool.graph, rows, sure, np.array(names)[who]),
        time=pa.array(_days(len(rows)).astype("datetime64[D]")),
        document=pa.array([f"doc-{number}" for number in _documents(pool.graph, rows, who, rng)]),
    )
    order = [names.index(name) for name in claims.sources]
    holds = np.empty(len(claims.facts), np.bool_)
    holds[claims.fact] = pool.holds[rows]
    back = np.append(np.argsort(order), -1)
    return ClaimedWorld(world, claims, holds, tuple(kinds[at] for at in order), back[np.array(copies)[order]])


def _pool(world: World, rng: np.random.Generator) -> _Pool:
    """Return the observed facts of the world, and as many mix-ups of those that hold as there are of these."""
    graph = world.graph
    sure = world.true_confidence(graph.head, graph.relation, graph.tail)
    hold = np.flatnonzero(sure >= HOLDS)
    mixed = rng.permutation(np.concatenate([hold, hold]))
    head, relation, tail = (np.asarray(each[mixed]).copy() for each in (graph.head, graph.relation, graph.tail))
    of_type = {name: np.flatnonzero(np.array(world.types) == name) for name in TYPES}
    at_head = rng.random(len(mixed)) < 0.5
    for number, kind in enumerate(RELATIONS):
        for mine, column, name in (
            ((relation == number) & at_head, head, kind.head_type),
            ((relation == number) & ~at_head, tail, kind.tail_type),
        ):
            column[mine] = rng.choice(of_type[name], int(mine.sum()))
    mistaken = world.true_confidence(head, relation, tail)
    # What the world thinks likely, or has observed, is no mix-up.
    keys = triple_keys(head, relation, tail, graph.n_entities, graph.n_relations)
    _, first = np.unique(keys, return_index=True)
    kept = np.zeros(len(keys), np.bool_)
    kept[first] = True
    kept &= (mistaken < LEAST_SEEN) & (find(np.unique(graph.keys()), keys) < 0) & (head != tail)
    ends = [np.concatenate([own, new[kept]]) for own, new in ((graph.head, head), (graph.tail, tail))]
    relations = np.concatenate([graph.relation, relation[kept]])
    holds = np.concatenate([sure >= HOLDS, np.zeros(int(kept.sum()), np.bool_)])
    both = UncertainGraph.from_ids(ends[0], relations, ends[1], np.ones(len(holds)), graph.entities, graph.relations)
    weight = np.exp(rng.normal(0.0, 0.8, len(holds)))
    # A near miss is believed more easily than a mix-up.
    weight[: len(sure)] *= np.where(sure >= HOLDS, 1.0, 2.0)
    return _Pool(both, holds, weight)


def _own(pool: _Pool, about: Kind, count: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return what a source claims by itself, and how sure it is: `count` claims, repeats among them."""
    graph = pool.graph
    covered = rng.random(graph.n_entities) < rng.uniform(*about.covers)
    skill = np.exp(rng.normal(0.0, 0.4, graph.n_relations))
    precision = rng.uniform(*about.precision)
    ratio = skill[graph.relation]
    weight = pool.weight * covered[graph.head] * np.where(pool.holds, ratio, 1.0 / ratio)
    # About a quarter of the true claims and a tenth of the false ones are repeats.
    trues = _drawn(np.where(pool.holds, weight, 0.0), round(count * precision / 1.33), rng)
    falses = _drawn(np.where(pool.holds, 0.0, weight), round(count * (1.0 - precision) / 1.1), rng)
    rows = np.concatenate([trues, falses])
    times = 1 + rng.poisson(np.where(pool.holds[rows], 0.33, 0.1))
    rows = np.repeat(rows, times)
    return rows, _confidence(about.confidence, pool.holds[rows], rng)


def _drawn(weight: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Return rows drawn by weight, none twice; all that there are, if these are fewer."""
    possible = np.flatnonzero(weight > 0.0)
    waiting = rng.standard_exponential(len(possible)) / weight[possible]
    return possible[np.argsort(waiting, kind="stable")[:count]]


def _confidence(how: str, holds: npt.NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Return the confidences of claims that hold or not, in the way of a kind of source."""
    count = len(holds)
    if how == "honest":
        raw = np.where(holds, 1.0, -0.4) * rng.uniform(0.3, 1.3) + rng.normal(rng.uniform(-0.3, 0.8), 1.2, count)
        return np.asarray(np.round(1.0 / (1.0 + np.exp(-raw)), 3), np.float64)
    if how == "high":
        return rng.choice([0.8, 0.85, 0.9, 0.95, 0.98, 1.0], count, p=rng.dirichlet(np.full(6, 3.0)))
    high = rng.random(count) < np.where(holds, 0.45, 0.39)
    said = np.where(high, rng.uniform(0.8, 0.99, count), rng.uniform(0.4, 0.6, count))
    return np.asarray(np.round(said, 2), np.float64)


def _copied(row: Ints, sure: Floats, count: int, *, exact: bool, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return what a source repeats of another one's claims; a copy that is not exact changes the digits."""
    share = rng.uniform(*COPIED)
    chosen = rng.permutation(len(row))[: round(share * count)]
    said = sure[chosen]
    if not exact:
        said = np.asarray(np.round(np.clip(said + rng.normal(0.0, JITTER, len(said)), 0.01, 1.0), 3), np.float64)
    return row[chosen], said


def _claimed(graph: UncertainGraph, rows: Ints, confidence: Floats, source: npt.NDArray[np.str_]) -> UncertainGraph:
    ids = graph.head[rows], graph.relation[rows], graph.tail[rows]
    return UncertainGraph.from_ids(*ids, confidence, graph.entities, graph.relations, source=pa.array(source))


def _days(count: int) -> Ints:
    """Return the day of each claim, from a first of January on: the same number every day, in order."""
    first = int(np.datetime64("2025-01-01", "D").astype(np.int64))
    return np.asarray(first + np.arange(count) * DAYS // count, np.int64)


def _documents(graph: UncertainGraph, rows: Ints, who: Ints, rng: np.random.Generator) -> Ints:
    """Return a number for the document of each claim: each source has a few about every head."""
    about = np.asarray(graph.head[rows]).astype(np.int64) * (int(who.max()) + 1) + who
    return np.asarray(np.unique(about * 3 + rng.integers(0, 3, len(rows)), return_inverse=True)[1], np.int64)
