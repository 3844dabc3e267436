"""`ukge tune`: search for the settings of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import ExitCode, bold_every_other, complain, err, out, plain_table, print_json
from ukge.cli.flags import AsJson, ConfigFile, Data, LeakSafe, Model, Preset, Quiet, Undirected, real, whole
from ukge.cli.reading import Reading
from ukge.cli.train import resolved

if TYPE_CHECKING:
    from rich.table import Table

    from ukge.learning.tuning.studies import TrialSummary
    from ukge.learning.tuning.tune import TuneResult


def tune(
    data: Data,
    model: Model = "ukge-rect",
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Study directory; studies/DATA-MODEL if not given. A search that is there is continued.",
            metavar="DIR",
        ),
    ] = None,
    space: Annotated[
        str,
        typer.Option(
            help="'paper': the paper's grid of lr, dim and batch size; 'wide': all that matters; "
            "'near': what a dozen trials can search."
        ),
    ] = "paper",
    trials: Annotated[
        int | None, whole("--trials", help="Trials in all; the whole grid, or 50 in the wide space, if not given.")
    ] = None,
    timeout: Annotated[
        float | None, real("--timeout", help="Begin no new trial after so many seconds.", high=1e9)
    ] = None,
    pruner: Annotated[str, typer.Option(help="Which trials to give up early: median, halving or none.")] = "median",
    config_file: ConfigFile = None,
    preset: Preset = None,
    rules: Annotated[str, typer.Option(help="Ground rules, as in `ukge train`: own, mined, none or a file.")] = "own",
    leak_safe: LeakSafe = False,
    undirected: Undirected = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
    reading: Reading,
) -> None:
    """Search for good settings on the validation facts; a setting given as a flag is fixed.

    The same command goes on with a search that was interrupted. The best settings are in best.toml, for
    `ukge train --config`.
    """
    from ukge.cli.progress import SearchProgress
    from ukge.learning.estimator import UKGE
    from ukge.learning.tuning.tune import tune as search

    config = resolved(model, data, config_file, preset, settings)
    dataset = reading.open(data, seed=config.runtime.seed, leak_safe=leak_safe, undirected=undirected)
    path = out_dir or Path("studies") / f"{dataset.name}-{model}"
    with SearchProgress(err(), f"{model} on {dataset.name}", config.stopping.metric, quiet=quiet) as progress:
        result = search(
            dataset,
            UKGE(model, config=config, **settings),
            directory=path,
            space=space,
            trials=trials,
            timeout=timeout,
            pruner=pruner,
            rules=rules,
            on_start=progress.on_start,
            on_epoch=progress.on_epoch,
            on_trial=progress.on_trial,
        )
    if as_json:
        print_json(_as_json(result))
    else:
        out().print(_table(result))
        for reason in _reasons(result):
            out().print(reason)
        _tell_best(result)
    if result.best is None and any(trial.state == "dead" for trial in result.trials):
        hint = "Search --l2 and --lr too, with --space near, or fix a lower --l2."
        complain("Nothing learnt", "no trial ended with more than one prediction for everything", hint)
        raise typer.Exit(ExitCode.DEAD)


def _tell_best(result: TuneResult) -> None:
    if result.best is not None:
        value, where = f"{result.best.value:.5f}", f" in trial {result.best.number}; its settings are in "
        best = f"best validation {result.metric} "
        out().print(bold_every_other(best, value, where, str(result.directory / "best.toml")))
    elif not any(trial.state == "dead" for trial in result.trials):
        out().print("no trial came to an end; there is no best setting yet")


def _table(result: TuneResult) -> Table:
    from ukge.learning.tuning.search_spaces import shown

    table = plain_table(f"{len(result.trials)} trials, best first")
    for column in ("trial", "state", result.metric, "epoch", "seconds"):
        table.add_column(column, justify="left" if column == "state" else "right", no_wrap=True)
    names = list(dict.fromkeys(name for trial in result.trials for name in trial.settings))
    for name in names:
        table.add_column(name.replace("_", " "), justify="right", overflow="fold")
    for trial in best_first(result.trials, higher_is_better=result.higher_is_better):
        best = result.best is not None and trial.number == result.best.number
        row = [
            str(trial.number),
            trial.state,
            "" if trial.value is None else f"{trial.value:.5f}",
            "" if trial.epoch is None else f"{trial.epoch} of {trial.epochs}",
            "" if trial.seconds is None else f"{trial.seconds:.1f}",
            *(shown(trial.settings[name]) if name in trial.settings else "" for name in names),
        ]
        table.add_row(*row, style="bold" if best else None)
    return table


def settings_table(trials: Sequence[TrialSummary], metric: str, most: int) -> Table:
    """Return the best trials with what they tried, without how they went: narrow enough for any terminal."""
    from ukge.learning.validation import metrics

    ordered = best_first(trials, higher_is_better=metrics.get(metric).higher_is_better)
    which = f"the best {most} of {len(trials)} trials" if len(trials) > most else f"{len(trials)} trials, best first"
    table = plain_table(which)
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    for name in (metric, *names, "state"):
        table.add_column(name.replace("_", " "), justify="left" if name == "state" else "right", overflow="fold")
    for number, trial in enumerate(ordered[:most]):
        value = "" if trial.value is None else f"{trial.value:.5f}"
        tried = (trial.settings.get(name, "") for name in names)
        cells = (f"{each:.2g}" if isinstance(each, float) else str(each) for each in tried)
        table.add_row(value, *cells, trial.state, style=None if number else "bold")
    return table


def _reasons(result: TuneResult) -> Iterator[str]:
    """Yield why trials failed or are dead; those with the same reason together."""
    trials: dict[str, list[int]] = {}
    for trial in result.trials:
        if trial.note:
            trials.setdefault(f"{trial.state}: {trial.note}", []).append(trial.number)
    for reason, numbers in trials.items():
        which = "trial" if len(numbers) == 1 else "trials"
        yield f"{which} {', '.join(map(str, numbers))} {reason}"


def best_first(trials: Sequence[TrialSummary], *, higher_is_better: bool) -> list[TrialSummary]:
    """Return trials in the order of their values: those that came to an end before those that did not."""
    sign = -1.0 if higher_is_better else 1.0
    order = {"complete": 0, "dead": 1, "pruned": 1}
    return sorted(
        trials,
        key=lambda trial: (order.get(trial.state, 2), float("inf") if trial.value is None else sign * trial.value),
    )


def _as_json(result: TuneResult) -> dict[str, Any]:
    return {
        "study": str(result.directory),
        "model": result.model,
        "metric": result.metric,
        "best": None if result.best is None else asdict(result.best),
        "trials": [asdict(trial) for trial in result.trials],
    }
