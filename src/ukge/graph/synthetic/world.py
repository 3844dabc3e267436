"""The synthetic world: a blueprint that knows the truth of every triple, and a graph of what was seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import Confidences
from ukge.graph.synthetic.latent import TYPES, Latent
from ukge.graph.synthetic.layout import Layout
from ukge.graph.synthetic.names import entity_names
from ukge.graph.synthetic.observe import Observed, observe
from ukge.graph.synthetic.rules import consequences, read_rule
from ukge.graph.synthetic.schema import PLANTED, RELATIONS
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Blueprint:
    """Everything about a world but its observed facts, which it hands out region by region."""

    latent: Latent
    entities: Vocabulary
    relations: Vocabulary
    n_facts: int
    seed: int
    noise: float

    @classmethod
    def draw(cls, n_entities: int, n_facts: int, seed: int, noise: float) -> Blueprint:
        """Make a world of that size; the same numbers give the same world."""
        if n_facts < 1:
            raise ConfigError(f"a world needs facts, not {n_facts}", hint="About 20 facts per entity is a good number.")
        if not 0.0 <= noise <= 1.0:
            raise ConfigError(f"noise {noise:g} is not a deviation between 0 and 1", hint="0.05 is a good value.")
        layout = Layout.plan(n_entities, n_facts)
        entities = Vocabulary.trusted(entity_names(layout, seed), "entity")
        relations = Vocabulary([relation.name for relation in RELATIONS], kind="relation")
        return cls(Latent.draw(layout, seed), entities, relations, n_facts, seed, noise)

    def true_confidence(self, head: npt.ArrayLike, relation: npt.ArrayLike, tail: npt.ArrayLike) -> Confidences:
        """Return the true confidence of any triples, given by ids; the arrays may broadcast."""
        heads, relations, tails = (np.asarray(ids) for ids in (head, relation, tail))
        for ids, names in ((heads, self.entities), (relations, self.relations), (tails, self.entities)):
            if ids.size and not (ids.min() >= 0 and ids.max() < len(names)):
                raise DataError(f"{names.kind} ids run from 0 to {len(names) - 1}, not {ids.min()} to {ids.max()}")
        return self.latent.confidences(heads, relations, tails)

    def observed(self) -> Iterator[Observed]:
        """Yield the observed facts of one region after another; `n_facts` in all."""
        n_regions = self.latent.layout.n_regions
        for region in range(n_regions):
            n_facts = self.n_facts * (region + 1) // n_regions - self.n_facts * region // n_regions
            yield observe(self.latent, region, n_facts, self.seed, self.noise)


@dataclass(frozen=True, eq=False)
class World:
    """A graph of observed facts together with the truth behind it."""

    blueprint: Blueprint
    graph: UncertainGraph

    def true_confidence(self, head: npt.ArrayLike, relation: npt.ArrayLike, tail: npt.ArrayLike) -> Confidences:
        """Return the true confidence of any triples, given by the ids of `graph`; the arrays may broadcast."""
        return self.blueprint.true_confidence(head, relation, tail)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The type of every entity, in the order of ids."""
        return tuple(TYPES[number] for number in self.blueprint.latent.layout.type_of.tolist())

    @property
    def planted_rules(self) -> tuple[str, ...]:
        """The rules that hold in the true confidences: the head is never less sure than the Łukasiewicz body (6).

        Distinct variables stand for distinct entities.
        """
        return PLANTED

    @property
    def implied_rules(self) -> tuple[str, ...]:
        """The rules of at most two body atoms that follow from the planted ones; they hold as well."""
        return tuple(str(rule) for rule in consequences([read_rule(text) for text in PLANTED]))

    def __repr__(self) -> str:
        return f"World({len(self.graph):,} facts, {self.graph.n_entities:,} entities, seed {self.blueprint.seed})"


def generate(n_entities: int = 1_000, n_facts: int = 20_000, seed: int = 0, noise: float = 0.05) -> World:
    """Return a synthetic world with exactly that many entities and observed facts.

    Observed confidences are true ones plus normal noise of deviation `noise`, clipped. From about 20 facts per entity
    on, nearly all sure facts are seen and every planted rule can be mined.
    """
    blueprint = Blueprint.draw(n_entities, n_facts, seed, noise)
    head, relation, tail, confidence = (np.concatenate(c) for c in zip(*blueprint.observed(), strict=True))
    entities, relations = blueprint.entities, blueprint.relations
    return World(blueprint, UncertainGraph.from_ids(head, relation, tail, confidence, entities, relations))
