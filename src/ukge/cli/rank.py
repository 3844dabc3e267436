"""`ukge rank`: which tails fit a head and a relation, or which heads a tail, the best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.results import AsJson, Coverage, Out, Reasons, check_out, deliver, facts_table
from ukge.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from ukge.asking import Predictor
    from ukge.asking.rank import Seen


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
    """Name the tails that fit a head and a relation best, or the heads that fit a tail; the most confident first.

    An answer that the graph has is judged by the other facts, like every other; what the graph says stands beside it.
    """
    from ukge.cli.opening import open_predictor, tell_of_judge

    if (head is None) == (tail is None):
        raise ConfigError("a query has a head or a tail", hint="Give ‹head› to ask for tails, or ‹tail› for heads.")
    check_out(out_file)
    with open_predictor(run) as predictor:
        seen: Seen = "exclude" if unseen else "include"
        answers = predictor.rank(head, relation, k, tail=tail, coverage=coverage, seen=seen)
        facts = [(head or each.entity, relation, tail or each.entity) for each in answers]
        why = _reasons(predictor, facts) if reasons and predictor.evidence is not None else {}
        tell_of_judge(predictor, run)
    numbers = {name: [getattr(each, name) for each in answers] for name in ("confidence", "low", "high", "stored")}
    if all(each is None for each in numbers["low"]):
        del numbers["low"], numbers["high"]
    table = _table(facts, numbers, why)
    title, asked = f"{head or '?'} — {relation} — {tail or '?'}", "head" if head is None else "tail"
    shown = lambda: facts_table(table, coverage, title=title, answer=asked)  # noqa: E731
    deliver(table, out_file, as_json=as_json, shown=shown, what="answers")


def _reasons(predictor: Predictor, facts: list[tuple[str, str, str]]) -> dict[str, list[str]]:
    from ukge.evidence.explain import top_reasons

    return {"reason": [reason.sentence for reason in top_reasons(predictor.fitted, facts)]}


def _table(facts: list[tuple[str, str, str]], numbers: dict[str, Any], texts: dict[str, list[str]]) -> pa.Table:
    import pyarrow as pa

    from ukge.graph.arrow import from_floats, from_names

    names = {name: from_names([fact[at] for fact in facts]) for at, name in enumerate(("head", "relation", "tail"))}
    columns = {name: from_floats(values) for name, values in numbers.items()}
    return pa.table({**names, **columns, **{name: from_names(values) for name, values in texts.items()}})
