"""`ukge rank`: which tails fit a head and a relation, or which heads a tail, the best first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ukge.cli.console import note, out, print_json
from ukge.cli.predict import tell_if_order_only
from ukge.errors import ConfigError, RunError


class Ranked(NamedTuple):
    """An answer; without evidence neither its bounds are known nor what the graph says of it."""

    entity: str
    confidence: float
    low: float | None = None
    high: float | None = None
    stored: float | None = None


def rank(
    run: Annotated[Path, typer.Argument(help="A run; with evidence, it gives intervals.", metavar="RUN")],
    relation: Annotated[str, typer.Argument(help="The relation.")],
    head: Annotated[str | None, typer.Option("--head", help="Ask for tails of this head.")] = None,
    tail: Annotated[str | None, typer.Option("--tail", help="Ask for heads of this tail.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many answers.")] = 10,
    unseen: Annotated[bool, typer.Option("--unseen", help="Only answers that the graph does not have.")] = False,
    coverage: Annotated[float, typer.Option("--coverage", help="Share of facts whose interval holds them.")] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Name the tails that fit a head and a relation best, or the heads that fit a tail.

    With evidence, known answers are placed by the confidence that the graph stores, and others by what is expected of
    them among all candidates; so the order need not be that of the confidences, which tell of each fact by itself.
    """
    from ukge.evidence.place import keeps_evidence

    if (head is None) == (tail is None):
        raise ConfigError("a query has a head or a tail", hint="Give --head to ask for tails, or --tail for heads.")
    if keeps_evidence(run):
        found = _by_evidence(run, head, relation, tail, k, unseen, coverage)
    elif unseen:
        raise RunError(f"{run} has no evidence that knows the graph", hint=f"Make it: ukge evidence fit {run}")
    else:
        found = _by_model(run, head, relation, tail, k)
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        _print(found, f"{head or '?'} — {relation} — {tail or '?'}", coverage)


def _by_evidence(
    run: Path, head: str | None, relation: str, tail: str | None, k: int, unseen: bool, coverage: float
) -> list[Ranked]:
    from ukge.cli.opening import open_evidence

    answers = open_evidence(run).rank(head, relation, k, tail=tail, coverage=coverage, unseen=unseen)
    return [Ranked(*each) for each in answers]


def _by_model(run: Path, head: str | None, relation: str, tail: str | None, k: int) -> list[Ranked]:
    from ukge.estimator import UKGE

    estimator = UKGE.load(run)
    tell_if_order_only(estimator, run)
    note(f"{run} has no evidence, so there are no intervals (ukge evidence fit {run} makes it)")
    return [Ranked(*each) for each in estimator.rank(head, relation, k, tail=tail)]


def _print(found: list[Ranked], asked: str, coverage: float) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(asked), title_justify="left")
    table.add_column("", justify="right")
    table.add_column("answer", overflow="fold")
    columns = [("confidence", [f"{each.confidence:.2f}" for each in found])]
    if any(each.low is not None for each in found):
        columns.append((f"{coverage:.0%} interval", [f"{each.low:.2f} – {each.high:.2f}" for each in found]))
    if any(each.stored is not None for each in found):
        columns.append(("in the graph", ["" if each.stored is None else f"{each.stored:.2f}" for each in found]))
    for name, _ in columns:
        table.add_column(name, justify="right")
    for row, each in enumerate(found):
        table.add_row(str(row + 1), escape(each.entity), *(cells[row] for _, cells in columns))
    out().print(table)
