"""ConceptNet's assertions: five tab-separated columns, of which the last is JSON that holds the weight.

The dump is named `.csv` but has neither commas nor quoting, so the format is asked for by name. Its weights range from
0.1 to above 20 and need a scale.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ukge.errors import SHOWN, ConfigError, DataError, Problem
from ukge.graph.checks import Where, bad_confidences
from ukge.graph.formats import Format
from ukge.graph.readers.delimited import parse_table, where_in
from ukge.graph.readers.diagnosis import diagnose
from ukge.graph.readers.findings import Findings
from ukge.graph.readers.formats import readers
from ukge.graph.readers.layout import Field, Layout
from ukge.graph.readers.parsed import Parsed, Request

_COLUMNS = ("assertion", "relation", "start", "end", "information")
_HINT = "A line holds five columns: assertion, /r/Relation, /c/language/start, /c/language/end, JSON with a weight."
SCALE_HINT = (
    "ConceptNet's weights are not confidences. The recipe of the UKGE paper for CN15k is scale='conceptnet': "
    "bound weights to [0.1, 3.0], take the logarithm and map it linearly to [0.1, 1.0]."
)


def read_conceptnet(
    path: Path, request: Request, *, language: str | None = "en", names: Literal["term", "uri"] | None = None
) -> Parsed:
    """Read the assertions between two concepts of one language; the others are skipped and counted.

    By default a concept is named by its term ("dog" for /c/en/dog/n), which joins its senses; with `names="uri"` it
    keeps its whole URI. `language=None` reads all languages, by URI.
    """
    if request.entities is not None or request.relations is not None:
        raise DataError("ConceptNet files hold names, not ids", source=str(path), hint="Read it without vocabularies.")
    if names not in (None, "term", "uri") or (names == "term" and language is None):
        raise ConfigError(f"names={names!r} does not fit", hint="Known: term (with a language), uri.")
    layout = _layout()
    table = parse_table(path, layout)
    kept = _in_language(table, language)
    rows = np.flatnonzero(kept)
    in_file = where_in(path, layout)
    where = Where(in_file.source, in_file.place, lambda facts: in_file.locate(rows[facts]))
    chosen = table.filter(pa.array(kept))
    weight = _weights(chosen["information"], where)
    _refuse_unscaled(weight, request, where)
    by_uri = names == "uri" or language is None
    others = int(len(table) - len(rows))
    return Parsed(
        head=chosen["start"] if by_uri else _terms(chosen["start"]),
        relation=pc.replace_substring_regex(chosen["relation"], "^/r/", ""),
        tail=chosen["end"] if by_uri else _terms(chosen["end"]),
        weight=weight,
        where=where,
        rows=len(table),
        skipped={f"start or end is no concept of language {language!r}": others} if others else {},
        diagnose=partial(diagnose, path, layout),
    )


def _layout() -> Layout:
    fields = tuple(Field(name, at, "text", name) for at, name in enumerate(_COLUMNS))
    return Layout("\t", False, len(_COLUMNS), fields, hint=_HINT)


def _in_language(table: pa.Table, language: str | None) -> npt.NDArray[np.bool_]:
    if language is None:
        return np.ones(len(table), np.bool_)
    prefix = f"/c/{language}/"
    both = pc.and_(pc.starts_with(table["start"], prefix), pc.starts_with(table["end"], prefix))
    return np.asarray(both, dtype=np.bool_)


def _terms(uris: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(uris, "^/c/[^/]+/([^/]*).*$", r"\1")


def _weights(information: pa.ChunkedArray, where: Where) -> npt.NDArray[np.float64]:
    found = Findings(where.source, where.place)
    parts = []
    start = 0
    for chunk in information.chunks:
        fast = _weights_fast(chunk)
        parts.append(_weights_one_by_one(chunk, start, where, found) if fast is None else fast)
        start += len(chunk)
    found.stop(start)
    return np.concatenate(parts) if parts else np.zeros(0)


def _weights_fast(chunk: pa.Array) -> npt.NDArray[np.float64] | None:
    """Return the weights of many JSON texts at once, or None if any is out of the ordinary.

    Arrow reads one object after another; the tests before make sure that each text is one object.
    """
    if len(chunk) == 0:
        return np.zeros(0)
    whole = pc.match_substring_regex(chunk, r"^\{.*\}$")
    joined = pc.match_substring_regex(chunk, r"\}\s*\{")
    if not pc.all(whole).as_py() or pc.any(joined).as_py():
        return None
    lines = "\n".join(chunk.to_pylist()).encode()
    schema = pa.schema([("weight", pa.float64())])
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(lines),
            read_options=pyarrow.json.ReadOptions(block_size=len(lines) + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    if len(table) != len(chunk) or table["weight"].null_count:
        return None
    return np.asarray(table["weight"].to_numpy())


def _weights_one_by_one(chunk: pa.Array, start: int, where: Where, found: Findings) -> npt.NDArray[np.float64]:
    weights = np.zeros(len(chunk))
    wrong: list[tuple[int, str, str]] = []
    for row, text in enumerate(chunk.to_pylist()):
        value, what = _weight(text)
        weights[row] = value
        if what is not None:
            wrong.append((start + row, what, text))
    lines = where.locate(np.array([row for row, _, _ in wrong], np.int64))
    for line, (_, what, text) in zip(lines, wrong, strict=True):
        found.add(what, line, "information", text, _HINT)
    return weights


def _weight(text: str) -> tuple[float, str | None]:
    try:
        information: Any = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        return 0.0, f"is not JSON: {error}"
    weight = information.get("weight") if isinstance(information, dict) else None
    if weight is None:
        return 0.0, "has no weight"
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        return 0.0, "weight is not a number"
    return float(weight), None


def _refuse_unscaled(weight: npt.NDArray[np.float64], request: Request, where: Where) -> None:
    rows = bad_confidences(weight)
    if request.scale is not None or len(rows) == 0:
        return
    first = rows[:SHOWN]
    problems = [
        Problem("weight is outside [0, 1]", line, "information", f"{value:g}", where.place)
        for line, value in zip(where.locate(first), weight[first], strict=True)
    ]
    what = f"{len(rows):,} of {len(weight):,} weights are outside [0, 1]"
    raise DataError(what, source=where.source, problems=problems, count=len(rows), hint=SCALE_HINT)


readers.register("conceptnet")(Format(read_conceptnet))
