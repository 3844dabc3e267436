"""One run as the service holds it: opened, checked, indexed. It never changes; a new run is a new snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import DataError, RunError
from ukge.evaluation.calibration import Calibration, Reliability, calibration, reliability
from ukge.graph.audit import Audit, audit
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.runs.directory import Run
from ukge.runs.opened import dataset_of
from ukge.serve.bounds import ErrorBounds, negatives_like
from ukge.serve.deadlines import Later, one_after_another
from ukge.serve.evidence_opinion import EvidenceOpinion
from ukge.serve.model_opinion import ModelOpinion
from ukge.serve.names import NameIndex
from ukge.serve.observed import Observed
from ukge.serve.opinion import COVERAGE, Doubt, Floats, Opinion, Triple
from ukge.serve.rulebook import Rulebook
from ukge.serve.topk import ExactSearch, Searcher
from ukge.serve.weights import Weights

DOUBTS_KEPT = 1_000
NEAR, LONGEST_NEAR = 5, 200


@dataclass(frozen=True, eq=False)
class Curve:
    """Predicted against stored confidences."""

    figures: Calibration
    bins: Reliability

    @classmethod
    def of(cls, predicted: Floats, facts: UncertainGraph) -> Curve:
        """Compare predictions with the confidences of facts."""
        return cls(calibration(predicted, facts.confidence), reliability(predicted, facts.confidence))


@dataclass(frozen=True, eq=False)
class Quality:
    """How well confidences mean what they say, on facts that were kept from training.

    `held` takes them to be facts; `with_negatives` is of the same facts and as many negative links, which may be
    `drawn` where the data set brings none.
    """

    part: str
    held: Curve
    with_negatives: Curve | None
    drawn: bool


class Snapshot:
    """A run with its data set. What takes long to find is found in the background."""

    def __init__(self, run: Run, dataset: Dataset, weights: Weights, *, indexed: bool = False) -> None:
        self.run, self.dataset, self.weights = run, dataset, weights
        self.manifest = run.manifest()
        self.tau = run.config.sampling.tau
        self.entities, self.relations = dataset.entities, dataset.relations
        self.observed = Observed(dataset.whole())
        self.exact = ExactSearch(weights)
        self.index = Later("the index", self._index) if indexed else None
        self.rulebook = Later("the rules", lambda: Rulebook.mined(dataset.train, self.tau))
        self.audit: Later[Audit] = Later("the audit", lambda: audit(dataset))
        self.quality = Later("the reliability figures", self._quality)
        self.doubts: Later[list[Doubt]] = Later("doubtful facts", lambda: self.opinion.doubtful(DOUBTS_KEPT))
        model = ModelOpinion(
            weights, self.observed, self.entities, self.relations, self.rulebook.get, lambda: self._model_bounds
        )
        self.model = model
        self.opinion: Opinion = EvidenceOpinion.of(run.path, model) or model

    @classmethod
    def open(
        cls,
        path: str | Path,
        data: str | Path | None = None,
        reading: Mapping[str, Any] | None = None,
        *,
        index_above: int | None = None,
    ) -> Snapshot:
        """Open a finished run and its data; whatever is missing, damaged or does not fit is a `RunError`.

        With more than `index_above` entities, an approximate index is built and answers once it is there.
        """
        run = Run.open(path)
        status = run.manifest()["status"]
        if status != "finished":
            raise RunError(
                f"{run.path} is not finished (status: {status})", hint=f"Go on with it: ukge train --resume {run.path}"
            )
        weights = Weights.of(run)
        dataset = dataset_of(run, data, reading)
        if (dataset.entities, dataset.relations) != run.vocabularies:
            raise RunError(
                f"{run.path} learnt other names than its data has: their ids would not mean the same",
                hint="Give the data the run learnt from: ‹data=DATA›.",
            )
        large = index_above is not None and weights.n_entities > index_above
        return cls(run, dataset, weights, indexed=large and weights.scorer.inner_product)

    @property
    def searcher(self) -> Searcher:
        """What finds the best answers: the index once it is built, the exact search until then and otherwise."""
        return self.exact if self.index is None or not self.index.ready else self.index.get()

    @property
    def name(self) -> str:
        """The name of the run directory."""
        return self.run.path.resolve().name

    @cached_property
    def entity_names(self) -> NameIndex:
        """The entities, to be searched."""
        return NameIndex(self.entities, self.observed.degree)

    @cached_property
    def relation_names(self) -> NameIndex:
        """The relations, to be searched."""
        return NameIndex(self.relations, self.facts_by_relation)

    @cached_property
    def facts_by_relation(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many observed facts each relation has."""
        return np.bincount(self.observed.all().relation, minlength=len(self.relations))

    def warm(self) -> None:
        """Begin to find what takes long, and build what the first request would otherwise wait for."""
        self.entities.index  # noqa: B018 — built at first use
        _ = self.entity_names, self.relation_names
        if len(self.observed):
            # The first judgement loads libraries and compiles; no request shall wait for that.
            head, relation, tail = (int(column[0]) for column in self.observed.all()[:3])
            first = head, relation, tail
            self.opinion.confidence([first])
            self.opinion.interval([first], COVERAGE)
        one_after_another(self.later)

    @property
    def later(self) -> tuple[Later[Any], ...]:
        """What is found in the background, what is asked for most first."""
        every = (self.rulebook, self.index, self.quality, self.audit, self.doubts)
        return tuple(each for each in every if each is not None)

    def prepare(self) -> None:
        """Warm up and wait until everything is found."""
        self.warm()
        for each in self.later:
            each.wait()

    def triple(self, head: str, relation: str, tail: str) -> Triple:
        """Return the ids of a fact; an unknown name is an `UnknownNameError`."""
        return self.entity(head), self.relation(relation), self.entity(tail)

    def entity(self, name: str) -> int:
        """Return the id of an entity."""
        found = self.entities.index.get(name)
        if found is None:
            raise UnknownNameError("entity", name)
        return found

    def relation(self, name: str) -> int:
        """Return the id of a relation."""
        found = self.relations.index.get(name)
        if found is None:
            raise UnknownNameError("relation", name)
        return found

    def near(self, unknown: UnknownNameError) -> list[str]:
        """Return names that look like an unknown one; takes a moment among many names."""
        index = self.entity_names if unknown.kind == "entity" else self.relation_names
        return [match.name for match in index.search(unknown.name[:LONGEST_NEAR], NEAR)]

    def _index(self) -> Searcher:
        from ukge.serve.index import approximate  # noqa: PLC0415 — small graphs need no index

        return approximate(self.run.path, self.weights, self.observed, self.exact)

    @cached_property
    def _model_bounds(self) -> ErrorBounds | None:
        return ErrorBounds.of(self.weights, self.dataset)

    def _quality(self) -> Quality:
        part, facts = next(
            ((name, self.dataset.parts[name]) for name in ("test", "val") if len(self.dataset.parts[name])),
            ("train", self.dataset.train),
        )
        given = self.dataset.negatives if part == "test" else None
        negatives = negatives_like(self.dataset, facts) if given is None else given
        links = concat([facts, negatives])
        held = Curve.of(self.opinion.confidence_if_held(_triples(facts)), facts)
        if_any = Curve.of(self.opinion.confidence(_triples(links)), links) if len(negatives) else None
        return Quality(part, held, if_any, drawn=given is None)


def _triples(facts: UncertainGraph) -> list[Triple]:
    return list(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))


class UnknownNameError(DataError):
    """A name that the graph does not have; `Snapshot.near` finds names that look like it."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"unknown {kind} {name!r}", hint="Names are compared exactly, case included.")
