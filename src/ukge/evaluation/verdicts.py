"""What a table says of a model in words: where it is no better than what needs no model, and what may help."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ukge.errors import Wording, in_python, worded
from ukge.evaluation.metric import Figure
from ukge.evaluation.tasks import Table
from ukge.graph.audit.baselines import CONSTANT

if TYPE_CHECKING:
    from ukge.evaluation.evaluate import Evaluation, Row

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
