"""`fit`, `predict`, `score`, `rank`, `save`, `load`: a model as users of scikit-learn and pandas expect one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Unpack, overload

import numpy as np
import numpy.typing as npt

from ukge.errors import CollapseWarning, DataError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.given import Facts, OneFact, Rows, all_known, confidences, judged, query_of, tell_unknown, triples
from ukge.graph.vocabulary import Vocabulary
from ukge.html.card import card
from ukge.learning.data import Opening, ground_rules, opened
from ukge.learning.estimator_settings import EstimatorSettings
from ukge.logic.ground_rules import GroundRules
from ukge.models.model import Model
from ukge.runs.directory import Run, refuse_if_taken
from ukge.runs.journal import refuse_if_added
from ukge.runs.learnt import Callback, Learnt, Trained, still_learning
from ukge.runs.manifest import DataNote
from ukge.settings.config import Config
from ukge.storage.locks import alone

if TYPE_CHECKING:
    import pandas as pd

    from ukge.learning.probe import Probe


class Answer(NamedTuple):
    """One candidate for the missing entity of a query, with its predicted confidence."""

    entity: str
    confidence: float


class _Watching(NamedTuple):
    """Who watches a training: a bar, those who hear of every epoch, and who hears of the facts gone through."""

    progress: bool | None
    callbacks: Iterable[Callback]
    on_facts: Callable[[int], None] | None


class UKGE(EstimatorSettings):
    """A model of the paper, by name, with any setting changed: `UKGE("ukge-rect", dim=64, lr=0.005)`.

    What a setting means and what it is by default stands in docs/settings.md. A trained model has the names it knows in
    `entities` and `relations`, and what training found in `trained`.
    """

    def __post_init__(self) -> None:
        """Check the settings; nothing is learnt yet."""
        super().__post_init__()
        self._learnt: Learnt | None = None
        self.probe_found: Probe | None = None
        """what a probe tried and chose before the last training"""

    def fit(
        self,
        data: Any,
        y: Any = None,
        *,
        rules: GroundRules | str | Path | None = None,
        out: str | Path | None = None,
        overwrite: bool = False,
        progress: bool | None = None,
        callbacks: Iterable[Callback] = (),
        on_facts: Callable[[int], None] | None = None,
        **opening: Unpack[Opening],
    ) -> Self:
        """Train on facts: a frame, a table, tuples, a graph, a data set, or the name or path of one.

        A frame has the columns head, relation, tail and confidence (see `ukge.read`), or `y` has the confidences. Of
        facts that come whole, 7 % are kept aside to choose the epoch. A name or a path is opened by
        `ukge.open_dataset`, and its test facts are left alone. `opening` says how: `undirected` names the relations
        without a direction, of which a fact and its mirror are one ("auto" finds them by their facts, "none" takes all
        as they stand); `leak_safe` cuts off no fact that has a twin among the others.

        `rules` are ground rules, or where they come from: "own" (those of the data set, the default), "mined", "none",
        or a file (see `ukge.learning.data`). With `out`, the run is kept in that directory, in place of an old
        run if `overwrite`; `reference` says where a `Dataset` came from, and `reading` what `read` is told about a file
        or a frame. `progress` shows a bar; by default on a terminal and in a notebook.
        `callbacks` hear of every epoch, `on_facts` of the facts that an epoch has gone through.
        """
        from ukge.learning.engines import resolve  # noqa: PLC0415 — whoever asks a trained model needs nothing of training
        from ukge.learning.trackers import on_request  # noqa: PLC0415

        settings = self.settings
        settings = settings.replace(engine=resolve(settings))
        watching = [*on_request(settings, out), *callbacks]
        with nullcontext() if out is None else alone(out):
            if out is not None:
                refuse_if_taken(out, overwrite=overwrite)
            dataset, found = opened(data, y, seed=settings.runtime.seed, **opening)
            ground = ground_rules(dataset, rules, settings)
            settings = self._probed(settings, dataset, ground, progress)
            note = DataNote.of(dataset, found, kept=out is not None)
            run = None
            if out is not None:
                run = Run.create(out, settings, note, dataset, ground, model=self.model, overwrite=overwrite)
                if self.probe_found is not None:
                    run.update(probe=self.probe_found.note())
            try:
                learnt = self._learn(settings, dataset, ground, run, note, _Watching(progress, watching, on_facts))
            finally:
                if run is not None:
                    run.discard()
        self._take(learnt)
        return self

    @classmethod
    def resume(
        cls,
        path: str | Path,
        *,
        progress: bool | None = None,
        callbacks: Iterable[Callback] = (),
        on_facts: Callable[[int], None] | None = None,
    ) -> Self:
        """Go on with an interrupted run, on the facts that it keeps."""
        from ukge.learning.trackers import on_request  # noqa: PLC0415

        Run(path).manifest()  # says if there is no run
        refuse_if_added(Path(path))
        with alone(path):
            run = Run.open(path)
            settings = run.config
            if run.manifest().get("distributed"):
                raise RunError(
                    f"{run.path} was trained by ranks, and its checkpoints are in shards",
                    hint=f"torchrun --nproc-per-node 1 --no-python ukge train --distributed --resume {run.path}",
                )
            estimator = cls(run.manifest()["model"], config=settings)
            watching = [*on_request(settings, run.path), *callbacks]
            dataset = run.dataset()
            watched = _Watching(progress, watching, on_facts)
            learnt = estimator._learn(settings, dataset, run.rules, run, run.data, watched, resume=True)
        estimator._take(learnt)
        return estimator

    @overload
    def predict(self, facts: OneFact) -> float: ...
    @overload
    def predict(self, facts: Rows) -> npt.NDArray[np.float64]: ...
    @overload
    def predict(self, facts: pd.DataFrame) -> pd.DataFrame: ...

    def predict(self, facts: Any) -> Any:
        """Return the confidence of facts: of one tuple (head, relation, tail) a number, of a frame the frame.

        A pandas frame (or an Arrow table) comes back with a column `confidence`; one that it has already is kept as
        `given`. A row with a name never seen gets NaN, and the column `unknown` says which name. A list of tuples, an
        array of rows or a graph is answered by an array, and an unknown name is an error that suggests near ones.
        """
        learnt = self.learnt
        return judged(facts, *learnt.names, learnt.predictor.confidence, "predict")

    def score(self, data: Facts, y: Any = None) -> float:
        """Return R² of the predicted confidences: 1 is perfect, 0 what their mean would reach; higher is better.

        The confidences are `y`, or those of the facts. A fact with a name never seen counts as predicted with the mean
        confidence of the training facts.
        """
        from sklearn.metrics import r2_score  # noqa: PLC0415 — takes time to load

        learnt, found = self.learnt, triples(data, "score")
        if y is None and found.confidence is None:
            raise DataError("the facts to score have no confidence", hint="Give them a column, or ‹y›.")
        ids = found.encode(*learnt.names)
        known = all_known(ids)
        predicted = np.empty(len(found))
        predicted[known] = learnt.predictor.confidence(*(column[known] for column in ids))
        if not known.all():
            predicted[~known] = learnt.mean
            told = f"the mean confidence of the training facts, {learnt.mean:.3f}, stands for their prediction"
            tell_unknown(known, told, stacklevel=3)
        return float(r2_score(confidences(found.confidence if y is None else y, len(found)), predicted))

    def rank(
        self, head: str | None = None, relation: str | None = None, k: int = 10, *, tail: str | None = None
    ) -> list[Answer]:
        """Return the k most confident answers to (head, relation, ?) or, with `tail`, to (?, relation, tail)."""
        learnt = self.learnt
        h, r, t = query_of(head, relation, tail, k, *learnt.names)
        if h is not None:
            ranking = learnt.predictor.rank_tails(np.array([h]), np.array([r]), k)
        else:
            ranking = learnt.predictor.rank_heads(np.array([r]), np.array([t]), k)
        names = learnt.entities.decode(ranking.entity[0]).to_pylist()
        return [Answer(name, float(value)) for name, value in zip(names, ranking.confidence[0], strict=True)]

    @property
    def history(self) -> pd.DataFrame:
        """One row per epoch: the loss and its terms, the validation metric where it was measured, time and speed."""
        return self.learnt.history()

    def embeddings(self, kind: Literal["entity", "relation"] = "entity") -> pd.DataFrame:
        """Return what was learnt of every entity, or relation, as a row of numbers under its name.

        Columns are x0, x1, …; of complex numbers real0, …, imaginary0, …; of rotations phase0, …
        """
        return self.learnt.embeddings(kind)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to a run directory, in place of an old run if `overwrite`."""
        self.learnt.save(path, self.model, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a trained model from a run directory; every file is checked against its checksum."""
        run = Run.open(path)
        learnt = Learnt.load(run)
        estimator = cls(run.manifest()["model"], config=learnt.trained.config)
        estimator._take(learnt, where=f"{run.path}: ")
        return estimator

    @classmethod
    def from_pykeen(cls, model: Any, factory: Any, data: Any, **opening: Unpack[Opening]) -> Self:
        """Take in a model that PyKEEN trained, with the `TriplesFactory` it was trained with, and facts of its names.

        The model is an object in memory, never a file of PyKEEN's, which could run code. `data` is given as to `fit`,
        with the confidences that PyKEEN does not have: its scores become confidences by a link that fits the training
        facts. What comes back can be asked, judged, saved as a run, and put under evidence.
        """
        from ukge.learning.adopted import from_pykeen  # noqa: PLC0415 — PyKEEN is an extra

        dataset, found = opened(data, None, seed=0, **opening)
        learnt = from_pykeen(model, factory, dataset, found)
        estimator = cls("ukge-logi", config=learnt.trained.config)
        estimator._take(learnt)
        return estimator

    @property
    def trained(self) -> Trained | None:
        """What training found, if the model is trained."""
        return None if self._learnt is None else self._learnt.trained

    @property
    def entities(self) -> Vocabulary | None:
        """The entity names that a trained model knows."""
        return None if self._learnt is None else self._learnt.entities

    @property
    def relations(self) -> Vocabulary | None:
        """The relation names that a trained model knows."""
        return None if self._learnt is None else self._learnt.relations

    @property
    def predictor(self) -> Model:
        """The trained model by ids."""
        return self.learnt.predictor

    def __repr__(self) -> str:
        changed = ", ".join([repr(self.model), *(f"{name}={value!r}" for name, value in self.changed().items())])
        return f"UKGE({changed})" if self._learnt is None else f"UKGE({changed}), {self._learnt.summary()}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: how the training went."""
        return card(repr(self), [] if self._learnt is None else self._learnt.pictures())

    def __sklearn_is_fitted__(self) -> bool:
        """Say to scikit-learn whether the model is trained."""
        return self._learnt is not None

    def _probed(self, settings: Config, dataset: Dataset, rules: GroundRules | None, progress: bool | None) -> Config:
        """Return the settings with the rate and λ that a probe chose, where they leave them to it."""
        from ukge.learning.probe import probe, rungs_of  # noqa: PLC0415
        from ukge.progress.bars import watched_work  # noqa: PLC0415

        self.probe_found = None
        if not rungs_of(settings, dataset):
            return settings.replace(probe="none")
        with watched_work(progress, f"which settings suit {dataset.name}") as tell:
            found = self.probe_found = probe(dataset, settings, rules, tell)
        if found is None:
            return settings.replace(probe="none")
        return settings.replace(lr=found.chosen.lr, l2=found.chosen.l2, probe="none")

    def _learn(
        self,
        settings: Config,
        dataset: Dataset,
        rules: GroundRules | None,
        run: Run | None,
        note: DataNote,
        watching: _Watching,
        *,
        resume: bool = False,
    ) -> Learnt:
        from ukge.learning.trackers import tracked  # noqa: PLC0415
        from ukge.learning.train import train  # noqa: PLC0415
        from ukge.progress.bars import watched_training  # noqa: PLC0415 — Rich takes time to load

        what = f"{self.model} on {dataset.name}" if run is None or not resume else f"resuming {run.path}"
        title = f"{what}: {len(dataset.train):,} facts"
        with (
            watched_training(watching.progress, title, watching.callbacks, watching.on_facts) as (heard, counting),
            tracked(heard, settings),
        ):
            trained = train(
                dataset.train,
                dataset.val,
                settings,
                rules=rules,
                run=run,
                resume=resume,
                callbacks=heard,
                on_facts=counting,
            )
        trace = [event.line() for event in trained.events] if run is None else run.trace()
        trained = replace(trained, remark=still_learning(trace))  # of a resumed training it knows the last part alone
        return Learnt(trained, dataset.entities, dataset.relations, note, trace, dataset)

    def _take(self, learnt: Learnt, where: str = "") -> None:
        self._learnt = learnt
        if learnt.trained.collapsed is not None:
            found = learnt.trained.collapsed
            warnings.warn(CollapseWarning(f"{where}{found.seen}: {found.cause}. {found.remedy}"), stacklevel=3)

    @property
    def learnt(self) -> Learnt:
        """What it has learnt; an error if it is not trained."""
        if self._learnt is None:
            raise RunError("the model is not trained", hint="Call fit first, or load a run.")
        return self._learnt
