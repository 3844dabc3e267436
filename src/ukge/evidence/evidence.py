"""`Evidence`: a calibrated confidence for any fact, from what the graph says of it and what trained models believe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, RunError
from ukge.evaluation.answer_sets import AnswerSets
from ukge.evaluation.distribution import NEUTRAL, Asked
from ukge.evidence.bounds import Bounds, By
from ukge.evidence.features import Features
from ukge.evidence.kernels import load_compiler
from ukge.evidence.ranking import CandidateRanker
from ukge.evidence.regressor import ConfidenceRegressor, Contributions
from ukge.evidence.settings import Changes, EvidenceSettings, RegressorChanges, as_shares
from ukge.evidence.storage import Parts, StoredParts, save_evidence
from ukge.evidence.trees import Floats, Matrix
from ukge.graph.dataset import Dataset
from ukge.graph.given import Facts, OneFact, Rows, judged, known_ids
from ukge.graph.queries import AnyIds, Queries
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.html.card import Table, card
from ukge.progress.steps import Tell
from ukge.runs.additions import Added
from ukge.runs.directory import EVIDENCE

if TYPE_CHECKING:
    import pandas as pd

    from ukge.evidence.backbones import Backbone, Models
    from ukge.evidence.explain import Explanation
    from ukge.evidence.false_links import FalseLinks
    from ukge.evidence.kinds import KindErrors
    from ukge.evidence.regressor import StrongClassifier


class Evidence:
    """What the graph says about facts, joined with trained models by a fitted head. Made by `fit` or `load`.

    A prediction has two readings. By default a fact may be false: its confidence is that of a fact drawn from
    observed facts and negative links in equal parts. With `assume_holds` it is taken to be a fact of the graph, and the
    question is how confident a one.
    """

    def __init__(self, parts: Parts | StoredParts, asked: Asked = NEUTRAL) -> None:
        self._parts = parts
        self.asked = asked
        self._strong: dict[float, StrongClassifier] = {}

    @property
    def features(self) -> Features:
        """What evidence is read from."""
        return self._parts.features

    @property
    def dataset(self) -> Dataset:
        """The data set that it belongs to: its training facts are what evidence is read from."""
        return self._parts.dataset

    @property
    def regressor(self) -> ConfidenceRegressor:
        """What makes a confidence of evidence."""
        found = self._parts.regressor
        return found if self.asked == NEUTRAL else replace(found, asked=self.asked)

    @property
    def bounds(self) -> Bounds:
        """The bounds of any fact."""
        return self._parts.bounds

    @property
    def bounds_if_held(self) -> Bounds:
        """The bounds of a fact that is taken to hold."""
        return self._parts.bounds_if_held

    @property
    def ranker(self) -> CandidateRanker | None:
        """What orders the candidates of a query, if there were validation queries to learn it from."""
        return self._parts.ranker

    @property
    def settings(self) -> EvidenceSettings:
        """What was chosen when the evidence was gathered and the trees fitted."""
        return self._parts.settings

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the fit."""
        return self._parts.notes

    @classmethod
    def fit(
        cls,
        models: Models,
        dataset: Dataset,
        *,
        settings: EvidenceSettings | None = None,
        engine: str = "duckdb",
        tell: Tell | None = None,
        **changes: Unpack[Changes],
    ) -> Self:
        """Gather evidence from the training facts and fit trees to the validation facts and to negative links.

        `models` are trained estimators or run directories of this data set, none, one or several. Nothing of the test
        part is read. Settings (see `EvidenceSettings`) are given by name. `tell` hears what is being done.
        """
        from ukge.evidence.fitting import fit  # noqa: PLC0415 — whoever asks need not load what fits

        chosen = (settings or EvidenceSettings()).replace(**changes)
        return cls(fit(models, dataset, chosen, engine, tell))

    def with_prior(self, prior: float) -> Self:
        """Return the same for links of which this share are facts, and not half of them, as it was fitted.

        It changes what is said of any link: confidences, bounds, quantiles, reasons. A fact that is taken to hold has
        the confidence that it had.
        """
        if not 0.0 < prior < 1.0:
            raise ConfigError(f"the share of links that hold is between 0 and 1, not {prior:g}")
        return type(self)(self._parts, replace(self.asked, prior=prior))

    def with_negatives(self, kinds: str | Mapping[str, float]) -> Self:
        """Return the same for links of which the false ones are of these kinds: one, or shares of some.

        What is said of a link is then nearly what evidence would say that was fitted to such links alone.
        """
        return type(self)(self._parts, self._false_links().asked(self.asked.prior, _shares(kinds)))

    def adapted_to(
        self, facts: Facts, *, prior: float | None = None, negatives: str | Mapping[str, float] | None = None
    ) -> Self:
        """Return the same for links such as these; how many hold and what the false ones are like is found from them.

        It takes some hundred links that are asked about together. A `prior` that is known is kept, and so are the kinds
        of `negatives`. What was found stands in `asked` and `asked_negatives`.
        """
        kinds = None if negatives is None else _shares(negatives)
        return type(self)(self._parts, self._parts.regressor.likeliest(self.matrix(*self.ids(facts)), prior, kinds))

    @property
    def asked_negatives(self) -> dict[str, float]:
        """The share of each kind among the false links that are asked about."""
        return self._false_links().shares(self.asked)

    def _false_links(self) -> FalseLinks:
        return self._parts.regressor.false_links()

    def refit(self, *, tell: Tell | None = None, **changes: Unpack[RegressorChanges]) -> Self:
        """Return other trees over the same evidence, with some of their settings changed.

        Settings of the gathering itself cannot be changed.
        """
        from ukge.evidence.fitting import refit  # noqa: PLC0415

        return type(self)(refit(self._parts, changes, tell)).with_prior(self.asked.prior)

    def strong(self, tau: float = 0.85, dataset: Dataset | None = None) -> StrongClassifier:
        """Return trees that say how likely facts have a confidence above τ.

        It learns from the validation facts of its own data set, or of another cut of it.
        """
        from ukge.evidence.fitting import examples_of  # noqa: PLC0415
        from ukge.evidence.regressor import fit_strong_classifier  # noqa: PLC0415

        return fit_strong_classifier(self, examples_of(self._parts, dataset or self.dataset), tau)

    @property
    def added(self) -> Added | None:
        """What was added to its run since the training; None if nothing was."""
        return self._parts.added

    @property
    def models(self) -> dict[str, Backbone]:
        """The models that it was fitted over, by the names under which rows that are added for them are kept."""
        return dict(zip(self._parts.models, self.features.backbones, strict=True))

    @property
    def entities(self) -> Vocabulary:
        """The names behind entity ids."""
        return self.known.entities

    @property
    def relations(self) -> Vocabulary:
        """The names behind relation ids."""
        return self.known.relations

    @property
    def known(self) -> UncertainGraph:
        """The facts that evidence is read from."""
        return self.features.index.graph

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return self.features.index.n_entities

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of evidence, in order."""
        return self.features.names

    @overload
    def predict(self, facts: OneFact, *, assume_holds: bool = False, count_itself: bool = False) -> float: ...
    @overload
    def predict(self, facts: Rows, *, assume_holds: bool = False, count_itself: bool = False) -> Floats: ...
    @overload
    def predict(
        self, facts: pd.DataFrame, *, assume_holds: bool = False, count_itself: bool = False
    ) -> pd.DataFrame: ...

    def predict(self, facts: Any, *, assume_holds: bool = False, count_itself: bool = False) -> Any:
        """Return the confidence of facts, given and answered as `UKGE.predict` has it.

        A fact that the known facts hold is judged as if they did not, for nothing is evidence for itself; with
        `count_itself` it is.
        """

        def judge(*ids: Ids) -> Floats:
            return self.predict_ids(*ids, assume_holds=assume_holds, count_itself=count_itself)

        return judged(facts, self.entities, self.relations, judge, "predict")

    def predict_ids(
        self,
        head: AnyIds,
        relation: AnyIds,
        tail: AnyIds,
        *,
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> Floats:
        """Return the confidence of facts, by ids."""
        return self.regressor.predict(
            self.matrix(head, relation, tail, count_itself=count_itself), assume_holds=assume_holds
        )

    def matrix(self, head: AnyIds, relation: AnyIds, tail: AnyIds, *, count_itself: bool = False) -> Matrix:
        """Return the evidence about facts, by ids, a column for each of `feature_names`; NaN where there is none."""
        own = None if count_itself else self.features.index.find(head, relation, tail)
        return self.features.columns(head, relation, tail, own)

    def interval(
        self,
        facts: Facts,
        coverage: float = 0.9,
        *,
        by: By = "band",
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> tuple[Floats, Floats]:
        """Return lower and upper bounds that hold the confidence of the given share of facts.

        `by` says within what the share is kept: "band" (of predicted confidence), "relation", or "all".
        """
        ids = self.ids(facts)
        columns = self.matrix(*ids, count_itself=count_itself)
        return self.interval_of(columns, ids[1], coverage, by=by, assume_holds=assume_holds)

    def interval_of(
        self, columns: Matrix, relation: AnyIds, coverage: float = 0.9, *, by: By = "band", assume_holds: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the bounds of facts whose evidence is at hand; the predicted confidence lies between them."""
        bounds = self.bounds_if_held if assume_holds else self.bounds
        among = NEUTRAL if assume_holds else self.asked
        predicted = neutral = self._parts.regressor.predict(columns, assume_holds=assume_holds)
        if among != NEUTRAL:
            predicted = self.regressor.predict(columns)
        low, high = bounds.interval(columns, neutral, relation, coverage, by, among)
        return np.minimum(low, predicted), np.maximum(high, predicted)

    def quantiles(
        self,
        facts: Facts,
        levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
        *,
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> Floats:
        """Return quantiles of the confidence of facts, a row per fact and a column per level.

        They are those of validation facts and negative links that the trees did not see, with a like prediction and a
        like expected error: where confidences are a few round numbers, so are their quantiles.
        """
        columns = self.matrix(*self.ids(facts), count_itself=count_itself)
        return self.quantiles_of(columns, levels, assume_holds=assume_holds)

    def quantiles_of(self, columns: Matrix, levels: Sequence[float], *, assume_holds: bool = False) -> Floats:
        """Return the quantiles of facts whose evidence is at hand."""
        if not len(levels) or not all(0.0 < level < 1.0 for level in levels):
            raise ConfigError("a level of a quantile is a number between 0 and 1", hint="0.5 is the median.")
        bounds = self.bounds_if_held if assume_holds else self.bounds
        neutral = self._parts.regressor.predict(columns, assume_holds=assume_holds)
        return bounds.quantiles(columns, neutral, levels, NEUTRAL if assume_holds else self.asked)

    def confidence_quantiles(self, head: AnyIds, relation: AnyIds, tail: AnyIds, levels: Sequence[float]) -> Floats:
        """Return the quantiles of each fact's confidence, by ids, as `confidence` reads it."""
        return self.quantiles_of(self.matrix(head, relation, tail, count_itself=True), levels)

    def confidence_bounds(self, head: AnyIds, relation: AnyIds, tail: AnyIds, coverage: float) -> tuple[Floats, Floats]:
        """Return the bounds of each fact's confidence, by ids, as `confidence` reads it."""
        return self.interval_of(self.matrix(head, relation, tail, count_itself=True), relation, coverage)

    @property
    def answer_sets(self) -> AnswerSets | None:
        """Answer sets of queries, if there were validation queries to calibrate them on."""
        return self._parts.answer_sets

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Floats:
        """Return the confidence of each fact, by ids: what the evaluation protocols ask for.

        Whatever is known counts: a protocol asks about facts that were held back, and if train says one of them too,
        that is a leak of the data which a figure has to show.
        """
        return self.predict_ids(head, relation, tail, count_itself=True)

    def strong_chance(self, head: AnyIds, relation: AnyIds, tail: AnyIds, tau: float) -> Floats | None:
        """Return how likely each fact has a confidence above τ, by ids; None if no validation fact has.

        Whatever is known counts, as in `confidence`; the trees are grown once for each τ.
        """
        if not (self.dataset.val.confidence > tau).any():
            return None
        if tau not in self._strong:
            self._strong[tau] = self.strong(tau)
        return self._strong[tau].chance_of(self.matrix(head, relation, tail, count_itself=True))

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> npt.NDArray[np.float32]:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities); a higher one ranks higher."""
        return self._scores(Queries.of("tail", head, relation))

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> npt.NDArray[np.float32]:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities), as `tail_scores` does."""
        return self._scores(Queries.of("head", tail, relation))

    def _scores(self, queries: Queries) -> npt.NDArray[np.float32]:
        if self.ranker is not None:
            return self.ranker.scores(self.features, queries, self.regressor)
        if not self.features.backbones:
            raise RunError("this evidence has no trees for ranking", hint="Fit it with more validation facts.")
        from ukge.evidence.ranking import model_scores  # noqa: PLC0415

        return model_scores(self.features, queries)[0]  # too few answers to learn an order from: the model has one

    def columns(self, facts: Facts, *, count_itself: bool = False) -> dict[str, npt.NDArray[np.float32]]:
        """Return the evidence about facts by column; NaN where there is none."""
        columns = self.matrix(*self.ids(facts), count_itself=count_itself)
        return {name: columns[:, at] for at, name in enumerate(self.feature_names)}

    def contributions(self, facts: Facts, *, assume_holds: bool = False, count_itself: bool = False) -> Contributions:
        """Return how much each column of evidence moved each prediction; with the base they add up to it exactly."""
        columns = self.matrix(*self.ids(facts), count_itself=count_itself)
        return self.regressor.contributions(columns, self.feature_names, assume_holds=assume_holds)

    def explain(
        self,
        head: str,
        relation: str,
        tail: str,
        *,
        coverage: float = 0.9,
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> Explanation:
        """Return why a fact, by name, has its confidence, with bounds that hold the given share of facts."""
        from ukge.evidence.explain import explain_all  # noqa: PLC0415 — a use of evidence, loaded when it is asked for

        facts = [(head, relation, tail)]
        (told,) = explain_all(self, facts, coverage=coverage, assume_holds=assume_holds, count_itself=count_itself)
        return told

    def unseen_errors(self) -> dict[str, float]:
        """Return the errors on validation facts and negative links, each predicted by trees that did not see it."""
        found = {}
        for suffix, bounds in (("", self.bounds), ("_if_held", self.bounds_if_held)):
            found[f"mse{suffix}"] = float(np.mean(bounds.error**2))
            found[f"mae{suffix}"] = float(np.mean(np.abs(bounds.error)))
        return found

    def errors_by_kind(self) -> dict[str, KindErrors]:
        """Return errors and calibration on unseen validation facts beside negative links of each kind."""
        return dict(self._parts.kinds)

    def __repr__(self) -> str:
        models = ", ".join(each.name for each in self.features.backbones) or "no model"
        mse = self.unseen_errors()["mse"]
        what = f"{models} and {len(self.feature_names)} columns about {len(self.known):,} known facts"
        return f"Evidence({what}; mse on unseen facts {mse:.5f})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the errors on facts that the trees did not see, and the known facts."""
        from ukge.graph.notebook import confidence_figure  # noqa: PLC0415 — for notebooks

        errors = Table(("error on unseen facts", ""), list(self.unseen_errors().items()))
        return card(repr(self), [confidence_figure(self.known, f"known facts: {len(self.known):,}")], errors)

    def save(self, path: str | Path, *, held: bool = False) -> None:
        """Write it into a run that learnt from the same facts, which it then refers to, or into a new directory.

        `held` says that nobody else can write there: a run in the making.
        """
        save_evidence(Path(path), self._parts, held=held)

    @classmethod
    def load(cls, path: str | Path, *, copied: bool = False) -> Self:
        """Open evidence in its directory, or in that of the run it was saved in.

        Each part is read when it is first used, and checked then: a damaged one is an error that names its file. If
        `copied`, arrays and weights are in memory, whatever happens to their files then.
        """
        place = Path(path)
        inside = place / EVIDENCE
        return cls(StoredParts(inside if inside.is_dir() else place, copied=copied))

    def check(self) -> Self:
        """Read every part now, as a service does before its first request; a damaged file is an error that names it.

        The compiler is loaded, too: whoever asks many questions has each of them answered sooner.
        """
        load_compiler()
        return type(self)(Parts.of(self._parts), self.asked)

    def over(self, features: Features) -> Self:
        """Return evidence with the same trees and bounds that is read from something else."""
        graph, old = features.index.graph, self.dataset
        val, test = (
            graph.with_facts(each.head, each.relation, each.tail, each.confidence) for each in (old.val, old.test)
        )
        dataset = Dataset(old.name, graph, val, test, inverses=old.inverses)
        return type(self)(replace(Parts.of(self._parts), features=features, dataset=dataset), self.asked)

    def ids(self, facts: Facts) -> tuple[Ids, Ids, Ids]:
        """Return head, relation and tail ids of facts; an unknown name is an error that suggests near ones."""
        return known_ids(facts, self.entities, self.relations, "evidence")


def _shares(kinds: str | Mapping[str, float]) -> Mapping[str, float]:
    return as_shares(kinds) if isinstance(kinds, str) else kinds


class HeldFacts(Evidence):
    """Evidence as the protocol `positives` asks it: about facts that are known to hold. It ranks as evidence does."""

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Floats:
        """Return the confidence of each fact, by ids, given that it holds."""
        return self.predict_ids(head, relation, tail, assume_holds=True, count_itself=True)

    def confidence_quantiles(self, head: AnyIds, relation: AnyIds, tail: AnyIds, levels: Sequence[float]) -> Floats:
        """Return the quantiles of each fact's confidence, by ids, given that it holds."""
        return self.quantiles_of(self.matrix(head, relation, tail, count_itself=True), levels, assume_holds=True)

    def confidence_bounds(self, head: AnyIds, relation: AnyIds, tail: AnyIds, coverage: float) -> tuple[Floats, Floats]:
        """Return the bounds of each fact's confidence, by ids, given that it holds."""
        columns = self.matrix(head, relation, tail, count_itself=True)
        return self.interval_of(columns, relation, coverage, assume_holds=True)
