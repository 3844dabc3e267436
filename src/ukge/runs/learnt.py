"""What was learnt: what training tells while it goes on, what it found, and a run opened to be asked or judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError, RunError, Wording, in_python, worded
from ukge.graph.dataset import Dataset
from ukge.graph.vocabulary import Vocabulary
from ukge.html.pictures import curve
from ukge.models.model import Model, as_model
from ukge.models.scorers.base import width_of
from ukge.models.tables import Parameters
from ukge.runs.directory import Run
from ukge.runs.manifest import FINISHED, DataNote
from ukge.settings.config import Config
from ukge.settings.variants import paper_tau
from ukge.storage.locks import alone

if TYPE_CHECKING:
    import pandas as pd

    from ukge.html.card import Figure

MEASURED = ("metric", "value", "best", "best_epoch", "seconds", "facts_per_second")

LEARNING = 0.01
"""Share by which the last validation must be better than all before it for a training to have ended too early."""


@dataclass(frozen=True, slots=True)
class Collapse:
    """What is seen of a model that predicts the same for everything, the likely cause, and what to do.

    `harmless` if there was nothing to learn. The texts name arguments as those of errors do.
    """

    seen: str
    cause: str
    remedy: str
    harmless: bool = False

    def what(self, wording: Wording = in_python) -> str:
        """Return what is seen and why, in the words of a surface."""
        return worded(f"{self.seen}: {self.cause}", wording)

    def hint(self, wording: Wording = in_python) -> str:
        """Return what to do, in the words of a surface."""
        return worded(self.remedy, wording)


@dataclass(frozen=True)
class EpochEvent:
    """What a callback is told after each epoch."""

    epoch: int
    epochs: int
    losses: dict[str, float]
    loss: float
    facts: int
    seconds: float
    metric: str
    value: float | None
    best: float | None
    best_epoch: int
    pseudo: int = 0
    """pseudo facts that a student learnt from"""

    def line(self) -> dict[str, Any]:
        """Return the event as a line of the trace."""
        line = {
            "epoch": self.epoch,
            "loss": self.loss,
            "losses": self.losses,
            "facts_per_second": round(self.facts / max(self.seconds, 1e-9)),
            "seconds": round(self.seconds, 4),
            "metric": self.metric,
            "value": self.value,
            "best": self.best,
            "best_epoch": self.best_epoch,
        }
        return line | {"pseudo_facts": self.pseudo} if self.pseudo else line


Callback = Callable[[EpochEvent], None]


@dataclass(repr=False)
class Trained:
    """What training found: the weights of the best epoch, and how it went."""

    parameters: Parameters
    config: Config
    metric: str
    best: float | None
    best_epoch: int
    epochs: int
    seconds: float
    events: list[EpochEvent] = field(default_factory=list)
    collapsed: Collapse | None = None
    """What is wrong, if the model predicts the same for everything."""
    undirected: npt.NDArray[np.bool_] | None = None
    """Which relations have no direction, if any."""
    remark: str = ""
    """Said of a training that ended while it was still learning."""

    def result(self) -> dict[str, Any]:
        """Return what a run's manifest keeps of it."""
        result = {"metric": self.metric, "best": self.best, "best_epoch": self.best_epoch, "epochs": self.epochs}
        return result if self.collapsed is None else {**result, "collapsed": asdict(self.collapsed)}

    def __repr__(self) -> str:
        best = "" if self.best is None else f"validation {self.metric} {self.best:.5f} in epoch {self.best_epoch}, "
        return f"Trained({best}{self.epochs} epochs)"

    def model(self, device: str = "cpu") -> Model:
        """Return the model that predicts with these weights."""
        return as_model(self.parameters, self.config, device, self.undirected)


def still_learning(trace: Sequence[Mapping[str, Any]]) -> str:
    """Say that a training ended while it was still learning, given a line per epoch; nothing if it was not.

    One that patience stopped was not: its last validations were no better than those before them.
    """
    student = bool(trace and trace[-1].get("pseudo_facts"))  # judged without its teacher
    measured = [line for line in trace if line["value"] is not None and student == bool(line.get("pseudo_facts"))]
    if len(measured) < 2 or measured[-1]["best_epoch"] != trace[-1]["epoch"]:
        return ""
    before, last = measured[-2]["best"], measured[-1]["value"]
    if abs(last - before) <= LEARNING * abs(before):
        return ""
    way = "falling" if last < before else "rising"
    epochs = f"{trace[-1]['epoch']:,} epochs"
    return f"validation {measured[-1]['metric']} was still {way} when training ended after {epochs}"


@dataclass(frozen=True, eq=False)
class Learnt:
    """A trained model with its names, a note on its data, and a line per epoch."""

    trained: Trained
    entities: Vocabulary
    relations: Vocabulary
    note: DataNote
    trace: list[dict[str, Any]]
    data: Dataset | Run
    """what it learnt from, or the run that keeps it"""
    judged: str | None = None
    """the run whose figures stand for this one, which learnt from all facts: none was left to judge it"""

    def dataset(self) -> Dataset:
        """Return what it learnt from."""
        return self.data if isinstance(self.data, Dataset) else self.data.dataset()

    @cached_property
    def predictor(self) -> Model:
        """The model, by ids."""
        return self.trained.model()

    @property
    def names(self) -> tuple[Vocabulary, Vocabulary]:
        """The entity and the relation names."""
        return self.entities, self.relations

    @property
    def mean(self) -> float:
        """The mean confidence of the training facts."""
        if self.note.mean is None:
            raise DataError(
                "the run does not say the mean confidence of its training facts, by which names never seen are judged",
                hint="Leave out the facts with unknown names, or train again.",
            )
        return self.note.mean

    def history(self) -> pd.DataFrame:
        """Return a row per epoch, with the terms of the loss as columns of their own."""
        import pandas as pd  # noqa: PLC0415 — for those who look

        rows = []
        for line in self.trace:
            terms = {f"loss_{term}": value for term, value in line["losses"].items()}
            measured = {name: line[name] for name in MEASURED}
            rows.append({"epoch": line["epoch"], "loss": line["loss"], **terms, **measured})
        frame = pd.DataFrame(rows, columns=None if rows else ["epoch", "loss", *MEASURED])
        return frame.astype({"value": float, "best": float})

    def embeddings(self, kind: str) -> pd.DataFrame:
        """Return a row of numbers per entity or relation, in columns called by the parts of a row."""
        import pandas as pd  # noqa: PLC0415

        weights, scorer = self.trained.parameters, self.predictor.scorer
        if kind not in ("entity", "relation"):
            raise ConfigError(f"there are no embeddings of kind {kind!r}", hint="Known: entity, relation.")
        names, table, parts = (
            (self.entities, weights.entity, scorer.entity_parts)
            if kind == "entity"
            else (self.relations, weights.relation, scorer.relation_parts)
        )
        dim = self.trained.config.model.dim
        columns = [f"{part.name}{at}" for part in parts for at in range(width_of([part], dim))]
        if len(columns) != table.shape[1]:  # a scorer that does not say what its rows hold
            columns = [f"x{at}" for at in range(table.shape[1])]
        return pd.DataFrame(table, index=pd.Index(list(names), name=kind), columns=columns, copy=True)

    def summary(self) -> str:
        """Say what it was trained on, and how well."""
        facts = "" if self.note.facts is None else f"{self.note.facts:,} facts of "
        best = "" if self.trained.best is None else f": validation {self.trained.metric} {self.trained.best:.5f}"
        when = f" in epoch {self.trained.best_epoch} of {self.trained.epochs}" if best else ""
        relations = f"{len(self.relations):,} relation{'s' if len(self.relations) != 1 else ''}"
        stands = "" if self.judged is None else f"; figures are of the run that was judged, {self.judged}"
        return f"trained on {facts}{len(self.entities):,} entities and {relations}{best}{when}{stands}"

    def pictures(self) -> list[Figure]:
        """Return how the loss and the validation metric went."""
        loss = curve([(line["epoch"], line["loss"]) for line in self.trace], "loss")
        values = [(line["epoch"], line["value"]) for line in self.trace if line["value"] is not None]
        metric = f"validation {self.trained.metric}"
        return [
            ("loss", loss),
            (f"{metric}, ● chosen", curve(values, metric, best=self.trained.best_epoch)),
        ]

    def save(self, path: str | Path, model: str, *, overwrite: bool = False) -> None:
        """Write a run directory, with the facts that it learnt from; it appears whole or not at all."""
        trained, dataset = self.trained, self.dataset()
        note = DataNote.of(dataset, self.note.reference)
        with alone(path):
            run = Run.create(path, trained.config, note, dataset, None, model=model, overwrite=overwrite)
            try:
                self.write(run)
                run.publish()
            finally:
                run.discard()

    def write(self, run: Run, **more: Any) -> None:
        """Write what was learnt into a run in the making, with more entries for its manifest."""
        result = self.trained.result()
        run.save_weights(self.trained.parameters, {name: result[name] for name in ("metric", "best", "best_epoch")})
        run.truncate_trace(0)
        for line in self.trace:
            run.append_trace(line)
        run.update(status=FINISHED, result=result, **more)

    @classmethod
    def load(cls, run: Run, *, copied: bool = False) -> Learnt:
        """Read a finished run; if `copied`, its weights are in memory, whatever happens to their file."""
        manifest = run.manifest()
        if manifest["status"] != FINISHED:
            raise RunError(
                f"{run.path} is not finished (status: {manifest['status']})",
                hint=f"Go on with it: ukge train --resume {run.path}",
            )
        result = manifest["result"]
        figures = {name: result[name] for name in ("metric", "best", "best_epoch", "epochs")}
        collapsed = Collapse(**result["collapsed"]) if "collapsed" in result else None
        note, (entities, relations), trace = run.data, run.vocabularies, run.trace()
        trained = Trained(
            run.load_weights(copied=copied),
            run.config,
            seconds=0.0,
            collapsed=collapsed,
            undirected=np.isin(list(relations), note.undirected) if note.undirected else None,
            remark=still_learning(trace),
            **figures,
        )
        return cls(trained, entities, relations, note, trace, run, manifest.get("judged"))


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run directory with its model, by ids, and its data set. `tau` is the confidence above which a fact is strong.

    On the paper's graphs τ is the paper's; elsewhere it is what the run was trained with.
    """

    run: Run
    model: Model
    dataset: Dataset
    tau: float

    @property
    def name(self) -> str:
        """The name of the run directory."""
        return self.run.path.resolve().name

    @property
    def data_key(self) -> tuple[str, str]:
        """What two runs must share to stand in one table: the training facts and the test facts."""
        note, added = self.run.data, self.run.added
        since = "" if added is None else f"+{added.print}"
        return (note.train + since, note.test) if note.train else (note.reference, "")


def open_run(path: str | Path, data: str | Path | None = None) -> OpenedRun:
    """Open a finished run with its data; `data` is where facts are now that the run refers to."""
    from ukge.graph.catalogue import BENCHMARKS  # noqa: PLC0415 — loading it takes a second, and answers need none

    run = Run.open(path)
    learnt = Learnt.load(run)
    graph = Path(run.data.reference).name
    tau = paper_tau(graph) if graph in BENCHMARKS else run.config.sampling.tau
    return OpenedRun(run, learnt.predictor, run.dataset(data), tau)
