"""Predictors under a protocol: the trivial baselines first, then the others, all judged on the same draws.

A verdict says in words where a model is no better than what needs no model, and what may help.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ukge.errors import DataError, Wording, in_python, worded
from ukge.evaluation.baselines import baseline_predictors
from ukge.evaluation.metric import Bootstrap, Figure
from ukge.evaluation.protocols import Plan, Settings, protocols
from ukge.evaluation.tasks import Figures, Predictor, Samples, Table
from ukge.graph.audit.baselines import CONSTANT
from ukge.graph.dataset import Dataset
from ukge.progress.steps import Steps, Tell

TRIVIAL = "trivial baselines"
TWIN = "twin"
_MEANS = {
    CONSTANT: "what one constant reaches",
    "relation": "what one number per relation reaches",
    TWIN: "what looking the fact or its inverse up in train reaches",
}
_EQUAL_SCORES = "what equal scores for all entities reach"
_LOOKED_UP = (
    "Train holds their twins: a cut with ‹leak_safe=True› shows what is learnt beyond them, and `ukge evidence fit` "
    "learns to use them."
)
_HELP = {
    "confidence": "A lower ‹l2›, more ‹epochs› or another ‹lr› may help; `ukge tune` searches for them.",
    "ranking": "‹metric=ndcg› chooses the epoch by its ranking; the model complex-all learns to rank.",
    "classification": "A lower ‹l2› or more ‹epochs› may help, or another ‹tau› for what is strong.",
    "links": "‹metric=mrr› chooses the epoch by its ranks; the model complex-all learns to rank.",
}


@dataclass(frozen=True, eq=False)
class Row:
    """One predictor, its figures by table, and what they were drawn from; `trivial` marks what needs no model."""

    name: str
    trivial: bool
    figures: Figures
    samples: Samples = field(default_factory=dict)

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
        samples: dict[str, Any] = {}
        for task in plan.tasks:
            judged = task.judge(predictor, bootstrap)
            figures |= judged.figures
            samples |= judged.samples
            done += 1
            on_share(done / every)
        rows.append(Row(name, trivial, figures, {} if trivial else samples))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A model that is no better in one table than `trivial`, which needs no model.

    `figures` are those that the table is judged by, `reached` the same of the trivial predictor.
    """

    name: str
    table: Table
    trivial: str
    figures: tuple[Figure, ...]
    reached: tuple[Figure, ...]

    @property
    def clear(self) -> bool:
        """Whether the trivial figures lie outside the model's intervals, as far as there are any."""
        return all(_clearly_worse(*pair) for pair in zip(self.figures, self.reached, strict=True))

    @property
    def constant(self) -> bool:
        """Whether it is a constant that the model does not beat."""
        return self.trivial.startswith(CONSTANT)

    def what(self) -> str:
        """Return what is seen, as a sentence."""
        own = " and ".join(f"{each.metric.title} {_text(each)}" for each in self.figures)
        theirs = " and ".join(_text(each) for each in self.reached)
        verb = "is" if len(self.figures) == 1 else "are"
        worse = "worse" if self.clear else "no better"
        kind = next(words for start, words in _MEANS.items() if self.trivial.startswith(start))
        if self.table.kind in ("ranking", "links") and not self.trivial.startswith(TWIN):
            kind = _EQUAL_SCORES
        return f"{self.name}: {own} {verb} {worse} than {kind} ({theirs}, “{self.trivial}”)."

    def hint(self, wording: Wording = in_python) -> str:
        """Return what may help, in the words of a surface."""
        return worded(_LOOKED_UP if self.trivial.startswith(TWIN) else _HELP[self.table.kind], wording)

    def to_dict(self, wording: Wording = in_python) -> dict[str, Any]:
        """Return the verdict as plain values that JSON can hold."""
        metrics = {
            own.metric.name: {"value": _plain(own.value), "trivial": _plain(other.value)}
            for own, other in zip(self.figures, self.reached, strict=True)
        }
        return {
            "name": self.name,
            "table": self.table.name,
            "trivial": self.trivial,
            "constant": self.constant,
            "clear": self.clear,
            "metrics": metrics,
            "what": self.what(),
            "hint": self.hint(wording),
        }


def verdicts(evaluation: Evaluation) -> tuple[Verdict, ...]:
    """Return where models are no better than what needs no model: at most one verdict per model and table.

    A constant that a model does not beat is told before a look-up that is better still: it is the graver fault.
    """
    trivial = [row for row in evaluation.rows if row.trivial]
    found: list[Verdict] = []
    for table in evaluation.tables:
        if table.judged_by:
            for row in evaluation.rows:
                if not row.trivial:
                    found += _verdict(table, row, trivial)
    return tuple(found)


def _verdict(table: Table, row: Row, trivial: Iterable[Row]) -> Iterator[Verdict]:
    own = _judged(table, row)
    if any(math.isnan(figure.value) for figure in own):
        return
    beating = [(each, _judged(table, each)) for each in trivial]
    beating = [(each, figures) for each, figures in beating if _no_better(own, figures)]
    constants = [pair for pair in beating if pair[0].name.startswith(CONSTANT)]
    if beating:
        best, figures = max(constants or beating, key=lambda pair: _goodness(pair[1]))
        yield Verdict(row.name, table, best.name, own, figures)


def _judged(table: Table, row: Row) -> tuple[Figure, ...]:
    return tuple(row.figure(table.name, metric) for metric in table.judged_by)


def _no_better(own: Iterable[Figure], other: Iterable[Figure]) -> bool:
    """Return whether, as tables print them, a trivial predictor is at least as good in every figure."""
    return all(
        _text(mine) == _text(theirs) or _goodness([theirs]) > _goodness([mine])
        for mine, theirs in zip(own, other, strict=True)
    )


def _clearly_worse(own: Figure, other: Figure) -> bool:
    if _text(own) == _text(other):
        return False
    return own.interval is None or not own.interval.low <= other.value <= own.interval.high


def _goodness(figures: Iterable[Figure]) -> float:
    return sum(each.value if each.metric.higher_is_better else -each.value for each in figures)


def _text(figure: Figure) -> str:
    return figure.metric.text(figure.value)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
