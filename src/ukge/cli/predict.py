"""`ukge predict`: confidence, interval and top reason of every fact in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note
from ukge.cli.reading import Reading, tell_skipped
from ukge.cli.results import AsJson, Coverage, Out, Reasons, check_out, deliver, facts_table
from ukge.cli.standard_input import file_of
from ukge.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa

    from ukge.evidence import Evidence
    from ukge.graph.readers.rows import Rows
    from ukge.learning.estimator import UKGE
    from ukge.settings.config import Config


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
    that is called like one of ours is given_NAME in the result. Without evidence the confidences are those of the
    run's model, and there are no intervals and no reasons.
    """
    from ukge.evidence.fact_tables import read_facts
    from ukge.evidence.place import keeps_evidence

    check_out(out_file)
    with_evidence = keeps_evidence(run)
    if new_facts is not None and not with_evidence:
        raise RunError(f"{run} has no evidence to take facts in", hint=f"Make it: ukge evidence fit {run}")
    with file_of(file, reading.format) as path:
        rows = read_facts(path, **reading.options)
    tell_skipped(str(file), rows.skipped)
    console = err()
    with console.status("judging the facts"):
        if with_evidence:
            from ukge.cli.opening import open_evidence

            with open_evidence(run, console) as evidence:
                table = _by_evidence(evidence, rows, coverage, reasons, new_facts, reading)
        else:
            table = _by_model(run, rows)
    deliver(table, out_file, as_json=as_json, shown=lambda: facts_table(table, coverage), what="facts")
    tell_unknown(table, "they have no confidence")
    if not with_evidence:
        note(f"{run} has no evidence, so there are no intervals and no reasons (ukge evidence fit {run} makes it)")


def tell_unknown(table: pa.Table, what: str) -> None:
    """Say how many rows have names that the run does not know."""
    unknown = len(table) - table["note"].null_count
    if unknown:
        note(f"{unknown:,} of {len(table):,} rows have names that the run does not know: {what}; see the column note")


def tell_if_order_only(estimator: UKGE, run: Path) -> None:
    """Say so where the confidences of a run's model are none."""
    for text in order_only(estimator.settings, estimator.model, run):
        note(text)


def order_only(config: Config, name: str, run: Path) -> list[str]:
    """Return a sentence on a model that learnt an order; nothing where it learnt confidences."""
    if config.objective.learns_confidence:
        return []
    return [
        f"{name} learnt an order, not confidences ({config.objective.loss} loss): its numbers compare facts and mean "
        f"nothing else (ukge evidence fit {run} makes confidences of them)"
    ]


def _by_evidence(
    evidence: Evidence, rows: Rows, coverage: float, reasons: bool, new_facts: Path | None, reading: Reading
) -> pa.Table:
    from ukge.evidence.judgement import judgements

    if new_facts is not None:
        from ukge.evidence.fold_in import fold_in

        evidence = fold_in(evidence, reading.read(new_facts))
    hint = "Check that the run is of this graph, or tell of new entities: ‹with=FACTS›."

    def judge(*ids: Any) -> dict[str, Any]:
        return judgements(evidence, *ids, coverage=coverage, reasons=reasons)

    return _judged(rows, (evidence.entities, evidence.relations), judge, hint)


def _by_model(run: Path, rows: Rows) -> pa.Table:
    from ukge.learning.estimator import UKGE
    from ukge.runs.directory import Run

    estimator = UKGE.load(run)
    tell_if_order_only(estimator, run)

    def judge(*ids: Any) -> dict[str, Any]:
        return {"confidence": estimator.predictor.confidence(*ids).astype("float64")}

    return _judged(rows, Run(run).vocabularies, judge, "Check that the run is of this graph.")


def _judged(rows: Rows, names: tuple[Any, Any], judge: Any, hint: str) -> pa.Table:
    """Judge the rows whose names are known."""
    from ukge.evidence.fact_tables import KnownFacts, judged

    facts = KnownFacts.of(rows, *names, hint=hint)
    columns = {name: facts.spread(values) for name, values in judge(*facts.ids).items()}
    return judged(rows, columns, facts.notes)
