"""What tools return: the service's answers, each with a sentence that can be quoted and where it comes from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ukge.serve import schema
from ukge.serve.problems import FieldProblem

Status = Annotated[
    Literal["observed", "predicted"],
    Field(description="`observed`: the graph holds the fact; `predicted`: it does not, and this is an estimate."),
]
Sentence = Annotated[str, Field(description="The answer in words, ready to be quoted.")]


class Provenance(BaseModel):
    """Who says so: the run, its model and data, and what judged."""

    run: str
    model: str
    data: str
    judged_by: schema.Opinion
    bounds_from: Literal["evidence", "validation", "nothing"]
    loaded: str = Field(description="When the run was loaded (UTC).")


class Told(BaseModel):
    """An answer."""

    sentence: Sentence
    provenance: Provenance


class Fact(schema.PredictedFact):
    """A fact with its confidence, the bounds of it, and whether the graph holds it."""

    status: Status
    sentence: Sentence
    reason: str | None = Field(None, description="What speaks most for or against it.")


class Facts(Told):
    """Facts with their confidences."""

    coverage: float = Field(description="Share of facts whose confidence the bounds shall hold.")
    facts: list[Fact]


class Ranked(Facts):
    """The best answers to a query, as facts, the most confident first."""

    search: schema.Search


class Completed(Facts):
    """Facts that the graph does not hold, the most confident first."""

    examined: float = Field(description="Share of the entities that were looked at; less than 1 if time ran out.")


class Explained(Told):
    """A confidence with its reasons."""

    fact: Fact
    base: float | None = Field(None, description="The confidence that the contributions are added to.")
    reasons: list[schema.ReasonOut]


class Found(Told):
    """Names that fit what was looked for, the best first."""

    entities: list[schema.EntityMatch] = []
    relations: list[schema.RelationMatch] = []


class Around(Told):
    """The facts that the graph holds of an entity, the most confident first."""

    name: str
    types: list[str]
    description: str | None
    aliases: list[str]
    as_head: int = Field(description="Facts of the graph with this head.")
    as_tail: int = Field(description="Facts of the graph with this tail.")
    offset: int
    facts: list[schema.ObservedFact]


class Doubted(Told):
    """Facts of the graph whose stored confidence the others contradict most."""

    facts: list[schema.DoubtOut]


class Ruled(Told):
    """Rules that the facts follow, the best first; examples, if one was asked for by its number."""

    total: int
    rules: list[schema.RuleOut]
    examples: list[schema.RuleExample] = []


class Described(Told):
    """What the graph holds."""

    entities: int
    relations: int
    facts: int
    most_used: list[schema.RelationMatch]
    limits: dict[str, float] = Field(description="The largest requests that are answered.")


class Refused(BaseModel):
    """Why there is no answer, and what may be done about it."""

    problem: str = Field(description="The kind of problem, such as `unknown-entity`.")
    sentence: Sentence
    value: str | None = Field(None, description="The name that is unknown.")
    near: list[str] = Field([], description="Names of the graph that look like it.")
    errors: list[FieldProblem] = Field([], description="Every argument that is wrong.")
    retry_after: int | None = Field(None, description="Seconds after which to ask again.")
