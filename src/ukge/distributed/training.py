"""`ukge train --distributed`: the run directory, each rank's share of the facts, and the one training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ukge.distributed.engine import DistributedEngine
from ukge.distributed.keeper import ShardKeeper, SharedMetric
from ukge.distributed.world import World, joined
from ukge.errors import ConfigError, RunError
from ukge.graph.catalogue import open_dataset, reference_to, refuse_reading
from ukge.graph.dataset import Dataset
from ukge.graph.partitioned import Prepared, is_prepared, open_prepared, save_prepared
from ukge.graph.uncertain import UncertainGraph
from ukge.learning.data import rules_for
from ukge.learning.memory import estimate, refuse_if_too_large
from ukge.learning.trackers import on_request, tracked
from ukge.learning.train import Callback, Loop, Trained, learnable
from ukge.learning.validation import Metric, Validation, metrics, validation_links
from ukge.logic.ground_rules import GroundRules
from ukge.models.scorers import scorers
from ukge.runs.directory import Progress, Run
from ukge.runs.manifest import DataNote
from ukge.settings.config import Config
from ukge.storage.locks import alone

FACTS = "facts"


@dataclass(frozen=True)
class Job:
    """What to train, as the command line says it."""

    data: str
    model: str
    config: Config
    out: Path
    rules: str = "own"
    leak_safe: bool = False
    reading: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    undirected: str | Sequence[str] = "auto"


def settings_for_ranks(device: str) -> dict[str, object]:
    """Return the settings that ranks start from instead of a single process's: what sharded tables can do.

    Unseen facts are shared by a rank's facts, so that few rows travel, and the optimiser is one that the look-ups fuse.
    """
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    optimiser = {"optimiser": "lazy-adam"} if on_gpu else {"optimiser": "rowwise-adagrad", "lr": 0.1}
    return {"sampler": "shared", "negatives": 128, "engine": "torch", "threads": 1, **optimiser}


def train_distributed(
    job: Job | None,
    resume: Path | None = None,
    *,
    callbacks: Iterable[Callback] = (),
    on_facts: Callable[[int], None] | None = None,
) -> tuple[Trained, Run]:
    """Train on the ranks that torchrun started: a new job, or a run to go on with.

    When torchrun starts a rank again after a failure, the same call goes on from the last checkpoint.
    """
    path = resume if resume is not None else job.out if job is not None else Path()
    config = Run(path).config if job is None else job.config
    boards = on_request(config, path)
    with joined(config.runtime.device) as world, ExitStack() as held:
        run = Run(path)
        world.by_first(lambda: held.enter_context(alone(path)))
        world.by_first(lambda: _open(path) if job is None else _begin(job, world))
        config = run.config
        torch.set_num_threads(config.runtime.threads or 1)
        prepared = open_prepared(_facts_of(run))
        rules = run.rules
        _refuse_if_too_large(prepared, config, world)
        data = learnable(
            prepared.share("train", world.rank, world.size),
            prepared.n_entities,
            list(run.vocabularies[1]),
            config,
            None if rules is None else _share_of(rules, world),
            _undirected(prepared, run),
        )
        engine = DistributedEngine(data, config, world)
        keeper = ShardKeeper(engine, run)
        own = _metric(prepared, config, run.data.undirected) if world.first else None
        metric = SharedMetric(config.stopping.metric, own, keeper)
        progress = keeper.checkpoints.load() or Progress()
        world.by_first(lambda: run.truncate_trace(progress.epoch))
        watching = [*boards, *callbacks] if world.first else []
        facts = None if own is None else own.validation
        with tracked(watching, config):
            return Loop(config, engine, metric, keeper, watching, on_facts, progress, facts).run_to_end(), run


def _begin(job: Job, world: World) -> None:
    """Make the run directory, or open the one that these ranks made before torchrun started them again.

    A directory that somebody else made is refused however often the ranks are started, unless an old run is to give
    way: it is theirs once the new one has taken its place.
    """
    ours = f"made/{job.out.resolve()}"
    if world.launch.check([ours]):
        if (job.out / "manifest.json").is_file():
            _open(job.out)
            return
    elif not job.out.exists() or (job.out.is_dir() and not any(job.out.iterdir())):
        world.launch.set(ours, "")
    _create(job)
    world.launch.set(ours, "")


def _create(job: Job) -> None:
    """Make the run directory: on the first rank alone."""
    seed = job.config.runtime.seed
    objective = job.config.objective
    wants_rules = objective.rule_weight > 0 or objective.rule_prior > 0
    if is_prepared(job.data):
        refuse_reading(job.data, job.reading)
        prepared = open_prepared(job.data)
        names = prepared.vocabulary("entity"), prepared.vocabulary("relation")
        note = DataNote(reference_to(job.data), prepared.path.resolve().name, facts=prepared.facts["train"])
        rules = None
        if wants_rules and job.rules not in ("own", "none"):
            rules = rules_for(prepared.dataset(), job.rules, job.config.sampling.tau)
        _publish(Run.create(job.out, job.config, note, names, rules, model=job.model, overwrite=job.overwrite))
        return
    dataset = open_dataset(job.data, seed=seed, leak_safe=job.leak_safe, undirected=job.undirected, **job.reading)
    if dataset.undirected and not scorers.get(job.config.model.scorer).symmetric:
        raise ConfigError(
            f"ranks cannot train {job.model} on {dataset.undirected[0]}, which has no direction",
            hint="Take a model whose scorer has none either (ukge-rect, ukge-logi, urge), or the facts as they stand: "
            "‹undirected='none'›.",
        )
    note = DataNote.of(dataset, reference_to(job.data))
    rules = rules_for(dataset, job.rules, job.config.sampling.tau) if wants_rules else None
    run = Run.create(job.out, job.config, note, dataset, rules, model=job.model, overwrite=job.overwrite)
    _publish(run, lambda: save_prepared(dataset, _links(dataset, job.config), run.path / FACTS))


def _publish(run: Run, fill: Callable[[], object] | None = None) -> None:
    """Let a new run take its place when all is in it."""
    try:
        if fill is not None:
            fill()
        run.update(distributed=True)
        run.publish()
    finally:
        run.discard()


def _undirected(prepared: Prepared, run: Run) -> npt.NDArray[np.bool_] | None:
    names = run.data.undirected
    return np.isin(list(prepared.vocabulary("relation")), names) if names else None


def _links(dataset: Dataset, config: Config) -> UncertainGraph:
    return validation_links(Validation(dataset.train, dataset.val, config.sampling.tau, config.runtime.seed))


def _open(path: Path) -> None:
    run = Run.open(path)
    if not run.manifest().get("distributed"):
        raise RunError(
            f"{path} was trained by one process, not by ranks", hint=f"Go on with: ukge train --resume {path}"
        )


def _facts_of(run: Run) -> Path:
    return run.path / FACTS if is_prepared(run.path / FACTS) else Path(run.data.reference)


def _metric(prepared: Prepared, config: Config, undirected: Sequence[str]) -> Metric:
    """Return the metric on the first rank, which alone holds the validation facts."""
    kind = metrics.get(config.stopping.metric)
    names = prepared.vocabulary("entity"), prepared.vocabulary("relation")

    def graph(part: str) -> UncertainGraph:
        return prepared.graph(part, *names).taken_as_undirected(undirected)

    val = graph("val")
    links = graph("links") if "links" in prepared.facts else None
    train = graph("train") if kind.reads_train or links is None else val[:0]
    return kind(Validation(train, val, config.sampling.tau, config.runtime.seed, links))


def _refuse_if_too_large(prepared: Prepared, config: Config, world: World) -> None:
    """Refuse a training whose share of a rank is more than its share of this machine's free memory."""
    rows, facts = -(-prepared.n_entities // world.size), -(-prepared.facts["train"] // world.size)
    needed = estimate(config, rows, prepared.n_relations, facts)
    refuse_if_too_large(replace(needed, best=0), world.local_size)


def _share_of(rules: GroundRules, world: World) -> GroundRules:
    """Return the rank's share of the ground rules; too few to go round, all of them."""
    mine = slice(world.rank, None, world.size) if len(rules) >= world.size else slice(None)
    return GroundRules(*(getattr(rules, name)[mine] for name in ("head", "relation", "tail", "body", "weight")))
