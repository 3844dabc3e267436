"""What a training reached, as a small JSON file that is whole or not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ukge.evaluation.case_study import Case, Tail
from ukge.evaluation.evaluate import Row
from ukge.graph.dataset import Dataset
from ukge.settings.config import Config
from ukge.storage.files import write_atomically

FORMAT = 1
Figures = Mapping[str, Mapping[str, float | None]]
"""Values by table and metric of a protocol."""


@dataclass(frozen=True)
class Outcome:
    """The figures of one run under one protocol, with all that says which run it was."""

    graph: str
    model: str
    task: str
    clean: bool
    seed: int
    protocol: str
    tau: float
    rules: str
    settings: Mapping[str, Any]
    data: Mapping[str, str]
    weights: str
    training: Mapping[str, Any]
    versions: Mapping[str, str]
    figures: Figures
    cases: tuple[Case, ...] = ()
    notes: tuple[str, ...] = ()

    def value(self, table: str, metric: str) -> float | None:
        """Return one figure, None where the protocol has none."""
        return self.figures.get(table, {}).get(metric)

    def write(self, path: Path) -> None:
        """Write the outcome."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> Outcome | None:
        """Read an outcome; None where there is no readable one, which is then measured again."""
        data = read_json(path)
        if data is None:
            return None
        try:
            cases = tuple(_case(each) for each in data.pop("cases"))
            return cls(**{**data, "cases": cases, "notes": tuple(data["notes"])})
        except (TypeError, KeyError):
            return None


@dataclass(frozen=True)
class Trivial:
    """What needs no model reaches: figures by the baseline's name, with the data and the τ they were measured at."""

    protocol: str
    tau: float
    data: Mapping[str, str]
    figures: Mapping[str, Figures]
    notes: tuple[str, ...] = field(default=())

    def write(self, path: Path) -> None:
        """Write the figures."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> Trivial | None:
        """Read the figures; None where there are none."""
        data = read_json(path)
        try:
            return None if data is None else cls(**{**data, "notes": tuple(data["notes"])})
        except (TypeError, KeyError):
            return None


def comparable(config: Config) -> dict[str, Any]:
    """Return the settings that decide what is learnt: all but where and how it runs, and the seed."""
    settings: dict[str, Any] = config.to_dict()
    settings["runtime"] = {"seed": config.runtime.seed}
    return settings


def fingerprints(dataset: Dataset) -> dict[str, str]:
    """Return the fingerprints of the parts of a data set."""
    return {name: part.fingerprint for name, part in dataset.parts.items()}


def figures_of(row: Row) -> Figures:
    """Return the figures of a row of an evaluation as plain values."""
    return {table: {each.metric.name: each.to_dict()["value"] for each in row.figures[table]} for table in row.figures}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value with the format's number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps({"format": FORMAT, **value}, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a value of this format, None where there is none."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return data if data.pop("format") == FORMAT else None
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def _case(data: Mapping[str, Any]) -> Case:
    tails = {
        side: tuple(Tail(**{**tail, "parts": tuple(tail["parts"])}) for tail in data[side])
        for side in ("predicted", "true")
    }
    return Case(data["head"], data["relation"], tails["predicted"], tails["true"], data["known"])
