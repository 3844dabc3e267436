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

import numpy as np
from tests.fuzz.mutate import flipped, mutated
from tests.fuzz.outcomes import ACCEPTED, MISREAD, REFUSED, UNCAUGHT, Outcome

from ukge.errors import UkgeError
from ukge.storage.arrays import load_arrays, save_arrays

NUMBERS: list[Any] = [-1, 0, 1, 2**31, 2**63, 1e308, None, "", "x", [], {}, True, "../../etc/passwd", float("nan")]


def make_run(home: Path, n_entities: int = 100, n_facts: int = 400) -> Path:
    """Train a tiny run."""
    from tests.serve.small_run import make_run as small

    return small(home, n_entities=n_entities, n_facts=n_facts)


def make_evidence(home: Path) -> Path:
    """Train a tiny run and fit evidence to it."""
    from ukge import open_dataset
    from ukge.evidence import Evidence

    run = make_run(home, 160, 900)
    few: dict[str, Any] = {"iterations": 2, "expectation_trees": 2, "folds": 2, "rank_queries": 10}
    Evidence.fit(run, open_dataset(home / "world.tsv"), **few).save(run / "evidence")
    return run


def ask(run: Path) -> list[Any]:
    """Return what a run says: of stored facts and unseen ones, with bounds, a ranking, and the reasons of evidence."""
    from ukge.asking import Predictor

    predictor = Predictor.open(run, copied=True)
    facts = predictor.dataset.train[:20]
    asked = [(fact.head, fact.relation, fact.tail) for fact in facts]
    turned = [(tail, relation, head) for head, relation, tail in asked]
    head, relation, _ = asked[0]
    ranked = [(each.entity, each.confidence) for each in predictor.rank(head, relation, 5)]
    bounds = [
        bound.tolist()
        for bound in predictor.interval([*asked, *turned], assume_holds=predictor.judged_by == "evidence")
    ]
    why = [str(predictor.explain(*fact)) for fact in asked[:2]] if predictor.judged_by == "evidence" else []
    return [asked, predictor.predict([*asked, *turned]).tolist(), ranked, bounds, why]


@dataclass
class Directory:
    """A directory that is fuzzed file by file."""

    name: str
    make: Callable[[Path], Path]
    base: Path = field(default_factory=Path)
    files: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def prepare(self, work: Path) -> None:
        """Make the directory, unless an earlier process has made it there."""
        self.base = work / self.name / "run"
        if not (work / f"{self.name}.made").exists():
            self.base = self.make(work / self.name)
            (work / f"{self.name}.made").touch()
        self.files = sorted(str(path.relative_to(self.base)) for path in self.base.rglob("*") if path.is_file())
        self.answers = ask(self.base)

    def inputs(self, draw: random.Random) -> tuple[str, bytes, None]:
        """Return which file to replace by what, as JSON."""
        own = [name for name in self.files if name.startswith(f"{self.name}/")]  # evidence is one file among a run's
        name = draw.choice(own if own and draw.random() < 0.6 else self.files)
        data = (self.base / name).read_bytes()
        kind = draw.choice(("flip", "flip", "flip", "cut", "lost", "swap", "values", "anew", "anew"))
        if kind == "cut":
            data = data[: draw.randrange(len(data) + 1)]
        elif kind == "swap":
            data = (self.base / draw.choice(self.files)).read_bytes()
        elif kind == "values" or (kind == "anew" and name.endswith(".json")):
            data = _other_values(data, draw) if name.endswith(".json") else flipped(data, draw)
        elif kind == "anew" and name.endswith(".safetensors") and draw.random() < 0.8:
            data = _other_arrays(self.base / name, draw)
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
        if not all(0 <= confidence <= 1 for confidence in said[1]):
            return Outcome(MISREAD, f"{where}: confidences that are none: {said[1]}"[:300])
        lost = told["kind"] == "lost" and told["file"] == "evidence/evidence.safetensors"  # a run without evidence
        same = json.dumps(said) == json.dumps(self.answers) or told["kind"] == "anew" or lost
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


def _other_arrays(file: Path, draw: random.Random) -> bytes:
    """Return a file of arrays that is whole, but of which one array or note says something else."""
    arrays, notes = load_arrays(file)
    name = draw.choice(sorted(arrays))
    array = arrays[name]
    kind = draw.randrange(7)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = array[: draw.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
    elif kind == 2:
        arrays[name] = array.astype(draw.choice(("float64", "float32", "int64", "int8", "bool")))
    elif kind == 3 and notes:
        notes = json.loads(_other_values(json.dumps(notes).encode(), draw))
    elif kind == 4:
        arrays[draw.choice(sorted(arrays))] = array
    elif array.size:
        place = draw.randrange(array.size)
        with np.errstate(all="ignore"):
            value = np.array([draw.choice((-1, 0, 1, 127, 1 << 30, -(1 << 62), 1e300, np.nan, np.inf))])
            array.reshape(-1)[place] = value.astype(array.dtype)[0]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "arrays"
        save_arrays(made, arrays, notes)
        return made.read_bytes()


def _mend_checksums(run: Path, before: bytes, after: bytes) -> None:
    old, new = hashlib.sha256(before).hexdigest(), hashlib.sha256(after).hexdigest()
    for path in run.rglob("*.json"):
        text = path.read_bytes()
        if old.encode() in text:
            path.unlink()  # it is a link to the original
            path.write_bytes(text.replace(old.encode(), new.encode()))
