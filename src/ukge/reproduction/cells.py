"""The cells of our tables: what was published, the mean of ours over seeds with its deviation, and the difference.

What was published is the file `published.toml`, read and checked once.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean, stdev

from ukge.evaluation.case_study import Case, Tail

NOTHING = "–"
UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Column:
    """A metric as the paper prints it: where a protocol keeps it, its factor, its digits and its direction."""

    metric: str
    title: str
    table: str
    scale: float
    digits: int
    higher_is_better: bool
    published_as: str = ""
    """its name among published figures, where that is not the metric's"""

    @property
    def known_as(self) -> str:
        """Its name among published figures."""
        return self.published_as or self.metric

    @property
    def protocol(self) -> str:
        """The protocol that judges it."""
        return self.table.rpartition("/")[0] or "paper"

    @property
    def ranks(self) -> bool:
        """Whether it judges an order, and no confidences."""
        return self.table.rpartition("/")[2].startswith(("ranking", "links"))

    @property
    def header(self) -> str:
        """The title with an arrow towards better."""
        return f"{self.title} {'↑' if self.higher_is_better else '↓'}"

    def text(self, value: float) -> str:
        """Return a value as the paper prints it."""
        return f"{value:.{self.digits}f}"

    def signed(self, value: float) -> str:
        """Return a difference with its sign; what rounds to nothing has none."""
        text = f"{abs(value):.{self.digits}f}"
        if float(text) == 0.0:
            return f"±{text}"
        return f"{'+' if value > 0 else '−'}{text}"

    def better(self, value: float, than: float) -> bool:
        """Return whether one value is better than another."""
        return value > than if self.higher_is_better else value < than


MSE = Column("mse", "MSE", "confidence", 100.0, 2, False)
MAE = Column("mae", "MAE", "confidence", 100.0, 2, False)
LINEAR = Column("linear", "nDCG linear", "ranking", 1.0, 3, True)
EXPONENTIAL = Column("exponential", "nDCG exponential", "ranking", 1.0, 3, True)
F1 = Column("f1", "F1", "classification", 100.0, 1, True)
ACCURACY = Column("accuracy", "accuracy", "classification", 100.0, 1, True)
HELD_OUT = Column("linear", "nDCG held out", "ranking_held_out", 1.0, 3, True)


APART = "split/confidence_apart"
MSE_FACTS = Column("mse_positives", "MSE of facts", APART, 100.0, 2, False)
MSE_NEGATIVES = Column("mse_negatives", "MSE of negatives", APART, 100.0, 2, False)
WMR = Column("wmr", "WMR", "split/links_filtered_tail", 1.0, 1, False)
WHITS = Column("whits_20", "WHits@20", "split/links_filtered_tail", 100.0, 1, True)
UNKNOWN_TAILS = Column("linear", "nDCG", "split/ranking_held_out", 1.0, 3, True)
POSITIVE_MSE = Column("mse", "MSE", "positives/confidence", 1.0, 4, False)
POSITIVE_MAE = Column("mae", "MAE", "positives/confidence", 1.0, 4, False)
WMRR = Column("wmrr", "WMRR", "positives/links_filtered_tail", 1.0, 3, True)
MRR = Column("mrr", "MRR", "positives/links_filtered_tail", 1.0, 3, True)
SUREST = Column("mrr", "MRR, surest", "focus/links_surest_filtered_both", 1.0, 2, True, "surest")
LEAST_SURE = Column("mrr", "MRR, least sure", "focus/links_least_sure_filtered_both", 1.0, 2, False, "least_sure")
HITS = Column("hits_1", "Hits@1", "positives/links_filtered_tail", 1.0, 3, True)


@dataclass(frozen=True, slots=True)
class Summary:
    """Values over seeds: their mean, and their standard deviation (of a sample; None from one value)."""

    mean: float
    deviation: float | None
    values: int

    def text(self, column: Column) -> str:
        """Return mean ± deviation as the column prints numbers."""
        mean = column.text(self.mean)
        return mean if self.deviation is None else f"{mean} ± {column.text(self.deviation)}"


def summary(values: Iterable[float | None], scale: float = 1.0) -> Summary | None:
    """Summarise the values that there are, in the paper's units; None if there are none."""
    known = [scale * value for value in values if value is not None and not math.isnan(value)]
    if not known:
        return None
    return Summary(fmean(known), stdev(known) if len(known) > 1 else None, len(known))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cell of the paper's tables."""

    column: Column
    published: float | None
    ours: Summary | None

    @property
    def difference(self) -> float | None:
        """Ours, as printed, less what was published."""
        if self.published is None or self.ours is None:
            return None
        return round(self.ours.mean, self.column.digits) - self.published

    @property
    def reached(self) -> bool | None:
        """Whether ours, as printed, is as good as published or worse by no more than its deviation; None: no pair."""
        difference = self.difference
        if difference is None or self.ours is None:
            return None
        worse_by = -difference if self.column.higher_is_better else difference
        return worse_by <= max(self.ours.deviation or 0.0, 1e-9)

    @property
    def first(self) -> str:
        """The first line of the cell: ours."""
        return NOTHING if self.ours is None else self.ours.text(self.column)

    @property
    def second(self) -> str:
        """The second line: the published number and the difference."""
        if self.published is None:
            return ""
        shown = self.column.text(self.published)
        return shown if self.difference is None else f"{shown} ({self.column.signed(self.difference)})"


def ranks(values: Mapping[str, float], column: Column) -> dict[str, float]:
    """Return the rank of each name, best first; values that print the same share the mean of their ranks."""
    printed = {name: float(column.text(value)) for name, value in values.items()}
    return {
        name: 1.0
        + sum(column.better(other, value) for other in printed.values())
        + (sum(other == value for other in printed.values()) - 1) / 2.0
        for name, value in printed.items()
    }


def swapped(first: Mapping[str, float], second: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the pairs of names that two rankings put the other way round, the first ranking's better one first."""
    shared = [name for name in sorted(first, key=first.__getitem__) if name in second]
    return [
        (a, b) for i, a in enumerate(shared) for b in shared[i + 1 :] if first[a] < first[b] and second[a] > second[b]
    ]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The size of a graph, and mean and standard deviation of its confidences (table 1)."""

    entities: int
    relations: int
    facts: int
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """A rule of the paper with its hit ratio in % (table 2)."""

    rule: str
    hit_ratio: float


@dataclass(frozen=True)
class Published:
    """All numbers, by graph; `results` by protocol, model, graph and metric."""

    statistics: Mapping[str, Statistics]
    rules: Mapping[str, tuple[PublishedRule, ...]]
    results: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
    cases: Mapping[str, tuple[Case, ...]]

    def value(self, graph: str, model: str, metric: str, protocol: str = "paper") -> float | None:
        """Return a number of the tables in the units they print, None where they have none."""
        return self.results[protocol].get(model, {}).get(graph, {}).get(metric)


@cache
def published() -> Published:
    """Return the published numbers."""
    text = files("ukge.reproduction").joinpath("published.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Published(
        statistics={graph: Statistics(**each) for graph, each in data["statistics"].items()},
        rules={graph: tuple(PublishedRule(**each) for each in rules) for graph, rules in data["rules"].items()},
        results={"paper": data["results"], **{each: data[each] for each in ("split", "positives", "focus")}},
        cases={
            graph: tuple(
                Case(case["head"], case["relation"], tuple(_tail(*each) for each in case["predicted"]))
                for case in cases
            )
            for graph, cases in data["cases"].items()
        },
    )


def _tail(entity: str, predicted: float, observed: float) -> Tail:
    return Tail(entity, predicted, None if observed == UNSEEN else observed)
