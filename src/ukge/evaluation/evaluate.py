"""Predictors under a protocol: the trivial baselines first, then the others, all judged on the same draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ukge.errors import DataError, Wording, in_python
from ukge.evaluation.baselines import baseline_predictors
from ukge.evaluation.bootstrap import Bootstrap
from ukge.evaluation.metric import Figure
from ukge.evaluation.predictions import Predictor
from ukge.evaluation.protocols import Plan, Settings, protocols
from ukge.evaluation.tasks import Figures, Table
from ukge.evaluation.verdicts import Verdict, verdicts
from ukge.graph.dataset import Dataset
from ukge.progress.steps import Steps, Tell

TRIVIAL = "trivial baselines"


@dataclass(frozen=True, eq=False)
class Row:
    """One predictor and its figures by table; `trivial` marks what needs no model."""

    name: str
    trivial: bool
    figures: Figures

    def figure(self, table: str, metric: str) -> Figure:
        """Return one figure by the names of its table and of its metric."""
        return next(each for each in self.figures[table] if each.metric.name == metric)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The tables of one protocol on one data set."""

    protocol: str
    about: str
    data: str
    settings: Settings
    bootstrap: Bootstrap
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row:
        """Return the row of a predictor."""
        return next(each for each in self.rows if each.name == name)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Where predictors are no better than what needs no model."""
        return verdicts(self)

    def to_dict(self, wording: Wording = in_python) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; hints name arguments in the words of a surface."""
        return {
            "protocol": self.protocol,
            "about": self.about,
            "data": self.data,
            "tau": self.settings.tau,
            "seed": self.settings.seed,
            "bootstrap": {"replicates": self.bootstrap.replicates, "level": self.bootstrap.level},
            "notes": list(self.notes),
            "verdicts": [each.to_dict(wording) for each in self.verdicts],
            "tables": {each.name: each.title for each in self.tables},
            "rows": [
                {
                    "name": row.name,
                    "trivial": row.trivial,
                    "figures": {
                        table: {each.metric.name: each.to_dict() for each in figures}
                        for table, figures in row.figures.items()
                    },
                }
                for row in self.rows
            ],
        }


def prepare(dataset: Dataset, protocol: str = "paper", settings: Settings | None = None) -> Plan:
    """Return a protocol prepared for a data set."""
    return protocols.get(protocol)(dataset, settings or Settings()).plan()


def evaluate(
    plan: Plan,
    predictors: Mapping[str, Predictor],
    *,
    bootstrap: Bootstrap | None = None,
    tell: Tell | None = None,
) -> Evaluation:
    """Return the tables of `predictors` beside the trivial baselines; `tell` hears whose turn it is."""
    drawn = bootstrap or Bootstrap()
    known = plan.dataset.train.n_entities
    for name, predictor in predictors.items():
        if predictor.n_entities != known:
            raise DataError(f"{name} knows {predictor.n_entities:,} entities, {plan.dataset.name} has {known:,}")
    trivial = baseline_predictors(plan.dataset.train, plan.positive_share)
    clash = set(trivial) & set(predictors)
    if clash:
        raise DataError(f"{min(clash)!r} is the name of a trivial baseline", hint="Give the predictor another name.")
    steps = Steps(tell, {TRIVIAL: 1, **dict.fromkeys(predictors, 2)})
    steps.begin(TRIVIAL)
    rows = measure(plan, trivial, drawn, trivial=True, on_share=steps.within)
    for name, predictor in predictors.items():
        steps.begin(name)
        rows += measure(plan, {name: predictor}, drawn, on_share=steps.within)
    tables = tuple(table for task in plan.tasks for table in task.tables)
    return Evaluation(plan.protocol, plan.about, plan.dataset.name, plan.settings, drawn, plan.notes, tables, rows)


def measure(
    plan: Plan,
    predictors: Mapping[str, Predictor],
    bootstrap: Bootstrap,
    *,
    trivial: bool = False,
    on_share: Callable[[float], None] = lambda _: None,
) -> tuple[Row, ...]:
    """Return the rows of predictors alone, for who keeps those of the trivial baselines from before."""
    rows, done, every = [], 0, max(len(predictors) * len(plan.tasks), 1)
    for name, predictor in predictors.items():
        figures: dict[str, Any] = {}
        for task in plan.tasks:
            figures |= task.measure(predictor, bootstrap)
            done += 1
            on_share(done / every)
        rows.append(Row(name, trivial, figures))
    return tuple(rows)
