"""Results made up by hand, to see what the tables make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ukge.reproduction.bench import GraphFindings, Outcome, Trivial
from ukge.reproduction.recipes import MAIN, Recipes
from ukge.reproduction.reproduce import GraphResults

TRAINING = {"metric": "mse", "best": 0.1, "best_epoch": 2, "epochs": 2, "seconds": 1.0}
SIZES = {"entities": 4999, "relations": 7, "facts": 271_666, "distinct": 1, "mean": 0.4151, "deviation": 0.2129}


def outcome(model: str, seed: int, values: Mapping[str, float], *, task: str = MAIN, clean: bool = False) -> Outcome:
    """Return an outcome with given figures; those of the ranking table are `linear` and `exponential`."""
    tables = {"mse": "confidence", "mae": "confidence", "f1": "classification", "accuracy": "classification"}
    figures: dict[str, dict[str, float | None]] = {}
    for name, value in values.items():
        figures.setdefault(tables.get(name, "ranking"), {})[name] = value
    settings: dict[str, Any] = {"optimiser": {"lr": 0.01}, "objective": {"rule_weight": float(model != "ukge-p")}}
    protocol = "clean" if clean else "paper"
    return Outcome(
        "ppi5k", model, task, clean, seed, protocol, 0.7, "own", settings, {}, "", TRAINING, {"ukge": "0"}, figures
    )


def results(
    *outcomes: Outcome, recipes: Recipes | None = None, trivial: Mapping[str, Any] | None = None
) -> GraphResults:
    """Return results of ppi5k that hold these outcomes; the trivial baselines reach the same under both protocols."""
    base, clean = (Trivial(protocol, 0.7, {}, trivial or {}) for protocol in ("paper", "clean"))
    found = GraphFindings({}, 0.7, SIZES, (), 3)
    return GraphResults("ppi5k", True, recipes or Recipes("ppi5k", {}), found, base, (clean,), outcomes)
