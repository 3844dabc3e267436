"""Open Targets' associations of targets with diseases: a directory of Parquet parts, or one of them.

    targetId         diseaseId      aggregationType  aggregationValue  associationScore  evidenceCount
    ENSG00000141510  MONDO_0018875  datatypeId       somatic_mutation  0.87              1204

There is no column of relations: it is the type of data where the table has one, else all facts have the same. Names of
targets and diseases are read from the directories beside it, as they are downloaded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.columns import Where, single
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.opening import Opening, parts_of
from ukge.graph.readers.frames import Columns, checked, opened_parquet, parsed_columns
from ukge.graph.readers.parsed import Parsed, Request

_TARGET, _DISEASE = "targetId", "diseaseId"
SCORES = ("associationScore", "score", "datatypeHarmonicScore", "overallDatasourceHarmonicScore")
_KINDS = ("aggregationValue", "datatypeId", "datasourceId")
_BESIDE = (
    (("targets", "target"), "approvedSymbol", "approvedName", "target"),
    (("diseases", "disease"), "name", "description", "disease"),
)


def read_open_targets(path: Path, request: Request, *, relation: str | None = None) -> Parsed:
    """Read associations as facts (target, type of data, disease, score).

    Without a column that says the type of data, or if `relation` is given, all facts have that relation, by default
    `associated_with`.
    """
    parts = parts_of(path) if path.is_dir() else [path]
    if not parts:
        raise DataError(
            "holds no parts of a Parquet table", source=str(path), hint="Name a directory of .parquet files."
        )
    with opened_parquet(parts[0]) as file:
        present = file.schema_arrow.names
    score = next((name for name in SCORES if name in present), None)
    if score is None or not {_TARGET, _DISEASE} <= set(present):
        hint = f"Associations of Open Targets have the columns {_TARGET}, {_DISEASE} and {SCORES[0]} or {SCORES[1]}."
        raise DataError(f"its columns are {', '.join(present[:12])}", source=str(path), hint=hint)
    kind = next((name for name in _KINDS if name in present), None) if relation is None else None
    roles = {"head": _TARGET, "tail": _DISEASE, "confidence": score} | ({"relation": kind} if kind else {})
    tables = []
    for part in parts:
        with opened_parquet(part) as file:
            missing = [name for name in roles.values() if name not in file.schema_arrow.names]
            if missing:
                hint = "All parts have the columns of the first."
                raise DataError(f"has no column {', '.join(missing)}", source=str(part), hint=hint)
            tables.append(checked(file.read(columns=list(roles.values()))))
    table = pa.concat_tables(tables, promote_options="permissive")
    where = Where(str(path))
    places = {role: present.index(name) for role, name in roles.items()}
    found = Columns({role: single(table, name) for role, name in roles.items()}, places, present, where)
    parsed = parsed_columns(found, request, None if kind else relation or "associated_with")
    return replace(parsed, nodes=_nodes(path))


def is_open_targets(opening: Opening) -> bool:
    """Return whether a directory or a file of Parquet has the columns of associations."""
    return {_TARGET, _DISEASE} <= opening.columns and any(name in opening.columns for name in SCORES)


def _nodes(path: Path) -> Nodes | None:
    """Return what targets and diseases are called, if the directories that say it are beside."""
    found = Nodes.none()
    for folders, label, description, kind in _BESIDE:
        folder = next((path.parent / name for name in folders if (path.parent / name).is_dir()), None)
        for part in [] if folder is None else parts_of(folder):
            with opened_parquet(part) as file:
                names = [name for name in ("id", label, description) if name in file.schema_arrow.names]
                table = checked(file.read(columns=names))
            if "id" in names and label in names:
                told = table[description] if description in names else None
                ids = single(table, "id")
                types = [kind] * len(ids)
                found = found.joined(Nodes.from_columns(ids, label=table[label], types=types, description=told))
    return found if len(found) else None


readers.register("opentargets")(Format(read_open_targets, by_id=False, recognise=is_open_targets))
