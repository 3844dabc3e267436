"""The pictures of the report, one function each; matplotlib without its global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ukge.evaluation.breakdown import Group
from ukge.evaluation.classification import Classification, PrecisionRecall
from ukge.evaluation.confidence import Reliability
from ukge.evaluation.ranking import Ranks
from ukge.graph.queries import Numbers

INK, SOFT, LINE = "#1d2126", "#66707c", "#d9dce0"
BLUE, ORANGE, GREEN, GREY = "#2f6f9f", "#b4541a", "#3d7d4e", "#9aa4ae"
WIDTH, HEIGHT = 5.6, 4.0
LOOK: dict[Any, Any] = {
    "font.size": 10,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#eceef0",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def look() -> AbstractContextManager[None]:
    """Return the context in which all pictures are to be made."""
    return rc_context(LOOK)


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    sink = BytesIO()
    figure.savefig(sink, format="png", dpi=144, metadata={"Software": None})
    return sink.getvalue()


def reliability_curve(curve: Reliability, name: str, ece: float) -> Figure:
    """Draw mean observed against mean predicted confidence, bin by bin."""
    figure, axes = _axes(HEIGHT * 1.2)
    _diagonal(axes)
    size = 25 + 120 * curve.facts / curve.facts.max()
    axes.plot(curve.predicted, curve.observed, color=BLUE, linewidth=1.2)
    axes.scatter(curve.predicted, curve.observed, s=size, color=BLUE, edgecolor="white", zorder=3)
    axes.text(0.03, 0.97, f"{name}\nECE {ece:.4f}", transform=axes.transAxes, va="top")
    axes.text(0.97, 0.03, "dots by number of facts", transform=axes.transAxes, ha="right", color=SOFT, fontsize=8.5)
    _labels(axes, "mean predicted confidence", "mean observed confidence")
    return figure


def predicted_against_observed(predicted: Numbers, observed: Numbers) -> Figure:
    """Draw how often each predicted confidence meets each observed one."""
    figure, axes = _axes(HEIGHT * 1.2)
    counts, _, _ = np.histogram2d(observed, np.clip(predicted, 0.0, 1.0), bins=50, range=((0, 1), (0, 1)))
    shown = np.ma.masked_equal(counts.T, 0)
    axes.grid(visible=False)
    image = axes.imshow(
        shown, origin="lower", extent=(0, 1, 0, 1), norm="log", cmap="Blues", vmin=0.4, aspect="auto", zorder=1
    )
    _diagonal(axes)
    bar = figure.colorbar(image, ax=axes, shrink=0.85, label="facts")
    bar.outline.set_visible(False)
    _labels(axes, "observed confidence", "predicted confidence")
    return figure


def errors_by_relation(model: Sequence[Group], trivial: Sequence[Group], trivial_name: str) -> Figure:
    """Draw the mean absolute error of each relation, with that of a trivial baseline as a mark."""
    figure, axes = _axes(1.1 + 0.25 * len(model))
    places = np.arange(len(model))[::-1]
    axes.barh(
        places, [g.mean for g in model], xerr=[1.96 * g.error for g in model], color=BLUE, ecolor=INK, height=0.62
    )
    axes.plot(
        [g.mean for g in trivial], places, "|", color=ORANGE, markersize=11, markeredgewidth=2.2, label=trivial_name
    )
    axes.set_yticks(places, [f"{_short(g.name)}  ({g.count:,})" for g in model])
    axes.grid(visible=False, axis="y")
    _legend(axes)
    _labels(axes, "mean absolute error", "")
    return figure


def errors_by_band(model: Sequence[Group]) -> Figure:
    """Draw the mean absolute and the mean signed error by observed confidence."""
    figure, axes = _axes()
    places = np.arange(len(model))
    error = [1.96 * g.error for g in model]
    axes.bar(places, [g.mean for g in model], yerr=error, color=BLUE, ecolor=INK, width=0.7, label="absolute")
    axes.plot(places, [g.bias for g in model], "o-", color=ORANGE, markersize=4, label="signed (above 0: too high)")
    axes.axhline(0.0, color=SOFT, linewidth=0.8)
    axes.set_xticks(places, [f"{g.name}\n{_count(g.count)}" for g in model], fontsize=8.5)
    axes.grid(visible=False, axis="x")
    _legend(axes)
    _labels(axes, "observed confidence (upper end of the band), and facts in it", "mean error")
    return figure


def precision_recall_curve(curves: Mapping[str, PrecisionRecall], name: str, reached: Classification) -> Figure:
    """Draw precision against recall, and where the classifier stands."""
    figure, axes = _axes(HEIGHT * 1.2)
    for f1 in (0.2, 0.4, 0.6, 0.8, 0.9):
        recall = np.linspace(f1 / (2 - f1) + 1e-6, 1.0, 100)
        axes.plot(recall, f1 * recall / (2 * recall - f1), color=LINE, linewidth=0.8, zorder=0)
        axes.text(1.01, f1 / (2 - f1), f"F1 {f1:g}", color=GREY, fontsize=8, va="center")
    for (label, curve), colour in zip(curves.items(), (BLUE, GREY), strict=False):
        axes.plot(curve.recall, curve.precision, color=colour, linewidth=1.6, drawstyle="steps-pre", label=label)
    axes.plot(
        reached.recall,
        reached.precision,
        "o",
        color=ORANGE,
        markersize=8,
        label=f"classifier on {name}, F1 {reached.f1:.3f}",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.grid(visible=False)
    _legend(axes)
    _labels(axes, "recall of strong facts", "precision")
    return figure


def ndcg_by_size(groups: Mapping[str, Sequence[Group]]) -> Figure:
    """Draw the mean linear nDCG by how many tails a query has."""
    figure, axes = _axes()
    names = [group.name for group in next(iter(groups.values()))]
    for (label, each), colour, shift in zip(groups.items(), (BLUE, GREY), (-0.06, 0.06), strict=False):
        places = np.arange(len(each)) + shift
        error = [1.96 * group.error for group in each]
        axes.errorbar(
            places, [group.mean for group in each], yerr=error, fmt="o-", color=colour, capsize=3, label=label
        )
    counts = [group.count for group in next(iter(groups.values()))]
    axes.set_xticks(range(len(names)), [f"{name}\n{_count(n)}" for name, n in zip(names, counts, strict=True)])
    axes.set_ylim(top=min(1.02, axes.get_ylim()[1]))
    axes.grid(visible=False, axis="x")
    _legend(axes)
    _labels(axes, "tails of the query, and queries of that size", "mean nDCG (linear)")
    return figure


def hits_curve(ranks: Mapping[str, Ranks], most: int) -> Figure:
    """Draw the share of facts that rank at k or better, filtered, for every k."""
    figure, axes = _axes()
    places = np.arange(1, most + 1)
    for (side, each), colour in zip(ranks.items(), (BLUE, ORANGE), strict=False):
        share = np.searchsorted(np.sort(each), places, side="right") / max(len(each), 1)
        axes.plot(places, share, color=colour, linewidth=1.8, label=f"{side} side")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    _legend(axes)
    _labels(axes, "k", "Hits@k, filtered")
    return figure


def training_curves(trace: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the terms of the objective and the validation metric over the epochs."""
    figure = Figure(figsize=(2 * WIDTH, HEIGHT), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = [line["epoch"] for line in trace]
    names = [name for name in trace[0]["losses"] if any(line["losses"].get(name) for line in trace)]
    for name, colour in zip(names, (BLUE, ORANGE, GREEN, GREY, INK), strict=False):
        left.plot(epochs, [line["losses"].get(name) for line in trace], color=colour, linewidth=1.6, label=name)
    left.set_yscale("log")
    _legend(left)
    _labels(left, "epoch", "terms of the objective")
    checked = [line for line in trace if line["value"] is not None]
    if checked:
        right.plot(
            [line["epoch"] for line in checked], [line["value"] for line in checked], "o-", color=BLUE, markersize=4
        )
        best = checked[-1]["best_epoch"]
        chosen = [line for line in checked if line["epoch"] == best]
        right.plot(
            [best] * len(chosen),
            [line["value"] for line in chosen],
            "o",
            color=ORANGE,
            markersize=8,
            label=f"kept: epoch {best}",
        )
        _legend(right)
        _labels(right, "epoch", f"validation {checked[0]['metric']}")
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _axes(height: float = HEIGHT) -> tuple[Figure, Axes]:
    """Return an empty figure; all are equally wide, so that a page shows their letters equally large."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def _diagonal(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def _labels(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _legend(axes: Axes) -> None:
    """Put the legend above the plot, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=9, handlelength=1.4, borderaxespad=0.1
        )


def _short(name: str, width: int = 28) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _count(number: int) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else str(number)
