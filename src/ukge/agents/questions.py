"""The arguments of the tools. What a tool does not have is refused: a misspelt one would be left out silently."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ukge.serve import schema
from ukge.serve.schema import LONGEST_NAME, Coverage, End, FactName, Limit, Minimum, Name

Only = Annotated[
    str | None, Field(description="Only this relation, by its exact name.", min_length=1, max_length=LONGEST_NAME)
]
Offset = Annotated[int, Field(ge=0, le=1_000_000_000, description="How many to pass over.")]
Type = Annotated[
    str | None, Field(description="Only entities of this type of the node data.", min_length=1, max_length=LONGEST_NAME)
]
Text = Annotated[str, Field(max_length=200)]


class Question(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


class Describe(Question):
    """Nothing is to be said."""


class Search(Question):
    """What names are looked for by."""

    text: Annotated[Text, Field(description="A part of the name, or nearly; empty: those with most facts.")] = ""
    what: Literal["entities", "relations"] = "entities"
    limit: Limit = 10


class Ask(schema.RankQuery):
    """A query with one missing end, and which answers are wanted."""

    k: Limit = 5


class Confidence(Question):
    """Facts to judge."""

    facts: Annotated[list[FactName], Field(min_length=1, description="The facts, by exact names.")]
    coverage: Coverage = schema.COVERAGE


class Explain(FactName):
    """A fact to give reasons for, by exact names."""


class Neighbours(Question):
    """An entity, and which of its facts are wanted."""

    name: Name
    relation: Only = None
    side: Annotated[End, Field(description="Facts where it is the head, the tail, or either.")] = "both"
    limit: Limit = 20
    offset: Offset = 0


class Doubt(Question):
    """Which contradicted facts are wanted."""

    relation: Only = None
    limit: Limit = 10


class Rules(Question):
    """Which rules are wanted."""

    relation: Only = None
    search: Annotated[Text, Field(description="A part of the rule as it is written.")] = ""
    number: Annotated[
        int | None, Field(ge=0, le=1_000_000_000, description="One rule by its number, with examples.")
    ] = None
    limit: Limit = 10
    offset: Offset = 0


class Complete(Question):
    """Which missing facts are wanted."""

    relations: Annotated[list[Name], Field(description="Only these relations; all if none is given.")] = []
    type: Annotated[
        Literal["fitting", "any"],
        Field(description="`fitting`: tails observed with the relation; `any`: all entities as tails."),
    ] = "fitting"
    head_type: Type = None
    tail_type: Type = None
    min_confidence: Minimum = 0.5
    k: Limit = 10
