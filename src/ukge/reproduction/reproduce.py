"""The command's work: train what is missing, judge it, and gather what the tables show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ukge.errors import ConfigError, RunError
from ukge.evaluation.case_study import study
from ukge.evaluation.evaluate import measure
from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent
from ukge.reproduction.bench import (
    NO_BOOTSTRAP,
    Bench,
    GraphFindings,
    Outcome,
    Trivial,
    figures_of,
    fingerprints,
    graph_name,
)
from ukge.reproduction.cells import Column, Summary, summary
from ukge.reproduction.jobs import (
    CLEAN,
    FINISHED,
    MISSING,
    OTHER,
    PAPER,
    PARTS,
    Job,
    planned,
    set_aside,
    standing,
    trained,
)
from ukge.reproduction.recipes import MAIN, PAPER_MODELS, Recipes, comparable, recipes_for
from ukge.runs.directory import Run
from ukge.settings.config import Config
from ukge.storage.locks import alone

SHOWN_TAILS = 4
KEPT, EVALUATED, RESUMED, TRAINED, LEFT_OUT, FAILED = "kept", "evaluated", "resumed", "trained", "left out", "failed"


@dataclass(frozen=True)
class Request:
    """What to reproduce. Without `train`, only what was trained before is shown."""

    graphs: tuple[str, ...]
    models: tuple[str, ...] = PAPER_MODELS
    seeds: int = 3
    parts: tuple[str, ...] = PARTS[:2]
    out: Path = Path("results")
    settings: Path | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    train: bool = True


class Watcher:
    """Who is told how it goes; this one keeps silent."""

    def on_plan(self, jobs: int) -> None:
        """Hear how many trainings there are."""

    def on_job(self, job: Job) -> None:
        """Hear that a training has its turn."""

    def on_epoch(self, event: EpochEvent) -> None:
        """Hear of an epoch."""

    def on_done(self, job: Job, how: str) -> None:
        """Hear what was done for a training: kept, evaluated, resumed, trained, left out or failed."""

    def on_news(self, text: str) -> None:
        """Hear what the user should know."""


@dataclass(frozen=True)
class GraphResults:
    """All that is known of one graph."""

    name: str
    published: bool
    recipes: Recipes
    findings: GraphFindings
    trivial: Trivial
    clean_trivial: tuple[Trivial, ...]
    outcomes: tuple[Outcome, ...]

    def of(self, model: str, task: str, *, clean: bool = False) -> list[Outcome]:
        """Return the outcomes of a model, seed by seed."""
        return [each for each in self.outcomes if (each.model, each.task, each.clean) == (model, task, clean)]

    def figure(self, model: str, column: Column, task: str = MAIN, *, clean: bool = False) -> Summary | None:
        """Summarise a column of a model over its seeds; None where it has no figure."""
        values = (each.value(column.table, column.metric) for each in self.of(model, task, clean=clean))
        return summary(values, column.scale)

    def trivial_figure(self, name: str, column: Column, *, clean: bool = False) -> Summary | None:
        """Summarise a column of a trivial baseline; under `clean` over the cuts of all seeds."""
        measured = self.clean_trivial if clean else (self.trivial,)
        values = (each.figures.get(name, {}).get(column.table, {}).get(column.metric) for each in measured)
        return summary(values, column.scale)


@dataclass(frozen=True)
class Reproduction:
    """What was asked, what is known of each graph, what was done for each training, and what went wrong."""

    request: Request
    graphs: tuple[GraphResults, ...]
    done: Mapping[Job, str]
    failures: tuple[str, ...]


def reproduce(request: Request, watcher: Watcher | None = None) -> Reproduction:
    """Train what is missing under `request.out`, judge it, and return everything the tables need.

    A finished run with the same settings and data is not trained again, one that was killed is resumed, and one
    with other settings is set aside. A training that fails does not stop the others.
    """
    watch = watcher or Watcher()
    names = [graph_name(each) for each in request.graphs]
    if len(set(names)) < len(names):
        raise ConfigError(f"two of the graphs are called the same: {', '.join(names)}", hint="Rename a directory.")
    if request.seeds < 1:
        raise ConfigError(f"at least one seed is needed, not {request.seeds}")
    recipes = {name: recipes_for(name, request.settings) for name in names}
    jobs = planned(recipes, request.models, range(request.seeds), request.parts)
    watch.on_plan(len(jobs))
    with alone(request.out, hint="Wait for it, or choose another ‹out›."):
        request.out.mkdir(parents=True, exist_ok=True)
        work = _Work(request, watch)
        graphs = tuple(
            work.graph(Bench(reference, recipes[name], request.overrides.get("tau")), jobs)
            for reference, name in zip(request.graphs, names, strict=True)
        )
        return Reproduction(request, graphs, work.done, tuple(work.failures))


class _Work:
    """One call of `reproduce`."""

    def __init__(self, request: Request, watch: Watcher) -> None:
        self.request, self.watch = request, watch
        self.done: dict[Job, str] = {}
        self.failures: list[str] = []

    def graph(self, bench: Bench, jobs: list[Job]) -> GraphResults:
        out = self.request.out
        own = [job for job in jobs if job.graph == bench.name]
        outcomes = [outcome for job in own if (outcome := self._job(bench, job)) is not None]
        clean = tuple(
            bench.trivial(out, CLEAN, seed) for seed in sorted({each.seed for each in outcomes if each.clean})
        )
        findings, trivial = bench.findings(out), bench.trivial(out, PAPER)
        return GraphResults(bench.name, bench.published, bench.recipes, findings, trivial, clean, tuple(outcomes))

    def _job(self, bench: Bench, job: Job) -> Outcome | None:
        self.watch.on_job(job)
        try:
            outcome, how = self._outcome(bench, job)
        except RunError as error:
            self.failures.append(f"{job}: {error.what}")
            self.watch.on_news(f"{job}: {error.what}; going on with the others")
            outcome, how = None, FAILED
        self.done[job] = how
        self.watch.on_done(job, how)
        return outcome

    def _outcome(self, bench: Bench, job: Job) -> tuple[Outcome | None, str]:
        request = self.request
        config = bench.recipes.config(job.model, job.task, {**request.overrides, "seed": job.seed})
        dataset = bench.cut(job.protocol, job.seed).dataset
        held = Outcome.read(job.result_path(request.out))
        if held is not None and not _same(held, bench, config, fingerprints(dataset), job):
            held = None
        path = job.run_path(request.out)
        found = standing(path, config, dataset)
        if found.state == FINISHED and held is not None and held.weights == _weights(Run(path)):
            return held, KEPT
        if not request.train and found.state != FINISHED:
            return held, LEFT_OUT if held is None else KEPT
        if found.state == OTHER:
            aside = set_aside(path)
            self.watch.on_news(f"{path} is trained anew ({found.why}); the old one is now {aside.name}")
        state = MISSING if found.state == OTHER else found.state
        model = trained(
            job, config, dataset, path, state=state, reference=bench.reference, callback=self.watch.on_epoch
        )
        outcome = self._judged(bench, job, config, model, Run(path))
        outcome.write(job.result_path(request.out))
        return outcome, {FINISHED: EVALUATED, MISSING: TRAINED}.get(state, RESUMED)

    def _judged(self, bench: Bench, job: Job, config: Config, model: UKGE, run: Run) -> Outcome:
        plan = bench.cut(job.protocol, job.seed)
        predictor = model.predictor
        (row,) = measure(plan, {job.label: predictor}, NO_BOOTSTRAP)
        cases = () if job.clean else study(plan.dataset, predictor, bench.queries(), SHOWN_TAILS)
        manifest = run.manifest()
        seconds = sum(line["seconds"] for line in run.trace())
        return Outcome(
            **asdict(job),
            protocol=job.protocol,
            tau=bench.tau,
            rules=job.rules,
            settings=comparable(config),
            data=fingerprints(plan.dataset),
            weights=_weights(run),
            training={**manifest["result"], "seconds": round(seconds, 1)},
            versions=manifest["versions"],
            figures=figures_of(row),
            cases=cases,
            notes=plan.notes,
        )


def _same(held: Outcome, bench: Bench, config: Config, data: Mapping[str, str], job: Job) -> bool:
    wanted = (comparable(config), dict(data), bench.tau, job.protocol, job.rules)
    return (held.settings, dict(held.data), held.tau, held.protocol, held.rules) == wanted


def _weights(run: Run) -> str:
    return str(run.manifest()["files"].get("weights.safetensors", ""))
