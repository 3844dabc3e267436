"""What a knob is: a field of a settings dataclass with its help, its bounds or the names it takes, checked.

The names that come with ukge stand here, for editors and for a quick check; others are in registries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_args, get_type_hints

from ukge.errors import ConfigError

ModelName = Literal[
    "complex", "complex-all", "distmult", "transe", "ukge-logi", "ukge-n", "ukge-p", "ukge-rect", "urge"
]
ScorerName = Literal["complex", "distmult", "dot", "rotate", "transe", "transe-l1", "transe-l2"]
LinkName = Literal["identity", "logistic", "rectifier"]
LossName = Literal["logistic", "margin", "softmax", "squared"]
SamplerName = Literal["exhaustive", "independent", "none", "shared"]
OptimiserName = Literal["adagrad", "adam", "lazy-adam", "rowwise-adagrad"]
MetricName = Literal["mae", "mrr", "mse", "mse-positives", "ndcg"]
EngineName = Literal["auto", "fused", "queries", "torch"]


@dataclass(frozen=True, slots=True)
class Choices:
    """The names one setting takes. Its registry, as `module:name`, is loaded only for a name that is not ukge's own."""

    registry: str
    own: tuple[str, ...]

    def check(self, name: str) -> None:
        """Raise a `ConfigError` with the near names unless there is such a name."""
        if name not in self.own:
            module, _, attribute = self.registry.partition(":")
            getattr(import_module(module), attribute).get(name)


SCORERS = Choices("ukge.models.scorers:scorers", get_args(ScorerName))
LINKS = Choices("ukge.models.links:links", get_args(LinkName))
LOSSES = Choices("ukge.learning.objective:losses", get_args(LossName))
SAMPLERS = Choices("ukge.learning.sampling:samplers", get_args(SamplerName))
OPTIMISERS = Choices("ukge.learning.engines.torch_optimisers:optimisers", get_args(OptimiserName))
METRICS = Choices("ukge.learning.validation:metrics", get_args(MetricName))
ENGINES = Choices("ukge.learning.engines:engines", get_args(EngineName))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers a setting lies: at least, above, at most, below."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def broken_by(self, value: float) -> str:
        """Return the bound that a number breaks, in words; nothing if it lies within."""
        if self.least is not None and value < self.least:
            return f"at least {self.least:g}"
        if self.above is not None and value <= self.above:
            return f"above {self.above:g}"
        if self.most is not None and value > self.most:
            return f"at most {self.most:g}"
        return f"below {self.below:g}" if self.below is not None and value >= self.below else ""


WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def knob(default: Any, help: str, *, choices: Choices | None = None, **bounds: float) -> Any:  # noqa: A002
    """Declare a field with its help, the names that it takes, or the bounds of its number (see `Bounds`)."""
    return field(default=default, metadata={"help": help, "bounds": Bounds(**bounds), "choices": choices})


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting as the command line and the docs need it."""

    section: str
    name: str
    type: type
    default: Any
    help: str
    bounds: Bounds
    choices: Choices | None

    def checked(self, value: Any, name: str) -> Any:
        """Return a value that the setting takes, or say under `name` what is wrong with it."""
        if getattr(value, "ndim", None) == 0:
            value = value.item()  # a NumPy number, as grids of settings hold them
        if self.type is float and type(value) is int:
            value = float(value)
        kind: type = type(value)
        if kind is not self.type:
            raise ConfigError(f"{name} must be {WORDS[self.type]}, not {value!r}")
        if self.type in (int, float):
            if not math.isfinite(value):
                raise ConfigError(f"{name} must be a finite number, not {value!r}")
            if broken := self.bounds.broken_by(value):
                raise ConfigError(f"{name} must be {broken}, not {value!r}")
        if self.choices is not None:
            try:
                self.choices.check(value)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error.what}", hint=error.hint) from None
        return value


@cache
def knobs_of(kind: type) -> tuple[Knob, ...]:
    """Return the settings of a section, in order."""
    section, hints = kind.__name__.removesuffix("Config").lower(), get_type_hints(kind)
    return tuple(Knob(section, each.name, hints[each.name], each.default, **each.metadata) for each in fields(kind))


class Section:
    """A group of settings, each checked when the group is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check every setting; a whole number becomes the decimal one that a setting asks for."""
        kind: type = type(self)
        for each in knobs_of(kind):
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name), f"‹{each.name}›"))
