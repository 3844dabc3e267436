"""The claims that facts were made of: read from the file that holds both, and kept beside the facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ukge.graph.bad_rows import BadRows
from ukge.graph.claims import Claims
from ukge.graph.readers import ReadReport, read_claims, read_with_report
from ukge.graph.uncertain import UncertainGraph


def are_claims(graph: UncertainGraph) -> bool:
    """Return whether the rows of a graph are claims: they name sources, and several may speak of one fact."""
    return graph.source is not None and len(np.unique(graph.keys())) < len(graph)


def read_with_claims(path: Path, **reading: Any) -> tuple[UncertainGraph, Claims | None, ReadReport]:
    """Read the facts of a file, and its rows as claims if they are: that takes a second look, at more columns."""
    graph, report = read_with_report(path, **reading)
    if not are_claims(graph):
        return graph, None, report
    told = {name: value for name, value in reading.items() if name not in ("bad_rows", "most_bad", "nodes")}
    if reading.get("bad_rows") is not None:
        told["bad_rows"] = BadRows()  # what is bad was put aside at the first look
    reports: list[ReadReport] = []
    claims = read_claims(path, on_report=reports.append, **told)
    return graph, claims, replace(report, ignored_columns=reports[0].ignored_columns)
