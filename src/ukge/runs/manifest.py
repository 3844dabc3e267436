"""The manifest of a run: what it says, and what must be true before anything else in the directory is believed."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ukge._version import __version__
from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.runs import facts
from ukge.storage.files import DAMAGED, sha256, write_atomically

FILE = "manifest.json"
FORMAT = 3
READ = (2, 3)
"""Formats that are read. Lines of the trace have digests since format 3."""
FINISHED = "finished"

CONFIG, RULES, WEIGHTS, TRACE = "config.toml", "ground_rules.safetensors", "weights.safetensors", "trace.jsonl"
NAMES = {"entities.parquet": "entity", "relations.parquet": "relation"}
LISTED = (CONFIG, *NAMES, RULES, WEIGHTS, TRACE, *facts.FILES)
GROWING = (WEIGHTS, TRACE)
"""Files that are only listed when the run is finished."""
LIBRARIES = ("numpy", "torch", "numba", "pyarrow", "safetensors")


@dataclass(frozen=True)
class DataNote:
    """What a run learnt from: where it came from, what it is called, and fingerprints of its parts.

    `facts` and `mean` are the number of the training facts and their mean confidence, where they are known;
    `undirected` are the relations without a direction. Facts that are too large to be kept in the run have no
    fingerprints.
    """

    reference: str
    name: str = "graph"
    train: str = ""
    val: str = ""
    test: str = ""
    facts: int | None = None
    mean: float | None = None
    undirected: tuple[str, ...] = ()
    inverses: tuple[tuple[str, str], ...] = ()
    """pairs of relations that say the same from the other end"""

    @classmethod
    def of(cls, dataset: Dataset, reference: str, *, kept: bool = True) -> DataNote:
        """Note what a data set holds; fingerprints, which take a while, only if the run is kept."""
        train = dataset.train
        mean = float(train.confidence.mean()) if len(train) else None
        prints = ("", "", "")
        if kept:
            prints = train.fingerprint, dataset.val.fingerprint, dataset.test.fingerprint
        return cls(reference, dataset.name, *prints, len(train), mean, train.undirected, dataset.inverses)

    @classmethod
    def read(cls, noted: Mapping[str, Any]) -> DataNote:
        """Return what a manifest that was checked notes of the data."""
        inverses = tuple((first, second) for first, second in noted["inverses"])
        return cls(**{**noted, "undirected": tuple(noted["undirected"]), "inverses": inverses})


def new_manifest(model: str, seed: int, data: DataNote) -> dict[str, Any]:
    """Return the manifest of a run that begins."""
    from importlib.metadata import version  # noqa: PLC0415 — only a new run needs it

    versions = {"ukge": __version__, "python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {
        "format": FORMAT,
        "status": "started",
        "model": model,
        "seed": seed,
        "data": vars(data),
        "versions": versions,
    }


def read_manifest(run: Path) -> dict[str, Any]:
    """Return a run's manifest, every entry of the type that it must have."""
    file = run / FILE
    if not file.is_file():
        raise RunError(f"{run} is not a run directory: {FILE} is missing")
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        checksum = manifest.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise RunError(f"{file} is damaged: it cannot be read", hint=DAMAGED) from None
    if checksum != _checksum(manifest):
        raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)
    if manifest.get("format") not in READ:
        raise RunError(
            f"{run} is a run of format {manifest.get('format')}, this version reads format {FORMAT}",
            hint="Train it again: runs keep their facts now. Or use the version that its manifest names.",
        )
    wrong = _misfit(manifest, _MANIFEST)
    if wrong is None and manifest["status"] == FINISHED and "result" not in manifest:
        wrong = "result"
    if wrong is not None:
        raise RunError(f"{file} cannot be used: its entry {wrong} is missing or not what it must be", hint=DAMAGED)
    return manifest


def write_manifest(run: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest with the checksums of the files that a run of its status lists; those of facts never change."""
    known = {name: digest for name, digest in manifest.get("files", {}).items() if name in facts.FILES}
    growing = () if manifest["status"] == FINISHED else GROWING
    here = [name for name in LISTED if name not in (*known, *growing) and (run / name).is_file()]
    whole = {**manifest, "files": known | {name: sha256(run / name) for name in here}}
    text = json.dumps({**whole, "checksum": _checksum(whole)}, indent=2, ensure_ascii=False)
    write_atomically(run / FILE, text.encode())


def check_files(run: Path, manifest: Mapping[str, Any]) -> None:
    """Check that the files that a run of its status must have are listed, and that what is listed is what it was."""
    listed: dict[str, str] = manifest["files"]
    needed = {CONFIG, *NAMES}
    if manifest["data"]["train"]:
        needed |= {f"{facts.FOLDER}/{part}.parquet" for part in ("train", "val", "test")}
    needed |= {name for name in LISTED if name not in GROWING and (run / name).exists()}
    if manifest["status"] == FINISHED:
        needed |= {WEIGHTS} if manifest["format"] == READ[0] else set(GROWING)
    missing = sorted(needed - listed.keys())
    strange = sorted(listed.keys() - set(LISTED))
    if missing or strange:
        what = f"does not list {missing[0]}" if missing else f"lists {strange[0]!r}, which is no file of a run"
        raise RunError(f"{run / FILE} cannot be used: it {what}", hint=DAMAGED)
    for name, digest in listed.items():
        file = run / name
        if not file.is_file():
            raise RunError(f"{file} is missing", hint=DAMAGED)
        if sha256(file) != digest:
            raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


Fits = Callable[[Any], bool]


def _is(*kinds: type) -> Fits:
    return lambda value: type(value) in kinds


def _list_of(each: Fits, length: int | None = None) -> Fits:
    return lambda value: type(value) is list and length in (None, len(value)) and all(map(each, value))


def _texts(value: Any) -> bool:
    return type(value) is dict and all(type(each) is str for each in value.values())


def _shaped(shape: Mapping[str, Fits]) -> Fits:
    return lambda value: type(value) is dict and value.keys() <= shape.keys() and _misfit(value, shape) is None


def _perhaps(fits: Fits) -> Fits:
    """Return a check of an entry that need not be there."""
    return lambda value: value is _ABSENT or fits(value)


def _misfit(value: Mapping[str, Any], shape: Mapping[str, Fits]) -> str | None:
    """Return the name of an entry that is missing or of another type than it must be."""
    return next((name for name, fits in shape.items() if not fits(value.get(name, _ABSENT))), None)


_ABSENT = object()
_NUMBER = _is(int, float, type(None))
_COLLAPSE = _shaped({**dict.fromkeys(("seen", "cause", "remedy"), _is(str)), "harmless": _is(bool)})
_RESULT = {"metric": _is(str), "best": _NUMBER, **dict.fromkeys(("best_epoch", "epochs"), _is(int))}
_DATA = {
    **dict.fromkeys(("reference", "name", "train", "val", "test"), _is(str)),
    "facts": _is(int, type(None)),
    "mean": _NUMBER,
    "undirected": _list_of(_is(str)),
    "inverses": _list_of(_list_of(_is(str), 2)),
}
_MANIFEST = {
    "status": _is(str),
    "model": _is(str),
    "seed": _is(int),
    "data": _shaped(_DATA),
    "versions": _texts,
    "files": _texts,
    "result": _perhaps(_shaped({**_RESULT, "collapsed": _perhaps(_COLLAPSE)})),
    "distributed": _perhaps(_is(bool)),
    "judged": _perhaps(_is(str)),
}
