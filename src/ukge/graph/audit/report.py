"""The audit of a data set or of a graph as one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ukge.graph.audit.baselines import Baseline, trivial_baselines
from ukge.graph.audit.counts import NameCounts, PartCounts, count_names, count_part
from ukge.graph.audit.headlines import headlines
from ukge.graph.audit.negatives import Negatives, examine_negatives
from ukge.graph.audit.repeats import Repeats, find_repeats
from ukge.graph.audit.symmetry import Symmetry, find_symmetry
from ukge.graph.audit.twins import Twins, find_twins
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything the audit found. A graph without a split has one part, no twins, no negatives and no baselines."""

    name: str
    entities: NameCounts
    relations: NameCounts
    whole: PartCounts
    parts: tuple[PartCounts, ...]
    repeats: Repeats
    twins: tuple[Twins, ...]
    negatives: Negatives | None
    symmetry: tuple[Symmetry, ...]
    baselines: tuple[Baseline, ...]

    def headlines(self) -> tuple[str, ...]:
        """Return what matters most as short sentences, the gravest first."""
        return headlines(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values that JSON can hold, with its headlines."""
        return {"headlines": list(self.headlines()), **asdict(self)}


def audit(data: Dataset | UncertainGraph, *, name: str | None = None) -> Audit:
    """Audit a data set, or a graph without a split; `name` is what the report calls it."""
    if isinstance(data, UncertainGraph):
        return _audit(name or "graph", data, (), None)
    return _audit(name or data.name, data.whole(), tuple(data.parts.items()), data)


def _audit(
    name: str, whole: UncertainGraph, parts: tuple[tuple[str, UncertainGraph], ...], dataset: Dataset | None
) -> Audit:
    facts = FactIndex(whole)
    entities, relations = count_names(whole)
    everything = count_part("all", whole)
    twins: tuple[Twins, ...] = ()
    negatives = None
    baselines: tuple[Baseline, ...] = ()
    if dataset is not None:
        known = FactIndex(dataset.train)
        twins = tuple(find_twins(part, graph, known) for part, graph in parts if part != "train")
        negatives = examine_negatives(dataset, facts, known)
        baselines = trivial_baselines(dataset, known)
    return Audit(
        name,
        entities,
        relations,
        everything,
        tuple(count_part(part, graph) for part, graph in parts),
        find_repeats(facts),
        twins,
        negatives,
        find_symmetry(facts),
        baselines,
    )
