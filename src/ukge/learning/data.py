"""What a model learns from, as people give it: facts of any kind or the name of a data set, and ground rules."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ukge.errors import DataError
from ukge.graph.dataset import Dataset
from ukge.graph.given import as_graph
from ukge.logic.ground_rules import GroundRules
from ukge.runs.directory import IN_MEMORY
from ukge.settings.config import Config

TAKEN = (
    "a frame or table of head, relation, tail and confidence, a NetworkX graph, a list of (head, relation, tail, "
    "confidence), an UncertainGraph, a Dataset, or the name or path of one"
)


def opened(
    data: Any,
    y: Any = None,
    *,
    seed: int,
    leak_safe: bool,
    undirected: str | Sequence[str] = "auto",
    reading: Mapping[str, Any] | None = None,
    caller: str = "fit",
) -> tuple[Dataset, str]:
    """Return the data set to learn from, and what opens it again.

    Facts that come whole are cut in two, for training and validation; a name or a path is opened as a data set. Files
    and frames are read as `reading` says. Relations without a direction are those that `undirected` says; of a data
    set, under "auto", its own.
    """
    from ukge.graph.catalogue import open_dataset, reference_to  # noqa: PLC0415 — who asks a trained model reads no file
    from ukge.graph.split import split  # noqa: PLC0415
    from ukge.graph.undirected import AUTO, undirected_dataset  # noqa: PLC0415

    named = isinstance(data, (str, os.PathLike))
    if y is not None and (named or isinstance(data, Dataset)):
        raise DataError("a data set has its own confidences", hint="Leave out ‹y›.")
    if isinstance(data, Dataset):
        return data if undirected == AUTO else undirected_dataset(data, undirected), IN_MEMORY
    if named:
        told = {"undirected": undirected, **(reading or {})}
        return open_dataset(data, seed=seed, leak_safe=leak_safe, **told), reference_to(data)
    graph = as_graph(data, y, caller, TAKEN, reading)
    return split(graph, test=0.0, seed=seed, leak_safe=leak_safe, undirected=undirected), IN_MEMORY


def ground_rules(dataset: Dataset, rules: GroundRules | str | Path | None, config: Config) -> GroundRules | None:
    """Return the ground rules to learn from, given or from where `rules` says; none where the objective has no use."""
    if config.objective.rule_weight == 0 and config.objective.rule_prior == 0:
        return None
    if isinstance(rules, GroundRules):
        return rules
    from ukge.learning.rule_sources import OWN, rules_for  # noqa: PLC0415 — the relational engine takes time to load

    return rules_for(dataset, rules or OWN, config.sampling.tau)
