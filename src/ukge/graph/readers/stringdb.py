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
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import Where
from ukge.graph.formats import Format, readers
from ukge.graph.readers.delimited import parse_table, where_in
from ukge.graph.readers.diagnosis import diagnose, first_record
from ukge.graph.readers.layout import Field, Layout
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.sifting import sifted

PRIOR = 0.041
CHANNELS = ("neighborhood", "fusion", "cooccurrence", "coexpression", "experiments", "database", "textmining")
HOMOLOGY_CORRECTED = ("cooccurrence", "textmining")
_SPELLED = {"cooccurence": "cooccurrence", "experimental": "experiments"}  # as STRING's headers have them
_HINT = "A STRING file has the header 'protein1 protein2 … combined_score' and integer scores from 0 to 1000."

Scores = npt.NDArray[np.float64]


def read_string(
    path: Path,
    request: Request,
    *,
    channels: Sequence[str] | None = None,
    per_channel: bool = False,
    relation: str = "interacts",
) -> Parsed:
    """Read protein links as facts.

    By default the confidence is STRING's combined score. `channels` recombines the named channels; pairs without
    evidence in any of them are skipped and counted. With `per_channel` every channel is a relation of its own, named
    like the channel; otherwise all facts have the one given `relation`.
    """
    layout = sifted(path, _layout(path), request)
    present = [field.name for field in layout.fields]
    wanted = _wanted(channels, per_channel, present, path)
    table = parse_table(path, layout)
    finish = partial(_parsed, path, layout, table)
    if not wanted:
        return finish(np.arange(len(table)), [relation], [_score(table, "combined_score")], {})
    evidence = {channel: _evidence(table, channel, present) for channel in wanted}
    groups = [[channel] for channel in wanted] if per_channel else [wanted]
    names = wanted if per_channel else [relation]
    seen = [np.any([evidence[channel][1] for channel in group], axis=0) for group in groups]
    combined = [combine([evidence[channel][0] for channel in group]) for group in groups]
    nothing = int((~np.any(seen, axis=0)).sum())
    skipped = {f"no evidence in {', '.join(wanted)}": nothing} if nothing else {}
    kept = np.flatnonzero(np.column_stack(seen).ravel())
    return finish(kept, names, combined, skipped)


def without_prior(score: Scores) -> Scores:
    """Return s' = max(0, (s − p)/(1 − p))."""
    return np.maximum(0.0, (score - PRIOR) / (1.0 - PRIOR))


def combine(evidence: Sequence[Scores]) -> Scores:
    """Return the joint probability of independent evidence without prior, with the prior put back once."""
    doubt = np.prod([1.0 - score for score in evidence], axis=0)
    combined: Scores = (1.0 - doubt) * (1.0 - PRIOR) + PRIOR
    return combined


def _evidence(table: pa.Table, channel: str, present: Sequence[str]) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Return a channel's evidence without prior, and where it has any score at all."""
    parts = [name for name in (channel, f"{channel}_transferred") if name in present]
    scores = [_score(table, part) for part in parts]
    joined: Scores = 1.0 - np.prod([1.0 - without_prior(score) for score in scores], axis=0)
    if channel in HOMOLOGY_CORRECTED and "homology" in present:
        joined = joined * (1.0 - _score(table, "homology"))
    return joined, np.any([score > 0 for score in scores], axis=0)


def _score(table: pa.Table, name: str) -> Scores:
    score: Scores = table[name].to_numpy() / 1000.0
    return score


def _parsed(
    path: Path,
    layout: Layout,
    table: pa.Table,
    kept: npt.NDArray[np.int64],
    names: Sequence[str],
    confidences: Sequence[Scores],
    skipped: dict[str, int],
) -> Parsed:
    """Return facts row by row and, within a row, relation by relation; `kept` counts (row, relation) pairs."""
    rows = kept // len(names)
    kinds = pa.DictionaryArray.from_arrays(pa.array(kept % len(names), pa.int32()), pa.array(names, pa.large_string()))
    in_file = where_in(path, layout)
    return Parsed(
        head=table["protein1"].take(pa.array(rows)),
        relation=kinds,
        tail=table["protein2"].take(pa.array(rows)),
        weight=np.column_stack(confidences).ravel()[kept],
        where=Where(in_file.source, in_file.place, lambda facts: in_file.locate(rows[facts])),
        rows=len(table),
        skipped=skipped,
        diagnose=partial(diagnose, path, layout),
    )


def _layout(path: Path) -> Layout:
    line, header = first_record(path, " ", quoted=False)
    names = [_SPELLED.get(name, name) for name in header]
    missing = [name for name in ("protein1", "protein2", "combined_score") if name not in names]
    if missing:
        raise DataError(f"the header has no column {', '.join(missing)}", source=str(path), hint=_HINT)
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise DataError(
            f"two columns are named {repeated[0]!r}", source=str(path), hint="Rename or remove one of them."
        )
    fields = tuple(
        Field(name, at, "name", header[at])
        if name in ("protein1", "protein2")
        else Field(name, at, "number", header[at], 0.0, 1000.0)
        for at, name in enumerate(names)
    )
    return Layout(" ", False, len(names), fields, header_lines=line, hint=_HINT)


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


readers.register("string")(Format(read_string, by_id=False))
