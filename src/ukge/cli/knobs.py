"""Flags of the command line from the fields of the config: one place says what can be set."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from ukge.cli.flags import Command, flag, with_flags
from ukge.settings.config import knobs
from ukge.settings.knobs import Knob

PANELS = {
    "model": "Model",
    "objective": "Objective",
    "sampling": "Sampling",
    "optimiser": "Optimiser",
    "stopping": "Stopping",
    "runtime": "Runtime",
}


def with_knobs(command: Command) -> Command:
    """Add a flag for every setting to a command that takes them as `settings`: those the user gave, by name."""
    flags = [_parameter(knob) for knob in knobs()]
    return with_flags(command, "settings", flags, lambda given: {k: v for k, v in given.items() if v is not None})


def _parameter(knob: Knob) -> inspect.Parameter:
    name = "--" + knob.name.replace("_", "-")
    declared = f"{name}/--no-{name[2:]}" if knob.type is bool else name
    option = typer.Option(
        None,
        declared,
        help=f"{knob.help} (default {knob.default})",
        show_default=False,
        rich_help_panel=PANELS[knob.section],
    )
    annotation: Any = knob.type | None
    return flag(knob.name, annotation, option)
