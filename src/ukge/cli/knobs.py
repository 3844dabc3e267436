"""Flags of the command line from the fields of the config: one place says what can be set."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from ukge.config import Knob, knobs

PANELS = {
    "model": "Model",
    "objective": "Objective",
    "sampling": "Sampling",
    "optimiser": "Optimiser",
    "stopping": "Stopping",
    "runtime": "Runtime",
}


def with_knobs(command: Callable[..., None]) -> Callable[..., None]:
    """Add a flag for every setting to a command that takes them as `settings`: those the user gave, by name."""
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "settings"]
    every = list(knobs())
    names = [knob.name for knob in every]

    def run(**arguments: Any) -> None:
        settings = {name: arguments.pop(name) for name in names}
        command(**arguments, settings={name: value for name, value in settings.items() if value is not None})

    parameters = [*own, *(_parameter(knob) for knob in every)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    return run


def _parameter(knob: Knob) -> inspect.Parameter:
    flag = "--" + knob.name.replace("_", "-")
    declared = f"{flag}/--no-{flag[2:]}" if knob.type is bool else flag
    option = typer.Option(
        None,
        declared,
        help=f"{knob.help} (default {knob.default})",
        show_default=False,
        rich_help_panel=PANELS[knob.section],
    )
    annotation: Any = knob.type | None
    return inspect.Parameter(knob.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)
