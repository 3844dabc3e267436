"""`ukge predict`: confidence, interval and top reason of every fact in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note
from ukge.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa

    from ukge.estimator import UKGE
    from ukge.evidence.fact_tables import FactTable


def predict(
    run: Annotated[Path, typer.Argument(help="A run; with evidence, it gives intervals and reasons.", metavar="RUN")],
    file: Annotated[
        Path, typer.Argument(help="Facts to judge: head, relation, tail (.tsv, .csv or .parquet).", metavar="FILE")
    ],
    out_file: Annotated[Path, typer.Option("--out", help="The file to write (.tsv, .csv or .parquet).")],
    coverage: Annotated[float, typer.Option("--coverage", help="Share of facts whose interval holds them.")] = 0.9,
    reasons: Annotated[bool, typer.Option("--reasons/--no-reasons", help="Tell the top reason of each.")] = True,
    new_facts: Annotated[
        Path | None, typer.Option("--with", help="Facts to take in first, new entities too.", metavar="FACTS")
    ] = None,
) -> None:
    """Judge every fact of a file; rows keep their order.

    Without evidence the confidences are those of the run's model, and there are no intervals and no reasons.
    """
    from ukge.evidence.fact_tables import read_facts, write_table
    from ukge.evidence.place import keeps_evidence

    table = read_facts(file)
    with_evidence = keeps_evidence(run)
    if new_facts is not None and not with_evidence:
        raise RunError(f"{run} has no evidence to take facts in", hint=f"Make it: ukge evidence fit {run}")
    with err().status("judging the facts"):
        columns = _by_evidence(run, table, coverage, reasons, new_facts) if with_evidence else _by_model(run, table)
    write_table(out_file, _result(table, columns))
    note(f"{len(table):,} facts were judged and written to {out_file}")
    if not with_evidence:
        note(f"{run} has no evidence, so there are no intervals and no reasons (ukge evidence fit {run} makes it)")


def _by_evidence(run: Path, table: FactTable, coverage: float, reasons: bool, new_facts: Path | None) -> dict[str, Any]:
    from ukge.cli.opening import open_evidence

    evidence = open_evidence(run)
    if new_facts is not None:
        from ukge.evidence.fold_in import fold_in
        from ukge.graph.readers import read

        evidence = fold_in(evidence, read(new_facts))
    ids = table.known_ids(evidence.entities, evidence.relations)
    columns = evidence.evidence.columns(*ids)
    low, high = evidence.interval_of(columns, ids[1], coverage)
    found = {"confidence": evidence.head.predict(columns), "low": low, "high": high}
    if not reasons:
        return found
    from ukge.evidence.explain import top_reasons

    named = list(zip(*(column.to_pylist() for column in (table.head, table.relation, table.tail)), strict=True))
    return {**found, "reason": [reason.sentence for reason in top_reasons(evidence, named)]}


def _by_model(run: Path, table: FactTable) -> dict[str, Any]:
    from ukge.estimator import UKGE
    from ukge.runs import Run

    estimator = UKGE.load(run)
    tell_if_order_only(estimator, run)
    ids = table.known_ids(*Run(run).vocabularies)
    return {"confidence": estimator.predictor.confidence(*ids).astype("float64")}


def tell_if_order_only(estimator: UKGE, run: Path) -> None:
    """Say so where the confidences of a run's model are none."""
    if not estimator.config.objective.learns_confidence:
        note(
            f"{estimator.model} learnt an order, not confidences ({estimator.config.objective.loss} loss): "
            f"its numbers compare facts and mean nothing else (ukge evidence fit {run} makes confidences of them)"
        )


def _result(table: FactTable, columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    from ukge.graph.arrow import from_names, from_numpy

    given = {} if table.confidence is None else {"given": table.confidence}
    judged = {
        name: from_names(values).cast(pa.string()) if isinstance(values, list) else from_numpy(values)
        for name, values in {**given, **columns}.items()
    }
    return pa.table({"head": table.head, "relation": table.relation, "tail": table.tail, **judged})
