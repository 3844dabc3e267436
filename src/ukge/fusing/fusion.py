"""Fusion: one calibrated confidence per fact from who claims it, how sure, how often, and what the graph says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.evidence.fuse import logit, sigmoid
from ukge.fusing.agreement import MUTE, Agreement, Bins, agree, said
from ukge.fusing.copies import Copy, find_copies, repeated
from ukge.fusing.labels import Labelled, labels_of
from ukge.fusing.reliability import Reliability, reliabilities
from ukge.fusing.storage import Parts, load_parts, save_parts
from ukge.fusing.structure import Structure
from ukge.fusing.voices import Floats, Ints, Voices
from ukge.fusing.weighing import AGREED, FOLDS, KEPT, Inputs, Weighing, Weights, weigh
from ukge.graph.claims import Claims
from ukge.graph.uncertain import UncertainGraph

FEWEST_SOURCES = 3
"""Sources that speak for themselves and from which on agreement tells who is to be believed."""

FEWEST_FACTS = 20
"""Facts that such a source has at least."""

ROUNDS = 2
"""Rounds of sources and structure teaching each other."""


@dataclass(frozen=True, eq=False)
class Fused:
    """Claims with one confidence per fact, in the order of `claims.facts`, and what it was made of."""

    claims: Claims
    confidence: Floats
    fusion: Fusion
    sources: tuple[Reliability, ...]
    structure: bool
    """whether the graph that the claims make had a say"""
    weighing: Weighing | None = None
    """how it did on labels that it did not see; None without labels"""

    @property
    def facts(self) -> UncertainGraph:
        """The facts with their fused confidences."""
        return self.claims.facts.with_confidence(self.confidence)

    def table(self) -> pa.Table:
        """Return a row per fact: its fused confidence, the mean of its claims, how many claims and sources it has."""
        pairs = np.unique(self.claims.fact * max(len(self.claims.sources), 1) + self.claims.source)
        of_fact = np.bincount(pairs // max(len(self.claims.sources), 1), minlength=len(self.confidence))
        named = self.facts.facts().select(["head", "relation", "tail", "confidence"])
        for name, values in (
            ("mean", self.claims.facts.confidence),
            ("claims", self.claims.counts),
            ("sources", of_fact),
        ):
            named = named.append_column(name, pa.array(values))
        return named

    def __repr__(self) -> str:
        return f"Fused({len(self.confidence):,} facts of {len(self.sources):,} sources, {self.fusion.weights.way})"


@dataclass(frozen=True, eq=False)
class Fusion:
    """What was learnt of sources: what their words are worth, who repeats whom, and how much each opinion counts.

    It fuses other claims of the same sources, each fact by what is said of it: a day's claims make no graph that could
    have a say. Those of sources that it does not know count for nothing.
    """

    names: tuple[str, ...]
    bins: tuple[Bins, ...]
    agreement: Agreement
    copies: tuple[Copy, ...]
    weights: Weights
    graph: Bins | None = None
    """bins of what a run's graph says, the last view, if there was one"""

    @classmethod
    def fit(cls, claims: Claims, *, graph: Floats | None = None, labelled: Any = None, seed: int = 0) -> Fused:
        """Learn from claims, and from labelled facts if there are any; return the fused claims with their `fusion`.

        `graph` is what a run says of each fact, NaN where it does not know it. `labelled` are facts with a label from
        0 to 1: a table or frame with a column label, or an array with a label per fact, NaN where there is none.
        """
        labels = None if labelled is None else labels_of(labelled, claims.facts)
        order = _Order.of(claims)
        return order.back(cls._fit(order.claims, order.given(graph), order.labels(labels), seed))

    @classmethod
    def _fit(cls, claims: Claims, graph: Floats | None, labels: Labelled | None, seed: int) -> Fused:
        voices = Voices.of(claims)
        copies = find_copies(voices)
        muted = repeated(voices, copies)
        bins = tuple(Bins.of(voices.confidence[voices.voice == at]) for at in range(len(voices.names)))
        opinion = None if graph is None else Bins.of(graph[~np.isnan(graph)], counted=False)
        unlearnt = cls(voices.names, bins, Agreement((), (), 0.5), copies, Weights(AGREED), opinion)
        views = _Views(voices, said(voices, bins, muted), tuple(each.size for each in bins)).with_graph(opinion, graph)
        alone = np.count_nonzero((voices.says & ~muted).sum(axis=0) >= FEWEST_FACTS)
        if alone + (opinion is not None) < FEWEST_SOURCES and labels is None:
            kept = replace(unlearnt, weights=Weights(KEPT))
            return _fused(kept, claims, claims.facts.confidence, structure=False)
        structure = Structure.of(claims.facts, seed) if alone >= FEWEST_SOURCES else None
        found = _learn(views, structure)
        if labels is None:
            learnt = replace(unlearnt, agreement=found.agreement)
            inputs = _inputs(claims, views, found.log_odds, found.structure)
            return _fused(learnt, claims, learnt.weights(inputs), structure=structure is not None)
        return _with_labels(unlearnt, claims, views, found, labels, seed)

    def __call__(self, claims: Claims, *, graph: Floats | None = None) -> Fused:
        """Fuse other claims by what is known of their sources."""
        order = _Order.of(claims)
        return order.back(self._fused(order.claims, order.given(graph)))

    def _fused(self, claims: Claims, graph: Floats | None) -> Fused:
        voices = Voices.of(claims, self.names)
        codes = said(voices, self.bins, repeated(voices, self.copies))
        views = _Views(voices, codes, ()).with_graph(self.graph, graph)
        log_odds = np.zeros(len(claims.facts))
        if self.agreement.true:
            speaks = [each.counted for each in (*self.bins, *([] if self.graph is None else [self.graph]))]
            log_odds = self.agreement.among(views.codes, speaks).log_odds(views.codes)
        inputs = _inputs(claims, views, log_odds, np.zeros(len(log_odds)))
        # Of a fact that only unknown sources speak of, nothing is known but what they say.
        known = voices.says.any(axis=1)
        confidence = np.where(known, self.weights(inputs), claims.facts.confidence)
        return _fused(self, claims, confidence, structure=False)

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        parts = Parts(self.names, self.bins, self.agreement, self.copies, self.weights, self.graph)
        save_parts(parts, Path(path))

    @staticmethod
    def load(path: str | Path) -> Fusion:
        """Read what `save` wrote."""
        parts = load_parts(Path(path))
        return Fusion(parts.names, parts.bins, parts.agreement, parts.copies, parts.weights, parts.graph)

    def unknown(self, claims: Claims) -> list[str]:
        """Return the sources of claims that it knows nothing of."""
        return sorted(set(claims.sources.decode(np.unique(claims.source)).to_pylist()) - set(self.names))


def fuse(claims: Any, *, graph: Floats | None = None, labelled: Any = None, seed: int = 0) -> Fused:
    """Make one calibrated confidence per fact of claims (`Claims`, or facts with sources); see `Fusion.fit`."""
    from ukge.graph.given import as_graph  # noqa: PLC0415

    taken = claims if isinstance(claims, Claims) else Claims.of_graph(as_graph(claims, None, "fuse", "claims"))
    if len(taken) == 0:
        raise DataError("there are no claims to fuse")
    return Fusion.fit(taken, graph=graph, labelled=labelled, seed=seed)


@dataclass(frozen=True, eq=False)
class _Order:
    """Claims in the order of their names, so that the order in which they came decides nothing.

    `fact` is the given place of each fact.
    """

    given_claims: Claims
    claims: Claims
    fact: Ints

    @classmethod
    def of(cls, claims: Claims) -> _Order:
        names = ("head", "relation", "tail", "source", "confidence")
        keys: Any = [(name, "ascending") for name in names]
        order = np.asarray(pc.sort_indices(claims.table().select(names), sort_keys=keys)).astype(np.int64)
        fact = np.empty(len(claims.facts), np.int64)
        ordered = claims[order]
        fact[ordered.fact] = claims.fact[order]
        return cls(claims, ordered, fact)

    def given(self, values: Floats | None) -> Floats | None:
        return None if values is None else np.asarray(values, np.float64)[self.fact]

    def labels(self, labels: Labelled | None) -> Labelled | None:
        return None if labels is None else replace(labels, label=labels.label[self.fact])

    def back(self, fused: Fused) -> Fused:
        """Return what was fused in the order in which it was given."""
        confidence = np.empty(len(self.fact))
        confidence[self.fact] = fused.confidence
        return replace(fused, claims=self.given_claims, confidence=confidence)


@dataclass(frozen=True, eq=False)
class _Views:
    voices: Voices
    codes: Ints
    sizes: tuple[int, ...]

    def with_graph(self, bins: Bins | None, graph: Floats | None) -> _Views:
        """Add what a run says of the facts as one view more; where it says nothing it has no voice."""
        if bins is None:
            return self
        codes = np.full(len(self.codes), MUTE, np.int64)
        if graph is not None:
            known = ~np.isnan(graph)
            codes[known] = bins.code(graph[known], np.ones(int(known.sum()), np.int64))
        return _Views(self.voices, np.column_stack([self.codes, codes]), (*self.sizes, bins.size))


@dataclass(frozen=True, eq=False)
class _Learnt:
    """What sources and structure say once they agree; `columns` are those the structure was read from."""

    agreement: Agreement
    log_odds: Floats
    structure: Floats
    by: Structure | None
    columns: Any = None


def _learn(views: _Views, structure: Structure | None) -> _Learnt:
    """Let sources teach the structure and the structure the sources, in turn."""
    mentions = (views.codes[:, : len(views.voices.names)] > 1).sum(axis=1).astype(np.float64)
    agreement, log_odds = agree(views.codes, views.sizes, sigmoid(mentions - mentions.mean()))
    beside, columns = np.zeros(len(log_odds)), None
    for _ in range(ROUNDS if structure is not None else 0):
        assert structure is not None
        columns = structure.columns(sigmoid(log_odds + beside))
        beside = structure.log_odds(columns, sigmoid(log_odds))
        agreement, log_odds = agree(views.codes, views.sizes, sigmoid(log_odds + beside), beside=beside)
    return _Learnt(agreement, log_odds, beside, structure, columns)


def _with_labels(
    unlearnt: Fusion, claims: Claims, views: _Views, found: _Learnt, labelled: Labelled, seed: int
) -> Fused:
    """Learn once more with labels, each of which is judged by what was learnt from the others."""
    rows, label = labelled.rows, labelled.label[labelled.rows]
    agreed = _inputs(claims, views, found.log_odds, found.structure)
    beside, start = found.structure, sigmoid(found.log_odds + found.structure)
    if found.by is not None:
        beside = found.by.log_odds(found.columns, sigmoid(found.log_odds), labelled.label)
    agreement, log_odds = agree(views.codes, views.sizes, start, label=labelled.label, beside=beside)
    fold = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    unseen = log_odds[rows].copy()
    for number in range(FOLDS):
        hidden = labelled.label.copy()
        hidden[rows[fold == number]] = np.nan
        without = agree(views.codes, views.sizes, sigmoid(log_odds + beside), label=hidden, beside=beside)[1]
        unseen[fold == number] = without[rows[fold == number]]
    inputs = _inputs(claims, views, log_odds, beside)
    weighing = weigh(replace(inputs.pick(rows), sources=unseen), agreed.pick(rows), label, fold)
    if weighing.weights.way == AGREED:
        inputs, agreement = agreed, found.agreement
    learnt = replace(unlearnt, agreement=agreement, weights=weighing.weights)
    return _fused(learnt, claims, weighing.weights(inputs), structure=found.by is not None, weighing=weighing)


def _inputs(claims: Claims, views: _Views, log_odds: Floats, structure: Floats) -> Inputs:
    heard = views.codes[:, : len(views.voices.names)] > 1
    sure = np.asarray(views.voices.matrix(logit(views.voices.confidence)), np.float64) * heard
    return Inputs(claims.facts.confidence, log_odds, structure, heard.astype(np.float64), sure)


def _fused(
    fusion: Fusion, claims: Claims, confidence: Floats, *, structure: bool, weighing: Weighing | None = None
) -> Fused:
    kept: Sequence[Copy] = fusion.copies
    told = reliabilities(claims, confidence, fusion.names, kept)
    return Fused(claims, confidence, fusion, told, structure, weighing)
