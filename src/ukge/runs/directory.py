"""The run directory: all that a training run was, is and found.

manifest.json      status, versions, seed, data and its fingerprint, result, SHA-256 of the files below
config.toml        the resolved settings, ready for `ukge train --config`
entities.parquet, relations.parquet      the names behind the ids
data/                                    the facts and the split that it was made from, see `facts`
ground_rules.safetensors                 the ground rules it learns from, if any
weights.safetensors                      the best epoch's weights
checkpoint.safetensors                   the last epoch's weights and the optimiser, to resume from
trace.jsonl                              one line per epoch
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ukge._version import __version__
from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.graph.partitioned import is_prepared, open_prepared
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.ground_rules import GroundRules
from ukge.models.parameters import Parameters, State
from ukge.models.scorers import scorers
from ukge.runs import facts
from ukge.settings.config import Config, read_config, to_toml
from ukge.storage.arrays import StoredArrays, load_arrays, map_arrays, save_arrays
from ukge.storage.files import DAMAGED, sha256, write_atomically

FORMAT = 2
BLOCK = 1 << 16
"""Rows that are looked at together when a table is checked."""

EVIDENCE = "evidence"
"""Where a run directory keeps its evidence."""

IN_MEMORY = "(in memory)"
"""Where data came from that no file holds."""
LISTED = (
    "config.toml",
    "entities.parquet",
    "relations.parquet",
    "ground_rules.safetensors",
    "weights.safetensors",
    *facts.FILES,
)
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


@dataclass
class Progress:
    """Where a run stands; stored with every checkpoint."""

    epoch: int = 0
    best_epoch: int = -1
    best: float | None = None
    stale: int = 0
    facts: int = 0
    finished: bool = False


class Run:
    """One run directory."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

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
        """Make a new run directory; one that holds anything is refused, unless it is a run and `overwrite` is said.

        It keeps the facts of a data set; of facts that are too large for that, it keeps the names.
        """
        run = cls(path)
        if run.path.exists() and (not run.path.is_dir() or any(run.path.iterdir())):
            run._give_way(overwrite)
        run.path.mkdir(parents=True, exist_ok=True)
        write_atomically(run.path / "config.toml", to_toml(config).encode())
        if isinstance(facts_or_names, Dataset):
            facts.keep_facts(run.path, facts_or_names)
            names = facts_or_names.entities, facts_or_names.relations
        else:
            names = facts_or_names
        for vocabulary, name in zip(names, ("entities", "relations"), strict=True):
            write_atomically(run.path / f"{name}.parquet", vocabulary.to_parquet())
        if rules is not None:
            arrays = {name: getattr(rules, name) for name in ("head", "relation", "tail", "body", "weight")}
            save_arrays(run.path / "ground_rules.safetensors", arrays)
        manifest = {
            "format": FORMAT,
            "status": "started",
            "model": model,
            "seed": config.runtime.seed,
            "data": vars(data),
            "versions": {"ukge": __version__, "python": platform.python_version(), **_versions()},
        }
        run.write_manifest(manifest)
        return run

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open a run directory and check every listed file against its checksum."""
        run = cls(path)
        for name, digest in run.manifest()["files"].items():
            file = run.path / name
            if not file.is_file():
                raise RunError(f"{file} is missing", hint=DAMAGED)
            if sha256(file) != digest:
                raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)
        return run

    def _give_way(self, overwrite: bool) -> None:
        """Remove an old run; whatever else is there was not made by a training and is never removed."""
        if not (self.path / "manifest.json").is_file():
            raise RunError(f"{self.path} exists and is not empty", hint="Choose another directory, or remove this one.")
        if not overwrite:
            raise RunError(
                f"{self.path} exists and is not empty: it holds a run",
                hint=f"Go on with it (ukge train --resume {self.path}), replace it (‹overwrite=True›), or choose "
                "another directory.",
            )
        shutil.rmtree(self.path)

    def manifest(self) -> dict[str, Any]:
        """Return the manifest, checked."""
        file = self.path / "manifest.json"
        if not file.is_file():
            raise RunError(f"{self.path} is not a run directory: manifest.json is missing")
        try:
            manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            checksum = manifest.pop("checksum")
        except (ValueError, KeyError, AttributeError):
            raise RunError(f"{file} is damaged: it cannot be read", hint=DAMAGED) from None
        if checksum != _checksum(manifest):
            raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)
        if manifest["format"] != FORMAT:
            raise RunError(
                f"{self.path} is a run of format {manifest['format']}, this version reads format {FORMAT}",
                hint="Train it again: runs keep their facts now. Or use the version that its manifest names.",
            )
        return manifest

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest with the checksums of the listed files that are there; those of facts never change."""
        known = {name: digest for name, digest in manifest.get("files", {}).items() if name in facts.FILES}
        here = [name for name in LISTED if name not in known and (self.path / name).is_file()]
        files = known | {name: sha256(self.path / name) for name in here}
        whole = {**manifest, "files": files}
        text = json.dumps({**whole, "checksum": _checksum(whole)}, indent=2, ensure_ascii=False)
        write_atomically(self.path / "manifest.json", text.encode())

    def update(self, **changes: Any) -> None:
        """Change some entries of the manifest."""
        self.write_manifest({**self.manifest(), **changes})

    @property
    def config(self) -> Config:
        """The resolved settings."""
        return read_config(self.path / "config.toml")

    @property
    def data(self) -> DataNote:
        """What the run learnt from."""
        noted = self.manifest()["data"]
        inverses = tuple((first, second) for first, second in noted["inverses"])
        return DataNote(**{**noted, "undirected": tuple(noted["undirected"]), "inverses": inverses})

    @property
    def kept(self) -> facts.KeptFacts | None:
        """The facts that the run keeps, None where it refers to facts elsewhere."""
        if not (self.path / facts.FOLDER).is_dir():
            return None
        note = self.data
        return facts.KeptFacts(self.path, *self.vocabularies, note.undirected, note.inverses)

    def dataset(self, data: str | Path | None = None) -> Dataset:
        """Return the data set that the run keeps, or, of facts too large for that, the prepared directory it refers to.

        `data` is where that directory is now.
        """
        note, kept = self.data, self.kept
        if kept is not None:
            if data is not None:
                raise RunError(f"{self.path} keeps its facts", hint="Leave out ‹data›.")
            return kept.dataset(note.name)
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

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The entity and relation names behind the ids."""
        entities, relations = ((self.path / f"{name}.parquet").read_bytes() for name in ("entities", "relations"))
        return Vocabulary.of_parquet(entities, "entity"), Vocabulary.of_parquet(relations, "relation")

    @property
    def rules(self) -> GroundRules | None:
        """The ground rules the run learns from."""
        file = self.path / "ground_rules.safetensors"
        return GroundRules(**load_arrays(file)[0]) if file.is_file() else None

    def save_weights(self, parameters: Parameters, notes: dict[str, Any]) -> None:
        """Write the best weights so far."""
        save_arrays(self.path / "weights.safetensors", parameters.as_dict(), notes)

    def load_weights(self) -> Parameters:
        """Map the best weights from their file, and check that they fit the run's settings and names."""
        file = self.path / "weights.safetensors"
        arrays = StoredArrays(file)
        settings = self.config.model
        scorer = scorers.get(settings.scorer)
        entities, relations = self.vocabularies
        expected = {
            "entity": (len(entities), scorer.entity_width(settings.dim)),
            "relation": (len(relations), scorer.relation_width(settings.dim)),
            "link": (2,),
        }
        for name, shape in expected.items():
            found = arrays.get(name)
            if found is None or found.shape != shape or found.dtype != np.float32:
                has = "is missing" if found is None else f"is {found.dtype} {found.shape}"
                raise RunError(f"{file} does not fit the run: '{name}' {has}, expected float32 {shape}", hint=DAMAGED)
            if not all(np.isfinite(found[at : at + BLOCK]).all() for at in range(0, len(found), BLOCK)):
                raise RunError(f"{file} cannot be used: '{name}' holds numbers that are not finite", hint=DAMAGED)
        return Parameters(**{name: arrays[name] for name in expected})

    def save_checkpoint(
        self, parameters: Parameters, state: State, best: Parameters | None, progress: Progress
    ) -> None:
        """Write all that resuming needs, in one file, so that no moment leaves half of it behind."""
        arrays = {f"parameters.{name}": array for name, array in parameters.as_dict().items()}
        arrays |= {f"state.{name}": array for name, array in state.items()}
        if best is not None and progress.best_epoch != progress.epoch:
            arrays |= {f"best.{name}": array for name, array in best.as_dict().items()}
        save_arrays(self.path / "checkpoint.safetensors", arrays, vars(progress))

    def load_checkpoint(self, *, mapped: bool = False) -> tuple[Parameters, State, Parameters | None, Progress] | None:
        """Read the last checkpoint, or None if the run never wrote one; if `mapped`, arrays stay in its file."""
        file = self.path / "checkpoint.safetensors"
        if not file.is_file():
            return None
        arrays, notes = map_arrays(file) if mapped else load_arrays(file)

        def part(prefix: str) -> State:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        progress = Progress(**notes)
        parameters = Parameters(**part("parameters."))
        best = Parameters(**part("best.")) if "best.entity" in arrays else None
        if best is None and progress.best_epoch == progress.epoch:
            best = parameters if mapped else parameters.copy()
        return parameters, part("state."), best, progress

    def discard_if_untrained(self) -> None:
        """Remove the directory, which `create` made, unless an epoch was run."""
        if not self.trace():
            shutil.rmtree(self.path)

    def append_trace(self, line: dict[str, Any]) -> None:
        """Add one epoch to the trace."""
        with (self.path / "trace.jsonl").open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(line) + "\n")

    def trace(self) -> list[dict[str, Any]]:
        """Return the epochs of the trace; a last line cut short by a kill is left out."""
        file = self.path / "trace.jsonl"
        lines: list[dict[str, Any]] = []
        if file.is_file():
            for text in file.read_text(encoding="utf-8").splitlines():
                try:
                    lines.append(json.loads(text))
                except ValueError:
                    break
        return lines

    def truncate_trace(self, epochs: int) -> None:
        """Forget the epochs after the checkpoint; they will be run again."""
        kept = [json.dumps(line) + "\n" for line in self.trace() if line["epoch"] <= epochs]
        write_atomically(self.path / "trace.jsonl", "".join(kept).encode())


def _versions() -> dict[str, str]:
    from importlib.metadata import version  # noqa: PLC0415 — only a new run needs it

    return {name: version(name) for name in LIBRARIES}


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
