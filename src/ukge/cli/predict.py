"""`ukge predict`: confidence, interval and top reason of every fact in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import err, note
from ukge.cli.reading import Reading, tell_skipped
from ukge.cli.results import AsJson, Coverage, Out, Reasons, check_out, deliver, facts_table
from ukge.cli.standard_input import file_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ukge.asking import Predictor
    from ukge.graph.uncertain import UncertainGraph


def predict(
    run: Annotated[Path, typer.Argument(help="A run; with evidence, it gives intervals and reasons.", metavar="RUN")],
    file: Annotated[
        Path,
        typer.Argument(
            help="Facts to judge: head, relation, tail, and any other columns; - is standard input.", metavar="FILE"
        ),
    ],
    out_file: Out = None,
    coverage: Coverage = 0.9,
    reasons: Reasons = True,
    new_facts: Annotated[
        Path | None, typer.Option("--with", help="Facts to take in first, new entities too.", metavar="FACTS")
    ] = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Judge every fact of a file; rows keep their order and their other columns.

    A row with a name that the run does not know has no confidence, and its column note says why. A column of the file
    that is called like one of ours is given_NAME in the result. A fact that the graph has is judged by the others.
    """
    from ukge.cli.opening import open_predictor, tell_of_judge
    from ukge.evidence.fact_tables import KnownFacts, judged, read_facts

    check_out(out_file)
    with file_of(file, reading.format) as path:
        rows = read_facts(path, **reading.options)
    tell_skipped(str(file), rows.skipped)
    console = err()
    with console.status("judging the facts"), open_predictor(run, console) as opened:
        predictor = opened if new_facts is None else _folded(opened, reading.read(new_facts))
        hint = "Check that the run is of this graph, or tell of new entities: ‹with=FACTS›."
        facts = KnownFacts.of(rows, *predictor.names, hint=hint)
        columns = predictor.columns(*facts.ids, coverage=coverage, reasons=reasons)
        table = judged(rows, {name: facts.spread(values) for name, values in columns.items()}, facts.notes)
    deliver(table, out_file, as_json=as_json, shown=lambda: facts_table(table, coverage), what="facts")
    tell_unknown(table, "they have no confidence")
    tell_of_judge(predictor, run)


def _folded(predictor: Predictor, facts: UncertainGraph) -> Predictor:
    """Return a predictor that knows more facts, and new entities."""
    from ukge.asking import Predictor
    from ukge.evidence.fold_in import fold_in

    evidence = fold_in(predictor.fitted, facts)
    return Predictor(lambda: evidence.dataset, evidence=evidence)


def tell_unknown(table: pa.Table, what: str) -> None:
    """Say how many rows have names that the run does not know."""
    unknown = len(table) - table["note"].null_count
    if unknown:
        note(f"{unknown:,} of {len(table):,} rows have names that the run does not know: {what}; see the column note")
