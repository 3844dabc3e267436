"""SSSOM: mappings between terms as TSV, below metadata in YAML that stands in lines which begin with `#`.

    # mapping_set_id: https://w3id.org/sssom/mappings/…
    subject_id  subject_label  predicate_id  object_id  object_label  mapping_justification  confidence

The relation is the predicate (skos:exactMatch), the source is how the mapping was found; labels become node data. The
metadata is passed over: prefixes in it do not change names.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.opening import Opening
from ukge.graph.readers.diagnosis import records
from ukge.graph.readers.layout import ColumnMap
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.text_tables import Header, Slot, TextTable, column_of, made_facts, read_text_table
from ukge.graph.writers.sssom import UNSPECIFIED

_NEEDED = ("subject_id", "predicate_id", "object_id")
JUSTIFICATION = "mapping_justification"
_LABELS = ("subject_label", "object_label")
_MODIFIER = "predicate_modifier"
_HINT = "SSSOM has a line with subject_id, predicate_id, object_id, mapping_justification and confidence, between tabs."


def read_sssom(
    path: Path,
    request: Request,
    *,
    columns: ColumnMap | None = None,
    default_confidence: float | None = None,
) -> Parsed:
    """Read mappings as facts; `columns={"confidence": "similarity_score"}` takes another column for the confidence.

    Mappings without a confidence are skipped and counted unless `default_confidence` is given, and so are those that
    say what is not the case (predicate_modifier Not).
    """
    header = _header(path)
    slot = column_of(columns, header.names, path) or "confidence"
    if slot not in header.names and default_confidence is None:
        likely = [name for name in header.names if name.endswith("score")] or ["similarity_score"]
        raise DataError(
            "the header has no column confidence",
            source=str(path),
            hint=f"Name another, ‹columns={{'confidence': {likely[0]!r}}}›, or give all mappings one: "
            "‹default_confidence=0.8›.",
        )
    wanted = [name for name in header.names if name in (*_NEEDED, *_LABELS, JUSTIFICATION, _MODIFIER, slot)]
    table = read_text_table(path, request, header, wanted)
    names = dict(zip(("head", "relation", "tail"), (table.columns[name] for name in _NEEDED), strict=True))
    if JUSTIFICATION in table.columns:
        why = table.columns[JUSTIFICATION]
        names["source"] = pc.if_else(pc.equal(why, UNSPECIFIED), "", why)
    out = {}
    if _MODIFIER in table.columns:
        negated = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(table.columns[_MODIFIER])), "not")
        out["mappings that are said not to hold"] = np.asarray(negated, np.bool_)
    slots = [Slot(slot)] if slot in table.columns else []
    return made_facts(table, request, names, slots, default=default_confidence, out=out, nodes=_nodes(table))


def is_sssom(opening: Opening) -> bool:
    """Return whether a file begins like SSSOM: what its columns are called, below lines of metadata."""
    rows = [line for line in opening.lines if not line.startswith("#")]
    names = {cell.strip() for cell in rows[0].split("\t")} if rows else set()
    return {*_NEEDED, JUSTIFICATION} <= names


def _header(path: Path) -> Header:
    for line, cells in records(path, "\t", quoted=False):
        if cells[0].startswith("#"):
            continue
        names = tuple(cell.strip() for cell in cells)
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise DataError(f"the header has no column {', '.join(missing)}", source=str(path), hint=_HINT)
        return Header(names, line, hint="Every line must have the columns that the header names.")
    raise DataError("no mappings, only metadata", source=str(path), hint=_HINT)


def _nodes(table: TextTable) -> Nodes | None:
    pairs = [
        (end, label) for end, label in zip(("subject_id", "object_id"), _LABELS, strict=True) if label in table.columns
    ]
    if not pairs:
        return None
    ids, labels = (pa.concat_arrays([table.columns[pair[at]] for pair in pairs]) for at in (0, 1))
    known = np.asarray(pc.and_(pc.not_equal(ids, ""), pc.not_equal(labels, "")), np.bool_)
    distinct = pa.table({"id": ids.filter(pa.array(known)), "label": labels.filter(pa.array(known))})
    distinct = distinct.group_by(["id", "label"]).aggregate([])
    return Nodes.from_columns(distinct["id"], label=distinct["label"]) if len(distinct) else None


readers.register("sssom")(Format(read_sssom, by_id=False, recognise=is_sssom))
