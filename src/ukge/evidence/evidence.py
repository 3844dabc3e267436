"""`Evidence`: a calibrated confidence for any fact, from what the graph says of it and what trained models believe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import numpy as np
import numpy.typing as npt

from ukge.errors import RunError
from ukge.evidence.answers import RankedAnswer, best_answers
from ukge.evidence.bounds import Bounds, By
from ukge.evidence.candidates import Asking
from ukge.evidence.features import Features
from ukge.evidence.head import Contributions, Head
from ukge.evidence.index import AnyIds, Places
from ukge.evidence.kernels import load_compiler
from ukge.evidence.parts import Parts
from ukge.evidence.place import DIRECTORY
from ukge.evidence.ranking import RankHead
from ukge.evidence.settings import Changes, EvidenceSettings, HeadChanges
from ukge.evidence.storage import StoredParts, save_evidence
from ukge.evidence.trees import Floats, Matrix
from ukge.graph.dataset import Dataset
from ukge.graph.given import Facts, OneFact, Rows, judged, known_ids
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.steps import Tell

if TYPE_CHECKING:
    import pandas as pd

    from ukge.estimator import UKGE
    from ukge.evidence.explain import Explanation
    from ukge.evidence.strong import StrongHead


@dataclass(frozen=True, eq=False)
class FactContributions:
    """How a fact's evidence made its confidence: `base` + the sum of a row of `parts` is the prediction."""

    names: tuple[str, ...]
    base: float
    parts: Floats


class Evidence:
    """What the graph says about facts, joined with trained models by a fitted head. Made by `fit` or `load`.

    A prediction has two readings. By default a fact may be false: its confidence is that of a fact drawn from
    observed facts and negative links in equal parts. With `assume_holds` it is taken to be a fact of the graph, and the
    question is how confident a one.
    """

    def __init__(self, parts: Parts | StoredParts) -> None:
        self._parts = parts

    @property
    def evidence(self) -> Features:
        """What evidence is read from."""
        return self._parts.features

    @property
    def head(self) -> Head:
        """What makes a confidence of evidence."""
        return self._parts.head

    @property
    def bounds(self) -> Bounds:
        """The bounds of any fact."""
        return self._parts.bounds

    @property
    def bounds_if_held(self) -> Bounds:
        """The bounds of a fact that is taken to hold."""
        return self._parts.bounds_if_held

    @property
    def rank_head(self) -> RankHead | None:
        """What orders the candidates of a query, if there were validation queries to learn it from."""
        return self._parts.rank_head

    @property
    def settings(self) -> EvidenceSettings:
        """What was chosen when the evidence was gathered and the head fitted."""
        return self._parts.settings

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the fit."""
        return self._parts.notes

    @classmethod
    def fit(
        cls,
        models: UKGE | str | Path | Sequence[UKGE | str | Path],
        dataset: Dataset,
        *,
        settings: EvidenceSettings | None = None,
        engine: str = "duckdb",
        tell: Tell | None = None,
        **changes: Unpack[Changes],
    ) -> Self:
        """Gather evidence from the training facts and fit a head to the validation facts and to negative links.

        `models` are trained estimators or run directories of this data set, none, one or several. Nothing of the test
        part is read. Settings (see `EvidenceSettings`) are given by name. `tell` hears what is being done.
        """
        from ukge.evidence.fitting import fit  # noqa: PLC0415 — whoever asks need not load what fits

        chosen = (settings or EvidenceSettings()).replace(**changes)
        return cls(fit(models, dataset, chosen, engine, tell))

    def refit(self, dataset: Dataset, *, tell: Tell | None = None, **changes: Unpack[HeadChanges]) -> Self:
        """Return another head over the same evidence, with some of the head's settings changed.

        `dataset` is the one that the evidence was gathered from: its training facts are not read again. Settings of the
        gathering itself cannot be changed.
        """
        from ukge.evidence.fitting import refit  # noqa: PLC0415

        return type(self)(refit(self._parts, dataset, changes, tell))

    def strong(self, dataset: Dataset, tau: float = 0.85) -> StrongHead:
        """Return a head that says how likely facts have a confidence above τ; `dataset` as for `refit`."""
        from ukge.evidence.fitting import examples_of  # noqa: PLC0415
        from ukge.evidence.strong import fit_strong_head  # noqa: PLC0415

        return fit_strong_head(self, examples_of(self._parts, dataset), tau)

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
        return self.evidence.index.graph

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return self.evidence.index.n_entities

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of evidence, in order."""
        return self.evidence.names

    @overload
    def predict(self, facts: OneFact, *, assume_holds: bool = False, leave_out: bool = False) -> float: ...
    @overload
    def predict(self, facts: Rows, *, assume_holds: bool = False, leave_out: bool = False) -> Floats: ...
    @overload
    def predict(self, facts: pd.DataFrame, *, assume_holds: bool = False, leave_out: bool = False) -> pd.DataFrame: ...

    def predict(self, facts: Any, *, assume_holds: bool = False, leave_out: bool = False) -> Any:
        """Return the confidence of facts, given and answered as `UKGE.predict` has it.

        With `leave_out`, a fact that the known facts hold is judged as if they did not: its own row does not count
        (of several rows of one triple, the first).
        """

        def judge(*ids: Ids) -> Floats:
            own = self.own_rows(*ids) if leave_out else None
            return self.predict_ids(*ids, assume_holds=assume_holds, own=own)

        return judged(facts, self.entities, self.relations, judge, "predict")

    def predict_ids(
        self, head: AnyIds, relation: AnyIds, tail: AnyIds, *, assume_holds: bool = False, own: Places | None = None
    ) -> Floats:
        """Return the confidence of facts, by ids; row `own[i]` of `known` does not count for fact i (−1: all do)."""
        return self.head.predict(self.evidence.columns(head, relation, tail, own), assume_holds=assume_holds)

    def interval(
        self,
        facts: Facts,
        coverage: float = 0.9,
        *,
        by: By = "band",
        assume_holds: bool = False,
        leave_out: bool = False,
    ) -> tuple[Floats, Floats]:
        """Return lower and upper bounds that hold the confidence of the given share of facts.

        `by` says within what the share is kept: "band" (of predicted confidence), "relation", or "all".
        """
        head, relation, tail = self.ids(facts)
        own = self.own_rows(head, relation, tail) if leave_out else None
        columns = self.evidence.columns(head, relation, tail, own)
        return self.interval_of(columns, relation, coverage, by=by, assume_holds=assume_holds)

    def interval_of(
        self, columns: Matrix, relation: Ids, coverage: float = 0.9, *, by: By = "band", assume_holds: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the bounds of facts whose evidence is at hand."""
        bounds = self.bounds_if_held if assume_holds else self.bounds
        predicted = self.head.predict(columns, assume_holds=assume_holds)
        return bounds.interval(columns, predicted, relation, coverage, by)

    def rank(
        self,
        head: str | None = None,
        relation: str | None = None,
        k: int = 10,
        *,
        tail: str | None = None,
        coverage: float = 0.9,
        unseen: bool = False,
    ) -> list[RankedAnswer]:
        """Return the k best answers to (head, relation, ?) or, with `tail`, to (?, relation, tail).

        Known answers come with all others, or not at all with `unseen`. Their order is that of their stored
        confidences, and of what is expected of the others among the query's candidates; the confidence told is that of
        `predict`, with bounds that hold the given share of facts.
        """
        return best_answers(self, head, relation, tail, k, coverage, unseen)

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Floats:
        """Return the confidence of each fact, by ids: what the evaluation protocols ask for."""
        return self.predict_ids(head, relation, tail)

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> npt.NDArray[np.float32]:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities); a higher one ranks higher."""
        return self._scores(Asking("tail", head.astype(np.int32), relation.astype(np.int32)))

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> npt.NDArray[np.float32]:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities), as `tail_scores` does."""
        return self._scores(Asking("head", tail.astype(np.int32), relation.astype(np.int32)))

    def _scores(self, asking: Asking) -> npt.NDArray[np.float32]:
        if self.rank_head is None:
            raise RunError("this evidence has no head for ranking", hint="Fit it with more validation facts.")
        return self.rank_head.scores(self.evidence, asking, self.head)

    def features(self, facts: Facts, *, leave_out: bool = False) -> dict[str, npt.NDArray[np.float32]]:
        """Return the evidence about facts by column; NaN where there is none."""
        ids = self.ids(facts)
        columns = self.evidence.columns(*ids, self.own_rows(*ids) if leave_out else None)
        return {name: columns[:, at] for at, name in enumerate(self.feature_names)}

    def contributions(self, facts: Facts, *, assume_holds: bool = False, leave_out: bool = False) -> FactContributions:
        """Return how much each column of evidence moved each prediction; with the base they add up to it exactly."""
        ids = self.ids(facts)
        columns = self.evidence.columns(*ids, self.own_rows(*ids) if leave_out else None)
        found: Contributions = self.head.contributions(columns, assume_holds=assume_holds)
        return FactContributions(self.feature_names, found.base, found.parts)

    def explain(
        self,
        head: str,
        relation: str,
        tail: str,
        *,
        coverage: float = 0.9,
        assume_holds: bool = False,
        leave_out: bool = False,
    ) -> Explanation:
        """Return why a fact, by name, has its confidence, with bounds that hold the given share of facts."""
        from ukge.evidence.explain import explain  # noqa: PLC0415 — a use of evidence, loaded when it is asked for

        return explain(self, head, relation, tail, coverage=coverage, assume_holds=assume_holds, leave_out=leave_out)

    def unseen_errors(self) -> dict[str, float]:
        """Return the errors on validation facts and negative links, each predicted by a head that did not see it."""
        found = {}
        for suffix, bounds in (("", self.bounds), ("_if_held", self.bounds_if_held)):
            found[f"mse{suffix}"] = float(np.mean(bounds.error**2))
            found[f"mae{suffix}"] = float(np.mean(np.abs(bounds.error)))
        return found

    def __repr__(self) -> str:
        models = ", ".join(each.name for each in self.evidence.backbones) or "no model"
        mse = self.unseen_errors()["mse"]
        what = f"{models} and {len(self.feature_names)} columns about {len(self.known):,} known facts"
        return f"Evidence({what}; mse on unseen facts {mse:.5f})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the errors on facts that a head did not see, and the known facts."""
        from ukge.graph.notebook import card, confidence_figure, table  # noqa: PLC0415 — for notebooks

        errors = table(["error on unseen facts", ""], list(self.unseen_errors().items()))
        return card(repr(self), confidence_figure(self.known, f"known facts: {len(self.known):,}"), errors)

    def save(self, path: str | Path) -> None:
        """Write everything to a directory, by custom RUN/evidence; it needs no other files to be loaded again."""
        save_evidence(Path(path), self._parts)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open evidence in its directory, or in that of the run it was saved in.

        Each part is read when it is first used, and checked then: a damaged one is an error that names its file.
        """
        place = Path(path)
        inside = place / DIRECTORY
        return cls(StoredParts(inside if inside.is_dir() else place))

    def check(self) -> Self:
        """Read every part now, as a service does before its first request; a damaged file is an error that names it.

        The compiler is loaded, too: whoever asks many questions has each of them answered sooner.
        """
        load_compiler()
        return type(self)(Parts.of(self._parts))

    def over(self, features: Features) -> Self:
        """Return evidence with the same head and bounds that is read from something else."""
        return type(self)(replace(Parts.of(self._parts), features=features))

    def ids(self, facts: Facts) -> tuple[Ids, Ids, Ids]:
        """Return head, relation and tail ids of facts; an unknown name is an error that suggests near ones."""
        return known_ids(facts, self.entities, self.relations, "evidence")

    def own_rows(self, head: Ids, relation: Ids, tail: Ids) -> Places:
        """Return for each fact the row of `known` that holds it, −1 where there is none."""
        return self.evidence.index.rows_of(head, relation, tail)
