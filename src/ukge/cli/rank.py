"""`ukge rank`: which tails fit a head and a relation, or which heads a tail, the best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import note
from ukge.cli.predict import tell_if_order_only
from ukge.cli.results import AsJson, Coverage, Out, Reasons, check_out, deliver, facts_table
from ukge.errors import ConfigError, RunError

if TYPE_CHECKING:
    import pyarrow as pa


def rank(
    run: Annotated[Path, typer.Argument(help="A run; with evidence, it gives intervals and reasons.", metavar="RUN")],
    relation: Annotated[str, typer.Argument(help="The relation.", metavar="RELATION")],
    head: Annotated[str | None, typer.Option("--head", help="Ask for tails of this head.", metavar="NAME")] = None,
    tail: Annotated[str | None, typer.Option("--tail", help="Ask for heads of this tail.", metavar="NAME")] = None,
    k: Annotated[int, typer.Option("-k", help="How many answers.")] = 10,
    unseen: Annotated[bool, typer.Option("--unseen", help="Only answers that the graph does not have.")] = False,
    coverage: Coverage = 0.9,
    reasons: Reasons = True,
    out_file: Out = None,
    as_json: AsJson = False,
) -> None:
    """Name the tails that fit a head and a relation best, or the heads that fit a tail.

    With evidence, known answers are placed by the confidence that the graph stores, and others by what is expected of
    them among all candidates; so the order need not be that of the confidences, which tell of each fact by itself.
    """
    from ukge.evidence.place import keeps_evidence

    if (head is None) == (tail is None):
        raise ConfigError("a query has a head or a tail", hint="Give ‹head› to ask for tails, or ‹tail› for heads.")
    check_out(out_file)
    if keeps_evidence(run):
        table = _by_evidence(run, head, relation, tail, k, unseen, coverage, reasons)
    elif unseen:
        raise RunError(f"{run} has no evidence that knows the graph", hint=f"Make it: ukge evidence fit {run}")
    else:
        table = _by_model(run, head, relation, tail, k)
    title, asked = f"{head or '?'} — {relation} — {tail or '?'}", "head" if head is None else "tail"
    shown = lambda: facts_table(table, coverage, title=title, answer=asked)  # noqa: E731
    deliver(table, out_file, as_json=as_json, shown=shown, what="answers")


def _by_evidence(
    run: Path,
    head: str | None,
    relation: str,
    tail: str | None,
    k: int,
    unseen: bool,
    coverage: float,
    reasons: bool,
) -> pa.Table:
    from ukge.cli.opening import open_evidence
    from ukge.evidence.explain import top_reasons

    with open_evidence(run) as evidence:
        answers = evidence.rank(head, relation, k, tail=tail, coverage=coverage, unseen=unseen)
        told = {name: [getattr(each, name) for each in answers] for name in ("confidence", "low", "high", "stored")}
        facts = [(head or each.entity, relation, tail or each.entity) for each in answers]
        why = {"reason": [reason.sentence for reason in top_reasons(evidence, facts)]} if reasons else {}
    return _table(facts, {**told, **why})


def _by_model(run: Path, head: str | None, relation: str, tail: str | None, k: int) -> pa.Table:
    from ukge.learning.estimator import UKGE

    estimator = UKGE.load(run)
    tell_if_order_only(estimator, run)
    note(f"{run} has no evidence, so there are no intervals and no reasons (ukge evidence fit {run} makes it)")
    answers = estimator.rank(head, relation, k, tail=tail)
    facts = [(head or each.entity, relation, tail or each.entity) for each in answers]
    return _table(facts, {"confidence": [each.confidence for each in answers]})


def _table(facts: list[tuple[str, str, str]], columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    from ukge.graph.arrow import from_floats, from_names

    names = {name: from_names([fact[at] for fact in facts]) for at, name in enumerate(("head", "relation", "tail"))}
    numbers = {name: from_floats(values) for name, values in columns.items() if name != "reason"}
    why = {"reason": from_names(columns["reason"])} if "reason" in columns else {}
    return pa.table({**names, **numbers, **why})
