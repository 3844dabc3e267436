"""Evidence in a directory: everything it was fitted to and with, in files that cannot execute code.

evidence.safetensors       sums, rules, trees, calibration and bounds, and the SHA-256 of all that they rest on
weights-N.safetensors      weights of models that are not the run's own

Facts, names and the run's weights are those of the run that it is in; evidence that is in no run has them beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError, model_validator

from ukge._version import __version__
from ukge.errors import RunError, UkgeError
from ukge.evaluation.answer_sets import AnswerSets
from ukge.evidence.backbones import Backbone
from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features, over_more
from ukge.evidence.kinds import KindErrors
from ukge.evidence.layout import AGAIN, Layout, arrays_of
from ukge.evidence.ranking import CandidateRanker
from ukge.evidence.regressor import ConfidenceRegressor
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Tables
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.weights import Prior
from ukge.models.links import links
from ukge.models.scorers import scorers
from ukge.models.scorers.base import dim_of
from ukge.models.tables import Parameters
from ukge.runs.additions import OWN, SUMS, Added
from ukge.runs.directory import EVIDENCE, Run, expected_weights, read_names
from ukge.runs.facts import FILES, TRAIN, KeptFacts, keep_facts
from ukge.runs.journal import FOLDER, refuse_if_added
from ukge.storage.arrays import Arrays, StoredArrays, checked, save_arrays
from ukge.storage.files import DAMAGED, replacing_directory, sha256, write_atomically
from ukge.storage.locks import alone

FORMAT = 4
FILE = "evidence.safetensors"
NAMES = ("entities", "relations")
_KINDS = dict(zip(NAMES, ("entity", "relation"), strict=True))
WEIGHTS = "weights.safetensors"


def has_evidence(run: Path) -> bool:
    """Return whether a run keeps evidence; a directory that an interrupted fit left without its file is none."""
    return (run / EVIDENCE / FILE).is_file()


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
    kinds: Mapping[str, KindErrors] = field(default_factory=dict)
    """errors on unseen facts and links, by the kind of these"""
    answer_sets: AnswerSets | None = None
    added: Added | None = None
    """what was added to its run since the training"""
    models: tuple[str, ...] = ()
    """the names under which rows that are added for its models are kept, where it is that of a run"""

    @classmethod
    def of(cls, parts: Parts | StoredParts) -> Parts:
        """Return all parts, read now where they are in a file."""
        return cls(**{each.name: getattr(parts, each.name) for each in fields(cls)})


def save_evidence(path: Path, parts: Parts | StoredParts, *, held: bool = False) -> None:
    """Write evidence into a run that learnt from the same facts, or, whole by itself, into a directory of its own.

    What is there of older evidence is replaced. `held` says that nobody else can write there: a run in the making.
    """
    home, folder = _places(path, parts.features.index.graph)
    with nullcontext() if held else alone(home), replacing_directory(folder, over=True) as made:
        _write(made if home == folder else home, made, parts)


def _write(home: Path, folder: Path, parts: Parts | StoredParts) -> None:
    """Write evidence into a new directory; `home` is where facts and names are."""
    features = parts.features
    graph = features.index.graph
    if home == folder:
        for vocabulary, name in zip((graph.entities, graph.relations), NAMES, strict=True):
            write_atomically(home / f"{name}.parquet", vocabulary.to_parquet())
        keep_facts(home, parts.dataset)
    rules, ranker = features.rules, parts.ranker
    stored = {
        "tables": features.tables,
        "category": features.category,
        "rules": rules,
        "head": parts.regressor,
        "bounds": (parts.bounds, parts.bounds_if_held),
        "expectation": features.expectation,
        "values": None if features.values is None else features.values.found,
        "ranking": None if ranker is None else ranker.trees,
        "sets": parts.answer_sets,
    }
    arrays: Arrays = {own: array for name, part in stored.items() for own, array in arrays_of(part, name).items()}
    kept = [_keep_weights(home, folder, number, each) for number, each in enumerate(features.backbones)]
    shared = [name for name in (*(f"{name}.parquet" for name in NAMES), *FILES) if (home / name).is_file()]
    told = {
        "format": FORMAT,
        "version": __version__,
        "settings": asdict(parts.settings),
        "notes": list(parts.notes),
        "kinds": {kind: asdict(errors) for kind, errors in parts.kinds.items()},
        "prior": [rules.prior.mean, rules.prior.strength],
        "strong": rules.strong,
        "models": [
            {"weights": weights, **{name: getattr(each, name) for name in ModelNote.model_fields if name != "weights"}}
            for each, weights in zip(features.backbones, kept, strict=True)
        ],
        "false": list(parts.regressor.false.names) if parts.regressor.false else [],
        "data": parts.dataset.name,
        "undirected": list(graph.undirected),
        "inverses": [list(pair) for pair in parts.dataset.inverses],
        "digests": {name: sha256(home / name) for name in shared} | {each: sha256(folder / each) for each in kept},
    }
    save_arrays(folder / FILE, arrays, told)


def save_sums(run: Path, tables: Tables, journal: str) -> None:
    """Keep the sums over all facts of a run as they are with the journal of this checksum."""
    save_arrays(run / FOLDER / SUMS, arrays_of(tables, "tables"), {"journal": journal})


def _row_name(model: ModelNote) -> str:
    """Return the name under which rows that were added for a model are kept."""
    return OWN if model.weights == f"../{WEIGHTS}" else Path(model.weights).stem


def _places(path: Path, graph: UncertainGraph) -> tuple[Path, Path]:
    """Return the directory that holds facts and names, and the one that evidence goes to."""
    run = path.parent if path.name == EVIDENCE else path
    if not (run / "manifest.json").is_file():
        if path.is_dir() and any(path.iterdir()) and not (path / FILE).is_file():
            raise RunError(f"{path} exists and holds no evidence", hint="Choose another directory, or remove this one.")
        return path, path
    refuse_if_added(run)
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


class ModelNote(BaseModel):
    """What is said of a model: how its weights make confidences, and where they are."""

    name: str
    scorer: str
    link: str
    learns_confidence: bool
    weights: str

    @model_validator(mode="after")
    def _is_known(self) -> ModelNote:
        """Refuse names that nobody has: later, an error could not say whose they are."""
        scorers.get(self.scorer)
        links.get(self.link)
        return self


class Notes(BaseModel):
    """What is said beside the arrays."""

    settings: EvidenceSettings
    notes: tuple[str, ...]
    kinds: dict[str, KindErrors] = Field(default_factory=dict)
    prior: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[FiniteFloat, Field(gt=0)]]
    strong: Annotated[float, Field(ge=0, le=1)]
    models: tuple[ModelNote, ...]
    false: tuple[str, ...] = ()
    data: str
    undirected: tuple[str, ...]
    inverses: tuple[tuple[str, str], ...]
    digests: dict[str, str]

    @classmethod
    def of(cls, file: Path, said: Mapping[str, Any]) -> Notes:
        """Check what a file says; anything else than was written there is an error that names it."""
        try:
            return cls.model_validate(said)
        except (ValidationError, UkgeError) as error:
            wrong = error.what if isinstance(error, UkgeError) else _first(error)
            raise RunError(f"{file} cannot be used: {wrong}", hint=AGAIN) from None


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"its note '{'.'.join(map(str, found['loc']))}' is wrong: {found['msg']}"


class StoredParts:
    """Evidence in its directory: opened here, and each part read when it is first asked for, and checked then."""

    def __init__(self, path: Path, *, copied: bool = False, added: bool = True) -> None:
        if not (path / FILE).is_file():
            raise RunError(f"{path} holds no evidence: {FILE} is missing", hint="Make it: ukge evidence fit RUN")
        self._path, self._copied, self._arrays = path, copied, StoredArrays(path / FILE, copied=copied)
        made = self._arrays.notes.get("format")
        if made != FORMAT:
            raise RunError(
                f"{path} is evidence of format {made}, this version reads format {FORMAT}",
                hint="Fit it again, or use the version of ukge that made it.",
            )
        self._told = Notes.of(path / FILE, self._arrays.notes)
        in_a_run = path.name == EVIDENCE and (path.parent / "manifest.json").is_file()
        self._home = path.parent if in_a_run else path
        self.added = Run(self._home).added if in_a_run and added else None
        self.settings, self.notes, self.kinds = self._told.settings, self._told.notes, self._told.kinds

    @property
    def names(self) -> tuple[Vocabulary, Vocabulary]:
        """The entity and the relation names, those that were added to the run at the end."""
        return self._trained_names if self.added is None else self.added.names

    @cached_property
    def _trained_names(self) -> tuple[Vocabulary, Vocabulary]:
        entities, relations = (
            read_names(self._checked(self._home / f"{name}.parquet"), kind) for name, kind in _KINDS.items()
        )
        strangers = {*self._told.undirected, *chain(*self._told.inverses)} - set(relations)
        if strangers:
            raise RunError(f"{self._path / FILE} speaks of an unknown relation {min(strangers)!r}", hint=AGAIN)
        return entities, relations

    @cached_property
    def facts(self) -> KeptFacts:
        """The facts that the evidence belongs to, those of all parts."""
        return KeptFacts(self._home, *self.names, self._told.undirected, self._told.inverses)

    @cached_property
    def dataset(self) -> Dataset:
        """The data set that the evidence belongs to."""
        for name in FILES:
            if name in self._told.digests:
                self._checked(self._home / name)
        dataset = self.facts.dataset(self._told.data)
        return dataset if self.added is None else self.added.dataset(dataset)

    @cached_property
    def features(self) -> Features:
        """What evidence is read from."""
        layout, told = self._layout, self._told
        self._checked(self._home / TRAIN)
        graph = self.facts.needed("train") if self.added is None else self.dataset.train
        undirected = graph.undirected_relations if graph.undirected else None
        backbones = tuple(
            Backbone(each.name, each.scorer, each.link, self._weights(each), each.learns_confidence, undirected)
            for each in told.models
        )
        rules = layout.rules(Prior(*told.prior), told.strong)
        learnt = layout.expectation(), layout.values()
        index = FactIndex(graph)
        if self.added is None:
            return Features(index, layout.tables(), rules, backbones, layout.category(), *learnt)
        tables = self._sums(index)
        return over_more(index, tables, rules, backbones, layout.category(), *learnt)

    def _sums(self, index: FactIndex) -> Tables:
        """Return the sums over all facts, those that were added too: as they are kept, or made now."""
        file = self._home / FOLDER / SUMS
        if self.added is not None and file.is_file():
            arrays = StoredArrays(file, copied=self._copied)
            if arrays.notes.get("journal") == self.added.print:
                sizes = index.n_entities, index.n_relations, len(self._told.models)
                return Layout(file, arrays, self.settings, *sizes).tables()
        return Tables.of(index)

    @property
    def models(self) -> tuple[str, ...]:
        """The names under which rows that are added for its models are kept."""
        return tuple(map(_row_name, self._told.models))

    def _weights(self, model: ModelNote) -> Parameters:
        """Map a model's weights, and check that they fit its scorer and the names."""
        name = model.weights
        file = self._home / WEIGHTS if name == f"../{WEIGHTS}" else self._path / Path(name).name
        arrays, scorer = StoredArrays(self._checked(file, name), copied=self._copied), scorers.get(model.scorer)
        entities, relations = self._trained_names
        width = next(iter(arrays["entity"].shape[1:]), 0) if "entity" in arrays else 0
        dim = dim_of(width, scorer.entity_width)
        expected = expected_weights(scorer, dim, len(entities), len(relations))
        trained = Parameters.of(checked(file, arrays, expected, hint=AGAIN))
        return trained if self.added is None else self.added.parameters(_row_name(model), trained)

    def _checked(self, file: Path, name: str | None = None) -> Path:
        if not file.is_file():
            raise RunError(f"{file} is missing", hint=DAMAGED)
        if sha256(file) != self._told.digests.get(name or str(file.relative_to(self._home))):
            raise RunError(
                f"{file} is not what the evidence in {self._path} was fitted with: it was changed or damaged",
                hint=AGAIN,
            )
        return file

    @cached_property
    def _layout(self) -> Layout:
        entities, relations = self._trained_names
        return Layout(
            self._path / FILE,
            self._arrays,
            self.settings,
            len(entities),
            len(relations),
            len(self._told.models),
            self._told.false,
        )

    @cached_property
    def regressor(self) -> ConfidenceRegressor:
        """What makes a confidence of evidence."""
        return self._layout.regressor()

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds of any fact."""
        return self._layout.bounds(0)

    @cached_property
    def bounds_if_held(self) -> Bounds:
        """The bounds of a fact that is taken to hold."""
        return self._layout.bounds(1)

    @cached_property
    def ranker(self) -> CandidateRanker | None:
        """What orders the candidates of a query, if it was fitted."""
        return self._layout.ranker()

    @cached_property
    def answer_sets(self) -> AnswerSets | None:
        """Answer sets of queries, if they were calibrated."""
        return self._layout.answer_sets()
