"""The journal of what was added to a run: a sealed line for each addition, and for each time that some were undone.

An addition is there when its line is. Nothing is forgotten: what was undone stands in it, too.
"""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ukge.errors import RunError
from ukge.storage.files import DAMAGED
from ukge.storage.sealed import sealed, unsealed

FOLDER = "added"
JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Drift:
    """How far what comes is from what was trained, as it was when an addition was made; None where nobody knows."""

    before: float | None = None
    """mean squared error of what was said of the new facts before they were taken in, where all names were known"""
    usual: float | None = None
    """the same of the validation facts"""
    judged: int = 0
    """facts that `before` is the mean over"""
    share: float = 0.0
    """facts that stand added, this addition's among them, for each fact that was trained on"""


@dataclass(frozen=True)
class Addition:
    """One addition: who made it, from what, and what was new in it."""

    number: int
    time: str
    who: str
    source: str
    base: str
    """the checksum of the weights that it was made for"""
    print: str
    """the fingerprint of the facts as they were given"""
    facts: int
    """facts that were not known"""
    updated: int = 0
    """facts that were known with another confidence, which this one replaces"""
    repeated: int = 0
    """facts that were known as they were given: they are not kept again"""
    held_out: int = 0
    """of those updated, facts that were kept from training: they judge no more"""
    entities: int = 0
    relations: int = 0
    """names that were not known"""
    id: str | None = None
    """a name that the caller gave it: the same one twice is one addition"""
    drift: Drift = field(default_factory=Drift)
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, note: Mapping[str, Any], source: str) -> Addition:
        """Return what a line of the journal says; anything else than it must be is a `RunError`."""
        drift, files = note.get("drift"), note.get("files")
        kinds = {"str": (str,), "int": (int,), "str | None": (str, type(None))}
        sound = (
            note.keys() == {each.name for each in fields(cls)}
            and all(type(note[each.name]) in kinds.get(str(each.type), (dict,)) for each in fields(cls))
            and isinstance(drift, dict)
            and drift.keys() == {each.name for each in fields(Drift)}
            and all(type(value) in (int, float, type(None)) for value in drift.values())
            and isinstance(files, dict)
            and files.keys() == {f"{note['number']:06}{ending}" for ending in (".parquet", ".safetensors")}
        )
        if not sound:
            raise RunError(f"{source} cannot be used: it does not say what was added", hint=DAMAGED)
        return cls(**{**note, "drift": Drift(**note["drift"])})


@dataclass(frozen=True)
class Undoing:
    """That some additions were undone."""

    number: int
    time: str
    who: str
    undone: tuple[int, ...]


def has_additions(run: Path) -> bool:
    """Return whether something was ever added to a run."""
    return (run / FOLDER / JOURNAL).is_file()


def refuse_if_added(run: Path) -> None:
    """Refuse what is made of a training alone where facts were added to it since."""
    if has_additions(run) and (standing := Journal(run).standing):
        count = "an addition" if len(standing) == 1 else f"{len(standing):,} additions"
        raise RunError(
            f"{run} has {count} that its training has not seen",
            hint=f"Take them into the training first (ukge refresh {run}), or undo them (ukge undo {run} --all).",
        )


class Journal:
    """The journal of a run's additions, as it is on the disk."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER
        self.file = self.folder / JOURNAL
        content = self.file.read_bytes() if self.file.is_file() else b""
        self.print = hashlib.sha256(content).hexdigest()
        self.events = tuple(self._events(content))

    def _events(self, content: bytes) -> Iterator[Addition | Undoing]:
        for number, text in enumerate(content.splitlines(), start=1):
            source = f"{self.file}, line {number},"
            note = unsealed(text, source)
            event = note.pop("event", None)
            if note.get("number") != number or event not in ("added", "undone"):
                raise RunError(f"{source} is damaged: it is no line of a journal", hint=DAMAGED)
            if event == "added":
                yield Addition.read(note, source)
            else:
                undone = note.get("undone")
                if not isinstance(undone, list) or not all(type(each) is int for each in undone):
                    raise RunError(f"{source} is damaged: it does not say what was undone", hint=DAMAGED)
                yield Undoing(number, str(note.get("time")), str(note.get("who")), tuple(undone))

    @property
    def standing(self) -> tuple[Addition, ...]:
        """The additions that were not undone."""
        gone = {number for each in self.events if isinstance(each, Undoing) for number in each.undone}
        return tuple(each for each in self.events if isinstance(each, Addition) and each.number not in gone)

    @property
    def next(self) -> int:
        """The number of the next line."""
        return len(self.events) + 1

    def with_line(self, event: Addition | Undoing) -> bytes:
        """Return the content of the journal with one more line."""
        kind = "added" if isinstance(event, Addition) else "undone"
        note = json.loads(json.dumps({"event": kind, **asdict(event)}))
        content = self.file.read_bytes() if self.file.is_file() else b""
        return content + (sealed(note) + "\n").encode()


def now() -> str:
    """Return the time as the journal has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def whoever() -> str:
    """Return the name of this user, as far as the system knows one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
