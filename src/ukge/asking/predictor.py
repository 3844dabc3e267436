"""`Predictor`: a run, ready to be asked: the one place that confidences, rankings and reasons come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt

from ukge.asking.judges import COVERAGE, BoundsFrom, Judged, judge_by_evidence, judge_by_model, outcomes_of
from ukge.asking.naming import Naming
from ukge.asking.rank import Answer, Everyone, ExactSearch, Query, Ranking, Searcher, Seen
from ukge.errors import RunError
from ukge.evidence import Evidence
from ukge.evidence.storage import has_evidence
from ukge.graph.given import Facts, is_one, judged, known_ids, query_of
from ukge.graph.index import FactIndex
from ukge.graph.nodes import Nodes
from ukge.graph.queries import AnyIds, Floats, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.progress.steps import Tell
from ukge.runs.additions import OWN, Added
from ukge.runs.directory import Run
from ukge.runs.journal import Addition
from ukge.runs.learnt import Learnt

if TYPE_CHECKING:
    from ukge.asking.adding import How
    from ukge.asking.answer_set import AnswerSet
    from ukge.evaluation.answer_sets import AnswerSets, Within
    from ukge.evaluation.distribution import Outcomes
    from ukge.evidence.backbones import Backbone
    from ukge.evidence.doubt import Doubt, Way
    from ukge.evidence.doubt_sources import SourceDoubt
    from ukge.evidence.explain import Explanation
    from ukge.evidence.features import Features
    from ukge.evidence.holding import Holding, LikelyFalse
    from ukge.graph.dataset import Dataset
    from ukge.graph.selection import Names
    from ukge.models.model import Model
    from ukge.runs.labels import Label, Triple
    from ukge.settings.config import Config


class Predictor:
    """A run that answers, by its evidence if it has some, else by its model. Made by `open`, or from parts in memory.

    Known is what any part of the run's data holds: training, validation and test facts alike.
    """

    def __init__(
        self,
        dataset: Callable[[], Dataset],
        *,
        learnt: Learnt | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        if learnt is None and evidence is None:
            raise RunError("there is neither a model nor evidence to ask")
        self._dataset = dataset
        self._learnt = learnt
        self.evidence = evidence
        self._opened: Callable[[], Self] | None = None
        self.path: Path | None = None
        """the run directory that it was opened from"""

    @classmethod
    def open(
        cls,
        path: str | Path,
        data: str | Path | None = None,
        *,
        copied: bool = False,
        prior: float | None = None,
        negatives: str | Mapping[str, float] | None = None,
    ) -> Self:
        """Open a finished run with its evidence, if it keeps some, or evidence in a directory of its own.

        `data` is where facts are now that the run refers to. What an answer does not need is not read. If `copied`,
        weights and arrays are in memory, whatever happens to their files then. `prior` is the share of facts among the
        links that will be asked about; if it is not said, evidence takes half of them to hold. `negatives` are the
        kinds of the false ones among them; if nothing is said, evidence takes them to be the mixture it was fitted to.
        """
        place = Path(path)
        opened = cls._of(place, data, copied, prior, negatives)
        opened.path = place
        opened._opened = lambda: cls.open(path, data, copied=copied, prior=prior, negatives=negatives)
        return opened

    @classmethod
    def _of(
        cls,
        place: Path,
        data: str | Path | None,
        copied: bool,
        prior: float | None,
        negatives: str | Mapping[str, float] | None,
    ) -> Self:
        if has_evidence(place) or not (place / "manifest.json").is_file():
            evidence = Evidence.load(place, copied=copied)
            if prior is not None:
                evidence = evidence.with_prior(prior)
            if negatives is not None:
                evidence = evidence.with_negatives(negatives)
            return cls(lambda: evidence.dataset, evidence=evidence)
        if prior is not None or negatives is not None:
            raise RunError(
                f"{place} has no evidence: a model has no use for how many of the links hold, and what others are like",
                hint=f"Fit some: ukge evidence fit {place}",
            )
        run = Run.open(place)
        return cls(lambda: run.dataset(data), learnt=Learnt.load(run, copied=copied))

    def adapted_to(self, facts: Facts, *, prior: float | None = None, negatives: str | None = None) -> Self:
        """Return the same for links such as these, asked about together; see `Evidence.adapted_to`."""
        evidence = self.fitted.adapted_to(facts, prior=prior, negatives=negatives)
        return type(self)(self._dataset, evidence=evidence)

    def add(self, facts: Any, **how: Unpack[How]) -> Addition:
        """Take facts into the run, with new entities and relations, and return what was new; `undo` takes it back.

        `facts` are given as `ukge.read` and `UKGE.fit` take them, with confidences; a fault in them is an error, and
        then nothing is added. A fact that is known with another confidence is replaced; one that is known as given is
        left out. Where nothing is new, nothing is added, and the number is 0. Nothing is trained: `ukge.refresh` does
        that. `how` may hold `source`, `who`, `reading` (what `read` is told about a file or a frame), and `id`: the
        same facts under the same id are added once, however often they are given.
        """
        from ukge.asking.adding import add  # noqa: PLC0415 — most who ask add nothing

        return add(self, facts, how)

    def undo(self, steps: int | None = 1, *, who: str | None = None) -> list[Addition]:
        """Undo the last additions to the run, or with None all of them, and return them, the last one first.

        The run answers as it did before them.
        """
        from ukge.asking.adding import undo  # noqa: PLC0415

        return undo(self, steps, who)

    @property
    def place(self) -> Path:
        """The run directory that it was opened from; an error for one in memory."""
        if self.path is None:
            raise RunError(
                "facts are added to a run in a directory, and this one is in memory",
                hint="Save it first, then open it: Predictor.open(path).",
            )
        return self.path

    def open_again(self) -> None:
        """Become what the run directory holds now."""
        if self._opened is not None:
            fresh = self._opened()
            vars(self).clear()
            vars(self).update(vars(fresh))

    @property
    def added(self) -> Added | None:
        """What was added to the run since its training; None if nothing was."""
        if self.evidence is not None:
            return self.evidence.added
        data = None if self._learnt is None else self._learnt.data
        return data.added if isinstance(data, Run) else None

    @property
    def models(self) -> dict[str, Backbone]:
        """Every model of the run, by the name under which rows that are added for it are kept."""
        from ukge.evidence.backbones import Backbone  # noqa: PLC0415 — it takes time to load

        found = {} if self.evidence is None else self.evidence.models
        if OWN not in found:
            learnt = self._learnt or Learnt.load(Run.open(self.place))
            found[OWN] = Backbone.of(learnt, OWN)
        return found

    @cached_property
    def dataset(self) -> Dataset:
        """The data set of the run."""
        return self._dataset()

    @property
    def names(self) -> tuple[Vocabulary, Vocabulary]:
        """The entity and the relation names."""
        if self._learnt is not None:
            return self._learnt.names
        return self.dataset.entities, self.dataset.relations

    @property
    def entities(self) -> Vocabulary:
        """The entity names."""
        return self.names[0]

    @property
    def relations(self) -> Vocabulary:
        """The relation names."""
        return self.names[1]

    @property
    def nodes(self) -> Nodes:
        """What is known of the entities beside their facts: labels, types, descriptions."""
        return self.dataset.nodes

    @cached_property
    def naming(self) -> Naming:
        """Entities by their names, by their labels, and by their types."""
        return Naming(*self.names, lambda: self.nodes)

    @property
    def model(self) -> Model:
        """The run's model, by ids."""
        if self._learnt is not None:
            return self._learnt.predictor
        backbones = self.features().backbones
        if not backbones:
            raise RunError("the evidence was fitted without a model")
        return backbones[0].model

    @property
    def fitted(self) -> Evidence:
        """The run's evidence; an error where it has none."""
        if self.evidence is None:
            raise RunError("the run has no evidence", hint="Make it: ukge evidence fit RUN")
        return self.evidence

    @cached_property
    def known(self) -> FactIndex:
        """The facts of all parts."""
        return FactIndex(self.dataset.whole())

    @cached_property
    def searcher(self) -> Searcher:
        """What finds candidates: the model, or, for evidence without one, everybody is a candidate."""
        if self._learnt is None and not self.features().backbones:
            return Everyone(len(self.entities))
        return ExactSearch(self.model)

    @property
    def judged_by(self) -> Literal["model", "evidence"]:
        """Who says how confident facts are."""
        return "model" if self.evidence is None else "evidence"

    @property
    def bounds_from(self) -> BoundsFrom:
        """What bounds are taken from."""
        if self.evidence is not None:
            return "evidence"
        return "nothing" if self._outcomes is None else "validation"

    def judge(
        self,
        head: AnyIds,
        relation: AnyIds,
        tail: AnyIds,
        coverage: float = COVERAGE,
        *,
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> Judged:
        """Judge facts by ids: by the evidence, or by the model alone where there is none.

        A fact is never evidence for itself: one that the graph holds is judged by the others, unless `count_itself`.
        With `assume_holds` each is taken to be a fact, and asked how confident a one.
        """
        ids = head, relation, tail
        if self.evidence is None:
            return judge_by_model(self.model, ids, self._outcomes, coverage)
        return judge_by_evidence(self.evidence, ids, coverage, assume_holds=assume_holds, count_itself=count_itself)

    def features(self) -> Features:
        """Return what the training facts say of facts: that of the evidence, else gathered now, which takes a while."""
        return self.evidence.features if self.evidence is not None else self._gathered

    @cached_property
    def _gathered(self) -> Features:
        from ukge.evidence.backbones import Backbone  # noqa: PLC0415 — mining takes time to load, and most need none
        from ukge.evidence.fitting import gather  # noqa: PLC0415

        own = () if self._learnt is None else (Backbone.of(self._learnt, "model"),)
        return gather(self.dataset.train, own)

    @cached_property
    def _outcomes(self) -> Outcomes | None:
        return outcomes_of(self.model, self.dataset)

    def predict(self, facts: Any, *, assume_holds: bool = False, count_itself: bool = False) -> Any:
        """Return the confidence of facts, read as by `judge`: of one tuple of names a number, of a frame the frame."""

        def values(head: AnyIds, relation: AnyIds, tail: AnyIds) -> Floats:
            return self.judge(head, relation, tail, assume_holds=assume_holds, count_itself=count_itself).confidence

        return judged(self._named(facts), *self.names, values, "predict")

    def interval(
        self, facts: Facts, coverage: float = COVERAGE, *, assume_holds: bool = False, count_itself: bool = False
    ) -> tuple[Floats, Floats]:
        """Return lower and upper bounds that hold the confidence of the given share of facts, read as by `predict`."""
        ids = known_ids(self._named(facts), *self.names, "interval")
        found = self.judge(*ids, coverage, assume_holds=assume_holds, count_itself=count_itself)
        return found.low, found.high

    def rank(  # noqa: PLR0913 — a question with all that may be said about its answers
        self,
        head: str | None = None,
        relation: str | None = None,
        k: int = 10,
        *,
        tail: str | None = None,
        coverage: float = COVERAGE,
        seen: Seen = "include",
        among: Sequence[str] | None = None,
        type: str | Sequence[str] | None = None,  # noqa: A002  (the word of every surface)
        min_confidence: float = 0.0,
    ) -> list[Answer]:
        """Return the k most confident answers to (head, relation, ?) or, with `tail`, to (?, relation, tail).

        Entities may be given by their labels. Known answers come with all others, not at all with `seen="exclude"`, or
        alone with "only". Answers are `among` some entities, or of a `type` of the node data (of any of several), or
        "fitting": observed at this place of the relation (or at another: "heads:REL", "tails:REL").
        """
        query = self._query(head, relation, tail, k, coverage, type)
        if among is not None:
            ids = np.unique([self.naming.id(name) for name in among]).astype(np.int64)
            query = replace(query, among=ids if query.among is None else np.intersect1d(query.among, ids))
        query = replace(query, seen=seen, min_confidence=min_confidence)
        ranking = Ranking(self, query)
        return ranking.finish(self.searcher.search([ranking.wanted()])[0])

    def answer_set(
        self,
        head: str | None = None,
        relation: str | None = None,
        *,
        tail: str | None = None,
        coverage: float = COVERAGE,
        within: Within = "all",
        k: int = 100,
        type: str | Sequence[str] | None = None,  # noqa: A002
    ) -> AnswerSet:
        """Return the entities that hold a missing answer of a query with a chance of `coverage`, the first k of them.

        With `type` (as for `rank`), those of them that are of the type: they hold a missing answer that is. With
        `within="relation"` the chance is kept within each relation that has enough validation facts.
        """
        from ukge.asking.answer_set import answer_set  # noqa: PLC0415 — other questions need none of it

        return answer_set(self, self._query(head, relation, tail, k, coverage, type), within)

    @cached_property
    def answer_sets(self) -> AnswerSets | None:
        """What answer sets are calibrated on; None where too few facts are known."""
        from ukge.asking.answer_set import fitted_sets  # noqa: PLC0415

        return fitted_sets(self)

    def _query(
        self,
        head: str | None,
        relation: str | None,
        tail: str | None,
        k: int,
        coverage: float,
        types: str | Sequence[str] | None,
    ) -> Query:
        h, r, t = query_of(self.naming.name(head), relation, self.naming.name(tail), k, *self.names)
        side: Side = "head" if h is None else "tail"
        among = None if types is None else self.naming.candidates(types, r, side, self.of_relation)
        return Query(side, int((t if h is None else h) or 0), r, k, among=among, coverage=coverage)

    def of_relation(self, relation: int, side: Side) -> npt.NDArray[np.int64]:
        """Return, sorted, the entities known at one end of a relation."""
        return self.known.of_relation(relation, side).astype(np.int64)

    def _named(self, facts: Any) -> Any:
        """Return one fact with the names of entities that it may have by their labels; of many, names are names."""
        if not is_one(facts):
            return facts
        return (self.naming.name(facts[0]), facts[1], self.naming.name(facts[2]), *facts[3:])

    def explain(
        self, head: str, relation: str, tail: str, *, coverage: float = COVERAGE, count_itself: bool = False
    ) -> Explanation:
        """Return why a fact, by name, has its confidence.

        With evidence the reasons add up to it. Without, they are what the graph holds that fits the fact. Entities may
        be given by their labels.
        """
        head, tail = self.naming.name(head), self.naming.name(tail)
        if self.evidence is not None:
            told = self.evidence.explain(head, relation, tail, coverage=coverage, count_itself=count_itself)
        else:
            from ukge.evidence.explain import explain_unfitted  # noqa: PLC0415 — a use of its own

            ids = known_ids((head, relation, tail), *self.names, "explain")
            own = self.judge(*ids, coverage)
            interval = None if np.isnan(own.low[0]) else (float(own.low[0]), float(own.high[0]))
            told = explain_unfitted(self._gathered, ids, float(own.confidence[0]), interval, coverage)
        stored = self.known.stored(*known_ids((head, relation, tail), *self.names, "explain"))[0]
        return told.told_of(None if np.isnan(stored) else float(stored), self.nodes.labels([head, tail]))

    def complete(  # noqa: PLR0913 — a question with all that may be said about its answers
        self,
        *,
        relations: Sequence[str] | None = None,
        heads: Sequence[str] | None = None,
        tails: Sequence[str] | None = None,
        min_confidence: float = 0.5,
        k: int = 100,
        typed: bool = True,
        seen: Sequence[UncertainGraph] = (),
        head_type: str | Sequence[str] | None = None,
        tail_type: str | Sequence[str] | None = None,
        tell: Tell | None = None,
    ) -> UncertainGraph:
        """Return the k unseen facts of the highest confidence, best first; see `Completion`."""
        from ukge.asking.complete import Completion, complete  # noqa: PLC0415 — other questions need none of it

        wanted = Completion(
            relations, heads, tails, min_confidence, k, typed, seen, head_type=head_type, tail_type=tail_type
        )
        return complete(self, wanted, tell).facts

    def doubt(
        self,
        k: int = 100,
        *,
        relations: Names | None = None,
        sources: Names | None = None,
        way: Way = "any",
        tell: Tell | None = None,
    ) -> list[Doubt]:
        """Return the k observed facts whose stored confidence the other facts contradict most, worst first.

        With `way`, only those that are stored "too-high" or "too-low".
        """
        from ukge.evidence.doubt import doubt  # noqa: PLC0415 — it grows trees

        return doubt(self.features(), k=k, relations=relations, sources=sources, way=way, tell=tell)

    def likely_false(
        self, k: int = 100, *, relations: Names | None = None, sources: Names | None = None, tell: Tell | None = None
    ) -> list[LikelyFalse]:
        """Return the k observed facts that most likely do not hold at all, whatever confidence is stored with them."""
        from ukge.evidence.doubt import asked_rows  # noqa: PLC0415

        asked_rows(self.features().index.graph, relations, sources)  # what is unknown is told before the work
        return self.holding(tell).likely_false(k, relations=relations, sources=sources)

    def holding(self, tell: Tell | None = None) -> Holding:
        """Return for every observed fact the chance that it holds; people's labels of the run correct it."""
        from ukge.evidence.holding import judge_holding  # noqa: PLC0415 — it grows trees
        from ukge.runs.labels import labels_of_rows  # noqa: PLC0415

        features = self.features()
        return judge_holding(features, tell=tell, labels=labels_of_rows(self.labels(), features.index))

    def labels(self) -> dict[Triple, dict[str, Label]]:
        """Return what people said of the run's facts, by fact and person."""
        from ukge.runs.labels import all_words, last_words  # noqa: PLC0415

        return {} if self.path is None else last_words(all_words(self.path))

    def doubt_by_source(self, tell: Tell | None = None) -> list[SourceDoubt]:
        """Return for each source how its confidences are off, and which share of its facts likely does not hold."""
        from ukge.evidence.doubt import judge  # noqa: PLC0415 — it grows trees
        from ukge.evidence.doubt_sources import doubt_by_source  # noqa: PLC0415

        return doubt_by_source(judge(self.features(), tell=tell), self.holding(tell))

    def columns(
        self, head: Ids, relation: Ids, tail: Ids, *, coverage: float = COVERAGE, reasons: bool = True
    ) -> dict[str, Any]:
        """Return the columns confidence, low, high and, if asked for and fitted, the top reason of facts by ids."""
        found = self.judge(head, relation, tail, coverage)
        columns: dict[str, Any] = {"confidence": found.confidence}
        if self.bounds_from != "nothing":
            columns |= {"low": found.low, "high": found.high}
        if reasons and self.evidence is not None:
            from ukge.evidence.explain import top_reasons  # noqa: PLC0415 — a use of its own

            facts = UncertainGraph.from_ids(head, relation, tail, np.zeros(len(head)), *self.names)
            columns["reason"] = [each.sentence for each in top_reasons(self.evidence, facts)]
        return columns

    @property
    def config(self) -> Config:
        """The settings of the run's model, where it is asked without evidence."""
        if self._learnt is None:
            raise RunError("evidence was opened without the settings of its models")
        return self._learnt.trained.config

    def is_known(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> npt.NDArray[np.bool_]:
        """Return which facts some part of the data holds, in these words or in those of an inverse relation."""
        found = self.known.known(head, relation, tail)
        for one, other in self.dataset.inverses:
            for own, inverse in ((one, other), (other, one)):
                rows = np.flatnonzero(relation == self.relations.index[own])
                said = np.full(len(rows), self.relations.index[inverse])
                found[rows] |= self.known.known(tail[rows], said, head[rows])
        return found

    def __repr__(self) -> str:
        by = "evidence" if self.evidence is not None else "its model"
        return f"Predictor({self.dataset.name}: {len(self.known):,} known facts, judged by {by})"
