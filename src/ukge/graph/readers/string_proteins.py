"""What STRING's proteins are called: `protein.info` and `protein.aliases`, which are downloaded beside the links.

#string_protein_id    preferred_name  protein_size  annotation
9606.ENSP00000000233  ARF5            180           ADP-ribosylation factor 5; …
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.graph.columns import single
from ukge.graph.nodes import ALIASES, DESCRIPTION, LABEL, TYPES, Nodes
from ukge.graph.readers.beside import beside
from ukge.graph.readers.delimited import parse_table
from ukge.graph.readers.diagnosis import first_record
from ukge.graph.readers.layout import Field, Layout
from ukge.graph.readers.node_files import read_nodes

_PLACES = tuple(f"protein.{kind}links{more}" for kind in ("physical.", "") for more in (".detailed", ".full", ""))
_HINT = "Columns of STRING's aliases are #string_protein_id, alias and source, between tabs."


def proteins_beside(links: Path, *, aliases: bool) -> Nodes | None:
    """Return what the files beside one of links say of its proteins, if there are any."""
    found = [_beside(links, what) for what in ("protein.info", "protein.aliases")]
    info = None if found[0] is None else read_nodes(found[0])
    if not aliases or found[1] is None:
        return info
    others = _aliases(found[1])
    return others if info is None else info.joined(others)


def by_preferred_name(names: pa.Array, nodes: Nodes | None, links: Path) -> tuple[pa.Array, Nodes]:
    """Return the names of proteins as people know them, and node data under these; what two share stays an id."""
    if nodes is None:
        hint = "Fetch protein.info of the same organism and version, and put it beside the file."
        raise DataError("no protein.info is beside it", source=str(links), hint=hint)
    preferred = nodes.aligned(names, LABEL)
    counts = pc.value_counts(preferred)
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    kept = pc.or_kleene(pc.is_null(preferred), pc.is_in(preferred, value_set=shared))
    taken = pc.or_kleene(kept, pc.is_in(preferred, value_set=names))
    called = pc.if_else(taken, names, preferred)
    known = np.flatnonzero(nodes.places(names) >= 0)
    ids, new = names.take(pa.array(known)), called.take(pa.array(known))
    columns = {name: nodes.aligned(ids, name) for name in (LABEL, TYPES, DESCRIPTION, *nodes.others)}
    standard = {name: columns.pop(name) for name in (LABEL, TYPES, DESCRIPTION)}
    others = nodes.aligned(ids, ALIASES).to_pylist()
    aliases = [[own, *(more or ())] for own, more in zip(ids.to_pylist(), others, strict=True)]
    return called, Nodes.from_columns(new, **standard, aliases=aliases, others=columns)


def _beside(links: Path, what: str) -> Path | None:
    for word in _PLACES:
        if word in links.name:
            return beside(links, word, what)
    return None


def _aliases(path: Path) -> Nodes:
    """Read aliases: a protein has dozens, a human one more than a hundred; several sources say the same."""
    line, cells = first_record(path, "\t", quoted=False)
    names = [cell.strip().lstrip("#") for cell in cells]
    if names[:2] != ["string_protein_id", "alias"]:
        raise DataError(f"its columns are {', '.join(names)}", source=str(path), hint=_HINT)
    fields = tuple(Field(name, at, "text", name) for at, name in enumerate(names[:2]))
    table = parse_table(path, Layout("\t", False, len(names), fields, line, _HINT)).combine_chunks()
    table = table.group_by(names[:2], use_threads=False).aggregate([])
    lists = table.group_by(names[0], use_threads=False).aggregate([(names[1], "list")])
    return Nodes.from_columns(single(lists, names[0]), aliases=single(lists, f"{names[1]}_list"))
