"""`ukge complete`: the most confident facts that the graph does not have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import err, note
from ukge.cli.reading import Reading
from ukge.cli.results import AsJson, Coverage, Out, Reasons, check_out, deliver, facts_table

if TYPE_CHECKING:
    import pyarrow as pa

    from ukge.asking import Predictor
    from ukge.graph.uncertain import UncertainGraph

EXCLUDED = "How the files of --exclude are read"


def complete(
    run: Annotated[Path, typer.Argument(help="A run; evidence, where it has some, judges.", metavar="RUN")],
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", "-r", help="Only facts of this relation; may be repeated.", metavar="NAME"),
    ] = None,
    head: Annotated[
        list[str] | None, typer.Option("--head", help="Only facts with this head; may be repeated.", metavar="NAME")
    ] = None,
    tail: Annotated[
        list[str] | None, typer.Option("--tail", help="Only facts with this tail; may be repeated.", metavar="NAME")
    ] = None,
    min_confidence: Annotated[float, typer.Option("--min-confidence", help="Only facts as sure as this.")] = 0.5,
    k: Annotated[int, typer.Option("-k", help="How many facts at most.")] = 100,
    typed: Annotated[
        bool,
        typer.Option("--typed/--any-entity", help="Only entities that known facts of the relation have at this place."),
    ] = True,
    exclude: Annotated[
        list[Path] | None,
        typer.Option("--exclude", help="A file of facts not to tell; may be repeated.", metavar="FILE"),
    ] = None,
    coverage: Coverage = 0.9,
    reasons: Reasons = True,
    out_file: Out = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Find the most confident facts that no part of the run's data holds: models and links propose, each is judged."""
    from ukge.cli.opening import open_predictor, tell_of_judge
    from ukge.graph.formats import format_of_path
    from ukge.graph.writers import write, writers
    from ukge.graph.writers.tables import is_table
    from ukge.progress.bars import WorkProgress

    facts_only = out_file if out_file is not None and not is_table(out_file) else None
    if facts_only is None:
        check_out(out_file)
    else:
        format_of_path(facts_only, writers)
    seen = [reading.read(path) for path in exclude or ()]
    with open_predictor(run) as predictor, WorkProgress(err()) as progress:
        found = predictor.complete(
            relations=relation,
            heads=head,
            tails=tail,
            min_confidence=min_confidence,
            k=k,
            typed=typed,
            seen=seen,
            tell=progress.tell,
        )
        table = _judged(predictor, found, coverage, reasons)
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
        shown=lambda: facts_table(table, coverage),
        what="facts",
    )


def _judged(predictor: Predictor, found: UncertainGraph, coverage: float, reasons: bool) -> pa.Table:
    import pyarrow as pa

    from ukge.graph.arrow import from_names, from_numpy

    names = found.facts().select(["head", "relation", "tail"])
    judged = predictor.columns(found.head, found.relation, found.tail, coverage=coverage, reasons=reasons)
    columns = {name: from_names(each) if isinstance(each, list) else from_numpy(each) for name, each in judged.items()}
    return pa.table({**{name: names[name] for name in names.column_names}, **columns})
