"""A comparison as a paper prints it, in LaTeX (booktabs) or Markdown.

Means over seeds, the best in bold, and a mark where a difference is more than chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ukge.errors import ConfigError
from ukge.evaluation.evaluate import Evaluation
from ukge.evaluation.metric import Metric
from ukge.evaluation.significance import CLEAR, Contestant, Contrast
from ukge.evaluation.tables import columns, header
from ukge.evaluation.tasks import Table

MARK = "†"


@dataclass(frozen=True, eq=False)
class Comparison:
    """An evaluation with its models, whose seeds stand together, and the contrasts between them."""

    evaluation: Evaluation
    models: Sequence[Contestant]
    contrasts: Sequence[Contrast]

    def best(self, table: Table, metric: Metric) -> str:
        """Return the best mean, as it is printed."""
        return metric.text(metric.best([each.mean(table.name, metric.name) for each in self.models]))

    def marked(self, table: Table, metric: Metric, model: Contestant) -> bool:
        """Return whether a model differs from the reference by more than chance."""
        return any(
            each.clear and (each.table, each.metric.name, each.name) == (table.name, metric.name, model.name)
            for each in self.contrasts
        )

    def note(self) -> str:
        """Return what the marks and the numbers behind ± mean, as far as there are any."""
        words = []
        if any(len(each.rows) > 1 for each in self.models):
            words.append("± is the standard deviation over seeds.")
        if self.contrasts:
            reference = " ".join(self.contrasts[0].against.split())
            words.append(
                f"{MARK} differs from {reference} (paired permutation test, p < {CLEAR:g} after Holm's correction over "
                f"{len(self.contrasts)} comparisons)."
            )
        return " ".join(words)


def as_markdown(found: Comparison) -> str:
    """Return the tables of a comparison in Markdown."""
    return _written(found, _markdown_table, lambda note: f"{note}\n")


def as_latex(found: Comparison) -> str:
    """Return the tables of a comparison in LaTeX, for the package booktabs."""
    return _written(found, _latex_table, lambda note: f"% {note}\n")


FORMATS: dict[str, Callable[[Comparison], str]] = {".md": as_markdown, ".tex": as_latex}


def format_of(path: Path) -> Callable[[Comparison], str]:
    """Return what writes a file with this ending."""
    if path.suffix not in FORMATS:
        raise ConfigError(
            f"{path} has no ending that a table is written for", hint=f"Known: {', '.join(FORMATS)} (LaTeX, Markdown)."
        )
    return FORMATS[path.suffix]


def _written(
    found: Comparison, table_of: Callable[[Comparison, Table], Iterator[str]], note: Callable[[str], str]
) -> str:
    parts = [
        "".join(f"{line}\n" for line in table_of(found, table)) for table in found.evaluation.tables if table.brief
    ]
    return "\n".join([*parts, note(found.note())] if found.note() else parts)


def _markdown_table(found: Comparison, table: Table) -> Iterator[str]:
    shown = columns(found.evaluation, table)
    yield f"**{_cell_safe(found.evaluation.protocol)} · {_cell_safe(table.title)}**"
    yield ""
    yield f"| model | {' | '.join(header(metric) for metric in shown)} |"
    yield f"|---|{'---:|' * len(shown)}"
    for model in found.models:
        cells = (_text(found, table, metric, model, "**{}**", " ± ") for metric in shown)
        yield f"| {_cell_safe(model.name)} | {' | '.join(cells)} |"


def _latex_table(found: Comparison, table: Table) -> Iterator[str]:
    shown = columns(found.evaluation, table)
    yield f"% {found.evaluation.protocol}: {' '.join(table.title.split())}"
    yield rf"\begin{{tabular}}{{l{'r' * len(shown)}}}"
    yield r"\toprule"
    arrows = (
        rf"{latex_safe(metric.title)} $\{'uparrow' if metric.higher_is_better else 'downarrow'}$" for metric in shown
    )
    yield rf"model & {' & '.join(arrows)} \\"
    yield r"\midrule"
    for model in found.models:
        cells = (
            _text(found, table, metric, model, r"\textbf{{{}}}", r" $\pm$ ").replace(MARK, r"$^\dagger$")
            for metric in shown
        )
        yield rf"{latex_safe(model.name)} & {' & '.join(cells)} \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _text(found: Comparison, table: Table, metric: Metric, model: Contestant, bold: str, spread: str) -> str:
    mean, deviation = model.mean(table.name, metric.name), model.deviation(table.name, metric.name)
    text = metric.text(mean)
    text = bold.format(text) if text == found.best(table, metric) != metric.text(math.nan) else text
    after = "" if math.isnan(deviation) else f"{spread}{metric.text(deviation)}"
    return f"{text}{after}{MARK if found.marked(table, metric, model) else ''}"


SPECIAL = {
    "\\": r"\textbackslash{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
    "τ": r"$\tau$",
}


def latex_safe(text: str) -> str:
    """Return a text whose every character LaTeX prints as it stands, on one line."""
    return "".join(SPECIAL.get(each, each) for each in " ".join(text.split()))


def _cell_safe(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
