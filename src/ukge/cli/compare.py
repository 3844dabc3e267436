"""`ukge compare`: several runs in one table, beside what needs no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import as_flag, out, print_json
from ukge.cli.evaluate import AsJson, Protocol, Replicates, Seed, Tau, judge, prepared
from ukge.cli.results import RunData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ukge.runs.learnt import OpenedRun


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Finished run directories.", metavar="RUN")],
    protocol: Protocol = "paper",
    data: RunData = None,
    tau: Tau = None,
    replicates: Replicates = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: rows are runs, columns metrics, the best in bold; each data set has a table of its own."""
    from ukge.evaluation.tables import render
    from ukge.runs.learnt import open_run

    groups: dict[tuple[str, str], list[OpenedRun]] = {}
    for path in dict.fromkeys(each.resolve() for each in runs):
        opened = open_run(path, data)
        groups.setdefault(opened.data_key, []).append(opened)
    found = [judge(prepared(group, protocol, tau, seed), _named(group), replicates, seed) for group in groups.values()]
    if as_json:
        print_json([each.to_dict(as_flag) for each in found])
        return
    for each in found:
        out().print(render(each, as_flag))


def _named(group: Sequence[OpenedRun]) -> dict[str, OpenedRun]:
    """Name runs by their directories, with as many of the directories above as it takes to tell them apart."""
    paths = [each.run.path.resolve().parts for each in group]
    length = next(n for n in range(1, max(map(len, paths)) + 1) if len({path[-n:] for path in paths}) == len(paths))
    return {"/".join(path[-length:]): each for path, each in zip(paths, group, strict=True)}
