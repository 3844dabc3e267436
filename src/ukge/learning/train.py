"""The only training loop: epochs, validation, early stopping, checkpoints, resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError, RunError
from ukge.graph.uncertain import FactArrays, UncertainGraph
from ukge.learning.collapse import find_collapse
from ukge.learning.data import TrainingData
from ukge.learning.engines import Engine, EpochResult, engines
from ukge.learning.keepers import InMemory, Keeper
from ukge.learning.mapped import Mapped, copy_rows, mapped_table
from ukge.learning.memory import estimate, refuse_if_too_large
from ukge.learning.validation import Metric, Validation, metrics
from ukge.logic.ground_rules import GroundRules
from ukge.models.links import links
from ukge.models.losses import losses
from ukge.models.model import init
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters, State
from ukge.runs.directory import CHECKPOINT, Progress, Run
from ukge.runs.learnt import Callback, EpochEvent, Trained, still_learning
from ukge.settings.config import Config
from ukge.storage.arrays import Expected, checked

__all__ = ["Callback", "EpochEvent", "Loop", "Trained", "learnable", "train", "training_data"]


def training_data(train: UncertainGraph, config: Config, rules: GroundRules | None = None) -> TrainingData:
    """Return what the engine learns from; with `strong_only`, the strong facts as if they were certain.

    A fact without a direction is learnt once if the scorer has none either, else in both directions.
    """
    facts = train.facts("numpy", names=False)
    names = list(train.relations)
    if not train.undirected:
        return learnable(facts, train.n_entities, names, config, rules)
    undirected = train.undirected_relations
    # By query, all answers of one stand together: it needs them from both ends.
    if not scorers.get(config.model.scorer).symmetric or config.objective.loss == "softmax":
        turned = undirected[facts.relation] & (facts.head != facts.tail)
        back = facts.tail[turned], facts.relation[turned], facts.head[turned], facts.confidence[turned]
        facts = FactArrays(*(np.concatenate(pair) for pair in zip(facts, back, strict=True)))
    if rules is not None:
        head, relation, tail = train.as_stored(rules.head, rules.relation, rules.tail)
        rules = replace(rules, head=head, relation=relation, tail=tail)
    return learnable(facts, train.n_entities, names, config, rules, undirected)


def learnable(
    facts: FactArrays,
    n_entities: int,
    relations: Sequence[str],
    config: Config,
    rules: GroundRules | None = None,
    undirected: npt.NDArray[np.bool_] | None = None,
) -> TrainingData:
    """Return what the engine learns from, as `training_data` does, given facts by id."""
    if config.sampling.strong_only:
        strong = facts.confidence > config.sampling.tau
        facts = FactArrays(*(column[strong] for column in facts))
        if len(facts.head) == 0:
            raise DataError(
                f"no training fact is strong: none has a confidence above τ = {config.sampling.tau:g}",
                hint="Lower ‹tau›.",
            )
    if len(facts.head) == 0:
        raise DataError("there are no training facts")
    confidence = np.ones(len(facts.head)) if config.sampling.strong_only else facts.confidence
    return TrainingData(
        np.ascontiguousarray(facts.head),
        np.ascontiguousarray(facts.relation),
        np.ascontiguousarray(facts.tail),
        confidence.astype(np.float32),
        n_entities,
        len(relations),
        rules,
        undirected,
        relations,
    )


def train(
    train_facts: UncertainGraph,
    val_facts: UncertainGraph,
    config: Config,
    *,
    rules: GroundRules | None = None,
    run: Run | None = None,
    resume: bool | Parameters = False,
    callbacks: Iterable[Callback] = (),
    on_facts: Callable[[int], None] | None = None,
) -> Trained:
    """Train until the validation metric stops improving, and return the best epoch's weights.

    Without validation facts all epochs are run, and the last one's weights are returned. With a `run`, every epoch is
    traced and checkpoints are written; with `resume`, training goes on from the last checkpoint and ends with the same
    weights as a run that was never interrupted. If `resume` are weights, it begins with these, which it changes.
    """
    data = training_data(train_facts, config, rules)
    metric = metrics.get(config.stopping.metric)
    validation = Validation(train_facts, val_facts, config.sampling.tau, config.runtime.seed)
    judge = metric(validation) if len(val_facts) else None
    n_rules = 0 if rules is None else len(rules)
    refuse_if_too_large(estimate(config, data.n_entities, data.n_relations, len(data), n_rules))
    scorer = scorers.get(config.model.scorer)
    links.get(config.model.link)
    mapped = config.runtime.memory_map
    if mapped and (config.model.encodes or getattr(losses.get(config.objective.loss), "pseudo", None) is not None):
        raise ConfigError("‹memory_map› trains neither encoders nor students", hint="Leave out ‹memory_map›.")
    restored = run.load_checkpoint(mapped=mapped) if run is not None and resume is True else None
    dim, table = config.model.dim, None
    if mapped:
        table = mapped_table(run, "entity", (data.n_entities, scorer.entity_width(dim)))
    if isinstance(resume, Parameters):
        parameters, best, progress = resume, None, Progress()
    elif restored is None:
        scale, seed = config.model.init_scale, config.runtime.seed
        parameters = init(scorer, data.n_entities, data.n_relations, dim, scale, seed, table)
        best, progress = None, Progress()
    else:
        parameters, state, best, progress = restored
        if table is not None:
            copy_rows(parameters.entity, table)
            parameters = replace(parameters, entity=table)
    engine = engines.get(config.runtime.engine)(parameters, data, config)
    if restored is not None and run is not None:
        engine.load_state(_fitting(state, engine, run))
    if run is not None:
        run.publish()  # nothing is refused from here on: an old run may go
        run.truncate_trace(progress.epoch)
    if mapped and run is not None:
        keeper: InMemory = Mapped(engine, config, run, best, data.undirected)
    else:
        keeper = InMemory(engine, config, run, best, data.undirected)
    trained = Loop(config, engine, judge, keeper, list(callbacks), on_facts, progress, validation).run_to_end()
    return replace(trained, undirected=data.undirected)


def _fitting(state: State, engine: Engine, run: Run) -> State:
    """Return a checkpoint's state of the optimiser if it fits the engine: compiled code does not look where it goes."""
    own: State = engine.state()
    expected = {name: Expected(array.dtype.name, array.shape) for name, array in own.items()}
    known: dict[str, Expected] = getattr(engine, "expected", dict)()
    kinds = {_kind(name) for name in state}
    expected |= {name: each for name, each in known.items() if _kind(name) in kinds}
    if not own.keys() - known.keys():  # PyTorch's optimisers have none before their first step
        tables: Mapping[str, Any] = getattr(engine, "tables", engine.parameters.as_dict())
        for name, array in state.items():
            if name in known:
                continue
            table = tables.get(name.rpartition(".")[0])  # a moment is as large as its table
            shape = table.shape if table is not None and array.ndim else ()
            expected[name] = Expected(array.dtype.name, shape)
    return checked(run.path / CHECKPOINT, state, expected)


def _kind(name: str) -> str:
    return name.partition(".")[0]


class Runner(Protocol):
    """What the loop drives: an engine, or one rank of several that train together."""

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0)."""


class Loop:
    """One training: epochs of an engine until a metric stops improving, with a keeper of the weights.

    Without a metric all epochs are run, and the last one counts.
    `validation` are the facts by which it is seen in the end whether anything was learnt; None on a rank without any.
    """

    def __init__(
        self,
        config: Config,
        engine: Runner,
        metric: Metric | None,
        keeper: Keeper,
        callbacks: list[Callback],
        on_facts: Callable[[int], None] | None,
        progress: Progress,
        validation: Validation | None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.metric = metric
        self.keeper = keeper
        self.callbacks = callbacks
        self.on_facts = on_facts
        self.progress = progress
        self.validation = validation
        self.events: list[EpochEvent] = []
        self.began = time.monotonic()

    def run_to_end(self) -> Trained:
        """Run the epochs that are left and return what they found."""
        stopping = self.config.stopping
        while not self.progress.finished:
            self._epoch()
            done = self.progress.epoch >= stopping.epochs
            if not done:
                tired = self.progress.stale >= stopping.patience
                if self.keeper.hand_over(self.progress, tired=tired):
                    self.progress.best, self.progress.best_epoch, self.progress.stale = None, -1, 0
                else:
                    done = tired
            self.progress.finished = done
            if done or self.keeper.due(self.config.runtime.checkpoint_seconds):
                self.keeper.checkpoint(self.progress)
        progress = self.progress
        metric, best = stopping.metric, progress.best
        weights = self.keeper.finish({"metric": metric, "best": best, "best_epoch": progress.best_epoch})
        collapsed = None
        if self.validation is not None:
            collapsed = find_collapse(weights, self.config, self.validation, progress)
        trained = Trained(
            weights,
            self.config,
            metric,
            best,
            progress.best_epoch,
            progress.epoch,
            time.monotonic() - self.began,
            self.events,
            collapsed,
            remark=still_learning([event.line() for event in self.events]),
        )
        self.keeper.note(status="finished", result=trained.result())
        return trained

    def _epoch(self) -> None:
        stopping, progress = self.config.stopping, self.progress
        started = time.monotonic()
        result = self.engine.epoch(progress.epoch, self.on_facts)
        seconds = time.monotonic() - started
        self._refuse_divergence(result)
        progress.epoch += 1
        progress.facts += result.facts
        value = None
        due = progress.epoch % stopping.every == 0 or progress.epoch == stopping.epochs
        if self.metric is not None and due:
            value = self._validate(self.metric)
        event = EpochEvent(
            progress.epoch,
            stopping.epochs,
            dict(result.losses),
            result.loss,
            result.facts,
            seconds,
            stopping.metric,
            value,
            progress.best,
            progress.best_epoch,
            result.pseudo,
        )
        self.events.append(event)
        self.keeper.trace(event.line())
        for callback in self.callbacks:
            callback(event)

    def _validate(self, metric: Metric) -> float:
        value = metric.measure(self.keeper.predictor())
        if metric.improves(value, self.progress.best):
            self.progress.best, self.progress.best_epoch, self.progress.stale = value, self.progress.epoch, 0
            self.keeper.keep_best(self.progress)
        else:
            self.progress.stale += 1
        return value

    def _refuse_divergence(self, result: EpochResult) -> None:
        if np.isfinite(result.loss):
            return
        kept = "nothing was kept"
        if self.keeper.where is not None:
            self.keeper.note(status="diverged")
            kept = f"{self.keeper.where} keeps the last good checkpoint"
        broken = ", ".join(f"{name} {value:g}" for name, value in result.losses.items() if not np.isfinite(value))
        raise RunError(
            f"training diverged in epoch {self.progress.epoch + 1}: {broken}; {kept}",
            hint=f"Lower ‹lr› (now {self.config.optimiser.lr:g}) or ‹init_scale›, or raise ‹l2›.",
        )
