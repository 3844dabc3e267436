"""`ukge compare`: several runs in one table, beside what needs no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import out, print_json
from ukge.cli.evaluate import AsJson, Data, Protocol, Replicates, Seed, Tau, judge, prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ukge.predict import OpenedRun


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Finished run directories.", metavar="RUN…")],
    protocol: Protocol = "paper",
    data: Data = None,
    tau: Tau = None,
    replicates: Replicates = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: rows are runs, columns metrics, the best in bold; runs on other data get other tables."""
    from ukge.evaluation.tables import render
    from ukge.predict import open_run

    groups: dict[tuple[str, str], list[OpenedRun]] = {}
    for path in dict.fromkeys(each.resolve() for each in runs):
        opened = open_run(path, data)
        groups.setdefault(opened.data_key, []).append(opened)
    found = [judge(prepared(group, protocol, tau, seed), _named(group), replicates, seed) for group in groups.values()]
    if as_json:
        print_json([each.to_dict() for each in found])
        return
    for each in found:
        out().print(render(each))


def _named(group: Sequence[OpenedRun]) -> dict[str, OpenedRun]:
    """Name runs by their directories, and by their whole paths where those are called the same."""
    names = [each.name for each in group]
    return {each.name if names.count(each.name) == 1 else str(each.run.path): each for each in group}
