"""`ukge tune`: search hyper-parameters on validation data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ukge.cli.console import err, out, print_json

if TYPE_CHECKING:
    from ukge.tune import TrialNote, TuneResult


def tune(
    data: str = typer.Argument(help="Catalogue name, 'synthetic', data directory or file of facts."),
    model: str = typer.Option("ukge-rect", help="Which model; an unknown name lists the known ones."),
    directory: Path = typer.Option(..., "--out", help="Study directory; one that exists is gone on with."),
    space: str = typer.Option("paper", help="What is searched: paper (its grid) or wide."),
    trials: int = typer.Option(20, min=1, help="Trials the study shall hold."),
    timeout: float | None = typer.Option(None, help="Seconds after which no new trial begins."),
    rules: str = typer.Option("own", help="Ground rules to learn from, as for `ukge train`."),
    leak_safe: bool = typer.Option(False, "--leak-safe", help="Split leak-safely where the data is not split yet."),
    as_json: bool = typer.Option(False, "--json", help="Print the trials as JSON."),
    *,
    settings: dict[str, Any],
) -> None:
    """Search hyper-parameters with pruning and resume; settings given as flags stay fixed."""
    from ukge.graph.catalogue import open_dataset
    from ukge.tune import tune as search

    seed = settings.get("seed", 0)
    dataset = open_dataset(data, seed=seed, leak_safe=leak_safe)
    console = err()

    def told(trial: TrialNote) -> None:
        value = "–" if trial.value is None else f"{trial.value:.5f}"
        chosen = "  ".join(f"{name} {_short(setting)}" for name, setting in trial.settings.items())
        console.print(f"trial {trial.number + 1}/{trials}  {trial.state:8}  {value}  {chosen}", soft_wrap=True)

    result = search(
        dataset,
        model,
        directory=directory,
        space=space,
        trials=trials,
        timeout=timeout,
        seed=seed,
        settings=settings,
        rules=rules,
        on_trial=told,
    )
    if as_json:
        print_json(_as_json(result))
        return
    _print(result, directory)


def _print(result: TuneResult, directory: Path) -> None:
    from rich.table import Table

    best = result.best_trial
    names = sorted({name for trial in result.trials for name in trial.settings})
    table = Table("trial", "state", f"validation {result.metric}", "epoch", *names, title=f"{result.model}: trials")
    for trial in result.trials:
        value = "" if trial.value is None else f"{trial.value:.5f}"
        epoch = "" if trial.best_epoch is None else str(trial.best_epoch)
        row = [str(trial.number + 1), trial.state, value, epoch]
        row += [_short(trial.settings.get(name, "")) for name in names]
        table.add_row(*row, style="bold green" if best is not None and trial.number == best.number else None)
    console = out()
    console.print(table)
    if best is None:
        console.print("No trial was completed.")
    else:
        console.print(f"Best: trial {best.number + 1}; its settings: ukge train … --config {directory / 'best.toml'}")


def _as_json(result: TuneResult) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "model": result.model,
        "metric": result.metric,
        "best": None if result.best is None else result.best.to_dict(),
        "trials": [asdict(trial) for trial in result.trials],
    }


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
