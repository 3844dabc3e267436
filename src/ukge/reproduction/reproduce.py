"""The command's work: train what is missing, judge it, and gather what the tables show."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ukge.errors import ConfigError, RunError
from ukge.evaluation.case_study import study
from ukge.evaluation.evaluate import measure
from ukge.evaluation.tasks import LinkTask, Predictor, RankingTask
from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent
from ukge.reproduction.bench import (
    NO_BOOTSTRAP,
    Bench,
    Figures,
    GraphFindings,
    Outcome,
    Trivial,
    figures_of,
    fingerprints,
    graph_name,
    under,
)
from ukge.reproduction.cells import Column, Summary, published, summary
from ukge.reproduction.jobs import (
    CLEAN,
    EVIDENCE,
    FINISHED,
    MISSING,
    OTHER,
    PAPER,
    PARTS,
    Job,
    estimates,
    planned,
    set_aside,
    standing,
    trained,
)
from ukge.reproduction.recipes import (
    FIELD,
    FIELD_MODELS,
    MAIN,
    PAPER_MODELS,
    RANKING,
    Recipes,
    comparable,
    contestants,
    recipes_for,
    registered,
    settled,
)
from ukge.runs.directory import Run
from ukge.settings.config import Config
from ukge.storage.locks import alone

SHOWN_TAILS = 4
SPLIT, POSITIVES, FOCUS = "split", "positives", "focus"
BESIDE_PAPER = (SPLIT, POSITIVES, FOCUS)
"""Protocols that the models of the field are judged by besides `paper`."""
RANKED = (RankingTask, LinkTask)
KEPT, EVALUATED, RESUMED, TRAINED, LEFT_OUT, FAILED = "kept", "evaluated", "resumed", "trained", "left out", "failed"


@dataclass(frozen=True)
class Request:
    """What to reproduce. Without `models` each part has its own; without `train`, what was trained before is shown."""

    graphs: tuple[str, ...]
    models: tuple[str, ...] = ()
    seeds: int = 3
    parts: tuple[str, ...] = PARTS[:2]
    out: Path = Path("results")
    settings: Path | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    train: bool = True

    def of(self, part: str) -> tuple[str, ...]:
        """Return the models of a part."""
        return self.models or (FIELD_MODELS if part == FIELD else PAPER_MODELS)


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
    for said in _before(request, recipes, jobs):
        watch.on_news(said)
    with alone(request.out, hint="Wait for it, or choose another ‹out›."):
        request.out.mkdir(parents=True, exist_ok=True)
        work = _Work(request, watch)
        graphs = tuple(
            work.graph(Bench(reference, recipes[name], request.overrides.get("tau")), jobs)
            for reference, name in zip(request.graphs, names, strict=True)
        )
        return Reproduction(request, graphs, work.done, tuple(work.failures))


def absent(request: Request) -> list[str]:
    """Return the models of the field that nobody has registered: their rows are left out."""
    return [model for model in request.of(FIELD) if not registered(model)] if FIELD in request.parts else []


def _before(request: Request, recipes: Mapping[str, Recipes], jobs: list[Job]) -> Iterator[str]:
    """Say what is left out, and how long what is left to do may take."""
    for model in absent(request):
        entrant = contestants.get(model)
        yield f"{entrant.title} is left out: no model '{entrant.variant}' is registered"
    left = [job for job in jobs if request.train and not job.result_path(request.out).exists()]
    found = estimates(left, recipes, request.overrides)
    for job, (epochs, seconds) in found.items():
        yield f"{job}: at most {epochs} epochs of {seconds:g} s, {epochs * seconds / 60:.0f} min"
    if found:
        hours = sum(epochs * seconds for epochs, seconds in found.values()) / 3600
        yield f"at most {hours:.1f} hours for {len(found)} trainings, with two cores to themselves"


class _Work:
    """One call of `reproduce`."""

    def __init__(self, request: Request, watch: Watcher) -> None:
        self.request, self.watch = request, watch
        self.done: dict[Job, str] = {}
        self.failures: list[str] = []
        self.outcomes: list[Outcome] = []

    def graph(self, bench: Bench, jobs: list[Job]) -> GraphResults:
        out = self.request.out
        self.outcomes = outcomes = []
        for job in jobs:
            outcome = self._job(bench, job) if job.graph == bench.name else None
            outcomes += [] if outcome is None else [outcome]  # the evidence looks at those before it
        clean = tuple(
            bench.trivial(out, CLEAN, seed) for seed in sorted({each.seed for each in outcomes if each.clean})
        )
        findings, trivial = bench.findings(out), bench.trivial(out, PAPER)
        for protocol in BESIDE_PAPER if FIELD in self.request.parts else ():
            more = {name: under(protocol, each) for name, each in bench.trivial(out, protocol).figures.items()}
            known = trivial.figures
            both = {name: {**known.get(name, {}), **more.get(name, {})} for name in {**known, **more}}
            trivial = replace(trivial, figures=both)
        return GraphResults(bench.name, bench.published, bench.recipes, findings, trivial, clean, tuple(outcomes))

    def _job(self, bench: Bench, job: Job) -> Outcome | None:
        self.watch.on_job(job)
        try:
            work = self._evidence if job.model == EVIDENCE else self._outcome
            outcome, how = work(bench, job)
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
        whole = held is not None and all(map(held.judged_by, self._more(job)))
        if found.state == FINISHED and held is not None and whole and held.weights == _weights(Run(path)):
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

    def _more(self, job: Job) -> tuple[str, ...]:
        """Return the protocols that judge a training beside `paper`: those it was published by, or all."""
        if FIELD not in self.request.parts or job.clean or job.model not in (*self.request.of(FIELD), EVIDENCE):
            return ()
        known = published().results
        return tuple(each for each in BESIDE_PAPER if job.model in known[each]) or BESIDE_PAPER

    def _figures(self, bench: Bench, job: Job, predictor: Predictor) -> Figures:
        figures: dict[str, Mapping[str, float | None]] = {}
        recipes = bench.recipes
        for protocol in (job.protocol, *self._more(job)):
            plan = bench.cut(protocol, job.seed)
            apart = protocol != job.protocol and job.task == MAIN and RANKING in recipes.apart(job.model)
            if apart or not recipes.ranks(job.model):  # another training stands in those columns, or none
                plan = replace(plan, tasks=tuple(task for task in plan.tasks if not isinstance(task, RANKED)))
            (row,) = measure(plan, {job.label: predictor}, NO_BOOTSTRAP)
            figures |= figures_of(row) if protocol == job.protocol else under(protocol, figures_of(row))
        return figures

    def _judged(self, bench: Bench, job: Job, config: Config, model: UKGE, run: Run) -> Outcome:
        plan = bench.cut(job.protocol, job.seed)
        predictor = model.predictor
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
            figures=self._figures(bench, job, predictor),
            cases=cases,
            notes=plan.notes,
        )

    def _evidence(self, bench: Bench, job: Job) -> tuple[Outcome | None, str]:
        """Judge the evidence over the training with the best validation MSE."""
        from ukge.evidence import Evidence  # noqa: PLC0415 — takes time to load

        mine = [each for each in self.outcomes if (each.seed, each.task, each.clean) == (job.seed, MAIN, False)]
        able = [each for each in mine if each.training["metric"] == "mse" and each.training["best"] is not None]
        held = Outcome.read(job.result_path(self.request.out))
        if not able:
            return held, LEFT_OUT if held is None else KEPT
        best = min(able, key=lambda each: float(each.training["best"]))
        over = {"over": best.model}
        if held is not None and (held.settings, held.weights, held.data) == (over, best.weights, best.data):
            return held, KEPT
        path = Job(bench.name, best.model, job.seed).run_path(self.request.out)
        if not (self.request.train and path.is_dir()):
            return None, LEFT_OUT
        began = time.monotonic()
        evidence = Evidence.fit([path], bench.cut(PAPER).dataset, seed=job.seed)
        training = {"epochs": 0, "best_epoch": 0, "seconds": round(time.monotonic() - began, 1)}
        figures = self._figures(bench, job, evidence)
        outcome = replace(
            best, model=EVIDENCE, rules="", settings=over, training=training, figures=figures, cases=(), notes=()
        )
        outcome.write(job.result_path(self.request.out))
        return outcome, TRAINED


def _same(held: Outcome, bench: Bench, config: Config, data: Mapping[str, str], job: Job) -> bool:
    wanted = (comparable(config), dict(data), bench.tau, job.protocol, job.rules)
    return (settled(held.settings), dict(held.data), held.tau, held.protocol, held.rules) == wanted


def _weights(run: Run) -> str:
    return str(run.manifest()["files"].get("weights.safetensors", ""))
