"""`ukge rank`, `explain`, `complete` and `doubt`: what a run says of its graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note, out, print_json
from ukge.cli.flags import (
    AsJson,
    Coverage,
    Negatives,
    NetworkOut,
    Prior,
    Reasons,
    Relations,
    Run,
    SpreadsheetSafe,
    To,
    real,
    whole,
)
from ukge.cli.reading import Reading
from ukge.cli.results import check_out, deliver, facts_table, is_network, labelled, open_predictor, tell_of_judge
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ukge.asking import Predictor
    from ukge.asking.rank import Seen
    from ukge.graph.uncertain import UncertainGraph


def rank(
    run: Run,
    relation: Annotated[str, typer.Argument(help="The relation.", metavar="RELATION")],
    head: Annotated[str | None, typer.Option("--head", help="Ask for tails of this head.", metavar="NAME")] = None,
    tail: Annotated[str | None, typer.Option("--tail", help="Ask for heads of this tail.", metavar="NAME")] = None,
    k: Annotated[int, whole("-k", help="How many answers.")] = 10,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            help="Only answers of this type of the node data (of any, if repeated); or 'fitting', 'heads:RELATION', "
            "'tails:RELATION': observed at this place of the relation, or there.",
            metavar="TYPE",
        ),
    ] = None,
    unseen: Annotated[bool, typer.Option("--unseen", help="Only answers that the graph does not have.")] = False,
    answer_set: Annotated[
        float | None,
        real(
            "--answer-set",
            help="The entities that hold a missing answer with this chance, the first k of them.",
            inside=True,
        ),
    ] = None,
    coverage: Coverage = 0.9,
    prior: Prior = None,
    negatives: Negatives = None,
    reasons: Reasons = True,
    out_file: NetworkOut = None,
    to: To = None,
    safe: SpreadsheetSafe = False,
    as_json: AsJson = False,
) -> None:
    """Name the tails that fit a head and a relation best, or the heads that fit a tail; the most confident first.

    An answer that the graph has is judged by the other facts, like every other; what the graph says stands beside it.
    """
    if (head is None) == (tail is None):
        raise ConfigError("a query has a head or a tail", hint="Give ‹head› to ask for tails, or ‹tail› for heads.")
    check_out(out_file, to, networks=True)
    with open_predictor(run, prior=prior, negatives=negatives) as predictor:
        if answer_set is None:
            seen: Seen = "exclude" if unseen else "include"
            answers = predictor.rank(head, relation, k, tail=tail, coverage=coverage, seen=seen, type=kind)
        else:
            found = predictor.answer_set(head, relation, tail=tail, coverage=answer_set, k=k, type=kind)
            coverage, answers = answer_set, found.answers
            note(
                f"a missing answer is among {found.size:,} of {len(predictor.entities):,} entities with a chance of "
                f"{answer_set:.0%}; {len(answers):,} of them are shown"
            )
        head, tail = (predictor.naming.name(each) for each in (head, tail))
        facts = [(head or each.entity, relation, tail or each.entity) for each in answers]
        why = _reasons(predictor, facts) if reasons and predictor.evidence is not None else {}
        nodes = predictor.nodes
        tell_of_judge(predictor, run)
    numbers = {name: [getattr(each, name) for each in answers] for name in ("confidence", "low", "high", "stored")}
    if all(each is None for each in numbers["low"]):
        del numbers["low"], numbers["high"]
    if not answers:
        note("no entity is left that could answer")
    table = labelled(_ranked(facts, numbers, why), nodes)
    given = nodes.labels([head or tail or ""])[0] or head or tail
    title, asked = (f"{given} — {relation} — ?", "tail") if tail is None else (f"? — {relation} — {given}", "head")
    deliver(
        table,
        out_file,
        as_json=as_json,
        safe=safe,
        shown=lambda: facts_table(table, coverage, title=title, answer=asked),
        what="answers",
        network=lambda: (_with_status(table, [each.stored is not None for each in answers]), nodes),
        to=to,
    )


def _with_status(table: pa.Table, known: Sequence[bool]) -> pa.Table:
    import numpy as np

    from ukge.graph.writers.network import with_status

    return with_status(table, np.array(known, dtype=np.bool_))


def _reasons(predictor: Predictor, facts: list[tuple[str, str, str]]) -> dict[str, list[str]]:
    from ukge.evidence.explain import top_reasons

    return {"reason": [reason.sentence for reason in top_reasons(predictor.fitted, facts)]}


def _ranked(facts: list[tuple[str, str, str]], numbers: dict[str, Any], texts: dict[str, list[str]]) -> pa.Table:
    import pyarrow as pa

    from ukge.graph.arrow import from_floats, from_names

    names = {name: from_names([fact[at] for fact in facts]) for at, name in enumerate(("head", "relation", "tail"))}
    columns = {name: from_floats(values) for name, values in numbers.items()}
    return pa.table({**names, **columns, **{name: from_names(values) for name, values in texts.items()}})


def explain(
    run: Run,
    head: Annotated[str, typer.Argument(help="The head of the fact.", metavar="HEAD")],
    relation: Annotated[str, typer.Argument(help="The relation.", metavar="RELATION")],
    tail: Annotated[str, typer.Argument(help="The tail.", metavar="TAIL")],
    coverage: Coverage = 0.9,
    prior: Prior = None,
    negatives: Negatives = None,
    count_itself: Annotated[
        bool, typer.Option("--count-itself", help="Let a fact that the graph has count as evidence for itself.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell which facts, ground rules and analogues speak for a fact or against it, and how much each counts.

    Without evidence: what the graph holds that fits the fact. Nothing is evidence for itself, unless asked.
    """
    from ukge.progress.safe_console import one_line

    with open_predictor(run, prior=prior, negatives=negatives) as predictor:
        told = predictor.explain(head, relation, tail, coverage=coverage, count_itself=count_itself)
        tell_of_judge(predictor, run)
    if as_json:
        print_json(told.to_json())
    else:
        out().print("\n".join(map(one_line, told.lines())))


def complete(
    run: Run,
    relation: Relations = None,
    head: Annotated[
        list[str] | None, typer.Option("--head", help="Only facts with this head; may be repeated.", metavar="NAME")
    ] = None,
    tail: Annotated[
        list[str] | None, typer.Option("--tail", help="Only facts with this tail; may be repeated.", metavar="NAME")
    ] = None,
    head_type: Annotated[
        list[str] | None,
        typer.Option("--head-type", help="Only heads of this type of the node data; may be repeated.", metavar="TYPE"),
    ] = None,
    tail_type: Annotated[
        list[str] | None,
        typer.Option("--tail-type", help="Only tails of this type of the node data; may be repeated.", metavar="TYPE"),
    ] = None,
    min_confidence: Annotated[float, real("--min-confidence", help="Only facts as sure as this.")] = 0.5,
    k: Annotated[int, whole("-k", help="How many facts at most.")] = 100,
    typed: Annotated[
        bool,
        typer.Option("--typed/--any-entity", help="Only entities that known facts of the relation have at this place."),
    ] = True,
    exclude: Annotated[
        list[Path] | None,
        typer.Option("--exclude", help="A file of facts not to tell; may be repeated.", metavar="FILE"),
    ] = None,
    coverage: Coverage = 0.9,
    prior: Prior = None,
    negatives: Negatives = None,
    reasons: Reasons = True,
    out_file: NetworkOut = None,
    to: To = None,
    safe: SpreadsheetSafe = False,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Find the most confident facts that no part of the run's data holds: models and links propose, each is judged."""
    from ukge.graph.formats import format_of_path
    from ukge.graph.writers import write, writers
    from ukge.graph.writers.tables import is_table
    from ukge.progress.bars import WorkProgress

    network = out_file is not None and is_network(out_file, to)
    facts_only = out_file if out_file is not None and not network and not is_table(out_file) else None
    if facts_only is None:
        check_out(out_file, to, networks=True)
    else:
        format_of_path(facts_only, writers)
    seen = [reading.read(path) for path in exclude or ()]
    with open_predictor(run, prior=prior, negatives=negatives) as predictor, WorkProgress(err()) as progress:
        found = predictor.complete(
            relations=relation,
            heads=head,
            tails=tail,
            min_confidence=min_confidence,
            k=k,
            typed=typed,
            seen=seen,
            head_type=head_type,
            tail_type=tail_type,
            tell=progress.tell,
        )
        table = labelled(_judged(predictor, found, coverage, reasons), predictor.nodes)
    tell_of_judge(predictor, run)
    if not len(found):
        wider = " (--any-entity looks further)" if typed and (head or tail) else ""
        note(f"no unseen fact has a confidence of {min_confidence:g} or more{wider}")
    if facts_only is not None and len(found):  # RDF and the like have no place for bounds and reasons
        write(found, facts_only)
        note(f"{len(found):,} facts were written to {facts_only}, with neither bounds nor reasons")
    if facts_only is not None and not as_json:
        return
    deliver(
        table,
        None if facts_only else out_file,
        as_json=as_json,
        safe=safe,
        shown=lambda: facts_table(table, coverage),
        what="facts",
        network=lambda: (_with_status(table, [False] * len(table)), predictor.nodes),
        to=to,
    )


def _judged(predictor: Predictor, found: UncertainGraph, coverage: float, reasons: bool) -> pa.Table:
    import pyarrow as pa

    from ukge.graph.arrow import from_names, from_numpy

    names = found.facts().select(["head", "relation", "tail"])
    judged = predictor.columns(found.head, found.relation, found.tail, coverage=coverage, reasons=reasons)
    columns = {name: from_names(each) if isinstance(each, list) else from_numpy(each) for name, each in judged.items()}
    return pa.table({**{name: names[name] for name in names.column_names}, **columns})
