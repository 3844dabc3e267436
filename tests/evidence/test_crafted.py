"""Evidence that somebody crafted: its digests are right, its arrays are wild. It is refused, and nothing crashes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evidence.small import make_small_evidence

from ukge.errors import RunError
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.layout import Layout
from ukge.logic.weights import Prior
from ukge.storage.arrays import Arrays, load_arrays, save_arrays

FILE = "evidence.safetensors"
HUGE = 1 << 30

ASK = """
import json, sys
from pathlib import Path
from ukge.errors import RunError
from ukge.evidence import Evidence
from ukge.evidence.kernels import load_compiler
from tests.evidence.test_crafted import craft, huge
from ukge.storage.arrays import load_arrays

home, names = Path(sys.argv[1]), sys.argv[2:]
arrays, notes = load_arrays(home / "evidence.safetensors")
load_compiler()
said = {}
for name in names:
    craft(home, {**arrays, name: huge(arrays[name])}, notes)
    try:
        found = Evidence.load(home)
        facts = found.dataset.test[:20]
        found.interval(facts, by="relation")
        found.interval(facts, assume_holds=True)
        found.contributions(facts)
        found.tail_scores(facts.head[:5], facts.relation[:5])
        said[name] = "used"
    except RunError as error:
        said[name] = error.what
print(json.dumps(said))
"""
"""Evidence with a wild array, asked in every way, compiled: in a process that may die of it."""


def craft(home: Path, arrays: Arrays, notes: dict[str, Any]) -> None:
    """Write evidence whose digests are right, whatever it holds."""
    save_arrays(home / FILE, arrays, notes)


def spoilt(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> list[tuple[str, np.ndarray[Any, np.dtype[Any]]]]:
    """Return an array in the ways that it must not be."""
    flat = array.reshape(-1)
    first = np.arange(flat.size).reshape(array.shape) == 0

    def with_one(value: float) -> np.ndarray[Any, np.dtype[Any]]:
        return np.where(first, np.array(value).astype(array.dtype), array)

    ways = [("longer", np.concatenate([array, array[-1:]])), ("deeper", array[None]), ("empty", array[:0])]
    ways.append(("of other numbers", np.ones(array.shape, dtype=np.float16)))
    if np.issubdtype(array.dtype, np.floating):
        ways += [("not a number", with_one(np.nan)), ("infinite", with_one(-np.inf))]
    elif array.dtype != np.uint32:  # sets of categories may hold any bits
        ways += [("huge", with_one(most(array))), ("last huge", huge(array))]
        if np.issubdtype(array.dtype, np.signedinteger):
            ways.append(("negative", with_one(-5)))
    if name.startswith("tables.") and not name.endswith("key"):  # sums are not places: they may be of any size
        ways = [(what, each) for what, each in ways if "huge" not in what]
    if name.endswith(("bits", "threshold")):  # any number of words, and thresholds without an end, are right
        ways = [(what, each) for what, each in ways if what not in ("longer", "empty", "infinite") or len(array) == 0]
    return [(what, each) for what, each in ways if len(array) or what in ("deeper", "of other numbers")]


def huge(array: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return an array whose last number is far too large."""
    wild = array.copy()
    wild.reshape(-1)[-1:] = most(array)
    return wild


def most(array: np.ndarray[Any, np.dtype[Any]]) -> int:
    """Return a number that is far too large for an array, and one of its type."""
    return HUGE if array.itemsize > 1 else 100 if array.dtype == np.int8 else 200


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of a few trees, saved by itself."""
    path = tmp_path_factory.mktemp("crafted")
    make_small_evidence().save(path)
    return path


def test_no_wild_array_passes_the_door(home: Path) -> None:
    stored, notes = load_arrays(home / FILE)
    sound = Layout(
        home / FILE,
        stored,
        EvidenceSettings(**notes["settings"]),
        *sizes(home),
        n_models=1,
        kinds=tuple(notes["false"]),
    )
    read_all(sound)
    tried = 0
    for name, array in stored.items():
        part = name.rpartition(".")[0] or name
        for what, wild in spoilt(name, array):
            layout = replace(sound, arrays={**stored, name: wild})
            with pytest.raises(RunError) as refused:
                read_all(layout)
            assert refused.value.what.startswith(f"{home / FILE} cannot be used: '{part}"), f"{name} {what}"
            tried += 1
    assert tried > 4 * len(stored)


def sizes(home: Path) -> tuple[int, int]:
    """Return how many entities and relations there are."""
    found = Evidence.load(home)
    return len(found.entities), len(found.relations)


def read_all(layout: Layout) -> None:
    """Make every part of its arrays."""
    layout.tables(), layout.rules(Prior(0.5, 1.0), 0.5), layout.category(), layout.expectation()
    layout.regressor(), layout.bounds(0), layout.bounds(1), layout.ranker(), layout.answer_sets()


def test_no_wild_array_reaches_compiled_code(home: Path) -> None:
    arrays, notes = load_arrays(home / FILE)
    trees = ("expectation", "head.holds", "head.level", "bounds.0.difficulty.1", "bounds.1.difficulty.0", "ranking")
    names = [f"{each}.feature" for each in trees]
    names += ["head.holds.left", "tables.implications.key", "rules.key", "bounds.0.relation"]
    command = [sys.executable, "-c", ASK, str(home), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    craft(home, arrays, notes)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3_000:]}"
    for name, said in json.loads(done.stdout.splitlines()[-1]).items():
        assert said.startswith(f"{home / FILE} cannot be used: '{name}'"), f"{name}: {said}"


def test_a_missing_array_is_told(home: Path) -> None:
    arrays, notes = load_arrays(home / FILE)
    for name in ("category", "rules.key", "head.level.step", "bounds.1.difficulty.0.root", "tables.by_head.key"):
        craft(home, {own: each for own, each in arrays.items() if own != name}, notes)
        with pytest.raises(RunError, match=f"'{name}' is missing"):
            Evidence.load(home).check()
    craft(home, arrays, notes)


LEFT, ROOT, STEP, DEPTH = "head.holds.left", "head.holds.root", "head.holds.step", "head.holds.depth"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (LEFT, np.zeros_like),  # every node is its own ancestor
        (LEFT, lambda each: each[::-1].copy()),
        (LEFT, lambda each: np.concatenate([each[:1] + 2, each[1:]])),  # two nodes with one child
        (ROOT, lambda each: np.concatenate([each[:1], each[1:2] - 1, each[2:]])),
        (STEP, np.ones_like),  # a way down that never ends
        (STEP, np.zeros_like),
        (DEPTH, lambda each: each - 1),  # less room than a way down needs
        ("head.holds.category", lambda each: np.full_like(each, 1)),
    ],
)
def test_trees_are_trees(name: str, change: Any, home: Path) -> None:
    arrays, notes = load_arrays(home / FILE)
    craft(home, {**arrays, name: change(arrays[name])}, notes)
    with pytest.raises(RunError, match=r"cannot be used: 'head\.holds\."):
        Evidence.load(home).check()
    craft(home, arrays, notes)


@pytest.mark.parametrize(
    ("note", "value"),
    [
        ("settings", {"folds": 1}),
        ("settings", {"leaves": "many"}),
        ("settings", {"rank_candidates": -3}),
        ("prior", [0.5]),
        ("prior", [0.5, 0.0]),
        ("strong", "very"),
        ("models", [{"name": "x"}]),
        ("inverses", [["a"]]),
        ("undirected", ["no such relation"]),
        ("digests", []),
    ],
)
def test_wild_notes_are_refused(note: str, value: Any, home: Path) -> None:
    arrays, notes = load_arrays(home / FILE)
    wild = {**notes[note], **value} if note == "settings" else value
    craft(home, arrays, {**notes, note: wild})
    with pytest.raises(RunError, match=FILE):
        Evidence.load(home).check()
    craft(home, arrays, notes)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("entity", lambda each: each[:-1]),
        ("relation", lambda each: each[:, :-1]),
        ("link", lambda each: each * np.nan),
    ],
)
def test_weights_fit_the_names_and_the_scorer(name: str, change: Any, home: Path) -> None:
    from ukge.storage.files import sha256

    weights = home / "weights-0.safetensors"
    (arrays, notes), (sound, _) = load_arrays(home / FILE), load_arrays(weights)
    save_arrays(weights, {**sound, name: change(sound[name])})
    craft(home, arrays, {**notes, "digests": {**notes["digests"], weights.name: sha256(weights)}})
    with pytest.raises(RunError, match=f"{weights.name} cannot be used: '{name}'"):
        Evidence.load(home).check()
    save_arrays(weights, sound)
    craft(home, arrays, notes)
