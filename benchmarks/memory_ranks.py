"""What a perfect memory ranks at, by the paper's nDCG: of training facts or of all, with and without their direction.

A score that is symmetric, as DistMult's is, cannot know more than the last row. Equal confidences come in random order,
so that ties cost no more than they do a model.

    python benchmarks/memory_ranks.py [cn15k nl27k ppi5k]
"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np

from ukge.evaluation.evaluate import prepare
from ukge.evaluation.ranking import ndcg
from ukge.evaluation.tasks import RankingTask
from ukge.graph.catalogue import open_dataset
from ukge.graph.queries import AnyIds, Numbers
from ukge.graph.uncertain import UncertainGraph

NOISE = 1e-5
"""Less than confidences differ by, and more than 0, which is what an unknown fact has."""


class Memory:
    """Knows the facts of a graph, and of each either which end is the head or only that there is one."""

    def __init__(self, facts: UncertainGraph, *, directed: bool) -> None:
        self.n_entities = facts.n_entities
        told: defaultdict[tuple[int, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        columns = (facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), facts.confidence.tolist())
        for head, relation, tail, confidence in zip(*columns, strict=True):
            told[head, relation][tail].append(confidence)
            if not directed:
                told[tail, relation][head].append(confidence)
        self.known = {asked: {e: float(np.mean(c)) for e, c in found.items()} for asked, found in told.items()}
        self.rng = np.random.default_rng(0)

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:
        """Return the confidences of all entities as tails, with noise where they are known."""
        scores = np.zeros((len(head), self.n_entities), dtype=np.float32)
        for row, asked in enumerate(zip(head.tolist(), relation.tolist(), strict=True)):
            for entity, confidence in self.known.get(asked, {}).items():
                scores[row, entity] = confidence + NOISE * (1.0 + self.rng.random())
        return scores

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:
        """Nobody asks for heads here."""
        raise NotImplementedError


def shown(name: str, graph: str) -> None:
    """Print the linear nDCG of one memory of a graph."""
    data = open_dataset(graph)
    task = next(each for each in prepare(data, "paper").tasks if isinstance(each, RankingTask))
    facts = data.train if name.startswith("train") else data.whole()
    ranks = task.ranks(Memory(facts, directed="direction" not in name))
    print(f"{graph:6} {name:28} {ndcg(ranks, task.gains.confidence, task.gains.query).linear:.3f}", flush=True)


if __name__ == "__main__":
    rows = "train", "train, direction unknown", "all", "all, direction unknown"
    for graph in sys.argv[1:] or ["cn15k", "nl27k", "ppi5k"]:
        for row in rows:
            shown(row, graph)
