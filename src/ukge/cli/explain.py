"""`ukge explain`: why a fact has the confidence that the evidence gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import out, print_json
from ukge.cli.results import AsJson, Coverage


def explain(
    run: Annotated[Path, typer.Argument(help="A run; with evidence, the reasons add up.", metavar="RUN")],
    head: Annotated[str, typer.Argument(help="The head of the fact.", metavar="HEAD")],
    relation: Annotated[str, typer.Argument(help="The relation.", metavar="RELATION")],
    tail: Annotated[str, typer.Argument(help="The tail.", metavar="TAIL")],
    coverage: Coverage = 0.9,
    count_itself: Annotated[
        bool, typer.Option("--count-itself", help="Let a fact that the graph has count as evidence for itself.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell which facts, ground rules and analogues speak for a fact or against it, and how much each counts.

    Without evidence: what the graph holds that fits the fact. Nothing is evidence for itself, unless asked.
    """
    from ukge.cli.opening import open_predictor, tell_of_judge

    with open_predictor(run) as predictor:
        told = predictor.explain(head, relation, tail, coverage=coverage, count_itself=count_itself)
        tell_of_judge(predictor, run)
    if as_json:
        print_json(told.to_json())
    else:
        out().print(str(told), markup=False)
