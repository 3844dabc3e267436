"""Flags that commands share: each is declared once, with its help and the bounds of its number."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ukge.settings.knobs import Knob

Command = Callable[..., Any]

MOST = 2**31 - 1
"""The largest count: of entities, answers, trees; ids have 32 bits."""


@dataclass(frozen=True)
class Number:
    """Reads a number from the command line: a whole or a real one, within bounds, of which it tells."""

    kind: type[int] | type[float]
    low: float
    high: float
    inside: bool = False
    """Whether the bounds themselves are left out."""

    @property
    def __name__(self) -> str:
        return self.kind.__name__

    def __call__(self, text: str | float) -> int | float:
        """Return the number; one that is none, or out of bounds, is a mistake of the user."""
        words = str(text)
        try:
            value = self.kind(words)
            fits = self.low < value < self.high if self.inside else self.low <= value <= self.high
        except (ValueError, OverflowError):
            fits = False
        if not fits or "_" in words:
            raise typer.BadParameter(f"{words!r} is not {self}.")
        return value

    def __str__(self) -> str:
        kind = "a whole number" if self.kind is int else "a number"
        first, second = ("between", "and") if self.inside else ("from", "to")
        low, high = (f"{each:,}" if self.kind is int else f"{each:g}" for each in (self.low, self.high))
        return f"{kind} {first} {low} {second} {high}"


def whole(*names: str, help: str, least: int = 1, most: int = MOST) -> Any:  # noqa: A002
    """Declare a flag that takes a whole number."""
    return typer.Option(*names, help=help, parser=Number(int, least, most), metavar="N")


def real(*names: str, help: str, low: float = 0.0, high: float = 1.0, inside: bool = False) -> Any:  # noqa: A002
    """Declare a flag that takes a number; a share of something, if nothing else is said."""
    return typer.Option(*names, help=help, parser=Number(float, low, high, inside), metavar="X")


Seed = Annotated[int, whole("--seed", help="Seed of every random choice.", least=0, most=2**63 - 1)]
Coverage = Annotated[float, real("--coverage", help="Share of facts whose interval is to hold them.", inside=True)]
Prior = Annotated[
    float | None,
    real(
        "--prior",
        help="Share of facts among the links that are asked about; evidence takes half of them to hold.",
        inside=True,
    ),
]
Negatives = Annotated[
    str | None,
    typer.Option(
        "--negatives",
        help="What the false ones among the asked links are like: a kind (uniform, corruption, degree, range, paper, "
        "other-relation), or shares of some, as in corruption=3,paper=1.",
        metavar="KINDS",
        show_default=False,
    ),
]
AUTO = "auto"
"""What is said where the asked links themselves are to tell."""


def _share_or_auto(text: str | float) -> float | str:
    return AUTO if text == AUTO else Number(float, 0.0, 1.0, inside=True)(text)


_share_or_auto.__name__ = "share"
PriorOfMany = Annotated[
    Any,
    typer.Option(
        "--prior",
        help="Share of facts among the links of the file; auto finds it from them, and what the false ones are like. "
        "Evidence takes half of them to hold.",
        parser=_share_or_auto,
        metavar="X|auto",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Reasons = Annotated[bool, typer.Option("--reasons/--no-reasons", help="Whether to tell each one's top reason.")]
Run = Annotated[Path, typer.Argument(help="A finished run; evidence, where it has some, judges.", metavar="RUN")]
Relations = Annotated[
    list[str] | None,
    typer.Option("--relation", "-r", help="Only facts of this relation; may be repeated.", metavar="NAME"),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Write to this file instead; an old one is replaced. .tsv, .csv, .jsonl (.gz or .zst may follow), "
        ".parquet.",
        metavar="FILE",
        show_default=False,
    ),
]
NetworkOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Write to this file instead; an old one is replaced. A table: .tsv, .csv, .jsonl (.gz or .zst may "
        "follow), .parquet; or a network with what is known of its nodes: .graphml, .cx2 or .sif (Cytoscape).",
        metavar="FILE",
        show_default=False,
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        help="Format of the output, such as kgx; else its extension says it.",
        metavar="NAME",
        show_default=False,
    ),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="In .csv and .tsv, put an apostrophe before names that a spreadsheet would take for a formula.",
    ),
]
RunData = Annotated[
    str | None,
    typer.Option("--data", help="Where the facts are now that a run refers to; most runs keep theirs.", metavar="DIR"),
]
DATA: Any = typer.Argument(
    help="A benchmark (cn15k, nl27k, ppi5k), 'synthetic', a directory of parts, or a file of facts.", metavar="DATA"
)
Data = Annotated[str, DATA]
Undirected = Annotated[
    list[str] | None,
    typer.Option(
        "--undirected",
        help="Relations without a direction, of which a fact and its mirror are one fact: names (repeated, or with "
        "commas between), 'none', or 'auto', which finds them; auto if not said.",
        metavar="NAMES",
        show_default=False,
    ),
]
LeakSafe = Annotated[bool, typer.Option("--leak-safe", help="Cut the data leak-safe; data that comes cut is cut anew.")]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="The paper's: ukge-rect, ukge-logi, ukge-n, ukge-p, transe, distmult, complex, urge. Others: complex-all, "
        "beurre, passleaf, focuse, gtranse, kg2e, upgat, sscdl, or one of a plugin.",
        metavar="NAME",
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="TOML file of settings; flags win over it.", metavar="FILE")
]
Preset = Annotated[str | None, typer.Option("--preset", help="'paper': the paper's settings for this model and data.")]
EngineName = Annotated[
    str, typer.Option("--engine", help="duckdb, spark, local[N] or spark://host:port.", metavar="NAME")
]

PANELS = {
    "model": "Model",
    "objective": "Objective",
    "sampling": "Sampling",
    "optimiser": "Optimiser",
    "stopping": "Stopping",
    "runtime": "Runtime",
}


def with_flags(
    command: Command,
    name: str,
    flags: Sequence[inspect.Parameter],
    gather: Callable[[Mapping[str, Any]], Any],
) -> Command:
    """Return a command with `flags` instead of its parameter `name`, which is what `gather` makes of their values."""
    own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != name]

    def run(**arguments: Any) -> Any:
        given = {flag.name: arguments.pop(flag.name) for flag in flags}
        return command(**arguments, **{name: gather(given)})

    parameters = [*own, *flags]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    return run


def flag(name: str, annotation: Any) -> inspect.Parameter:
    """Return a parameter that a command takes by keyword, None if it is not given."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _setting(knob: Knob, text: str) -> int | float:
    """Return the number of a setting; whether it lies within the bounds is judged with all other settings."""
    try:
        number: int | float = knob.type(text if "_" not in text else "")
    except (ValueError, OverflowError):
        kind = "a whole number" if knob.type is int else "a number"
        raise typer.BadParameter(f"{text!r} is not {kind} {knob.bounds}.") from None
    return number


def with_knobs(command: Command) -> Command:
    """Add a flag for every setting to a command that takes them as `settings`: those the user gave, by name."""
    from ukge.settings.config import knobs

    flags = []
    for knob in knobs():
        name = "--" + knob.name.replace("_", "-")
        declared = f"{name}/--no-{name[2:]}" if knob.type is bool else name
        text = f"{knob.help} (default {knob.default})"
        looks: dict[str, Any] = {"help": text, "show_default": False, "rich_help_panel": PANELS[knob.section]}
        if knob.type in (int, float):
            looks |= {"parser": partial(_setting, knob), "metavar": "N" if knob.type is int else "X"}
        option = typer.Option(declared, **looks)
        kind: Any = knob.type | None
        flags.append(flag(knob.name, Annotated[kind, option]))
    return with_flags(command, "settings", flags, lambda given: {k: v for k, v in given.items() if v is not None})
