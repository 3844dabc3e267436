"""The audit of a data set or of a graph as one record, and what matters most in it as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ukge.errors import Wording, in_python, worded
from ukge.graph.audit.baselines import CONSTANT, Baseline, trivial_baselines
from ukge.graph.audit.leaks import Twin, Twins, find_twins, percent
from ukge.graph.audit.negatives import Negatives, examine_negatives
from ukge.graph.audit.sources import Sources, examine_sources
from ukge.graph.audit.statistics import (
    NameCounts,
    PartCounts,
    Repeats,
    Symmetry,
    count_names,
    count_part,
    find_repeats,
    find_symmetry,
)
from ukge.graph.claims import Claims
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph

WORTH_SAYING = 0.001  # shares below one in a thousand stay in the tables
FREQUENT = 0.02


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything the audit found. A graph without a split has one part, no twins, no negatives and no baselines.

    `sources` are there where facts say who claims them.
    """

    name: str
    entities: NameCounts
    relations: NameCounts
    whole: PartCounts
    parts: tuple[PartCounts, ...]
    repeats: Repeats
    twins: tuple[Twins, ...]
    negatives: Negatives | None
    symmetry: tuple[Symmetry, ...]
    baselines: tuple[Baseline, ...]
    sources: Sources | None = None

    def headlines(self, wording: Wording = in_python) -> tuple[str, ...]:
        """Return what matters most as short sentences, the gravest first, in the words of a surface."""
        return (
            *_leaks(self),
            *_false_negatives(self),
            *_repeats(self),
            *(() if self.sources is None else self.sources.headlines()),
            *_baselines(self),
            *(worded(line, wording) for line in _symmetry(self)),
            *_confidences(self),
            *_unused(self),
        )

    def to_dict(self, wording: Wording = in_python) -> dict[str, Any]:
        """Return the audit as plain values that JSON can hold, with its headlines."""
        return {"headlines": list(self.headlines(wording)), **asdict(self)}


def audit(data: Dataset | UncertainGraph | Claims, *, name: str | None = None, claims: Claims | None = None) -> Audit:
    """Audit a data set, a graph without a split, or claims; `name` is what the report calls it.

    `claims` are those that the facts were made of; if they are not given, facts that name sources are claims.
    """
    claims = data if isinstance(data, Claims) else claims
    if isinstance(data, Dataset):
        whole, claims = data.whole(), claims or data.claims
        found = _audit(name or data.name, whole, tuple(data.parts.items()), data)
    else:
        whole = data.graph if isinstance(data, Claims) else data
        found = _audit(name or "graph", whole, (), None)
    if claims is None and whole.source is not None:
        claims = Claims.of_graph(whole)
    return found if claims is None else replace(found, sources=examine_sources(claims))


def _audit(
    name: str, whole: UncertainGraph, parts: tuple[tuple[str, UncertainGraph], ...], dataset: Dataset | None
) -> Audit:
    facts = FactIndex(whole)
    entities, relations = count_names(whole)
    everything = count_part("all", whole)
    twins: tuple[Twins, ...] = ()
    negatives = None
    baselines: tuple[Baseline, ...] = ()
    if dataset is not None:
        known = FactIndex(dataset.train)
        twins = tuple(find_twins(part, graph, known) for part, graph in parts if part != "train")
        negatives = examine_negatives(dataset, facts, known)
        baselines = trivial_baselines(dataset, known)
    return Audit(
        name,
        entities,
        relations,
        everything,
        tuple(count_part(part, graph) for part, graph in parts),
        find_repeats(facts),
        twins,
        negatives,
        find_symmetry(facts),
        baselines,
    )


def sizes(found: Audit) -> tuple[str, str, str]:
    """Return how many facts, entities and relations there are, in words."""
    counts = (found.whole.rows, found.entities.known, found.relations.known)
    words = (("fact", "facts"), ("entity", "entities"), ("relation", "relations"))
    facts, entities, relations = (
        f"{count:,} {one if count == 1 else many}" for count, (one, many) in zip(counts, words, strict=True)
    )
    return facts, entities, relations


def _leaks(found: Audit) -> Iterator[str]:
    for twins in found.twins:
        if twins.part == "test":
            yield from _leak(twins)


def _leak(twins: Twins) -> Iterator[str]:
    exact, inverse, pair = twins.exact, twins.inverse, twins.pair
    if exact.rows:
        yield f"{percent(exact.share)} of the test facts ({exact.rows:,}) are already in train, {_apart(exact)}."
    if inverse.share >= WORTH_SAYING:
        yield (f"{percent(inverse.share)} of the test facts have their inverse (t, r, h) in train, {_apart(inverse)}.")
    if not exact.rows and not inverse.rows:
        yield "No test fact is in train, neither as it is nor inverted."
    if pair.share >= WORTH_SAYING:
        yield f"{percent(pair.share)} of the test facts link two entities that train links already."


def _apart(twin: Twin) -> str:
    if twin.gap is None or twin.gap < 0.0005:
        return "with the same confidence"
    return f"with a confidence that differs by {twin.gap:.3f} on average"


def _false_negatives(found: Audit) -> Iterator[str]:
    negatives = found.negatives
    if negatives is None:
        return
    if negatives.facts:
        yield (
            f"{negatives.facts:,} of the {negatives.rows:,} negative links ({percent(negatives.share)}) are facts of "
            f"the graph: on test and negatives together no honest model can get below MSE {negatives.floor_mse:.4f}."
        )
    else:
        yield f"None of the {negatives.rows:,} negative links is a fact of the graph."


def _repeats(found: Audit) -> Iterator[str]:
    repeats = found.repeats
    if repeats.conflicting:
        which = "all" if repeats.conflicting == repeats.triples else f"{repeats.conflicting:,}"
        yield (
            f"{repeats.triples:,} triples occur more than once; {which} of them have different "
            f"confidences, {repeats.mean_spread:.3f} apart on average."
        )
    elif repeats.triples:
        yield f"{repeats.triples:,} triples occur more than once, each time with the same confidence."


def _baselines(found: Audit) -> Iterator[str]:
    if not found.baselines:
        return
    constants = [each for each in found.baselines if each.fitted_on == "train+val"]
    mse = min(each.positives.mse for each in constants)
    mae = min(each.positives.mae for each in constants)
    yield f"A constant reaches MSE {mse:.4f} (the mean) or MAE {mae:.3f} (the median) on the positive test facts."
    best = min(found.baselines, key=lambda each: each.positives.mse)
    if not best.name.startswith(CONSTANT) and best.positives.mse < mse:
        yield (
            f"Without any model, “{best.name}” reaches MSE {best.positives.mse:.4f} and MAE {best.positives.mae:.3f} "
            "on the positive test facts: a model has to beat that."
        )


def _symmetry(found: Audit) -> Iterator[str]:
    taken = [each.relation for each in found.symmetry if each.undirected]
    if taken:
        what = "is" if len(taken) == 1 else "are"
        yield f"{_some(taken)} {what} taken to have no direction: a fact and its mirror are one fact."
    perhaps = [each.relation for each in found.symmetry if each.perhaps]
    if perhaps:
        yield (
            f"{_some(perhaps)}: the same entities are heads and tails, and no fact has its mirror. If there is no "
            f"direction, say so: ‹undirected={perhaps[0]}›"
        )
    symmetric = [each for each in found.symmetry if each.share >= 0.9 and each.facts >= 10 and not each.undirected]
    if symmetric:
        names = _some([each.relation for each in symmetric])
        what = "relation is" if len(symmetric) == 1 else "relations are"
        advice = (
            "" if found.parts else " A random cut would give test facts away by their inverse, a leak-safe one not."
        )
        yield f"{len(symmetric):,} {what} symmetric in at least 90 % of the facts: {names}.{advice}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _confidences(found: Audit) -> Iterator[str]:
    part = next((each for each in found.parts if each.name == "test"), found.whole)
    if part.mode is not None and part.mode_share is not None and part.mode_share >= FREQUENT:
        what = "test confidence" if part is not found.whole else "confidence"
        yield f"The most frequent {what} is {part.mode:g} ({percent(part.mode_share)})."


def _unused(found: Audit) -> Iterator[str]:
    for what, names in (("entities", found.entities), ("relations", found.relations)):
        if names.used < names.known:
            yield f"{names.known - names.used:,} of the {names.known:,} {what} occur in no fact."
