"""`ukge doubt`: observed facts whose stored confidence the other facts contradict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import err
from ukge.cli.results import AsJson, Out, check_out, deliver


def doubt(
    run: Annotated[Path, typer.Argument(help="A run.", metavar="RUN")],
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", "-r", help="Only facts of this relation; may be repeated.", metavar="NAME"),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many facts at most.")] = 20,
    out_file: Out = None,
    as_json: AsJson = False,
) -> None:
    """List the observed facts whose stored confidence the other facts contradict, the most surprising first."""
    from dataclasses import asdict

    import pyarrow as pa
    from rich.text import Text

    from ukge.cli.opening import open_predictor
    from ukge.progress.bars import WorkProgress

    check_out(out_file)
    progress = WorkProgress(err(), "judging every observed fact by the others")
    with open_predictor(run) as predictor, progress:
        found = predictor.doubt(k, relations=relation, tell=progress.tell)
    table = pa.Table.from_pylist([{**asdict(each), "gap": each.gap} for each in found])
    deliver(table, out_file, as_json=as_json, shown=lambda: Text("\n".join(map(str, found))), what="facts")
