"""`ukge audit`: what is wrong with a data set before anybody trains on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import note, out, print_json
from ukge.cli.files import write_text
from ukge.cli.reading import Data, Reading, Undirected, tell_undirected, undirected_said


def audit(
    data: Data,
    json: Annotated[bool, typer.Option("--json", help="Print the audit as JSON instead.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write it as one HTML page.", metavar="FILE")] = None,
    leak_safe: Annotated[
        bool, typer.Option("--leak-safe", help="Cut the data anew, leak-safe, and audit that.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of a new cut.")] = 0,
    undirected: Undirected = None,
    *,
    reading: Reading,
) -> None:
    """Find repeats, conflicts, leaks between parts, negative links that are facts, and what needs no model."""
    from ukge.graph.audit import audit as audit_data
    from ukge.graph.audit.rendering import as_page, as_text
    from ukge.graph.undirected import undirected_graph

    path = Path(data)
    if path.is_file() and not leak_safe:
        graph = undirected_graph(reading.read(path), undirected_said(undirected), tell_undirected)
        found = audit_data(graph, name=path.name)
    else:
        found = audit_data(reading.open(data, seed=seed, leak_safe=leak_safe, undirected=undirected))
    if html is not None:
        write_text(html, as_page(found))
        note(f"wrote {html}")
    if json:
        print_json(found.to_dict())
    else:
        out().print(as_text(found))
