"""`ukge explain`: why a fact has the confidence that the evidence gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import out, print_json
from ukge.cli.results import AsJson, Coverage


def explain(
    run: Annotated[Path, typer.Argument(help="A run with evidence.", metavar="RUN")],
    head: Annotated[str, typer.Argument(help="The head of the fact.", metavar="HEAD")],
    relation: Annotated[str, typer.Argument(help="The relation.", metavar="RELATION")],
    tail: Annotated[str, typer.Argument(help="The tail.", metavar="TAIL")],
    coverage: Coverage = 0.9,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Judge an observed fact as if it were not known.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell which facts, ground rules and analogues speak for a fact or against it, and how much each counts."""
    from ukge.cli.opening import open_evidence
    from ukge.evidence.explain import explain as explain_fact

    with open_evidence(run) as evidence:
        told = explain_fact(evidence, head, relation, tail, coverage=coverage, leave_out=leave_out)
    if as_json:
        print_json(told.to_json())
    else:
        out().print(str(told), markup=False)
