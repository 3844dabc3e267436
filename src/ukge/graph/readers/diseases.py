"""DISEASES: genes and diseases with stars of confidence, in files without a line of column names.

ENSP00000269305  TP53  DOID:3012  Li-Fraumeni syndrome  MedlinePlus  CURATED  5          knowledge, experiments
ENSP00000269305  TP53  DOID:162   Cancer  9.112  4.556  https://diseases.jensenlab.org/…  text mining
ENSP00000269305  TP53  DOID:162   Cancer  5.000                                           integrated
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.opening import Opening
from ukge.graph.readers.diagnosis import first_record
from ukge.graph.readers.parsed import Parsed, Request, one_relation
from ukge.graph.readers.text_tables import Header, Slot, TextTable, made_facts, read_text_table

STARS = 5.0
_KNOWN = ("gene", "gene_name", "disease", "disease_name")
_KNOWLEDGE = (*_KNOWN, "source", "evidence", "stars")
_TEXT_MINING = (*_KNOWN, "z_score", "stars", "url")
_INTEGRATED = (*_KNOWN, "stars")
_DISEASE = re.compile(r"(DOID|AmyCo|ICD10):")
_HINT = "A line of DISEASES has 5 columns (integrated) or 7 (knowledge, experiments, text mining) between tabs."


def read_diseases(path: Path, request: Request, *, relation: str = "associated_with") -> Parsed:
    """Read associations of genes with diseases as facts of one `relation`; five stars are certain."""
    _, cells = first_record(path, "\t", quoted=False)
    names = _names(cells)
    if names is None:
        raise DataError(f"its first line has {len(cells)} columns", source=str(path), hint=_HINT)
    wanted = [name for name in names if name in (*_KNOWN, "source", "stars")]
    table = read_text_table(path, request, Header(names, 0, hint=_HINT), wanted)
    facts = {
        "head": table.columns["gene"],
        "relation": one_relation(relation, table.rows, request),
        "tail": table.columns["disease"],
    }
    if "source" in table.columns:
        facts["source"] = table.columns["source"]
    return made_facts(table, request, facts, [Slot("stars", STARS)], nodes=_nodes(table))


def is_diseases(opening: Opening) -> bool:
    """Return whether a file begins with a row of DISEASES: the third of five or seven columns is a disease."""
    cells = opening.cells()
    return _names(cells) is not None and _DISEASE.match(cells[2]) is not None and bool(cells[0])


def _names(cells: list[str]) -> tuple[str, ...] | None:
    if len(cells) == len(_INTEGRATED):
        return _INTEGRATED
    if len(cells) == len(_KNOWLEDGE):
        return _TEXT_MINING if cells[-1].strip().startswith("http") else _KNOWLEDGE
    return None


def _nodes(table: TextTable) -> Nodes:
    found = Nodes.none()
    for ends, kind in (("gene", "Gene"), ("disease", "Disease")):
        pairs = pa.table([table.columns[ends], table.columns[f"{ends}_name"]], names=["id", "label"])
        known = pairs.group_by(["id", "label"]).aggregate([])
        known = known.filter(pc.not_equal(pc.utf8_trim_whitespace(known["id"]), ""))
        found = found.joined(Nodes.from_columns(known["id"], label=known["label"], types=[kind] * len(known)))
    return found


readers.register("diseases")(Format(read_diseases, by_id=False, recognise=is_diseases))
