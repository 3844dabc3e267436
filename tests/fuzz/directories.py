"""Runs and their evidence with a file flipped, cut, emptied, lost, swapped or made anew: refused, or the same answers.

A file that is made anew has its checksum mended, as an attacker would do it; then other answers are no fault, but
whatever is not an error of ours still is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.mutate import flipped, mutated
from tests.fuzz.outcomes import ACCEPTED, MISREAD, REFUSED, UNCAUGHT, Outcome

from ukge.errors import UkgeError

NUMBERS: list[Any] = [-1, 0, 1, 2**31, 2**63, 1e308, None, "", "x", [], {}, True, "../../etc/passwd", float("nan")]


def make_run(home: Path, n_entities: int = 100, n_facts: int = 400) -> Path:
    """Train a tiny run."""
    from tests.serve.small_run import make_run as small

    return small(home, n_entities=n_entities, n_facts=n_facts)


def make_evidence(home: Path) -> Path:
    """Train a tiny run and fit evidence to it."""
    from ukge import open_dataset
    from ukge.evidence import Evidence

    run = make_run(home, 160, 1_200)
    Evidence.fit(run, open_dataset(home / "world.tsv"), iterations=5, folds=2).save(run / "evidence")
    return run


def ask(run: Path) -> list[Any]:
    """Return what a run says: of stored facts and unseen ones, and a ranking."""
    from ukge.asking import Predictor

    predictor = Predictor.open(run, copied=True)
    facts = predictor.dataset.train[:20]
    asked = [(fact.head, fact.relation, fact.tail) for fact in facts]
    turned = [(tail, relation, head) for head, relation, tail in asked]
    head, relation, _ = asked[0]
    ranked = [(each.entity, each.confidence) for each in predictor.rank(head, relation, 5)]
    return [asked, predictor.predict([*asked, *turned]).tolist(), ranked]


@dataclass
class Directory:
    """A directory that is fuzzed file by file."""

    name: str
    make: Callable[[Path], Path]
    base: Path = field(default_factory=Path)
    files: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def prepare(self, work: Path) -> None:
        """Make the directory, once."""
        self.base = self.make(work / self.name)
        self.files = sorted(str(path.relative_to(self.base)) for path in self.base.rglob("*") if path.is_file())
        self.answers = ask(self.base)

    def inputs(self, draw: random.Random) -> tuple[str, bytes, None]:
        """Return which file to replace by what, as JSON."""
        name = draw.choice(self.files)
        data = (self.base / name).read_bytes()
        kind = draw.choice(("flip", "flip", "flip", "cut", "lost", "swap", "values", "anew", "anew"))
        if kind == "cut":
            data = data[: draw.randrange(len(data) + 1)]
        elif kind == "swap":
            data = (self.base / draw.choice(self.files)).read_bytes()
        elif kind == "values" or (kind == "anew" and name.endswith(".json")):
            data = _other_values(data, draw) if name.endswith(".json") else flipped(data, draw)
        elif kind in ("flip", "anew"):
            data = flipped(data, draw) if draw.random() < 0.7 else mutated(data, [], draw)
        told = {"file": name, "kind": kind, "data": base64.b64encode(data).decode()}
        return "json", json.dumps(told).encode(), None

    def outcome(self, path: Path, _plain: bytes | None) -> Outcome:
        """Put the file in its place, and ask."""
        told = json.loads(path.read_bytes())
        with tempfile.TemporaryDirectory(dir=self.base.parent) as folder:
            run = Path(folder) / "run"
            shutil.copytree(self.base, run, copy_function=os.link)
            place = run / told["file"]
            before = place.read_bytes()
            place.unlink()
            data = base64.b64decode(told["data"])
            if told["kind"] != "lost":
                place.write_bytes(data)
            if told["kind"] == "anew":
                _mend_checksums(run, before, data)
            where = f"{told['file']} ({told['kind']})"
            try:
                said = ask(run)
            except UkgeError as error:
                named = str(run) in str(error) or Path(told["file"]).name in str(error)
                return Outcome(REFUSED) if named else Outcome(UNCAUGHT, f"{where}: no place: {error}"[:300])
            except Exception as error:
                return Outcome(UNCAUGHT, f"{where}: {type(error).__name__}: {error}"[:300])
        same = json.dumps(said) == json.dumps(self.answers) or told["kind"] == "anew"
        return Outcome(ACCEPTED) if same else Outcome(MISREAD, f"{where}: other answers")


def _other_values(data: bytes, draw: random.Random) -> bytes:
    """Return JSON with one value replaced, one key lost or one doubled."""
    whole = json.loads(data)
    at = whole
    for _ in range(6):
        keys = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
        if not keys:
            break
        key = draw.choice(keys)
        if not isinstance(at[key], (dict, list)) or not at[key] or draw.random() < 0.2:
            if draw.random() < 0.2:
                del at[key]
            else:
                at[key] = draw.choice(NUMBERS)
            break
        at = at[key]
    return json.dumps(whole).encode()


def _mend_checksums(run: Path, before: bytes, after: bytes) -> None:
    old, new = hashlib.sha256(before).hexdigest(), hashlib.sha256(after).hexdigest()
    for path in run.rglob("*.json"):
        text = path.read_bytes()
        if old.encode() in text:
            path.unlink()  # it is a link to the original
            path.write_bytes(text.replace(old.encode(), new.encode()))
