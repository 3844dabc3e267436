"""What a model learns from: as people give it, facts of any kind or the name of a data set, and as an engine takes it.

What reads files and grounds rules is loaded when it is needed: who asks a trained model does neither.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError, RunError, refuse_unknown_keywords
from ukge.graph.dataset import Dataset
from ukge.graph.given import as_graph
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.ground_rules import GroundRules
from ukge.models.tables import Floats, Parameters
from ukge.runs.directory import IN_MEMORY
from ukge.settings.config import Config

if TYPE_CHECKING:
    from ukge.logic.rules import Rule

RULE_FILES = (".psl", ".rules", ".txt", ".json")
OWN, MINED, NONE = "own", "mined", "none"
"""Where ground rules come from: the data set's own, mined ones, none; or a file of rules, or of heads."""

TAKEN = (
    "a frame or table of head, relation, tail and confidence, a NetworkX graph, a list of (head, relation, tail, "
    "confidence), an UncertainGraph, a Dataset, or the name or path of one"
)


@dataclass(frozen=True)
class TrainingData:
    """What an engine learns from: observed facts and ground rules, by id. Nothing of validation or test."""

    head: npt.NDArray[np.int32]
    relation: npt.NDArray[np.int32]
    tail: npt.NDArray[np.int32]
    confidence: Floats
    n_entities: int
    n_relations: int
    rules: GroundRules | None = None
    undirected: npt.NDArray[np.bool_] | None = None
    """which relations have no direction, if any"""
    relation_names: Sequence[str] = ()
    """what the relations are called, for losses that ask something of some of them"""

    def __post_init__(self) -> None:
        """Refuse ids outside the tables: compiled code does not look where it goes."""
        for facts in (self, self.rules):
            if facts is not None:
                for name, bound in (
                    ("head", self.n_entities),
                    ("relation", self.n_relations),
                    ("tail", self.n_entities),
                ):
                    _check_ids(getattr(facts, name), bound, name, len(facts.head))

    def __len__(self) -> int:
        return len(self.head)

    def check(self, parameters: Parameters) -> None:
        """Refuse tables with another number of rows than there are entities and relations."""
        rows = len(parameters.entity), len(parameters.relation), parameters.link.shape
        if rows != (self.n_entities, self.n_relations, (2,)):
            raise RunError(
                f"the tables of {rows[0]:,} entities and {rows[1]:,} relations do not fit the data, which has "
                f"{self.n_entities:,} and {self.n_relations:,}",
                hint="Train again.",
            )

    def observed(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return every triple that is observed: the facts, and those without a direction read backwards too."""
        if self.undirected is None:
            return self.head, self.relation, self.tail
        turned = self.undirected[self.relation] & (self.head != self.tail)
        return (
            np.concatenate([self.head, self.tail[turned]]),
            np.concatenate([self.relation, self.relation[turned]]),
            np.concatenate([self.tail, self.head[turned]]),
        )


def _check_ids(ids: npt.NDArray[np.int32], bound: int, name: str, n_facts: int) -> None:
    if len(ids) != n_facts:
        raise DataError(f"{len(ids):,} ids of {name}s do not fit {n_facts:,} facts")
    if n_facts and not (ids.min() >= 0 and ids.max() < bound):
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise DataError(f"the {name} {wrong} of a training fact or ground rule is not below {bound:,}")


class Opening(TypedDict, total=False):
    """How facts become a data set."""

    undirected: str | Sequence[str]
    """relations of which a fact and its mirror are one, by name; "auto" finds them, "none" takes all as they stand"""
    leak_safe: bool
    """whether what is cut off has no twin in train"""
    reading: Mapping[str, Any] | None
    """what `read` is told about a file or a frame"""
    reference: str | None
    """where a `Dataset` came from"""


def opened(
    data: Any, y: Any = None, *, seed: int, test: float = 0.0, caller: str = "fit", **opening: Unpack[Opening]
) -> tuple[Dataset, str]:
    """Return the data set to learn from, and what opens it again.

    Of facts that come whole a part is cut off for validation, and a share of `test`; a name or a path is opened as a
    data set. Relations without a direction are those that `undirected` says; of a data set, under "auto", its own.
    """
    from ukge.graph.catalogue import open_dataset, reference_to  # noqa: PLC0415
    from ukge.graph.split import split  # noqa: PLC0415
    from ukge.graph.undirected import AUTO, undirected_dataset  # noqa: PLC0415

    refuse_unknown_keywords(caller, opening, Opening.__annotations__)
    undirected, leak_safe = opening.get("undirected", AUTO), opening.get("leak_safe", False)
    reading, reference = opening.get("reading"), opening.get("reference")
    named = isinstance(data, (str, os.PathLike))
    if y is not None and (named or isinstance(data, Dataset)):
        raise DataError("a data set has its own confidences", hint="Leave out ‹y›.")
    if isinstance(data, Dataset):
        return data if undirected == AUTO else undirected_dataset(data, undirected), reference or IN_MEMORY
    if named:
        told = {"undirected": undirected, **(reading or {})}
        return open_dataset(data, seed=seed, leak_safe=leak_safe, **told), reference or reference_to(data)
    graph = as_graph(data, y, caller, TAKEN, reading)
    return split(graph, test=test, seed=seed, leak_safe=leak_safe, undirected=undirected), reference or IN_MEMORY


def ground_rules(dataset: Dataset, rules: GroundRules | str | Path | None, config: Config) -> GroundRules | None:
    """Return the ground rules to learn from, given or from where `rules` says; none where the objective has no use."""
    if config.objective.rule_weight == 0 and config.objective.rule_prior == 0:
        return None
    return rules if isinstance(rules, GroundRules) else rules_for(dataset, rules or OWN, config.sampling.tau)


def rules_for(dataset: Dataset, source: str | Path, tau: float) -> GroundRules | None:
    """Return the ground rules that `source` names, made from the training facts alone.

    `own` are those that come with the data set, `mined` are mined, weighted and grounded here, `none` are none; a file
    ending in .psl, .rules, .txt (AnyBURL) or .json holds rules to ground; any other holds rule heads with the value of
    their bodies as confidence.
    """
    from ukge.graph.readers import read  # noqa: PLC0415
    from ukge.logic.exchange import read_rules_file  # noqa: PLC0415
    from ukge.logic.mining import MiningSettings, mine  # noqa: PLC0415

    name = str(source)
    if name == NONE:
        return None
    if name == OWN:
        return None if dataset.ground_rules is None else from_heads(dataset.ground_rules)
    if name == MINED:
        mined = mine(dataset.train, MiningSettings(strong=tau))
        return from_rules(dataset.train, mined.weighted(), tau)
    path = Path(source)
    if not path.is_file():
        raise DataError(f"there is no file of rules {path}", hint="Name a file, or one of: own, mined, none.")
    if path.suffix in RULE_FILES:
        return from_rules(dataset.train, read_rules_file(path), tau)
    return from_heads(read(path, entities=dataset.entities, relations=dataset.relations))


def from_rules(train: UncertainGraph, rules: Sequence[Rule], tau: float) -> GroundRules | None:
    """Ground rules on the strong training facts; for each rule and head only its truest body counts."""
    from ukge.logic.grounding import GroundingSettings, ground  # noqa: PLC0415

    if not rules:
        return None
    found = ground(train, rules, GroundingSettings(strong=tau, best_only=True)).arrays()
    return found if len(found) else None


def from_heads(heads: UncertainGraph, weight: float = 1.0) -> GroundRules:
    """Return rule heads whose confidence is the value of their body as ground rules of one weight."""
    return GroundRules(
        np.ascontiguousarray(heads.head),
        np.ascontiguousarray(heads.relation),
        np.ascontiguousarray(heads.tail),
        heads.confidence.astype(np.float32),
        np.full(len(heads), weight, dtype=np.float32),
    )
