"""The protocols: four exist in the literature and must never be mixed, and one of ours looks behind the leaks.

- `paper`: test facts and negative links together; nDCG where the gain of every fact of train, validation and test
  counts and all entities are candidates; strong facts among the same test set.
- `split`: errors on facts and on negative links apart; nDCG and ranks leave out the tails that train knows.
- `positives`: errors on the test facts alone; filtered link prediction on both sides.
- `focus`: filtered link prediction of the surest test facts and of the least sure ones, apart, on both sides.
- `clean`: the paper's protocol on a leak-safe split, with true negatives of several kinds.
- `uncertainty`: how far confidences can be trusted: beside every kind of negatives, as quantiles, intervals and answer
  sets, on any split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ukge.errors import DataError
from ukge.evaluation.ranking import RankedFacts
from ukge.evaluation.tasks import (
    LINK_COLUMNS,
    ClassificationTask,
    ConfidenceTask,
    ErrorsApart,
    LinkTask,
    RankingTask,
    Task,
)
from ukge.evaluation.uncertainty import FACTS, NEGATIVES, ByKind, Distributions, Sets
from ukge.graph.audit.leaks import percent
from ukge.graph.audit.negatives import examine_negatives
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.keys import contains
from ukge.graph.negatives import MIXED, SHARES, negative_links
from ukge.graph.queries import SIDES, Answers, Queries, Side
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.registry import Registry

FEWEST_FACTS = 50
"""Validation facts that predictions are calibrated on at least."""

TENTH = 10
"""Part of the test facts that are the surest, or the least sure."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a protocol leaves open: τ of strong facts, the seed of all draws, bounds on drawn samples, sides to rank."""

    tau: float = 0.85
    seed: int = 0
    most_queries: int = 2000
    most_fitted: int = 100_000
    sides: tuple[Side, ...] = SIDES


@dataclass(frozen=True, eq=False)
class Plan:
    """A protocol prepared for one data set: its tasks, and what a reader of its tables must know."""

    protocol: str
    about: str
    dataset: Dataset
    settings: Settings
    tasks: tuple[Task, ...]
    notes: tuple[str, ...]

    @property
    def positive_share(self) -> float:
        """The share of test facts among what confidences are asked of; the rest are negative links."""
        asked = [len(task.facts) for task in self.tasks if isinstance(task, ConfidenceTask)]
        return len(self.dataset.test) / asked[0] if asked else 1.0


class EvaluationProtocol(ABC):
    """How a data set becomes tasks."""

    name: ClassVar[str]
    about: ClassVar[str]

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        if len(dataset.test) == 0:
            raise DataError(
                f"data set {dataset.name!r} has no test facts to judge by",
                hint="Train on a data set with a test part, or on one file or a benchmark, which are split.",
            )
        self.dataset = dataset
        self.settings = settings
        self.notes: list[str] = []

    @abstractmethod
    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks."""

    def plan(self) -> Plan:
        """Return the protocol, prepared."""
        tasks = self.tasks()
        return Plan(self.name, self.about, self.dataset, self.settings, tasks, tuple(self.notes))

    def negatives(self) -> UncertainGraph:
        """Return the negative links that come with the data, else new ones."""
        dataset = self.dataset
        if dataset.negatives is None:
            self.notes.append(
                f"{dataset.name} has no negative links; {len(dataset.test):,} true ones of kind paper were drawn"
            )
            return negative_links(dataset, kind="paper", seed=self.settings.seed)
        found = examine_negatives(dataset, FactIndex(dataset.whole()), FactIndex(dataset.train))
        if found is not None and found.facts:
            self.notes.append(
                f"{found.facts:,} of {found.rows:,} negative links are facts of the graph: on test facts and negative "
                f"links together an honest model cannot get below an MSE of {found.floor_mse:.5f}"
            )
        return dataset.negatives

    def queries(self) -> Queries:
        """Return the queries (h, r, ?) that come with the data, else those of test facts, at most so many."""
        dataset, most = self.dataset, self.settings.most_queries
        if dataset.queries is not None:
            return Queries.of("tail", dataset.queries[:, 0], dataset.queries[:, 1])
        asked = FactIndex(dataset.test).queries()
        chosen = np.arange(len(asked))
        if len(asked) > most:
            chosen = np.sort(np.random.default_rng(self.settings.seed).choice(len(asked), most, replace=False))
        which = f"{len(chosen):,} of the {len(asked):,}" if len(chosen) < len(asked) else f"all {len(asked):,}"
        self.notes.append(
            f"{dataset.name} has no ranking queries; {which} queries (h, r, ?) of its test facts are asked"
        )
        return Queries("tail", asked.given[chosen], asked.relation[chosen])

    def ranking(self, queries: Queries, *, excluding_train: bool) -> RankingTask:
        """Return the ranking of tails by gain; a repeated fact has the mean of its confidences for gain."""
        dataset, n = self.dataset, len(queries)
        if not excluding_train:
            gains = FactIndex(dataset.whole()).answers(queries)
            title = f"{n:,} queries, gains of train, validation and test, all entities are candidates"
            return RankingTask(queries, gains, Answers.none(n), "ranking", title)
        excluded = FactIndex(dataset.train).answers(queries)
        held_out = FactIndex(concat([dataset.val, dataset.test])).answers(queries)
        gains = held_out.without(excluded, dataset.train.n_entities)
        asked = int((np.bincount(gains.query, weights=gains.confidence, minlength=n) > 0).sum())
        title = f"{asked:,} queries, gains of validation and test, tails known to train are no candidates"
        return RankingTask(queries, gains, excluded, "ranking_held_out", title)

    def links(
        self, known: UncertainGraph, sides: tuple[Side, ...], filtered: str, columns: tuple[str, ...]
    ) -> LinkTask:
        """Return the link prediction of the test facts, filtered of what is known."""
        facts, index = self.dataset.test, FactIndex(known)
        ranked, answers = ranked_among(facts, index, sides)
        return LinkTask(facts, answers, ranked, filtered, columns)

    def classification(self, negatives: UncertainGraph, kinds: tuple[str, ...]) -> tuple[Task, ...]:
        """Return the classification of test facts and negative links, or nothing where it cannot be had.

        The classifier learns from training facts and as many negative links drawn like those of the test: it has to
        tell strong facts from both, in the shares in which the test holds them.
        """
        settings, train = self.settings, self.dataset.train
        if len(train) > settings.most_fitted:
            rng = np.random.default_rng(settings.seed)
            train = train[np.sort(rng.choice(len(train), settings.most_fitted, replace=False))]
        strong = train.confidence > settings.tau
        if strong.all() or not strong.any():
            which = "all training facts are" if strong.any() else "no training fact is"
            self.notes.append(f"{which} strong at τ = {settings.tau:g}: classification is left out")
            return ()
        false = self.drawn(self.dataset.train, train, kinds)
        if not false:
            self.notes.append("without negative links to learn from, classification is left out")
            return ()
        facts = concat([self.dataset.test, negatives])
        share = float((facts.confidence > settings.tau).mean())
        title = f"{len(facts):,} test facts and negative links, {percent(share)} strong at τ = {settings.tau:g}"
        return (ClassificationTask(concat([train, *false.values()]), facts, settings.tau, title),)

    def drawn(
        self, data: Dataset | UncertainGraph, like: UncertainGraph, kinds: tuple[str, ...], *, each: bool = False
    ) -> dict[str, UncertainGraph]:
        """Return negative links by kind, together as many as `like` has facts; a kind that has too few is left out.

        With `each` there are as many of each kind.
        """
        share = len(like) if each else max(1, len(like) // len(kinds))
        found: dict[str, UncertainGraph] = {}
        taken = np.zeros(0, dtype=np.int64)
        for number, kind in enumerate(kinds):
            try:
                links = negative_links(data, like=like, kind=kind, n=share, seed=self.settings.seed + number)
            except DataError as error:
                self.notes.append(f"no negative links of kind {kind}: {error.what.splitlines()[0]}")
                continue
            links = links[~contains(taken, links.keys())]
            taken = np.sort(np.concatenate([taken, links.keys()]))
            found[kind] = links
        return found


protocols: Registry[type[EvaluationProtocol]] = Registry("protocol", "ukge.protocols")


@protocols.register("paper")
class Paper(EvaluationProtocol):
    """The protocol of the paper's three tables."""

    name = "paper"
    about = "test facts and negative links together, as in the UKGE paper"

    def tasks(self) -> tuple[Task, ...]:
        """Return confidence prediction, ranking and classification."""
        negatives = self.negatives()
        facts = concat([self.dataset.test, negatives])
        title = f"{len(self.dataset.test):,} test facts and {len(negatives):,} negative links"
        return (
            ConfidenceTask(facts, title),
            self.ranking(self.queries(), excluding_train=False),
            *self.classification(negatives, ("paper",)),
        )


@protocols.register("split")
class Split(EvaluationProtocol):
    """The protocol of PASSLEAF and UPGAT."""

    name = "split"
    about = "facts and negative links apart, tails known to train left out, as in PASSLEAF and UPGAT"

    def tasks(self) -> tuple[Task, ...]:
        """Return errors apart, ranking without training tails, and tail ranks without training tails."""
        test, negatives = self.dataset.test, self.negatives()
        columns = ("mr", "mrr", "wmr", "wmrr", "whits_10", "whits_20", "whits_40")
        title = f"{len(test):,} test facts, {len(negatives):,} negative links"
        return (
            ErrorsApart(
                {"positives": test, "negatives": negatives}, title, judged_by=("mse_positives", "mse_negatives")
            ),
            self.ranking(self.queries(), excluding_train=True),
            self.links(self.dataset.train, ("tail",), "filtered of training facts", columns),
        )


@protocols.register("positives")
class Positives(EvaluationProtocol):
    """The protocol of unKR, ssCDL and QUEST."""

    name = "positives"
    about = "test facts only, filtered link prediction on both sides, as in unKR, ssCDL and QUEST"

    def tasks(self) -> tuple[Task, ...]:
        """Return confidence prediction on facts and link prediction."""
        known = self.dataset.whole()
        return (
            ConfidenceTask(self.dataset.test, f"{len(self.dataset.test):,} test facts"),
            self.links(known, self.settings.sides, "filtered of all facts", LINK_COLUMNS),
        )


@protocols.register("focus")
class Focus(EvaluationProtocol):
    """The protocol of FocusE."""

    name = "focus"
    about = "the surest and the least sure tenth of the test facts apart, filtered link prediction, as in FocusE"

    def tasks(self) -> tuple[Task, ...]:
        """Return two link predictions."""
        test, index = self.dataset.test, FactIndex(self.dataset.whole())
        # Equally sure facts keep their order: that of the file decides which of them count.
        surest = np.argsort(-test.confidence, kind="stable")
        few = max(1, len(test) // TENTH)
        parts = {"surest": surest[:few], "least_sure": surest[-few:]}
        return tuple(self._part(test[np.sort(rows)], index, name) for name, rows in parts.items())

    def _part(self, facts: UncertainGraph, index: FactIndex, name: str) -> LinkTask:
        ranked, answers = ranked_among(facts, index, SIDES)
        which = name, f"{name.replace('_', ' ')} test facts"
        return LinkTask(facts, answers, ranked, "filtered of all facts", LINK_COLUMNS, which)


def ranked_among(
    facts: UncertainGraph, index: FactIndex, sides: tuple[Side, ...]
) -> tuple[dict[Side, RankedFacts], dict[Side, Answers]]:
    """Return facts as queries of either side, and what an index knows as their answers."""
    ranked = {side: RankedFacts.of(facts, side) for side in sides}
    return ranked, {side: index.answers(each.queries) for side, each in ranked.items()}


@protocols.register("clean")
class Clean(EvaluationProtocol):
    """The paper's protocol where nothing leaks and no negative link is a fact."""

    name = "clean"
    about = "the paper's protocol on a leak-safe split, with true negatives of several kinds"

    def tasks(self) -> tuple[Task, ...]:
        """Return the paper's tasks, errors by kind of negative link, and ranking without training tails."""
        self._refuse_leaks()
        test = self.dataset.test
        kinds = self.drawn(self.dataset, test, MIXED)
        if not kinds:
            raise DataError(f"no true negative link was found for {self.dataset.name}", hint="Is the graph complete?")
        negatives = concat(list(kinds.values()))
        facts = concat([test, negatives])
        title = f"{len(test):,} test facts and {len(negatives):,} true negatives"
        queries = self.queries()
        return (
            ConfidenceTask(facts, f"{title}, {len(kinds)} kinds"),
            ErrorsApart(
                {"positives": test, **kinds}, title, ("mae_positives", *(f"mse_{k}" for k in ("positives", *kinds)))
            ),
            self.ranking(queries, excluding_train=False),
            self.ranking(queries, excluding_train=True),
            *self.classification(negatives, tuple(kinds)),
        )

    def _refuse_leaks(self) -> None:
        train, test = self.dataset.train, self.dataset.test
        leaked = int(FactIndex(train).linked(test.head, test.tail).sum())
        if leaked:
            raise DataError(
                f"protocol clean needs a leak-safe split: train links the entities of {leaked:,} of {len(test):,} test "
                f"facts of {self.dataset.name}",
                hint="Train on a leak-safe split (ukge train DATA --leak-safe) and evaluate that run.",
            )


@protocols.register("uncertainty")
class Uncertainty(EvaluationProtocol):
    """How far confidences can be trusted."""

    name = "uncertainty"
    about = "errors beside each kind of true negatives, quantiles, intervals and answer sets"

    def tasks(self) -> tuple[Task, ...]:
        """Return errors by kind, distributions and intervals, and answer sets of both sides."""
        dataset = self.dataset
        if len(dataset.val) < FEWEST_FACTS:
            raise DataError(
                f"{dataset.name} has {len(dataset.val)} validation facts, {FEWEST_FACTS} are needed",
                hint="Split the graph with a larger validation part.",
            )
        kinds = self.drawn(dataset, dataset.test, tuple(SHARES), each=True)
        if not kinds:
            raise DataError(f"no true negative link was found for {dataset.name}", hint="Is the graph complete?")
        facts = {FACTS: dataset.test, NEGATIVES: self._mixed(dataset.test)}
        return (
            ByKind(dataset.test, kinds),
            Distributions(facts, concat([dataset.val, self._mixed(dataset.val)])),
            *(Sets(dataset.test, dataset.val, dataset.train, side) for side in SIDES),
        )

    def _mixed(self, like: UncertainGraph) -> UncertainGraph:
        """Return as many links as there are facts, of every kind in the shares that evidence learns from."""
        drawn = []
        for number, (kind, share) in enumerate(SHARES.items()):
            try:
                n = max(1, round(share * len(like)))
                drawn.append(negative_links(self.dataset, like=like, kind=kind, n=n, seed=self.settings.seed + number))
            except DataError:  # it is told of already
                continue
        return concat(drawn)
