"""What goes over the wire."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ukge.runs.labels import LONGEST_PERSON, Word
from ukge.serve.settings import Limits

LONGEST_NAME = 10_000
COVERAGE = 0.9

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Coverage = Annotated[float, Field(gt=0, lt=1, description="Share of facts that the intervals shall cover.")]
Limit = Annotated[int, Field(ge=1, description="How many at most.")]
Minimum = Annotated[float, Field(ge=0, le=1, description="Only answers at least as confident.")]
Opinion = Literal["model", "evidence"]
End = Literal["head", "tail", "both"]
Direction = Literal["any", "too-high", "too-low"]


def finite(value: float) -> float | None:
    """Return a number, or None for what is none: JSON has no NaN."""
    return value if math.isfinite(value) else None


def plain(value: object) -> str | int | float | bool | list[str]:
    """Return a value of the node data as JSON has it: no NaN, which is text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [str(each) for each in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)


class Triple(BaseModel):
    """A fact by its names."""

    head: str
    relation: str
    tail: str


class FactName(BaseModel):
    """A fact to ask about."""

    model_config = ConfigDict(extra="forbid")

    head: Name
    relation: Name
    tail: Name


class ConfidenceRequest(BaseModel):
    """Facts to ask about."""

    model_config = ConfigDict(extra="forbid")

    facts: list[FactName] = Field(min_length=1)
    coverage: Coverage = COVERAGE


class NewFact(FactName):
    """A fact to take in."""

    confidence: Annotated[float, Field(ge=0, le=1)]


class AddRequest(BaseModel):
    """Facts to take in."""

    model_config = ConfigDict(extra="forbid")

    facts: list[NewFact] = Field(min_length=1)
    id: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="A name for the addition: the same facts under the same name are taken in once, however often "
        "they are sent.",
    )
    source: str = Field("HTTP", max_length=1_000, description="Where the facts are from.")


class AdditionResponse(BaseModel):
    """What was new in facts that were taken in."""

    number: int = Field(description="The number of the addition; 0 if nothing was new, and nothing was added.")
    facts: int = Field(description="Facts that were not known.")
    updated: int = Field(description="Facts that were known with another confidence, which the new one replaces.")
    repeated: int = Field(description="Facts that were known as they were given.")
    held_out: int = Field(description="Facts, among those updated, that judged the run until now.")
    entities: int = Field(description="New entities.")
    relations: int = Field(description="New relations.")
    refresh: str | None = Field(None, description="Why the run should be refreshed by now.")


class RankQuery(BaseModel):
    """(head, relation, ?) or (?, relation, tail), and which answers are wanted."""

    model_config = ConfigDict(extra="forbid")  # a parameter with a typing error would be left out silently

    relation: Name
    head: Annotated[Name | None, Field(description="Give it to ask for tails.")] = None
    tail: Annotated[Name | None, Field(description="Give it to ask for heads.")] = None
    k: Limit = 10
    type: Annotated[
        str,
        Field(
            description="Which entities may be answers: `any`; `fitting`, those observed at this place of the "
            "relation; `heads:RELATION` or `tails:RELATION`, those observed there; `type:TYPE`, or the type alone, "
            "those that are of a type of the node data.",
            min_length=1,
            max_length=LONGEST_NAME,
        ),
    ] = "any"
    prefix: Annotated[str, Field(description="Only entities whose name begins so.", max_length=LONGEST_NAME)] = ""
    min_confidence: Minimum = 0.0
    observed: Annotated[
        Literal["include", "exclude", "only"], Field(description="Answers that the graph holds already.")
    ] = "include"
    exact: Annotated[bool, Field(description="Do without the approximate index, if there is one.")] = False
    coverage: Coverage = COVERAGE


class Interval(BaseModel):
    """Bounds between which the confidence lies with the coverage asked for."""

    low: float
    high: float

    @classmethod
    def of(cls, low: float | None, high: float | None) -> Self | None:
        """Return bounds, None where there are none."""
        return None if low is None or high is None or math.isnan(low) else cls(low=low, high=high)


Source = Annotated[str | None, Field(description="Where the stored fact came from, if the graph says.")]


class Labelled(Triple):
    """A fact by its names, with what people call its entities."""

    head_label: Annotated[str | None, Field(description="What people call the head, where that is not its name.")] = (
        None
    )
    tail_label: Annotated[str | None, Field(description="What people call the tail, where that is not its name.")] = (
        None
    )


class ObservedFact(Labelled):
    """A fact of the graph with its stored confidence."""

    confidence: float
    source: Source = None


class PredictedFact(Labelled):
    """A fact with its predicted confidence, the bounds of it where they are known, and the stored one if there is."""

    confidence: float
    interval: Interval | None = None
    observed: float | None = Field(None, description="The stored confidence; absent for an unseen fact.")
    source: Source = None


class ConfidenceResponse(BaseModel):
    """The facts asked about, in their order."""

    facts: list[PredictedFact]


class Answer(BaseModel):
    """A candidate for the missing entity."""

    entity: str
    label: Annotated[str | None, Field(description="What people call the entity, where that is not its name.")] = None
    confidence: float
    interval: Interval | None = None
    observed: float | None = Field(None, description="The stored confidence; absent for an unseen fact.")
    source: Source = None


class Search(BaseModel):
    """How the answers were found."""

    kind: Literal["exact", "approximate"]
    recall: float | None = Field(None, description="Share of the true ten best answers that such a search finds.")


class RankResponse(BaseModel):
    """The most confident answers to a query, best first."""

    head: str | None
    relation: str
    tail: str | None
    opinion: Opinion
    search: Search
    answers: list[Answer]


class ReasonOut(BaseModel):
    """Why a fact is believed or not."""

    kind: str
    sentence: str
    contribution: float | None = None
    facts: list[ObservedFact] = []
    rule: str | None = None


class ExplainResponse(PredictedFact):
    """A confidence with its reasons."""

    opinion: Opinion
    base: float | None = Field(None, description="The confidence that the contributions are added to.")
    reasons: list[ReasonOut]


class RelationMatch(BaseModel):
    """A relation that fits a search, and how many observed facts it has."""

    name: str
    label: str
    facts: int


class EntityMatch(RelationMatch):
    """An entity that fits a search; by its name, its label or an alias."""

    category: str
    types: list[str] = Field([], description="Its types, as the node data says.")
    alias: Annotated[str | None, Field(description="The alias that fits, where name and label do not.")] = None
    match: Literal["exact", "prefix", "word", "inside", "near"]


class EntitiesResponse(BaseModel):
    """Entities that fit a search, the best first."""

    entities: list[EntityMatch]


class RelationsResponse(BaseModel):
    """Relations, those that fit best or have most facts first."""

    relations: list[RelationMatch]


class EntityResponse(BaseModel):
    """An entity and its facts, the most confident first."""

    name: str
    label: str
    category: str
    types: list[str] = Field([], description="Its types, as the node data says.")
    description: str | None = Field(None, description="What it is, as the node data says.")
    aliases: list[str] = Field([], description="What else it is called.")
    about: dict[str, str | int | float | bool | list[str]] = Field({}, description="Further columns of the node data.")
    as_head: int = Field(description="Facts of the graph with this head.")
    as_tail: int = Field(description="Facts of the graph with this tail.")
    offset: int
    facts: list[ObservedFact]


class CompleteResponse(BaseModel):
    """The most confident unseen facts."""

    opinion: Opinion
    examined: float = Field(description="Share of the entities that were looked at; less than 1 if time ran out.")
    facts: list[PredictedFact]


class RuleOut(BaseModel):
    """A rule and its figures, counted on the training facts."""

    number: int
    rule: str
    weight: float
    hit_ratio: float = Field(description="Share of the implied facts that are observed.")
    support: int = Field(description="Implied facts that are observed.")
    implied: int
    confidence: float = Field(description="Share of the implied facts that are strong.")
    head_coverage: float
    head_mean: float | None = Field(description="Mean confidence of the implied facts that are observed.")


class RulesResponse(BaseModel):
    """Rules, the best first."""

    total: int
    offset: int
    rules: list[RuleOut]


class RuleExample(BaseModel):
    """A ground rule: the facts of its body, the truth of the body, and the fact it implies."""

    body: list[ObservedFact]
    truth: float
    head: PredictedFact


class RuleResponse(BaseModel):
    """One rule with examples."""

    rule: RuleOut
    examples: list[RuleExample]


class DoubtOut(Labelled):
    """An observed fact whose stored confidence is contradicted."""

    stored: float
    predicted: float
    source: str | None = None


class DoubtfulResponse(BaseModel):
    """Observed facts, the most contradicted first."""

    opinion: Opinion
    facts: list[DoubtOut]


class LikelyFalseOut(Labelled):
    """An observed fact with the chance that it holds, whatever confidence is stored with it."""

    stored: float
    chance: float = Field(description="The chance that it holds, by the other facts.")
    source: str | None = None


class LikelyFalseResponse(BaseModel):
    """Observed facts, those that most likely do not hold first."""

    false: float = Field(description="Share of all observed facts that do not hold, by the mean of their chances.")
    labels: int = Field(description="Labelled facts that corrected the chances; 0 where there are too few.")
    facts: list[LikelyFalseOut]


class SourceDoubtOut(BaseModel):
    """What is doubtful about the facts of one source."""

    source: str
    facts: int
    gap: float = Field(description="Mean of stored − expected confidence: above 0, the source says too high ones.")
    too_high: float = Field(description="Share of its facts whose confidence is contradicted and too high.")
    too_low: float = Field(description="Share of its facts whose confidence is contradicted and too low.")
    false: float = Field(description="Share of its facts that do not hold, by the mean of their chances.")


class DoubtBySourceResponse(BaseModel):
    """Sources, the one with the largest share of false facts first."""

    sources: list[SourceDoubtOut]


class LabelIn(FactName):
    """What somebody says of a fact."""

    word: Word = Field(description="Does it hold? `withdrawn` takes back what the same person said.")


class LabelsRequest(BaseModel):
    """What one person says of facts."""

    model_config = ConfigDict(extra="forbid")

    by: Annotated[str, Field(min_length=1, max_length=LONGEST_PERSON, description="Who says it.")]
    labels: Annotated[list[LabelIn], Field(min_length=1)]


class LabelsKept(BaseModel):
    """The labels are on the disk."""

    kept: int
    labelled: int = Field(description="Facts of the run that somebody has decided now.")


class LabelledFact(Triple):
    """A fact that people have decided."""

    confidence: float | None = Field(description="The stored one.")
    label: float = Field(description="1 if all say that it holds, 0 if none does, else the share of yes.")
    reviewers: str = Field(description="Who spoke of it.")
    at: str = Field(description="When the last of them did.")


class LabelsResponse(BaseModel):
    """The labelled facts of the run, as `fuse` and `calibrate` take them."""

    total: int
    offset: int
    facts: list[LabelledFact]


class ReviewFact(LikelyFalseOut):
    """A fact that a person should look at, with the reasons in words."""

    why: list[str]


class ReviewResponse(BaseModel):
    """What a person should look at next, that of which a label tells most first."""

    yours: int = Field(description="Facts that this person has spoken of.")
    labelled: int = Field(description="Facts that somebody has decided.")
    facts: list[ReviewFact]


class Bin(BaseModel):
    """Facts of about the same predicted confidence."""

    predicted: float
    observed: float
    facts: int


class Curve(BaseModel):
    """A reliability curve with its figures."""

    facts: int
    ece: float = Field(description="Expected calibration error over bins of equal mass.")
    spearman: float | None
    bins: list[Bin]


class ReliabilityResponse(Curve):
    """Whether confidences mean what they say, on facts that were kept from training, taken to be facts."""

    part: str
    with_negatives: Curve | None = Field(description="The same for these facts and as many negative links.")
    negatives: Literal["given", "drawn"] = Field(description="Whether the data set brought the negative links.")


class AuditResponse(BaseModel):
    """What is wrong with the data, and what needs no model."""

    model_config = ConfigDict(extra="allow")

    headlines: list[str]
    name: str


class InfoResponse(BaseModel):
    """What is served."""

    run: str
    model: str
    data: str
    entities: int
    relations: int
    facts: int
    strong_above: float
    opinion: Opinion
    bounds: Literal["evidence", "validation", "nothing"] = Field(
        description="What intervals come from: the evidence, or the model's errors on validation facts and as many "
        "negative links."
    )
    search: Search
    epochs: int | None
    metric: str | None
    best: float | None
    added: int = Field(description="Facts, among those known, that were added since the training.")
    addition: int | None = Field(description="The number of the last addition that is served.")
    version: str
    loaded: str = Field(description="When this run was loaded (UTC).")
    reloads: int
    ready: dict[str, bool] = Field(description="What has been prepared in the background.")
    limits: Limits


class HealthResponse(BaseModel):
    """The service answers."""

    status: Literal["ok"]
    run: str
