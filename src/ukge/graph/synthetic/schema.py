"""What the synthetic world is made of: types, aspects, typed relations, and the rules planted in them.

An *aspect* is a circle on which every entity has a place near one of a few evenly spaced centres. A relation compares
its two ends on one or two aspects: the closer the places, the higher the confidence. Where the body of a rule brings
three entities close on an aspect, and its head compares just that aspect, the rule holds by the triangle inequality
(see `ukge.graph.synthetic.latent`). Each body relation also compares an aspect of its own, so that the same three
relations do not form a rule in any other arrangement.
"""

from __future__ import annotations

from dataclasses import dataclass

CENTRES = 9
"""How many centres an aspect has."""

MORE_CENTRES = {"alliance": 16, "family": 20, "rivalry": 16}
"""Aspects with another number of centres, where nine would give every entity too many facts."""

TYPE_SHARES = {
    "sport": 60,
    "person": 280,
    "athlete": 250,
    "team": 100,
    "city": 90,
    "country": 60,
    "company": 100,
    "university": 60,
}
"""Entities of each type in a thousand."""

SHARED_TYPES = frozenset({"sport"})
"""Types whose entities belong to every region; all others belong to one."""


@dataclass(frozen=True)
class Aspect:
    """One comparison a relation makes: heads, moved on by `steps` centres, against tails."""

    name: str
    steps: float = 0.0


@dataclass(frozen=True)
class RelationType:
    """A relation with the types of its heads and tails and the aspects it compares."""

    name: str
    head_type: str
    tail_type: str
    aspects: tuple[Aspect, ...]


def _relation(name: str, head_type: str, tail_type: str, *aspects: str | Aspect) -> RelationType:
    return RelationType(name, head_type, tail_type, tuple(a if isinstance(a, Aspect) else Aspect(a) for a in aspects))


# A symmetric relation that is not transitive looks for the opposite side of the circle: twice around is back home.
_OPPOSITE = MORE_CENTRES["rivalry"] / 2

RELATIONS = (
    _relation("athletePlaysForTeam", "athlete", "team", "discipline", "club"),
    _relation("athletePlaysSport", "athlete", "sport", "discipline", "skill"),
    _relation("teamPlaysSport", "team", "sport", "discipline"),
    _relation("athleteLivesIn", "athlete", "city", "club", "quarter"),
    _relation("teamBasedIn", "team", "city", "club"),
    _relation("teamCompetesWith", "team", "team", Aspect("rivalry", _OPPOSITE)),
    _relation("companyEmploys", "company", "person", "trade", "schooling"),
    _relation("worksFor", "person", "company", "trade", "schooling"),
    _relation("personLivesIn", "person", "city", "trade", "origin"),
    _relation("personResidesIn", "person", "city", "trade", "origin"),
    _relation("companyOperatesIn", "company", "city", "trade"),
    _relation("companyHeadquarteredIn", "company", "city", "trade", "tax"),
    _relation("universityEducated", "university", "person", "schooling", "campus"),
    _relation("companyRecruitsFrom", "company", "university", "schooling"),
    _relation("personCitizenOf", "person", "country", "origin", "passport"),
    _relation("cityHostsCitizensOf", "city", "country", "origin"),
    _relation("companyAlliedWith", "company", "company", "alliance"),
    _relation("companyAcquired", "company", "company", Aspect("finance", 2.0), "sector"),
    _relation("parentOf", "person", "person", Aspect("lineage", 2.0), "family"),
    _relation("childOf", "person", "person", Aspect("lineage", -2.0), "family"),
)

PLANTED = (
    "athletePlaysForTeam(A, B) & athletePlaysSport(A, C) -> teamPlaysSport(B, C)",
    "athletePlaysForTeam(A, B) & athleteLivesIn(A, C) -> teamBasedIn(B, C)",
    "companyEmploys(A, B) & personLivesIn(B, C) -> companyOperatesIn(A, C)",
    "companyEmploys(A, B) & universityEducated(C, B) -> companyRecruitsFrom(A, C)",
    "personLivesIn(A, B) & personCitizenOf(A, C) -> cityHostsCitizensOf(B, C)",
    "companyAlliedWith(A, B) & companyAlliedWith(B, C) -> companyAlliedWith(A, C)",
    "companyAlliedWith(A, B) -> companyAlliedWith(B, A)",
    "teamCompetesWith(A, B) -> teamCompetesWith(B, A)",
    "companyEmploys(A, B) -> worksFor(B, A)",
    "worksFor(A, B) -> companyEmploys(B, A)",
    "parentOf(A, B) -> childOf(B, A)",
    "childOf(A, B) -> parentOf(B, A)",
    "personLivesIn(A, B) -> personResidesIn(A, B)",
    "personResidesIn(A, B) -> personLivesIn(A, B)",
    "companyHeadquarteredIn(A, B) -> companyOperatesIn(A, B)",
)
"""The planted rules; distinct variables stand for distinct entities."""

IMPLIED = (
    "companyAlliedWith(A, B) & companyAlliedWith(B, C) -> companyAlliedWith(C, A)",
    "companyAlliedWith(A, B) & companyAlliedWith(C, B) -> companyAlliedWith(A, C)",
    "companyAlliedWith(A, B) & companyAlliedWith(A, C) -> companyAlliedWith(B, C)",
    "companyEmploys(A, B) & personResidesIn(B, C) -> companyOperatesIn(A, C)",
    "personCitizenOf(A, B) & personResidesIn(A, C) -> cityHostsCitizensOf(C, B)",
    "personLivesIn(A, B) & worksFor(A, C) -> companyOperatesIn(C, B)",
    "personResidesIn(A, B) & worksFor(A, C) -> companyOperatesIn(C, B)",
    "universityEducated(A, B) & worksFor(B, C) -> companyRecruitsFrom(C, A)",
)
"""The rules of at most two body atoms that follow from the planted ones, and hold as well."""
