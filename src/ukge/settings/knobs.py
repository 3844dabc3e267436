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
EncoderName = Literal["none"]
SamplerName = Literal["exhaustive", "independent", "none", "shared"]
OptimiserName = Literal["adagrad", "adam", "lazy-adam", "rowwise-adagrad"]
MetricName = Literal["accuracy", "f1", "mae", "mrr", "mse", "mse-positives", "ndcg"]
EngineName = Literal["auto", "fused", "queries", "torch"]
ProbeName = Literal["both", "l2", "lr", "none"]


@dataclass(frozen=True, slots=True)
class Choices:
    """The names one setting takes. Its registry, as `module:name`, is loaded only for a name that is not ukge's own."""

    registry: str
    own: tuple[str, ...]

    def check(self, name: str) -> None:
        """Raise a `ConfigError` with the near names unless there is such a name."""
        if name not in self.own:
            self.get(name)

    def get(self, name: str) -> Any:
        """Return what has a name; its registry is loaded for that."""
        module, _, attribute = self.registry.partition(":")
        return getattr(import_module(module), attribute).get(name)


SCORERS = Choices("ukge.models.scorers:scorers", get_args(ScorerName))
LINKS = Choices("ukge.models.links:links", get_args(LinkName))
ENCODERS = Choices("ukge.models.encoders:encoders", get_args(EncoderName))
LOSSES = Choices("ukge.learning.objective:losses", get_args(LossName))
SAMPLERS = Choices("ukge.learning.sampling:samplers", get_args(SamplerName))
OPTIMISERS = Choices("ukge.learning.engines.torch_optimisers:optimisers", get_args(OptimiserName))
METRICS = Choices("ukge.learning.validation:metrics", get_args(MetricName))
ENGINES = Choices("ukge.learning.engines:engines", get_args(EngineName))
PROBES = Choices("ukge.learning.probe:probes", get_args(ProbeName))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers a setting lies: at least, or above, and at most."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def hold(self, value: float) -> bool:
        """Return whether a number lies within; what is no number does not."""
        high = self.most is None or value <= self.most
        return high and (self.least is None or value >= self.least) and (self.above is None or value > self.above)

    def __str__(self) -> str:
        told = (("at least", self.least), ("above", self.above), ("at most", self.most))
        return " and ".join(f"{word} {bound:{_form(bound)}}" for word, bound in told if bound is not None)


LONG = 128
"""Bits of a whole number that is not spelt out any more."""

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
        whole = self.type is float and type(value) is int
        kind: type = type(value)
        if kind is not self.type and not whole:
            raise ConfigError(f"{name} must be {WORDS[self.type]}, not {_shown(value)}")
        if self.type in (int, float) and not self.bounds.hold(value):
            raise ConfigError(f"{name} must be {self.bounds}, not {_shown(value)}")
        if whole:
            value = float(value)
        if self.choices is not None:
            try:
                self.choices.check(value)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error.what}", hint=error.hint) from None
        return value


def _form(bound: float) -> str:
    return "," if isinstance(bound, int) else "g"


def _shown(value: Any) -> str:
    """Return a value for a message; Python refuses to spell out a whole number of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > LONG:
        return f"a number of {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    return repr(value)


@cache
def knobs_of(kind: type) -> tuple[Knob, ...]:
    """Return the settings of a section, in order."""
    section, hints = kind.__name__.removesuffix("Config").lower(), get_type_hints(kind)
    told = [each for each in fields(kind) if each.metadata]  # other fields are no settings
    return tuple(Knob(section, each.name, hints[each.name], each.default, **each.metadata) for each in told)


class Section:
    """A group of settings, each checked when the group is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check every setting; a whole number becomes the decimal one that a setting asks for."""
        kind: type = type(self)
        for each in knobs_of(kind):
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name), f"‹{each.name}›"))


def check_number(kind: type, name: str, value: Any, **bounds: float) -> None:
    """Refuse what is no number of a kind, or lies out of bounds (see `Bounds`), for arguments outside of sections."""
    Knob("", name, kind, None, "", Bounds(**bounds), None).checked(value, f"‹{name}›")


def check_seed(seed: Any) -> None:
    """Refuse what no random numbers can begin with."""
    check_number(int, "seed", seed, least=0, most=2**63 - 1)
