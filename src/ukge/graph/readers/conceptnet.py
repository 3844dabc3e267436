"""ConceptNet's assertions: five tab-separated columns, of which the last is JSON that holds the weight.

The dump is named `.csv` but has neither commas nor quoting, so the format is asked for by name. Its weights range from
0.1 to above 20 and need a scale.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ukge.errors import ConfigError
from ukge.graph.columns import Where, bad_confidences, refuse_rows
from ukge.graph.findings import Findings
from ukge.graph.formats import Format, readers
from ukge.graph.readers.delimited import parse_blocks, where_in
from ukge.graph.readers.diagnosis import LinesOf, diagnose
from ukge.graph.readers.jsonl import once
from ukge.graph.readers.layout import Field, Layout
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.sifting import sifted

_COLUMNS = ("assertion", "relation", "start", "end", "information")
_HINT = "A line holds five columns: assertion, /r/Relation, /c/language/start, /c/language/end, JSON with a weight."
_HUGE = 1e300
SCALE_HINT = (
    "ConceptNet's weights are not confidences. The recipe of the UKGE paper for CN15k is ‹scale='conceptnet'›: "
    "bound weights to [0.1, 3.0], take the logarithm and map it linearly to [0.1, 1.0]."
)


def read_conceptnet(
    path: Path, request: Request, *, language: str | None = "en", names: Literal["term", "uri"] | None = None
) -> Parsed:
    """Read the assertions between two concepts of one language; the others are skipped and counted.

    By default a concept is named by its term ("dog" for /c/en/dog/n), which joins its senses; with `names="uri"` it
    keeps its whole URI. `language=None` reads all languages, by URI.
    """
    if names not in (None, "term", "uri") or (names == "term" and language is None):
        raise ConfigError(f"‹names={names!r}› does not fit", hint="Known: term (with a language), uri.")
    layout = sifted(path, _layout(), request)
    in_file = where_in(path, layout)
    by_uri = names == "uri" or language is None
    found = request.findings(in_file.source, in_file.place)
    tell = partial(_tell, LinesOf(path, layout), found)
    parts: list[_Part] = []
    total = 0
    for block in parse_blocks(path, layout):
        parts.append(_part(block, total, language, by_uri=by_uri, tell=tell))
        total += len(block)
    rows = np.concatenate([part.rows for part in parts]) if parts else np.zeros(0, np.int64)
    weight = np.concatenate([part.weight for part in parts]) if parts else np.zeros(0)
    where = Where(in_file.source, in_file.place, lambda facts: in_file.locate(rows[facts]))
    if found.count == 0:
        _refuse_unscaled(weight, request, where)
    others = total - found.rows - len(rows)
    found.checked = total
    return Parsed(
        head=pa.chunked_array([part.start for part in parts], pa.string()),
        relation=pa.chunked_array([part.relation for part in parts], pa.string()),
        tail=pa.chunked_array([part.end for part in parts], pa.string()),
        weight=weight,
        where=where,
        rows=total - found.rows,
        found=found,
        skipped={f"start or end is no concept of language {language!r}": others} if others else {},
        diagnose=partial(diagnose, path, layout),
    )


class _Part(NamedTuple):
    """The assertions of one block that are facts, and their rows in the file."""

    rows: npt.NDArray[np.int64]
    start: pa.Array
    relation: pa.Array
    end: pa.Array
    weight: npt.NDArray[np.float64]


Wrong = tuple[int, str, str]
"""The row of an assertion, what is wrong with it, and its information."""


def _part(
    block: pa.RecordBatch, first: int, language: str | None, *, by_uri: bool, tell: Callable[[Sequence[Wrong]], None]
) -> _Part:
    chosen = block
    rows = first + np.arange(len(block))
    if language is not None:
        prefix = f"/c/{language}/"
        kept = pc.and_(pc.starts_with(block["start"], prefix), pc.starts_with(block["end"], prefix))
        chosen = block.filter(kept)
        rows = rows[np.asarray(kept, dtype=np.bool_)]
    weight = _weights_fast(chosen["information"])
    if weight is None:
        weight, wrong = _weights_one_by_one(chosen["information"], rows)
        tell(wrong)
        sound = ~np.isin(rows, [row for row, _, _ in wrong])
        chosen, rows, weight = chosen.filter(pa.array(sound)), rows[sound], weight[sound]
    return _Part(
        rows=rows,
        start=chosen["start"] if by_uri else _terms(chosen["start"]),
        relation=pc.replace_substring_regex(chosen["relation"], "^/r/", ""),
        end=chosen["end"] if by_uri else _terms(chosen["end"]),
        weight=weight,
    )


def _layout() -> Layout:
    fields = tuple(Field(name, at, "text", name) for at, name in enumerate(_COLUMNS) if name != "assertion")
    return Layout("\t", False, len(_COLUMNS), fields, hint=_HINT)


def _terms(uris: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(uris, "^/c/[^/]+/([^/]*).*$", r"\1")


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


def _weights_one_by_one(chunk: pa.Array, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], list[Wrong]]:
    weights = np.zeros(len(chunk))
    wrong: list[Wrong] = []
    for row, text in enumerate(chunk.to_pylist()):
        value, what = _weight(text)
        weights[row] = value
        if what is not None:
            wrong.append((int(rows[row]), what, text))
    return weights, wrong


def _tell(lines: LinesOf, found: Findings, wrong: Sequence[Wrong]) -> None:
    """Tell of wrong assertions, which follow those that were told before."""
    places = lines(np.array([row for row, _, _ in wrong], np.int64))
    for line, (_, what, text) in zip(places, wrong, strict=True):
        found.row = text
        found.add(what, line, "information", text, _HINT, kind=what.split(":")[0])


def _weight(text: str) -> tuple[float, str | None]:
    try:
        information: Any = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        return 0.0, f"is not JSON: {error}"
    weight = information.get("weight") if isinstance(information, dict) else None
    if weight is None:
        return 0.0, "has no weight"
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or abs(weight) > _HUGE:
        return 0.0, "weight is not a number"
    return float(weight), None


def _refuse_unscaled(weight: npt.NDArray[np.float64], request: Request, where: Where) -> None:
    if request.scale is not None or request.bad_rows is not None:
        return
    rows = bad_confidences(weight)
    what = f"{len(rows):,} of {len(weight):,} weights are outside [0, 1]"
    wrong = "weight is outside [0, 1]"
    refuse_rows(what, rows, lambda row: (wrong, f"{weight[row]:g}"), "information", where, SCALE_HINT)


readers.register("conceptnet")(Format(read_conceptnet, by_id=False))
