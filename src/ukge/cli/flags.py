"""Flags that many commands share: declared once, and put in the place of one parameter of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Command = Callable[..., None]


def with_flags(
    command: Command,
    name: str,
    flags: Sequence[inspect.Parameter],
    gather: Callable[[Mapping[str, Any]], Any],
) -> Command:
    """Return a command with `flags` instead of its parameter `name`, which is what `gather` makes of their values."""
    own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != name]

    def run(**arguments: Any) -> None:
        given = {flag.name: arguments.pop(flag.name) for flag in flags}
        command(**arguments, **{name: gather(given)})

    parameters = [*own, *flags]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    return run


def flag(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Return a parameter that a command takes by keyword."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
