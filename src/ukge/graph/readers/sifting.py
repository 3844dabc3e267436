"""Delimited text whose bad lines are put aside: the careful way finds them, the fast way reads the others.

A quotation mark that is never closed costs its own line alone (see `quoting`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ukge.graph.findings import Findings
from ukge.graph.readers.diagnosis import check_quoted, check_record, fine_lines, quoted_lines, records
from ukge.graph.readers.layout import Layout
from ukge.graph.readers.left_out import LeftOut
from ukge.graph.readers.parsed import Request

_PATIENCE = 64  # records that run on and on; each costs as much as reading the longest fact


def sifted(path: Path, layout: Layout, request: Request) -> Layout:
    """Return the layout of a file without its bad lines, if the request has a place for them."""
    if request.bad_rows is None:
        return layout
    found, left_out = request.findings(str(path)), LeftOut()
    if layout.quoted:
        _sift_quoted(path, layout, found, left_out)
    else:
        for line, cells in records(path, layout.delimiter, quoted=False, fine=fine_lines(layout)):
            if cells and line > layout.header_lines:
                before = found.count
                found.row = layout.delimiter.join(cells)
                check_record(line, cells, layout, found)
                if found.count > before:
                    left_out.add(line, line)
    return replace(layout, left_out=left_out if left_out else None)


def _sift_quoted(path: Path, layout: Layout, found: Findings, left_out: LeftOut) -> None:
    for record in quoted_lines(path, layout, patience=_PATIENCE):
        before = found.count
        found.row = record.text.rstrip("\r\n")
        check_quoted(record, layout, found)
        if found.count > before:
            left_out.add(record.first, record.last)
