"""The run directory: all that a training run was, is and found.

manifest.json      status, versions, seed, data and its fingerprint, result, SHA-256 of the files below
config.toml        the resolved settings, ready for `ukge train --config`
entities.parquet, relations.parquet      the names behind the ids
data/                                    the facts and the split that it was made from, see `facts`
ground_rules.safetensors                 the ground rules it learns from, if any
weights.safetensors                      the best epoch's weights
checkpoint.safetensors                   the last epoch's weights and the optimiser, to resume from
trace.jsonl                              one line per epoch
added/                                   what was added since, see `additions`
labels.jsonl                             what people said of its facts, see `labels`
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ukge.errors import RunError, UkgeError
from ukge.graph.dataset import Dataset
from ukge.graph.partitioned import is_prepared, open_prepared
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.ground_rules import GroundRules
from ukge.models.scorers import Scorer, scorers
from ukge.models.tables import SHARED, Parameters, State
from ukge.runs import additions, facts, manifest
from ukge.runs.additions import OWN, Added
from ukge.runs.journal import has_additions
from ukge.runs.manifest import CONFIG, NAMES, RULES, TRACE, WEIGHTS, DataNote
from ukge.settings.config import Config, read_config, to_toml
from ukge.storage.arrays import Expected, StoredArrays, checked, load_arrays, map_arrays, save_arrays
from ukge.storage.files import DAMAGED, Making, write_atomically, writing
from ukge.storage.sealed import sealed, unsealed

if TYPE_CHECKING:
    from ukge.graph.claims import Claims

EVIDENCE = "evidence"
"""Where a run directory keeps its evidence."""
CHECKPOINT = "checkpoint.safetensors"

LABELS = "labels.jsonl"
"""What people said of a run's facts, see `labels`."""

IN_MEMORY = "(in memory)"
"""Where data came from that no file holds."""


@dataclass
class Progress:
    """Where a run stands; stored with every checkpoint."""

    epoch: int = 0
    best_epoch: int = -1
    best: float | None = None
    stale: int = 0
    facts: int = 0
    finished: bool = False

    @classmethod
    def read(cls, notes: Any, source: Path) -> Progress:
        """Return what a checkpoint notes; anything else than it must be is a `RunError`."""
        counts = {"epoch": 0, "best_epoch": -1, "stale": 0, "facts": 0}
        sound = (
            isinstance(notes, dict)
            and notes.keys() == vars(cls()).keys()
            and all(type(notes[name]) is int and notes[name] >= least for name, least in counts.items())
            and type(notes["finished"]) is bool
            and isinstance(notes["best"], float | int | None)
        )
        if not sound:
            raise RunError(f"{source} cannot be used: it does not say how far training came", hint=DAMAGED)
        return cls(**notes)


class Run:
    """One run directory. Whoever writes to it holds it `alone`; a new one is made aside until it is published."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._making: Making | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        config: Config,
        data: DataNote,
        facts_or_names: Dataset | tuple[Vocabulary, Vocabulary],
        rules: GroundRules | None,
        *,
        model: str,
        overwrite: bool = False,
    ) -> Run:
        """Make a new run directory, which takes its place when it is published.

        It keeps the facts of a data set; of facts that are too large for that, it keeps the names.
        """
        refuse_if_taken(path, overwrite=overwrite)
        making = Making(Path(path))
        run = cls(making.path)
        run._making = making
        try:
            with writing(making.target):
                run._fill(config, data, facts_or_names, rules, model)
        except BaseException:
            making.discard()
            raise
        return run

    def _fill(
        self,
        config: Config,
        data: DataNote,
        facts_or_names: Dataset | tuple[Vocabulary, Vocabulary],
        rules: GroundRules | None,
        model: str,
    ) -> None:
        write_atomically(self.path / CONFIG, to_toml(config).encode())
        if isinstance(facts_or_names, Dataset):
            facts.keep_facts(self.path, facts_or_names)
            names = facts_or_names.entities, facts_or_names.relations
        else:
            names = facts_or_names
        for vocabulary, name in zip(names, NAMES, strict=True):
            write_atomically(self.path / name, vocabulary.to_parquet())
        if rules is not None:
            save_arrays(self.path / RULES, {name: getattr(rules, name) for name in _RULES})
        manifest.write_manifest(self.path, manifest.new_manifest(model, config.runtime.seed, data))

    def publish(self) -> None:
        """Let a new run take its place, that of an old run if there is one; what was published stays as it is.

        What people said of the old run's facts goes over to the new one.
        """
        if self._making is not None:
            said = self._making.target / LABELS
            if said.is_file() and not (self.path / LABELS).exists():
                write_atomically(self.path / LABELS, said.read_bytes())
            self._making.publish(over=(self._making.target / manifest.FILE).is_file())
            self.path, self._making = self._making.path, None

    def discard(self) -> None:
        """Remove a new run that was not published."""
        if self._making is not None:
            self._making.discard()
            self._making = None

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open a run directory and check every file that it must have against its checksum."""
        run = cls(path)
        manifest.check_files(run.path, run.manifest())
        _ = run.added
        return run

    def manifest(self) -> dict[str, Any]:
        """Return the manifest, checked."""
        return manifest.read_manifest(self.path)

    def update(self, **changes: Any) -> None:
        """Change some entries of the manifest."""
        manifest.write_manifest(self.path, {**self.manifest(), **changes})

    @property
    def config(self) -> Config:
        """The resolved settings."""
        return read_config(self.path / CONFIG)

    @property
    def data(self) -> DataNote:
        """What the run learnt from."""
        return DataNote.read(self.manifest()["data"])

    @property
    def kept(self) -> facts.KeptFacts | None:
        """The facts that the run keeps, None where it refers to facts elsewhere."""
        if not (self.path / facts.FOLDER).is_dir():
            return None
        note = self.data
        return facts.KeptFacts(self.path, *self.vocabularies, note.undirected, note.inverses)

    @cached_property
    def added(self) -> Added | None:
        """What was added since the training and stands, as it was when it was first asked for; None if nothing was."""
        if not has_additions(self.path):
            return None
        weights = self.manifest()["files"].get(WEIGHTS, "")
        return additions.read_added(self.path, self.trained_vocabularies, weights, self.data.undirected)

    def dataset(self, data: str | Path | None = None) -> Dataset:
        """Return the data set that the run keeps, or, of facts too large for that, the prepared directory it refers to.

        What was added since the training is among the training facts. `data` is where the prepared directory is now.
        """
        note, kept = self.data, self.kept
        if kept is not None:
            if data is not None:
                raise RunError(f"{self.path} keeps its facts", hint="Leave out ‹data›.")
            dataset = kept.dataset(note.name)
            return dataset if self.added is None else self.added.dataset(dataset)
        place = Path(note.reference if data is None else data)
        if not is_prepared(place):
            raise RunError(f"the facts of {self.path} are not at {place}", hint="Say where they are now: ‹data=DIR›.")
        dataset = open_prepared(place).dataset()
        if (dataset.entities, dataset.relations) != self.vocabularies or len(dataset.train) != note.facts:
            raise RunError(
                f"{self.path} learnt from other facts than {place} holds",
                hint="Say where those are that it learnt from: ‹data=DIR›.",
            )
        return dataset

    def claims(self) -> Claims | None:
        """Return the claims that the run's facts were made of, None where it keeps none."""
        kept = self.kept
        return None if kept is None else kept.claims()

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The entity and relation names behind the ids: those of the training, then those that were added."""
        return self.trained_vocabularies if self.added is None else self.added.names

    @property
    def trained_vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The names that the training saw."""
        entities, relations = (read_names(self.path / name, kind) for name, kind in NAMES.items())
        return entities, relations

    @property
    def rules(self) -> GroundRules | None:
        """The ground rules the run learns from."""
        file = self.path / RULES
        if not file.is_file():
            return None
        entities, relations = self.vocabularies
        ids = {"head": len(entities), "relation": len(relations), "tail": len(entities)}
        expected = {name: Expected("int32", ("rules",), low=0, high=size - 1) for name, size in ids.items()}
        expected |= {name: Expected("float32", ("rules",)) for name in ("body", "weight")}
        return GroundRules(**checked(file, load_arrays(file)[0], expected))

    def save_weights(self, parameters: Parameters, notes: dict[str, Any]) -> None:
        """Write the best weights so far."""
        save_arrays(self.path / WEIGHTS, parameters.as_dict(), notes)

    def load_weights(self, *, copied: bool = False) -> Parameters:
        """Map the best weights from their file, or copy them, and check that they fit the run's settings and names.

        Names that were added since have rows of their own.
        """
        file = self.path / WEIGHTS
        trained = Parameters.of(checked(file, StoredArrays(file, copied=copied), self._tables()))
        return trained if self.added is None else self.added.parameters(OWN, trained)

    def _tables(self) -> dict[str, Expected]:
        """Return what weights must be that fit the run's settings and names."""
        settings = self.config.model
        entities, relations = self.trained_vocabularies
        return expected_weights(scorers.get(settings.scorer), settings.dim, len(entities), len(relations))

    def save_checkpoint(
        self, parameters: Parameters, state: State, best: Parameters | None, progress: Progress
    ) -> None:
        """Write all that resuming needs, in one file, so that no moment leaves half of it behind."""
        arrays = {f"parameters.{name}": array for name, array in parameters.as_dict().items()}
        arrays |= {f"state.{name}": array for name, array in state.items()}
        if best is not None and progress.best_epoch != progress.epoch:
            arrays |= {f"best.{name}": array for name, array in best.as_dict().items()}
        trace = self.path / TRACE
        if trace.is_file():  # on the disk before what goes on from it
            with trace.open("rb") as handle:
                os.fsync(handle.fileno())
        save_arrays(self.path / CHECKPOINT, arrays, vars(progress))

    def load_checkpoint(self, *, mapped: bool = False) -> tuple[Parameters, State, Parameters | None, Progress] | None:
        """Read the last checkpoint, or None if the run never wrote one; if `mapped`, arrays stay in its file.

        Weights fit the run; whether the optimiser's state fits is for the engine to say.
        """
        file = self.path / CHECKPOINT
        if not file.is_file():
            return None
        arrays, notes = map_arrays(file) if mapped else load_arrays(file)
        progress, tables = Progress.read(notes, file), self._tables()

        def part(prefix: str) -> State:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        parameters = Parameters.of(checked(file, part("parameters."), tables))
        best = Parameters.of(checked(file, part("best."), tables)) if "best.entity" in arrays else None
        if best is None and progress.best_epoch == progress.epoch:
            best = parameters if mapped else parameters.copy()
        return parameters, part("state."), best, progress

    def append_trace(self, line: dict[str, Any]) -> None:
        """Add one epoch to the trace."""
        file = self.path / TRACE
        with writing(file), file.open("a", encoding="utf-8") as handle:
            handle.write(sealed(line) + "\n")

    def trace(self) -> list[dict[str, Any]]:
        """Return the epochs of the trace; a last line cut short by a kill is left out, a damaged one is an error."""
        return self._trace(None)

    def truncate_trace(self, epochs: int) -> None:
        """Forget what comes after the epochs of the checkpoint: they will be run again."""
        file = self.path / TRACE
        kept = self._trace(epochs)
        if len(kept) < epochs:
            raise RunError(f"{file} is damaged: it ends after {len(kept)} of {epochs} epochs", hint=DAMAGED)
        content = "".join(sealed(line) + "\n" for line in kept)
        if not file.is_file() or file.read_bytes() != content.encode():
            write_atomically(file, content.encode())

    def _trace(self, epochs: int | None) -> list[dict[str, Any]]:
        """Return the lines of the first epochs, or of all; what comes after them is not looked at."""
        file = self.path / TRACE
        if not file.is_file():
            return []
        *lines, _ = file.read_bytes().split(b"\n")  # what follows the last end of a line was cut short
        strict = self.manifest()["format"] == manifest.FORMAT
        found = []
        for number, text in enumerate(lines[:epochs], start=1):
            line = unsealed(text, f"{file}, line {number},", strict=strict)
            if line.get("epoch") != number:
                raise RunError(f"{file}, line {number}, is damaged: it is not that of epoch {number}", hint=DAMAGED)
            found.append(line)
        return found


_RULES = ("head", "relation", "tail", "body", "weight")


def expected_weights(scorer: Scorer, dim: int, n_entities: int, n_relations: int) -> dict[str, Expected]:
    """Return what the weights of a model must be."""
    tables = {
        "entity": Expected("float32", (n_entities, scorer.entity_width(dim))),
        "relation": Expected("float32", (n_relations, scorer.relation_width(dim))),
        "link": Expected("float32", (2,)),
    }
    return tables | {f"{SHARED}{part.name}": Expected("float32", part.shape) for part in scorer.shared_parts(dim)}


def refuse_if_taken(path: str | Path, *, overwrite: bool) -> None:
    """Refuse a place that holds anything, unless it is a run and may be replaced; whatever else is never removed."""
    place = Path(path)
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    if not (place / manifest.FILE).is_file():
        raise RunError(f"{place} exists and is not empty", hint="Choose another directory, or remove this one.")
    if not overwrite:
        raise RunError(
            f"{place} exists and is not empty: it holds a run",
            hint=f"Go on with it (ukge train --resume {place}), replace it (‹overwrite=True›), or choose another "
            "directory.",
        )


def read_names(file: Path, kind: str) -> Vocabulary:
    """Read the names behind ids; whatever is wrong with the file is an error that names it."""
    try:
        return Vocabulary.of_parquet(file.read_bytes(), kind)
    except (OSError, pa.ArrowException, KeyError, UkgeError) as error:
        raise RunError(f"{file} cannot be used: {error}", hint=DAMAGED) from None
