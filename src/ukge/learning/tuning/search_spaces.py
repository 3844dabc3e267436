"""Which settings a search tries: the paper's grid, all that matters, or what a dozen trials can search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ukge.registry import Registry
from ukge.settings.config import Config

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Choices:
    """A setting that takes one of a few values."""

    values: tuple[Value, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.values


@dataclass(frozen=True, slots=True)
class Range:
    """A positive setting between two bounds whose logarithm is uniform; `whole` numbers only, if asked for."""

    low: float
    high: float
    whole: bool = False

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


Space = Mapping[str, Choices | Range]
spaces: Registry[Callable[[Config, bool], Space]] = Registry("search space", "ukge.search_spaces")


@spaces.register("paper")
def _paper(config: Config, has_rules: bool) -> Space:  # noqa: ARG001
    """Return the grid of the paper's experimental setup."""
    return {
        "lr": Choices((0.001, 0.005, 0.01)),
        "dim": Choices((64, 128, 256, 512)),
        "batch_size": Choices((128, 256, 512, 1024)),
    }


@spaces.register("wide")
def _wide(config: Config, has_rules: bool) -> Space:
    """Return all that is likely to matter to the objective that `config` describes."""
    space: dict[str, Choices | Range] = {
        "lr": Range(1e-4, 1e-1),
        "l2": Range(1e-6, 1e-1),
        "dim": Choices((32, 64, 128, 256, 512)),
        "batch_size": Choices((128, 256, 512, 1024, 2048)),
        "init_scale": Range(0.01, 1.0),
    }
    if config.sampling.sampler != "none":
        space["negatives"] = Range(1, 50, whole=True)
        space |= _by_degree(config)
        if config.objective.loss != "margin":
            space["negative_weight"] = Range(0.1, 10.0)
    if config.objective.loss == "margin":
        space["margin"] = Range(0.1, 10.0)
    if has_rules:
        space["rule_weight"] = Range(0.01, 2.0)
        space["rules_per_fact"] = Range(0.01, 1.0)
    return space


@spaces.register("near")
def _near(config: Config, has_rules: bool) -> Space:  # noqa: ARG001
    """Return what a dozen trials can search: the settings that decided on the benchmarks, where good values lay."""
    space: dict[str, Choices | Range] = {"lr": Range(1e-3, 1e-2), "l2": Range(1e-4, 2e-2)}
    if config.sampling.sampler != "none":
        space |= _by_degree(config)
        if config.objective.loss != "margin":
            space["negative_weight"] = Choices((1.0, 2.0, 4.0))
    return space


@spaces.register("fit")
def _fit(config: Config, has_rules: bool) -> Space:
    """Return what is searched on a graph that nobody knows: what mattered on others, the link and the scorer."""
    return {
        "lr": Range(1e-3, 2e-2),
        "l2": Range(1e-4, 3e-2),
        "dim": Choices((64, 128, 256)),
        "link": Choices(("rectifier", "logistic")),
        "scorer": Choices(("distmult", "complex")),
        **{name: values for name, values in _near(config, has_rules).items() if isinstance(values, Choices)},
    }


def _by_degree(config: Config) -> dict[str, Choices | Range]:
    excluded = config.sampling.in_range or config.sampling.sampler == "exhaustive"
    return {} if excluded else {"by_degree": Choices((0.0, 0.5, 1.0))}


def space_for(name: str, config: Config, has_rules: bool, fixed: Mapping[str, Any]) -> Space:
    """Return the space called `name` without the settings that are fixed."""
    whole = spaces.get(name)(config, has_rules)
    return {setting: values for setting, values in whole.items() if setting not in fixed}


def grid(space: Space, seed: int) -> list[dict[str, Value]] | None:
    """Return every point of a space of choices, in a seeded order, or None if it has a range and thus no last point.

    The order is shuffled so that a search that ends early has still looked everywhere.
    """
    choices = [values.values for values in space.values() if isinstance(values, Choices)]
    if len(choices) < len(space):
        return None
    points = [dict(zip(space, point, strict=True)) for point in itertools.product(*choices)]
    order = np.random.Generator(np.random.Philox(seed)).permutation(len(points))
    return [points[place] for place in order]


def defaults_in(space: Space, config: Config) -> dict[str, Value]:
    """Return the settings of `config` that lie within the space: a good first point."""
    known = {name: value for section in config.to_dict().values() for name, value in section.items()}
    return {name: known[name] for name, values in space.items() if known[name] in values}


def shown(value: Value) -> str:
    """Return a value for people."""
    return value if isinstance(value, str) else f"{value:.4g}"
