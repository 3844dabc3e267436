"""Files that stand beside one another under names that differ in one word, such as edges and nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def beside(path: Path, word: str, other: str, endings: Iterable[str] = ()) -> Path | None:
    """Return the file beside one whose name has another word: of `x_edges.tsv` it is `x_nodes.tsv` or `x_nodes.tsv.gz`.

    The word is found whatever its case; `endings` are tried in place of the file's own, packed or not.
    """
    name = path.name
    at = name.lower().rfind(word)
    if at < 0:
        return None
    stem, rest = name[:at] + _in_case(name[at : at + len(word)], other), name[at + len(word) :]
    bare = rest.removesuffix(".gz").removesuffix(".zst")
    known = [rest, *endings, bare]
    for ending in [f"{each}{pack}" for each in known for pack in ("", ".gz", ".zst")]:
        found = path.with_name(stem + ending)
        if found != path and found.is_file():
            return found
    return None


def _in_case(word: str, other: str) -> str:
    return other.upper() if word.isupper() else other.capitalize() if word[:1].isupper() else other
