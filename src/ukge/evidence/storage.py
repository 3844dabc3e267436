"""Evidence in a directory: everything it was fitted to and with, in files that cannot execute code.

evidence.safetensors       known facts, sums, rules, models, trees, calibration and bounds, with a digest of all
entities.parquet, relations.parquet      the names behind the ids, whose SHA-256 the file above keeps
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, fields
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
from ukge.evidence.head import Head
from ukge.evidence.parts import Parts
from ukge.evidence.paths import PathRules
from ukge.evidence.ranking import RankHead, rank_head_from
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Groups, Implications, Tables
from ukge.evidence.trees import Trees
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.weights import Prior
from ukge.models.parameters import Parameters
from ukge.storage import DAMAGED, Arrays, StoredArrays, save_arrays, sha256, write_atomically

FORMAT = 3
FILE = "evidence.safetensors"
NAMES = ("entities", "relations")
MODEL = ("name", "scorer", "link", "learns_confidence")
GROUPS = tuple(each.name for each in fields(Tables) if each.name != "implications")


def save_evidence(path: Path, parts: Parts | StoredParts) -> None:
    """Write evidence to a directory, which is made if needed; what is there of an older one is replaced."""
    features = parts.features
    path.mkdir(parents=True, exist_ok=True)
    graph = features.index.graph
    for vocabulary, name in zip((graph.entities, graph.relations), NAMES, strict=True):
        write_atomically(path / f"{name}.parquet", vocabulary.to_parquet())
    arrays: Arrays = {f"facts.{name}": getattr(graph, name) for name in ("head", "relation", "tail", "confidence")}
    arrays |= _prefixed("tables", _tables(features.tables))
    rules = features.rules
    arrays["category"] = features.category
    arrays |= {"rules.key": rules.key, "rules.shown": rules.shown, "rules.implied": rules.implied}
    for number, backbone in enumerate(features.backbones):
        arrays |= _prefixed(f"model.{number}", backbone.parameters.as_dict())
    arrays |= _prefixed("head", parts.head.arrays())
    for number, each in enumerate((parts.bounds, parts.bounds_if_held)):
        arrays |= _prefixed(f"bounds.{number}", each.arrays())
    if features.expectation is not None:
        arrays |= _prefixed("expectation", features.expectation.arrays())
    if parts.rank_head is not None:
        arrays |= _prefixed("ranking", parts.rank_head.trees.arrays())
    told = {
        "format": FORMAT,
        "version": __version__,
        "settings": asdict(parts.settings),
        "notes": list(parts.notes),
        "prior": [rules.prior.mean, rules.prior.strength],
        "strong": rules.strong,
        "models": [{name: getattr(each, name) for name in MODEL} for each in features.backbones],
        "names": {name: sha256(path / f"{name}.parquet") for name in NAMES},
    }
    save_arrays(path / FILE, arrays, told)


class StoredParts:
    """Evidence in its directory: opened here, and each part read when it is first asked for, and checked then."""

    def __init__(self, path: Path) -> None:
        if not (path / FILE).is_file():
            raise RunError(f"{path} holds no evidence: {FILE} is missing", hint="Make it: ukge evidence fit RUN")
        self._path, self._arrays = path, StoredArrays(path / FILE)
        self._told = self._arrays.notes
        if self._told.get("format") != FORMAT:
            raise RunError(
                f"{path} is evidence of format {self._told.get('format')}, this version reads format {FORMAT}",
                hint="Fit it again, or use the version of ukge that made it.",
            )
        self.settings = EvidenceSettings(**self._told["settings"])
        self.notes: tuple[str, ...] = tuple(self._told["notes"])

    @cached_property
    def features(self) -> Features:
        """What evidence is read from."""
        arrays, told = self._arrays, self._told
        names = {name: self._path / f"{name}.parquet" for name in NAMES}
        entities, relations = (_names(names[name], told["names"][name], kind) for name, kind in _KINDS.items())
        facts = arrays.part("facts")
        columns = facts["head"], facts["relation"], facts["tail"], facts["confidence"]
        graph = UncertainGraph.from_ids(*columns, entities, relations)
        rules = PathRules(
            arrays["rules.key"], arrays["rules.shown"], arrays["rules.implied"], Prior(*told["prior"]), told["strong"]
        )
        backbones = tuple(
            Backbone(**{name: each[name] for name in MODEL}, parameters=Parameters(**arrays.part(f"model.{number}")))
            for number, each in enumerate(told["models"])
        )
        tables, learnt = _as_tables(arrays.part("tables")), arrays.part("expectation")
        expectation = Trees.from_arrays(learnt) if learnt else None
        return Features(FactIndex(graph), tables, rules, backbones, arrays["category"], expectation)

    @cached_property
    def head(self) -> Head:
        """What makes a confidence of evidence."""
        return Head.from_arrays(self.settings.error, self._arrays.part("head"))

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds of any fact."""
        return Bounds.from_arrays(self._arrays.part("bounds.0"))

    @cached_property
    def bounds_if_held(self) -> Bounds:
        """The bounds of a fact that is taken to hold."""
        return Bounds.from_arrays(self._arrays.part("bounds.1"))

    @cached_property
    def rank_head(self) -> RankHead | None:
        """What orders the candidates of a query, if it was fitted."""
        return rank_head_from(self._arrays.part("ranking"), self.settings.rank_candidates)


_KINDS = dict(zip(NAMES, ("entity", "relation"), strict=True))


def _names(file: Path, digest: str, kind: str) -> Vocabulary:
    if not file.is_file():
        raise RunError(f"{file} is missing", hint=DAMAGED)
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)
    return Vocabulary.of_parquet(content, kind)


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
