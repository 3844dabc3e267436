"""A small run to serve: a synthetic world with some names that try to break things."""

from __future__ import annotations

from pathlib import Path

from ukge import UKGE, UncertainGraph, open_dataset, write
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import concat

HOSTILE = [
    ('<img src=x onerror="document.title=1">', "likes", "a/b", 0.9),
    ("../../etc/passwd", "likes", "a/b", 0.8),
    ("a/b", "likes", 'quote " and \\ back', 0.7),
    ("naïve Zürich 🏔", "likes", "a/b", 0.6),
    ("concept:city:new_york", "likes", "concept:city:boston", 0.95),
    ("narcissus", "likes", "narcissus", 0.5),
]


def make_run(home: Path, *, seed: int = 0, scorer: str = "distmult") -> Path:
    """Train a run for two epochs, with PyTorch, so that no test waits for a compiler."""
    world = generate(n_entities=300, n_facts=3_000, seed=seed).graph
    home.mkdir(parents=True, exist_ok=True)
    data = home / "world.tsv"
    write(concat([world, UncertainGraph.from_facts(HOSTILE)]), data)
    model = UKGE("ukge-logi", dim=16, epochs=2, every=1, lr=0.02, batch_size=256, engine="torch", scorer=scorer)
    model.fit(open_dataset(data), out=home / "run", reference=str(data))
    return home / "run"
