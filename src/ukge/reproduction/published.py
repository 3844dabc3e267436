"""What was published: the file `published.toml`, read and checked once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Statistics:
    """The size of a graph, and mean and standard deviation of its confidences (table 1)."""

    entities: int
    relations: int
    facts: int
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """A rule of the paper with its hit ratio in % (table 2)."""

    rule: str
    hit_ratio: float


@dataclass(frozen=True, slots=True)
class PublishedTail:
    """A tail that the paper's model ranks high, with predicted and true confidence (None: not observed)."""

    entity: str
    predicted: float
    observed: float | None


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """A query of the paper's case study (table 5) with the tails it shows."""

    head: str
    relation: str
    predicted: tuple[PublishedTail, ...]


@dataclass(frozen=True)
class Published:
    """All numbers, by graph; `results` by model, graph and metric."""

    statistics: Mapping[str, Statistics]
    rules: Mapping[str, tuple[PublishedRule, ...]]
    results: Mapping[str, Mapping[str, Mapping[str, float]]]
    cases: Mapping[str, tuple[PublishedCase, ...]]

    def value(self, graph: str, model: str, metric: str) -> float | None:
        """Return a number of the tables 3, 4 and 6 in the units they print, None where they have none."""
        return self.results.get(model, {}).get(graph, {}).get(metric)


@cache
def published() -> Published:
    """Return the published numbers."""
    text = files("ukge.reproduction").joinpath("published.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Published(
        statistics={graph: Statistics(**each) for graph, each in data["statistics"].items()},
        rules={graph: tuple(PublishedRule(**each) for each in rules) for graph, rules in data["rules"].items()},
        results=data["results"],
        cases={
            graph: tuple(
                PublishedCase(
                    case["head"],
                    case["relation"],
                    tuple(PublishedTail(e, p, None if o == UNSEEN else o) for e, p, o in case["predicted"]),
                )
                for case in cases
            )
            for graph, cases in data["cases"].items()
        },
    )
