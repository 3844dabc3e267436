"""`ukge complete`: the most confident facts that the graph does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import err, note, print_json


def complete(
    run: Annotated[Path, typer.Argument(help="A run with evidence.", metavar="RUN")],
    relation: Annotated[
        list[str] | None, typer.Option("--relation", "-r", help="Only facts of this relation; may be repeated.")
    ] = None,
    min_confidence: Annotated[float, typer.Option("--min-confidence", help="Only facts as sure as this.")] = 0.5,
    k: Annotated[int, typer.Option("-k", help="How many facts at most.")] = 100,
    typed: Annotated[
        bool, typer.Option("--typed/--any-entity", help="Only entities that the relation has at this place.")
    ] = True,
    exclude: Annotated[
        list[Path] | None, typer.Option("--exclude", help="A file of facts not to tell; may be repeated.")
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write the facts to this file; its extension says the format.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the most confident unseen facts: models and links propose, the evidence judges."""
    from ukge.cli.opening import open_evidence
    from ukge.evidence.complete import complete as complete_graph
    from ukge.graph.readers import read
    from ukge.graph.writers import write

    evidence = open_evidence(run)
    seen = [read(path) for path in exclude or ()]
    with err().status("") as status:
        found = complete_graph(
            evidence,
            relations=relation,
            min_confidence=min_confidence,
            k=k,
            typed=typed,
            seen=seen,
            tell=status.update,
        )
    if out_file is not None and len(found):
        write(found, out_file)
        note(f"{len(found):,} facts were written to {out_file}")
    elif not len(found):
        note(f"no unseen fact has a confidence of {min_confidence:g} or more")
    if as_json:
        print_json(
            [{"head": f.head, "relation": f.relation, "tail": f.tail, "confidence": f.confidence} for f in found]
        )
    elif out_file is None:
        for fact in found:
            typer.echo(f"{fact.confidence:.3f}\t{fact.head}\t{fact.relation}\t{fact.tail}")
