"""`ukge train`: learn a model from a graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import ExitCode, as_flag, bold_every_other, complain, err, note, out, print_json, tell_leaks
from ukge.cli.flags import DATA, AsJson, ConfigFile, LeakSafe, Model, Preset, Quiet, Undirected, whole
from ukge.cli.reading import Reading, undirected_said
from ukge.errors import CollapseWarning, ConfigError, worded

if TYPE_CHECKING:
    from ukge.distributed.training import Job
    from ukge.graph.audit.leaks import Leaks
    from ukge.graph.dataset import Dataset
    from ukge.learning.estimator import UKGE
    from ukge.learning.probe import Probe
    from ukge.learning.train import Trained
    from ukge.settings.config import Config


def train(
    data: Annotated[str | None, DATA] = None,
    model: Model = "ukge-rect",
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Run directory to make; runs/DATA-MODEL if not given.", metavar="DIR")
    ] = None,
    config_file: ConfigFile = None,
    preset: Preset = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with an interrupted run.", metavar="RUN")] = None,
    rules: Annotated[
        str,
        typer.Option(
            help="Ground rules to learn from: own (those that come with the data), mined, none, a file of rules "
            "(.psl, .rules, .txt, .json), or a file of rule heads with the value of their body as confidence."
        ),
    ] = "own",
    leak_safe: LeakSafe = False,
    undirected: Undirected = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that is in the run directory.")] = False,
    seeds: Annotated[
        int | None,
        whole(
            "--seeds",
            help="Train so many times, with seeds from --seed on, into DIR-seed-N each, on one cut of the facts; what "
            "is finished stays. `ukge compare` takes them as one model.",
            most=1000,
        ),
    ] = None,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Train on the ranks that torchrun started: torchrun --nproc-per-node N --no-python ukge train …",
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
    reading: Reading,
) -> None:
    """Learn embeddings from a graph of uncertain facts, and keep the run in a directory.

    Ends with exit code 3 where nothing was learnt: every fact gets the same prediction.
    """
    from ukge.learning.estimator import UKGE

    if resume is not None:
        if data is not None or settings or reading.options or undirected or force:
            raise ConfigError(
                "‹resume› goes on with the run as it is",
                hint="Leave out DATA, the settings and how to read it, or start a new run without ‹resume›.",
            )
        if distributed:
            _train_distributed(None, resume, f"resuming {resume}", as_json=as_json, quiet=quiet)
            return
        with told_at_the_end():
            finished = UKGE.resume(resume, progress=not quiet)
        _report(finished, resume, as_json=as_json)
        return
    if data is None:
        raise ConfigError("what to train on is missing", hint="Try: ukge train synthetic   or   ukge train FILE.tsv")
    from ukge.graph.audit.leaks import find_leaks
    from ukge.graph.catalogue import reference_to

    if seeds is not None and distributed:
        raise ConfigError("‹seeds› and ‹distributed› do not go together", hint="Give one command for each seed.")
    if distributed:
        from ukge.distributed.training import Job, settings_for_ranks

        config = resolved(
            model, data, config_file, preset, settings, settings_for_ranks(settings.get("device", "auto"))
        )
        path = out_dir or Path("runs") / f"{Path(data).name}-{model}"
        job = Job(data, model, config, path, rules, leak_safe, reading.options, force, undirected_said(undirected))
        _train_distributed(job, None, f"{model} on {Path(data).name}", as_json=as_json, quiet=quiet)
        return
    config = resolved(model, data, config_file, preset, settings, probe=True)
    dataset = reading.open(data, seed=config.runtime.seed, leak_safe=leak_safe, undirected=undirected)
    path = out_dir or Path("runs") / f"{dataset.name}-{model}"
    leaks = find_leaks(dataset)
    if not quiet:
        tell_leaks(leaks, err())
    how: dict[str, Any] = {
        "rules": rules,
        "reference": reference_to(data),
        "leak_safe": leak_safe,
        "reading": reading.options,
        "progress": not quiet,
    }
    if seeds is not None:
        _train_seeds(UKGE(model, config=config), dataset, path, seeds, how, force=force, as_json=as_json)
        return
    estimator = UKGE(model, config=config)
    with told_at_the_end():
        estimator.fit(dataset, out=path, overwrite=force, **how)
    if estimator.probe_found is not None and not quiet:
        note(worded(f"{estimator.probe_found}. ‹probe='none'› leaves them alone", as_flag))
    _report(estimator, path, as_json=as_json, leaks=leaks)


def resolved(
    model: str,
    data: str,
    config_file: Path | None,
    preset: str | None,
    settings: dict[str, Any],
    start: dict[str, Any] | None = None,
    *,
    probe: bool = False,
) -> Config:
    """Return the settings: the model's, then the preset's, then those of `start`, then the file's, then the flags'.

    With `probe`, one chooses the rate and λ that none of them gives.
    """
    from ukge.settings.config import settings_in
    from ukge.settings.variants import paper_settings, probed, variant

    if preset not in (None, "paper"):
        raise ConfigError(f"unknown preset '{preset}'", hint="Known: paper.")
    given = {
        **(paper_settings(model, Path(data).name) if preset else {}),
        **(start or {}),
        **(settings_in(config_file) if config_file is not None else {}),
        **settings,
    }
    config = variant(model).replace(**given)
    return probed(config, given) if probe else config


def _train_seeds(
    first: UKGE, dataset: Dataset, path: Path, seeds: int, how: dict[str, Any], *, force: bool, as_json: bool
) -> None:
    """Train once for every seed; what is finished stays, what was interrupted is gone on with."""
    from ukge.learning.engines import resolve
    from ukge.learning.estimator import UKGE
    from ukge.runs.directory import Run
    from ukge.runs.manifest import FILE, FINISHED

    trained, config = [], first.settings
    config = config.replace(engine=resolve(config))
    for seed in range(config.runtime.seed, config.runtime.seed + seeds):
        place = path.with_name(f"{path.name}-seed-{seed}")
        config = config.replace(seed=seed)
        estimator = UKGE(first.model, config=config)
        if (place / FILE).is_file() and not force:
            run = Run.open(place)
            found = {"lr": run.config.optimiser.lr, "l2": run.config.objective.l2}
            probed = {name: value for name, value in found.items() if config.optimiser.probe in (name, "both")}
            config = config.replace(**probed, probe="none")
            if run.config != config or run.data.train != dataset.train.fingerprint:
                hint = "Begin anew with ‹force›, or choose another ‹out›."
                raise ConfigError(f"{place} holds a run of other facts or settings", hint=hint)
            if run.manifest()["status"] == FINISHED:
                note(f"{place} is finished and stays")
                continue
            estimator = UKGE.resume(place, progress=how["progress"])
        else:
            with told_at_the_end():
                estimator.fit(dataset, out=place, overwrite=force, **how)
        config = Run.open(place).config  # what a probe chose for the first is what all have
        if estimator.trained is not None:
            trained.append(estimator.trained)
            _tell(estimator.trained, estimator.model, place, as_json=as_json, probe=estimator.probe_found)
    if not as_json:
        out().print(f"compare: ukge compare {quote(str(path))}-seed-*", highlight=False, markup=False, soft_wrap=True)
    for each in trained:
        _end(each)


def _train_distributed(job: Job | None, resume: Path | None, title: str, *, as_json: bool, quiet: bool) -> None:
    """Train as one of the ranks; the first one alone speaks."""
    import os
    import sys

    from ukge.distributed.training import train_distributed
    from ukge.distributed.world import FirstRankError
    from ukge.progress.bars import TrainingProgress

    speaks = os.environ.get("RANK", "0") == "0"
    try:
        with TrainingProgress(err(), title, quiet=quiet or not speaks) as progress:
            trained, run = train_distributed(job, resume, callbacks=[progress.on_epoch], on_facts=progress.on_facts)
    except FirstRankError:
        raise typer.Exit(ExitCode.MISTAKE) from None
    if speaks:
        _tell(trained, run.manifest()["model"], run.path, as_json=as_json)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # All is written. Python's own end now and then meets a thread of the libraries that still runs, which aborts
        # the process; torchrun would take that for a failure and end the other ranks too. A model that learnt nothing
        # is none that torchrun should start the ranks again for.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.OK)
    _end(trained)


@contextmanager
def told_at_the_end() -> Iterator[None]:
    """Keep back what a training warns of when it learnt nothing: the command tells it below its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        yield


def _report(estimator: UKGE, path: Path, *, as_json: bool, leaks: Leaks | None = None) -> None:
    if estimator.trained is None:
        raise ConfigError("training ended without a model")
    _tell(estimator.trained, estimator.model, path, as_json=as_json, leaks=leaks, probe=estimator.probe_found)
    _end(estimator.trained)


def _end(trained: Trained) -> None:
    """End with an exit code of its own where nothing was learnt."""
    if trained.collapsed is not None and not trained.collapsed.harmless:
        raise typer.Exit(ExitCode.DEAD)


def _tell(
    trained: Trained,
    model: str,
    path: Path,
    *,
    as_json: bool,
    leaks: Leaks | None = None,
    probe: Probe | None = None,
) -> None:
    if as_json:
        print_json(
            {
                "run": str(path),
                "model": model,
                "metric": trained.metric,
                "best": trained.best,
                "best_epoch": trained.best_epoch,
                "epochs": trained.epochs,
                "seconds": round(trained.seconds, 3),
                "collapsed": _collapse(trained),
                "still_learning": bool(trained.remark),
                "probe": None if probe is None else probe.note(),
                "leaks": None if leaks is None else leaks.to_dict(),
            }
        )
    else:
        best = "none" if trained.best is None else f"{trained.best:.5f}"
        when = "" if trained.best is None else f" in epoch {trained.best_epoch} of {trained.epochs}"
        rest = f"{when or f', {trained.epochs} epochs'}, {trained.seconds:.1f} s; the run is in "
        out().print(bold_every_other(f"validation {trained.metric} ", best, rest, str(path)))
    if trained.remark and trained.collapsed is None:
        note(worded(f"{trained.remark}; more may help: ‹epochs={2 * trained.epochs}›", as_flag))
    found = trained.collapsed
    if found is not None and found.harmless:
        note(f"{found.what(as_flag)}. {found.hint(as_flag)}")
    elif found is not None:
        complain("Nothing learnt", found.what(as_flag), found.hint(as_flag))


def _collapse(trained: Trained) -> dict[str, Any] | None:
    found = trained.collapsed
    if found is None:
        return None
    return {"what": found.what(as_flag), "hint": found.hint(as_flag), "harmless": found.harmless}
