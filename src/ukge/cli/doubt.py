"""`ukge doubt`: observed facts whose stored confidence the other facts contradict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import err, note, out, print_json


def doubt(
    run: Annotated[Path, typer.Argument(help="A run with evidence.", metavar="RUN")],
    relation: Annotated[
        list[str] | None, typer.Option("--relation", "-r", help="Only facts of this relation; may be repeated.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many facts at most.")] = 20,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write them to this file (.tsv, .csv or .parquet).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """List the observed facts whose stored confidence the other facts contradict, the most surprising first."""
    from dataclasses import asdict

    from ukge.evidence import Evidence
    from ukge.evidence.doubt import doubt as doubt_facts
    from ukge.progress import WorkProgress

    evidence = Evidence.load(run)
    with WorkProgress(err(), "judging every observed fact by the others") as progress:
        found = doubt_facts(evidence, k=k, relations=relation, tell=progress.tell)
    if out_file is not None:
        import pyarrow as pa

        from ukge.evidence.fact_tables import write_table

        write_table(out_file, pa.Table.from_pylist([asdict(each) for each in found]))
        note(f"{len(found):,} facts were written to {out_file}")
    if as_json:
        print_json([{**asdict(each), "gap": each.gap} for each in found])
    elif out_file is None:
        for each in found:
            out().print(str(each), markup=False)
