"""STRING's protein links: `protein.links`, `protein.links.detailed` and `protein.links.full`.

A score is 0…1000 and stands for a probability in thousandths. Channels are recombined as STRING does it: a protein pair
interacts with the prior probability p = 0.041 before any evidence is seen, and every score contains this prior. So it
is taken out of each score, s' = max(0, (s − p)/(1 − p)); the direct and the transferred score of a channel, and then
the channels, are joined as independent evidence, c = 1 − Π(1 − s'); and the prior is put back once, c·(1 − p) + p.
Co-occurrence and text mining say little about homologous proteins and are scaled by (1 − homology) after the prior is
taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import ConfigError, DataError
from ukge.graph.arrow import from_numpy
from ukge.graph.columns import NAME_HINT, Where, empty_names
from ukge.graph.formats import Format, readers
from ukge.graph.opening import Opening
from ukge.graph.readers.delimited import expected_rows, is_large, parse_blocks, where_in
from ukge.graph.readers.diagnosis import diagnose, first_record
from ukge.graph.readers.layout import Field, Layout
from ukge.graph.readers.parsed import Parsed, Request, below_least
from ukge.graph.readers.sifting import sifted
from ukge.graph.readers.string_proteins import by_preferred_name, proteins_beside
from ukge.graph.vocabulary import BlockEncoder, Ids, Vocabulary, encode_names

PRIOR = 0.041
CHANNELS = ("neighborhood", "fusion", "cooccurrence", "coexpression", "experiments", "database", "textmining")
HOMOLOGY_CORRECTED = ("cooccurrence", "textmining")
_SPELLED = {"cooccurence": "cooccurrence", "experimental": "experiments"}  # as STRING's headers have them
_ENDS = ("protein1", "protein2")
_COMBINED = "combined_score"
_HINT = "A STRING file has the header 'protein1 protein2 … combined_score' and integer scores from 0 to 1000."

Scores = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def read_string(
    path: Path,
    request: Request,
    *,
    channels: Sequence[str] | None = None,
    per_channel: bool = False,
    relation: str = "interacts",
    mirrors: bool = False,
    names: Literal["id", "preferred"] = "id",
    aliases: bool = True,
) -> Parsed:
    """Read protein links as facts.

    By default the confidence is STRING's combined score. `channels` recombines the named channels; pairs without
    evidence in any of them are skipped and counted. With `per_channel` every channel is a relation of its own, named
    like the channel; otherwise all facts have the one given `relation`.

    STRING says every pair in both directions; it is read once, and with `mirrors` as often as it stands there. What
    proteins are called is read from `protein.info` and, with `aliases`, `protein.aliases` beside the file; with
    `names="preferred"`, proteins are named so, but for those that share their name with another.
    """
    if names not in ("id", "preferred"):
        raise ConfigError(f"‹names={names!r}› does not fit", hint="Known: id, preferred.")
    layout, present = _layout(path)
    wanted = _wanted(channels, per_channel, present, path)
    groups = [[channel] for channel in wanted] if per_channel else [wanted]
    kinds = wanted if per_channel else [relation]
    needed = _needed(wanted, present)
    layout = sifted(path, _only(layout, (*_ENDS, *needed)), request)
    links = _links(path, layout, groups, needed, request)
    if empty_names(links.names).any():
        diagnose(path, layout)
        raise DataError("some names are empty", source=str(path), hint=NAME_HINT)
    nodes, skipped, called = proteins_beside(path, aliases=aliases), links.skipped, links.names
    if names == "preferred":
        called, nodes = by_preferred_name(called, nodes, path)
    entities = Vocabulary.trusted(called, "entity")
    rows = np.arange(len(links.head)) if mirrors else _once(links, entities)
    if len(rows) < len(links.head):
        skipped["the pair stands there from the other end, too"] = len(links.head) - len(rows)
    facts = np.flatnonzero(links.seen[rows].ravel())
    at, kind = rows[facts // len(kinds)], facts % len(kinds)
    in_file = where_in(path, layout)
    return Parsed(
        head=links.head[at],
        relation=kind.astype(np.int32),
        tail=links.tail[at],
        weight=links.confidence[at, kind],
        where=Where(in_file.source, in_file.place, lambda these: in_file.locate(links.rows[at[these]])),
        rows=links.count,
        skipped=skipped,
        vocabularies=(entities, Vocabulary(kinds, kind="relation")),
        diagnose=partial(diagnose, path, layout),
        nodes=nodes,
    )


@dataclass(frozen=True, eq=False)
class _Links:
    """Pairs that have evidence: ids, confidences by relation, where there are any, and their rows of `count`."""

    head: Ids
    tail: Ids
    names: pa.Array
    confidence: Scores
    seen: npt.NDArray[np.bool_]
    rows: Rows
    count: int
    skipped: dict[str, int]


class _Whole:
    """Takes columns of names piece by piece, as `BlockEncoder` does, and encodes them in the end: for small files."""

    def __init__(self, columns: int) -> None:
        self._pieces: list[list[pa.Array]] = [[] for _ in range(columns)]

    def __enter__(self) -> _Whole:
        return self

    def __exit__(self, *_: object) -> None:
        self._pieces.clear()

    def add(self, column: int, names: pa.Array) -> None:
        """Take the next names of a column."""
        self._pieces[column].append(names)

    def finish(self) -> tuple[list[Ids], pa.Array]:
        """Return the ids of each column, and the names."""
        return encode_names([pa.chunked_array(pieces, pa.binary()) for pieces in self._pieces])


def _links(
    path: Path, layout: Layout, groups: Sequence[Sequence[str]], needed: Sequence[str], request: Request
) -> _Links:
    """Read pairs block by block; those without evidence, or below the least confidence, are not kept."""
    expected = expected_rows(path) if is_large(path, request) else 0
    confidences, seens, rows = [], [], []
    count = nothing = low = 0
    least = request.least if request.scale is None else None
    with BlockEncoder([expected, expected]) if expected else _Whole(2) as names:
        for block in parse_blocks(path, layout):
            confidence, seen = _judged(block, groups, needed)
            kept = seen.any(axis=1)
            nothing += int((~kept).sum())
            if least is not None:
                sure = kept & ((confidence >= least) & seen).any(axis=1)
                low += int((kept & ~sure).sum())
                kept = sure
            chosen = np.flatnonzero(kept)
            whole = len(chosen) == len(block)
            places = None if whole else from_numpy(chosen)
            for at, end in enumerate(_ENDS):
                names.add(at, block[end] if places is None else block[end].take(places))
            confidences.append(confidence if whole else confidence[chosen])
            seens.append(seen if whole else seen[chosen])
            rows.append(count + chosen)
            count += len(block)
        (head, tail), known = names.finish()
    skipped = {f"no evidence in {', '.join(dict.fromkeys(c for g in groups for c in g))}": nothing} if nothing else {}
    if low:
        skipped[below_least(least)] = low
    width = len(groups)
    return _Links(
        head,
        tail,
        known,
        np.concatenate(confidences) if confidences else np.zeros((0, width)),
        np.concatenate(seens) if seens else np.zeros((0, width), np.bool_),
        np.concatenate(rows) if rows else np.zeros(0, np.int64),
        count,
        skipped,
    )


def _judged(
    block: pa.RecordBatch, groups: Sequence[Sequence[str]], present: Sequence[str]
) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Return the confidence of each row under each relation, and where there is any evidence for it."""
    if not groups[0]:
        return _score(block, _COMBINED)[:, None], np.ones((len(block), 1), np.bool_)
    evidence = {channel: _evidence(block, channel, present) for group in groups for channel in group}
    seen = [np.any([evidence[channel][1] for channel in group], axis=0) for group in groups]
    combined = [combine([evidence[channel][0] for channel in group]) for group in groups]
    return np.column_stack(combined), np.column_stack(seen)


def _once(links: _Links, entities: Vocabulary) -> Rows:
    """Return the links without those that stand from the other end, too, with the same confidences.

    Of the two, the one stays whose names are in alphabetical order.
    """
    low, high = np.minimum(links.head, links.tail), np.maximum(links.head, links.tail)
    pair = low.astype(np.int64) * len(entities) + high
    order = np.argsort(pair, kind="stable")
    first, second = order[:-1], order[1:]
    twins = (pair[first] == pair[second]) & (links.head[first] != links.head[second])
    twins &= (links.confidence[first] == links.confidence[second]).all(axis=1)
    twins &= (links.seen[first] == links.seen[second]).all(axis=1)
    twins[1:] &= ~twins[:-1]  # of three rows of one pair, the last stays what it is
    first, second = first[twins], second[twins]
    rank = np.asarray(pc.rank(entities.names))
    falling = rank[links.head[first]] > rank[links.tail[first]]
    left = np.ones(len(pair), np.bool_)
    left[np.where(falling, first, second)] = False
    return np.flatnonzero(left)


def is_string(opening: Opening) -> bool:
    """Return whether a file begins with STRING's line of column names."""
    names = opening.lines[0].split(" ") if opening.lines else []
    return tuple(names[:2]) == _ENDS and _COMBINED in names


def without_prior(score: Scores) -> Scores:
    """Return s' = max(0, (s − p)/(1 − p))."""
    return np.maximum(0.0, (score - PRIOR) / (1.0 - PRIOR))


def combine(evidence: Sequence[Scores]) -> Scores:
    """Return the joint probability of independent evidence without prior, with the prior put back once."""
    doubt = np.prod([1.0 - score for score in evidence], axis=0)
    combined: Scores = (1.0 - doubt) * (1.0 - PRIOR) + PRIOR
    return combined


def _evidence(table: pa.RecordBatch, channel: str, present: Sequence[str]) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Return a channel's evidence without prior, and where it has any score at all."""
    parts = [name for name in (channel, f"{channel}_transferred") if name in present]
    scores = [_score(table, part) for part in parts]
    joined: Scores = 1.0 - np.prod([1.0 - without_prior(score) for score in scores], axis=0)
    if channel in HOMOLOGY_CORRECTED and "homology" in present:
        joined = joined * (1.0 - _score(table, "homology"))
    return joined, np.any([score > 0 for score in scores], axis=0)


def _score(table: pa.RecordBatch, name: str) -> Scores:
    score: Scores = table[name].to_numpy() / 1000.0
    return score


def _needed(wanted: Sequence[str], present: Sequence[str]) -> list[str]:
    """Return the columns of scores that the wanted channels are made of."""
    if not wanted:
        return [_COMBINED]
    parts = [name for channel in wanted for name in (channel, f"{channel}_transferred")]
    homology = ["homology"] if set(wanted) & set(HOMOLOGY_CORRECTED) else []
    return [name for name in present if name in (*parts, *homology)]


def _only(layout: Layout, names: Sequence[str]) -> Layout:
    return replace(layout, fields=tuple(field for field in layout.fields if field.name in names))


def _layout(path: Path) -> tuple[Layout, list[str]]:
    line, header = first_record(path, " ", quoted=False)
    names = [_SPELLED.get(name, name) for name in header]
    missing = [name for name in (*_ENDS, _COMBINED) if name not in names]
    if missing:
        raise DataError(f"the header has no column {', '.join(missing)}", source=str(path), hint=_HINT)
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise DataError(
            f"two columns are named {repeated[0]!r}", source=str(path), hint="Rename or remove one of them."
        )
    fields = tuple(
        Field(name, at, "name", header[at]) if name in _ENDS else Field(name, at, "number", header[at], 0.0, 1000.0)
        for at, name in enumerate(names)
    )
    return Layout(" ", False, len(names), fields, header_lines=line, hint=_HINT), names


def _wanted(channels: Sequence[str] | None, per_channel: bool, present: Sequence[str], path: Path) -> list[str]:
    here = [channel for channel in CHANNELS if channel in present]
    if channels is None and not per_channel:
        return []
    if not here:
        raise DataError("the file has only combined scores, no channels", source=str(path), hint="Use a detailed file.")
    if channels is None:
        return here
    wanted = [_SPELLED.get(channel, channel) for channel in ([channels] if isinstance(channels, str) else channels)]
    unknown = [channel for channel in wanted if channel not in here]
    if unknown or not wanted:
        raise ConfigError(
            f"no channel {', '.join(unknown) or 'chosen'} in {path.name}", hint=f"It has: {', '.join(here)}."
        )
    return list(dict.fromkeys(wanted))


readers.register("string")(Format(read_string, by_id=False, recognise=is_string))
