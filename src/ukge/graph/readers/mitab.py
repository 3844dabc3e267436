r"""PSI-MITAB 2.5, 2.6 and 2.7: molecular interactions as IntAct, MINT, BioGRID, mentha and STRING give them.

    uniprotkb:P04637 … psi-mi:"MI:0915"(physical association) … intact-miscore:0.67|author score:high

Columns are known by their place, with or without the line that names them. A cell holds several values with `|`
between, each `database:identifier(text)`; identifiers that hold one of `:()|` are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.opening import Opening
from ukge.graph.readers.diagnosis import first_record
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.text_tables import Header, Slot, TextTable, made_facts, read_text_table

WIDTHS = (15, 36, 42)
SCORES = ("intact-miscore", "miscore", "mentha-score", "mint-score", "matrixdb-score", "score")
"""The scores from 0 to 1 that are known, best first."""

_A, _B, _ALT_A, _ALT_B, _ALIAS_A, _ALIAS_B = "0", "1", "2", "3", "4", "5"
_TYPE, _SOURCE, _CONFIDENCE, _NEGATIVE = "11", "12", "14", "35"
_HEADER = "#ID(s) interactor A"
_HINT = "Lines of PSI-MITAB have 15 columns (2.5), 36 (2.6) or 42 (2.7) between tabs."
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_VALUE = re.compile(rf'(?P<db>"[^"]*"|[^:|"]+):(?P<id>{_QUOTED}|[^|("]*)(?:\((?P<said>{_QUOTED}|[^)]*)\))?')
_TEXT = pa.large_string()
_CALLED = ("display_short", "gene name", "display_long", "shortlabel")


def read_mitab(
    path: Path,
    request: Request,
    *,
    score: str | None = None,
    ids: str | None = None,
    relation: str = "interacts",
) -> Parsed:
    """Read binary interactions as facts, whose relation is the interaction type ("physical association").

    The confidence is the value called `score`, by default the first of those in `SCORES` that the file has. Names are
    `database:identifier`, the first of each interactor, or its identifier in the database `ids` ("uniprotkb"). Rows
    without that score, negative interactions, and rows of one interactor are skipped and counted. `relation` is that of
    rows without an interaction type.
    """
    line, cells = first_record(path, "\t", quoted=False)
    named = cells[0].lstrip().startswith("#")
    if len(cells) not in WIDTHS:
        what = f"line {line} has {len(cells)} columns instead of {', '.join(map(str, WIDTHS))}"
        raise DataError(what, source=str(path), hint=_HINT)
    wanted = [_A, _B, _ALT_A, _ALT_B, _ALIAS_A, _ALIAS_B, _TYPE, _SOURCE, _CONFIDENCE]
    wanted += [_NEGATIVE] if len(cells) > int(_NEGATIVE) else []
    places = tuple(map(str, range(len(cells))))
    table = read_text_table(path, request, Header(places, line if named else 0, hint=_HINT), wanted)
    name, values = _scores(table, score, path)
    heads, tails = (
        _names(table.columns[own], table.columns[other], ids) for own, other in ((_A, _ALT_A), (_B, _ALT_B))
    )
    out = {"only one interactor": np.asarray(pc.or_(pc.equal(heads, "-"), pc.equal(tails, "-")), np.bool_)}
    if _NEGATIVE in table.columns:
        out["negative interactions"] = np.asarray(pc.equal(pc.utf8_lower(table.columns[_NEGATIVE]), "true"), np.bool_)
    facts = {
        "head": heads,
        "relation": _by_distinct(table.columns[_TYPE], lambda text: _term(text) or relation),
        "tail": tails,
        "source": _by_distinct(table.columns[_SOURCE], _term),
    }
    nodes = _nodes(table, heads, tails)
    return made_facts(table.with_columns({name: values}), request, facts, [Slot(name)], out=out, nodes=nodes)


def is_mitab(opening: Opening) -> bool:
    """Return whether a file begins like PSI-MITAB: its header, or a first row whose places hold terms of PSI-MI."""
    if not opening.lines:
        return False
    first = opening.lines[0]
    if first.lstrip().startswith(_HEADER):
        return True
    cells = first.split("\t")
    terms = [cells[int(at)] for at in (_TYPE, _SOURCE)] if len(cells) in WIDTHS else []
    return any(term.startswith(("psi-mi:", "MI:")) for term in terms)


def values_of(cell: str) -> list[tuple[str, str, str]]:
    """Return the values of a cell: database, identifier and the text in brackets, out of their quotation marks."""
    return [(_bare(found["db"]), _bare(found["id"]), _bare(found["said"])) for found in _VALUE.finditer(cell)]


def _bare(text: str | None) -> str:
    text = text or ""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if len(text) > 1 and text[0] == text[-1] == '"' else text


def _term(cell: str) -> str | None:
    """Return the name of the first term of a cell, else its identifier."""
    values = values_of(cell)
    return (values[0][2] or values[0][1]) if values else None


def _by_distinct(column: pa.Array, make: Callable[[str], str | None]) -> pa.Array:
    """Return what a function makes of each text, which is called once for each distinct one."""
    encoded = column.dictionary_encode()
    made = pa.array([make(text) for text in encoded.dictionary.to_pylist()], _TEXT)
    return made.take(encoded.indices)


def _names(column: pa.Array, others: pa.Array, ids: str | None) -> pa.Array:
    if ids is None:
        return _by_distinct(column, lambda text: next((f"{db}:{name}" for db, name, _ in values_of(text)), "-"))
    both = pc.binary_join_element_wise(column, others, pa.scalar("|", _TEXT))

    def named(text: str) -> str:
        values = values_of(text)
        known = [f"{db}:{name}" for db, name, _ in values if db == ids]
        return known[0] if known else next((f"{db}:{name}" for db, name, _ in values), "-")

    return _by_distinct(both, named)


def _scores(table: TextTable, score: str | None, path: Path) -> tuple[str, pa.Array]:
    """Return the name of the score that is taken, and its values as text, null where a row has none."""
    cells = table.columns[_CONFIDENCE]
    for name in [score] if score is not None else SCORES:
        wanted = rf'(?:^|\|)"?{re.escape(name)}"?:"?(?P<value>[^|("]*)'
        found = pc.struct_field(pc.extract_regex(cells, wanted), "value")
        if found.null_count < len(found):
            return name, found
    kinds = {db: None for cell in cells.unique().to_pylist()[:10_000] for db, _, _ in values_of(cell)}
    if not len(cells):
        return "score", cells
    wanted = f"score {score!r}" if score is not None else "score that is known to be from 0 to 1"
    hint = (
        f"Its confidence values are {', '.join(kinds)}: name one, ‹score={next(iter(kinds))!r}›."
        if kinds
        else ("None of its rows has a confidence value: it is no uncertain graph.")
    )
    raise DataError(f"no row has a {wanted}", source=str(path), hint=hint)


def _nodes(table: TextTable, heads: pa.Array, tails: pa.Array) -> Nodes:
    """Return what interactors are called, by their aliases and alternative identifiers."""
    known: dict[str, tuple[str | None, list[str]]] = {}
    for names, *places in ((heads, _A, _ALT_A, _ALIAS_A), (tails, _B, _ALT_B, _ALIAS_B)):
        cells = [table.columns[each] for each in places]
        said = pa.table([names, *cells], names=["name", "own", "other", "alias"])
        rows = said.group_by(said.column_names).aggregate(
            []
        )  # an interactor says the same of itself in most of its rows
        distinct = rows.group_by("name").aggregate([("own", "list"), ("other", "list"), ("alias", "list")])
        for row in distinct.to_pylist():
            if row["name"] != "-" and row["name"] not in known:
                own, other, alias = ("|".join(row[f"{each}_list"]) for each in ("own", "other", "alias"))
                known[row["name"]] = _called(row["name"], own, other, alias)
    if not known:
        return Nodes.none()
    labels, aliases = zip(*known.values(), strict=True)
    return Nodes.from_columns(list(known), label=list(labels), aliases=list(aliases))


def _called(name: str, own: str, other: str, alias: str) -> tuple[str | None, list[str]]:
    aliases = values_of(alias)
    by_kind = {kind: text for _, text, kind in reversed(aliases)}
    label = next((by_kind[kind] for kind in _CALLED if kind in by_kind), None)
    names = [f"{db}:{text}" for db, text, _ in (*values_of(own), *values_of(other))] + [text for _, text, _ in aliases]
    return label, [each for each in dict.fromkeys(names) if each not in (name, label)]


readers.register("mitab")(Format(read_mitab, (".mitab",), by_id=False, recognise=is_mitab))
