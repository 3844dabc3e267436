"""Pseudo facts: what a teacher finds likely of what it was not told, for a student to learn from."""

from __future__ import annotations

import numpy as np
import torch

from ukge.graph.keys import contains, triple_keys
from ukge.learning.data import TrainingData
from ukge.learning.labelled import Labelled
from ukge.models.losses import PseudoSettings
from ukge.models.model import Model
from ukge.models.tables import State
from ukge.storage.arrays import Expected

PREFIX = "pseudo."


class PseudoFacts:
    """None while the teacher learns; then those of its student. Nothing but training facts is looked at."""

    def __init__(self, settings: PseudoSettings, data: TrainingData) -> None:
        self.settings = settings
        self.taught = False
        self._data = data
        self._sizes = {"head": data.n_entities, "relation": data.n_relations, "tail": data.n_entities}
        self.columns: State = {name: np.zeros(0, dtype=np.int32) for name in self._sizes}
        self.columns["confidence"] = np.zeros(0, dtype=np.float32)

    def __len__(self) -> int:
        return len(self.columns["confidence"])

    def ask(self, teacher: Model) -> None:
        """Take the likeliest tails of every head and relation that are no facts, each triple once."""
        data = self._data
        head, relation, tail = data.observed()
        asked = np.unique(np.stack([head, relation]), axis=1)
        found = teacher.rank_tails(asked[0], asked[1], self.settings.top)
        heads, relations = (np.repeat(each, found.entity.shape[1]) for each in asked)
        tails, confidence = found.entity.ravel().astype(np.int32), found.confidence.ravel()
        if data.undirected is not None:  # whom one end finds is found by the other
            turned = data.undirected[relations]
            heads, tails = np.append(heads, tails[turned]), np.append(tails, heads[turned])
            relations, confidence = np.append(relations, relations[turned]), np.append(confidence, confidence[turned])
        sizes = data.n_entities, data.n_relations
        known = np.sort(triple_keys(head, relation, tail, *sizes))
        keys, first = np.unique(triple_keys(heads, relations, tails, *sizes), return_index=True)
        unseen = first[~contains(known, keys)]
        self.columns = {
            name: np.ascontiguousarray(column[unseen])
            for name, column in zip(self.columns, (heads, relations, tails, confidence), strict=True)
        }
        self.taught = True

    def draw(self, n_facts: int, generator: torch.Generator, device: torch.device) -> Labelled | None:
        """Return those that go with a batch of facts, uniformly; None where there are none."""
        if not len(self):
            return None
        n = max(1, round(self.settings.per_fact * n_facts))
        return Labelled.draw(self.columns, n, generator, device)

    def state(self) -> State:
        """Return the pseudo facts, and whether the teacher was asked."""
        named = {f"{PREFIX}{name}": column for name, column in self.columns.items()}
        return named | {f"{PREFIX}taught": np.array([self.taught], dtype=np.int64)}

    def load_state(self, state: State) -> None:
        """Take up what `state` gave."""
        self.columns = {name: state[f"{PREFIX}{name}"] for name in self.columns}
        self.taught = bool(state[f"{PREFIX}taught"][0])

    def expected(self) -> dict[str, Expected]:
        """Return what a state must be that was read from a file: nobody looks at ids again."""
        found = {name: Expected("int32", ("pseudo",), low=0, high=size - 1) for name, size in self._sizes.items()}
        found["confidence"] = Expected("float32", ("pseudo",), low=0.0, high=1.0)
        found["taught"] = Expected("int64", (1,), low=0, high=1)
        return {f"{PREFIX}{name}": each for name, each in found.items()}
