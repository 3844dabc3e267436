"""Files of names by id: one `id<TAB>name` per line, ids from 0 without gaps, in any order."""

from __future__ import annotations

import re
from pathlib import Path

from ukge.graph.columns import NAME_HINT, UTF8_HINT
from ukge.graph.files import check_file
from ukge.graph.findings import Findings
from ukge.graph.readers.diagnosis import not_utf8, raw_text, records
from ukge.graph.vocabulary import Vocabulary

_HINT = "Each line is an id, a tab and a name; ids count from 0 without gaps, and no name has two ids."


def as_vocabulary(given: Vocabulary | str | Path | None, kind: str) -> Vocabulary | None:
    """Return a vocabulary for what a caller may give: one, the path of its file, or None."""
    return read_vocabulary(given, kind=kind) if isinstance(given, (str, Path)) else given


def read_vocabulary(path: str | Path, *, kind: str = "entity") -> Vocabulary:
    """Read a file of names by id."""
    path = Path(path)
    check_file(path)
    found = Findings(str(path))
    lines: dict[int, int] = {}
    ids: dict[str, int] = {}
    checked = 0
    for line, cells in records(path, "\t", quoted=False):
        checked += 1
        number = _id_and_name(line, cells, found)
        if number is None:
            continue
        if number in lines:
            found.add(f"id was given before, in line {lines[number]}", line, "id", cells[0], _HINT)
        elif cells[1] in ids:
            found.add(f"name was given before, to id {ids[cells[1]]}", line, "name", cells[1], _HINT)
        else:
            lines[number] = line
            ids[cells[1]] = number
    if found.count == 0:
        for number in sorted(lines):
            if number >= len(lines):
                what = f"id is not among 0…{len(lines) - 1}, though there are {len(lines):,} names"
                found.add(what, lines[number], "id", str(number), _HINT)
    found.stop(checked)
    return Vocabulary([name for name, _ in sorted(ids.items(), key=lambda pair: pair[1])], kind=kind)


def _id_and_name(line: int, cells: list[str], found: Findings) -> int | None:
    if not_utf8(cells):
        found.add("not UTF-8 text", line, None, raw_text(cells, "\t"), UTF8_HINT)
    elif len(cells) != 2:
        found.add(f"{len(cells)} columns instead of 2", line, None, "\t".join(cells), _HINT)
    elif not re.fullmatch("[0-9]{1,18}", cells[0]):
        found.add("id is no integer", line, "id", cells[0], _HINT)
    elif not cells[1].strip():
        found.add("name is empty", line, "name", cells[1], NAME_HINT)
    else:
        return int(cells[0])
    return None
