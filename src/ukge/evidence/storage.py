"""Evidence in a directory: everything it was fitted to and with, in files that cannot execute code.

evidence.safetensors       known facts, sums, rules, models, trees, calibration and bounds, with a digest of all
entities.parquet, relations.parquet      the names behind the ids, whose SHA-256 the file above keeps
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ukge._version import __version__
from ukge.engines.base import Parameters
from ukge.errors import RunError
from ukge.evidence.backbones import Backbone
from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.head import Head
from ukge.evidence.index import FactIndex
from ukge.evidence.paths import PathRules
from ukge.evidence.ranking import RankHead, rank_head_from
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Groups, Implications, Tables
from ukge.evidence.trees import Trees
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.weights import Prior
from ukge.storage import DAMAGED, Arrays, load_arrays, save_arrays, sha256, write_atomically

FORMAT = 3
FILE = "evidence.safetensors"
NAMES = ("entities", "relations")
MODEL = ("name", "scorer", "link", "learns_confidence")
GROUPS = tuple(each.name for each in fields(Tables) if each.name != "implications")


def save_evidence(
    path: Path,
    features: Features,
    head: Head,
    bounds: tuple[Bounds, Bounds],
    rank_head: RankHead | None,
    settings: EvidenceSettings,
    notes: tuple[str, ...],
) -> None:
    """Write evidence to a directory, which is made if needed; what is there of an older one is replaced."""
    path.mkdir(parents=True, exist_ok=True)
    graph = features.index.graph
    for vocabulary, name in zip((graph.entities, graph.relations), NAMES, strict=True):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"name": vocabulary.names}), sink, compression="zstd")
        write_atomically(path / f"{name}.parquet", sink.getvalue().to_pybytes())
    arrays: Arrays = {f"facts.{name}": getattr(graph, name) for name in ("head", "relation", "tail", "confidence")}
    arrays |= _prefixed("tables", _tables(features.tables))
    rules = features.rules
    arrays["category"] = features.category
    arrays |= {"rules.key": rules.key, "rules.shown": rules.shown, "rules.implied": rules.implied}
    for number, backbone in enumerate(features.backbones):
        arrays |= _prefixed(f"model.{number}", backbone.parameters.as_dict())
    arrays |= _prefixed("head", head.arrays())
    for number, each in enumerate(bounds):
        arrays |= _prefixed(f"bounds.{number}", each.arrays())
    if features.expectation is not None:
        arrays |= _prefixed("expectation", features.expectation.arrays())
    if rank_head is not None:
        arrays |= _prefixed("ranking", rank_head.trees.arrays())
    told = {
        "format": FORMAT,
        "version": __version__,
        "settings": asdict(settings),
        "notes": list(notes),
        "prior": [rules.prior.mean, rules.prior.strength],
        "strong": rules.strong,
        "models": [{name: getattr(each, name) for name in MODEL} for each in features.backbones],
        "names": {name: sha256(path / f"{name}.parquet") for name in NAMES},
    }
    save_arrays(path / FILE, arrays, told)


def load_evidence(
    path: Path,
) -> tuple[Features, Head, Bounds, Bounds, RankHead | None, EvidenceSettings, tuple[str, ...]]:
    """Read what `save_evidence` wrote; a missing, cut or edited file is an error that names it."""
    if not (path / FILE).is_file():
        raise RunError(f"{path} holds no evidence: {FILE} is missing", hint="Make it: ukge evidence fit RUN")
    arrays, told = load_arrays(path / FILE)
    if told.get("format") != FORMAT:
        raise RunError(
            f"{path} is evidence of format {told.get('format')}, this version reads format {FORMAT}",
            hint="Fit it again, or use the version of ukge that made it.",
        )
    vocabularies = [_names(path / f"{name}.parquet", told["names"][name], kind) for name, kind in _KINDS.items()]
    facts = _part(arrays, "facts")
    graph = UncertainGraph.from_ids(
        facts["head"], facts["relation"], facts["tail"], facts["confidence"], vocabularies[0], vocabularies[1]
    )
    prior = Prior(*told["prior"])
    rules = PathRules(arrays["rules.key"], arrays["rules.shown"], arrays["rules.implied"], prior, told["strong"])
    backbones = tuple(
        Backbone(**{name: each[name] for name in MODEL}, parameters=Parameters(**_part(arrays, f"model.{number}")))
        for number, each in enumerate(told["models"])
    )
    settings = EvidenceSettings(**told["settings"])
    tables = _as_tables(_part(arrays, "tables"))
    learnt = _part(arrays, "expectation")
    expectation = Trees.from_arrays(learnt) if learnt else None
    features = Features(FactIndex(graph), tables, rules, backbones, arrays["category"], expectation)
    head = Head.from_arrays(settings.error, _part(arrays, "head"))
    bounds = [Bounds.from_arrays(_part(arrays, f"bounds.{number}")) for number in range(2)]
    rank_head = rank_head_from(_part(arrays, "ranking"), settings.rank_candidates)
    return features, head, bounds[0], bounds[1], rank_head, settings, tuple(told["notes"])


_KINDS = dict(zip(NAMES, ("entity", "relation"), strict=True))


def _names(file: Path, digest: str, kind: str) -> Vocabulary:
    if not file.is_file():
        raise RunError(f"{file} is missing", hint=DAMAGED)
    if sha256(file) != digest:
        raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)
    return Vocabulary(pq.read_table(file)["name"].combine_chunks(), kind=kind)


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
