"""Evidence in a directory: everything it was fitted to and with, in files that cannot execute code.

evidence.safetensors       sums, rules, trees, calibration and bounds, and the SHA-256 of all that they rest on
weights-N.safetensors      weights of models that are not the run's own

Facts, names and the run's weights are those of the run that it is in; evidence that is in no run has them beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge._version import __version__
from ukge.errors import RunError
from ukge.evidence.backbones import Backbone
from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.paths import PathRules
from ukge.evidence.ranking import CandidateRanker, ranker_from
from ukge.evidence.regressor import ConfidenceRegressor
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Groups, Implications, Tables
from ukge.evidence.trees import Trees
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.weights import Prior
from ukge.models.parameters import Parameters
from ukge.runs.directory import EVIDENCE, Run, read_names
from ukge.runs.facts import TRAIN, KeptFacts, keep_facts
from ukge.storage.arrays import Arrays, StoredArrays, save_arrays
from ukge.storage.files import DAMAGED, replacing_directory, sha256, write_atomically
from ukge.storage.locks import alone

FORMAT = 4
FILE = "evidence.safetensors"
NAMES = ("entities", "relations")
_KINDS = dict(zip(NAMES, ("entity", "relation"), strict=True))
WEIGHTS = "weights.safetensors"
MODEL = ("name", "scorer", "link", "learns_confidence")
GROUPS = tuple(each.name for each in fields(Tables) if each.name != "implications")


@dataclass(frozen=True, eq=False)
class Parts:
    """Evidence that was fitted. `StoredParts` of a file have the same names, and are read when they are asked for."""

    features: Features
    regressor: ConfidenceRegressor
    bounds: Bounds
    bounds_if_held: Bounds
    ranker: CandidateRanker | None
    settings: EvidenceSettings
    dataset: Dataset
    """what it belongs to: the known facts are its training facts"""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Parts | StoredParts) -> Parts:
        """Return all parts, read now where they are in a file."""
        return cls(**{each.name: getattr(parts, each.name) for each in fields(cls)})


def save_evidence(path: Path, parts: Parts | StoredParts) -> None:
    """Write evidence into a run that learnt from the same facts, or, whole by itself, into a directory of its own.

    What is there of older evidence is replaced.
    """
    home, folder = _places(path, parts.features.index.graph)
    with alone(home), replacing_directory(folder, over=True) as made:
        _write(made if home == folder else home, made, parts)


def _write(home: Path, folder: Path, parts: Parts | StoredParts) -> None:
    """Write evidence into a new directory; `home` is where facts and names are."""
    features = parts.features
    graph = features.index.graph
    if home == folder:
        for vocabulary, name in zip((graph.entities, graph.relations), NAMES, strict=True):
            write_atomically(home / f"{name}.parquet", vocabulary.to_parquet())
        keep_facts(home, parts.dataset)
    arrays: Arrays = _prefixed("tables", _tables(features.tables))
    rules = features.rules
    arrays["category"] = features.category
    arrays |= {"rules.key": rules.key, "rules.shown": rules.shown, "rules.implied": rules.implied}
    arrays |= _prefixed("head", parts.regressor.arrays())
    for number, each in enumerate((parts.bounds, parts.bounds_if_held)):
        arrays |= _prefixed(f"bounds.{number}", each.arrays())
    if features.expectation is not None:
        arrays |= _prefixed("expectation", features.expectation.arrays())
    if parts.ranker is not None:
        arrays |= _prefixed("ranking", parts.ranker.trees.arrays())
    kept = [_keep_weights(home, folder, number, each) for number, each in enumerate(features.backbones)]
    shared = [*(f"{name}.parquet" for name in NAMES), TRAIN]
    told = {
        "format": FORMAT,
        "version": __version__,
        "settings": asdict(parts.settings),
        "notes": list(parts.notes),
        "prior": [rules.prior.mean, rules.prior.strength],
        "strong": rules.strong,
        "models": [
            {**{name: getattr(each, name) for name in MODEL}, "weights": weights}
            for each, weights in zip(features.backbones, kept, strict=True)
        ],
        "data": parts.dataset.name,
        "undirected": list(graph.undirected),
        "inverses": [list(pair) for pair in parts.dataset.inverses],
        "digests": {name: sha256(home / name) for name in shared} | {each: sha256(folder / each) for each in kept},
    }
    save_arrays(folder / FILE, arrays, told)


def _places(path: Path, graph: UncertainGraph) -> tuple[Path, Path]:
    """Return the directory that holds facts and names, and the one that evidence goes to."""
    run = path.parent if path.name == EVIDENCE else path
    if not (run / "manifest.json").is_file():
        if path.is_dir() and any(path.iterdir()) and not (path / FILE).is_file():
            raise RunError(f"{path} exists and holds no evidence", hint="Choose another directory, or remove this one.")
        return path, path
    if Run(run).data.train != graph.fingerprint:
        raise RunError(
            f"{run} learnt from other facts than the evidence was gathered from",
            hint="Save it into a directory of its own, or into a run that was trained on the same data set.",
        )
    return run, run / EVIDENCE


def _keep_weights(home: Path, folder: Path, number: int, backbone: Backbone) -> str:
    """Return where a model's weights are, seen from the evidence; those of the run are not written again."""
    own = backbone.parameters.as_dict()
    if home != folder:
        there = StoredArrays(home / WEIGHTS)
        if there.keys() == own.keys() and all(np.array_equal(there[name], own[name]) for name in own):
            return f"../{WEIGHTS}"
    file = f"weights-{number}.safetensors"
    save_arrays(folder / file, own)
    return file


class StoredParts:
    """Evidence in its directory: opened here, and each part read when it is first asked for, and checked then."""

    def __init__(self, path: Path, *, copied: bool = False) -> None:
        if not (path / FILE).is_file():
            raise RunError(f"{path} holds no evidence: {FILE} is missing", hint="Make it: ukge evidence fit RUN")
        self._path, self._copied, self._arrays = path, copied, StoredArrays(path / FILE, copied=copied)
        self._told = self._arrays.notes
        if self._told.get("format") != FORMAT:
            raise RunError(
                f"{path} is evidence of format {self._told.get('format')}, this version reads format {FORMAT}",
                hint="Fit it again, or use the version of ukge that made it.",
            )
        in_a_run = path.name == EVIDENCE and (path.parent / "manifest.json").is_file()
        self._home = path.parent if in_a_run else path
        self.settings = EvidenceSettings(**self._told["settings"])
        self.notes: tuple[str, ...] = tuple(self._told["notes"])

    @cached_property
    def facts(self) -> KeptFacts:
        """The facts that the evidence belongs to, those of all parts."""
        entities, relations = (
            read_names(self._checked(self._home / f"{name}.parquet"), kind) for name, kind in _KINDS.items()
        )
        inverses = tuple((first, second) for first, second in self._told["inverses"])
        return KeptFacts(self._home, entities, relations, tuple(self._told["undirected"]), inverses)

    @cached_property
    def dataset(self) -> Dataset:
        """The data set that the evidence belongs to."""
        return self.facts.dataset(self._told["data"])

    @cached_property
    def features(self) -> Features:
        """What evidence is read from."""
        arrays, told = self._arrays, self._told
        facts = self.facts
        self._checked(self._home / TRAIN)
        rules = PathRules(
            arrays["rules.key"], arrays["rules.shown"], arrays["rules.implied"], Prior(*told["prior"]), told["strong"]
        )
        graph = facts.needed("train")
        undirected = graph.undirected_relations if graph.undirected else None
        backbones = tuple(
            Backbone(
                **{name: each[name] for name in MODEL}, parameters=self._weights(each["weights"]), undirected=undirected
            )
            for each in told["models"]
        )
        tables, learnt = _as_tables(arrays.part("tables")), arrays.part("expectation")
        expectation = Trees.from_arrays(learnt) if learnt else None
        return Features(FactIndex(graph), tables, rules, backbones, arrays["category"], expectation)

    def _weights(self, name: str) -> Parameters:
        file = self._home / WEIGHTS if name == f"../{WEIGHTS}" else self._path / Path(name).name
        return Parameters(**dict(StoredArrays(self._checked(file, name), copied=self._copied)))

    def _checked(self, file: Path, name: str | None = None) -> Path:
        if not file.is_file():
            raise RunError(f"{file} is missing", hint=DAMAGED)
        if sha256(file) != self._told["digests"].get(name or str(file.relative_to(self._home))):
            raise RunError(
                f"{file} is not what the evidence in {self._path} was fitted with: it was changed or damaged",
                hint="Restore it, or fit the evidence again: ukge evidence fit RUN",
            )
        return file

    @cached_property
    def regressor(self) -> ConfidenceRegressor:
        """What makes a confidence of evidence."""
        return ConfidenceRegressor.from_arrays(self.settings.error, self._arrays.part("head"))

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds of any fact."""
        return Bounds.from_arrays(self._arrays.part("bounds.0"))

    @cached_property
    def bounds_if_held(self) -> Bounds:
        """The bounds of a fact that is taken to hold."""
        return Bounds.from_arrays(self._arrays.part("bounds.1"))

    @cached_property
    def ranker(self) -> CandidateRanker | None:
        """What orders the candidates of a query, if it was fitted."""
        return ranker_from(self._arrays.part("ranking"), self.settings.rank_candidates)


def _tables(tables: Tables) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    for name in GROUPS:
        found |= _prefixed(name, vars(getattr(tables, name)))
    return {**found, **_prefixed("implications", vars(tables.implications))}


def _as_tables(arrays: Arrays) -> Tables:
    groups = {name: Groups(**_part(arrays, name)) for name in GROUPS}
    return Tables(**groups, implications=Implications(**_part(arrays, "implications")))


def _prefixed(prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {f"{prefix}.{name}": np.asarray(array) for name, array in arrays.items()}


def _part(arrays: Arrays, prefix: str) -> Arrays:
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
