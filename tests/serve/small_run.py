"""A small run to serve: a synthetic world with some names that try to break things."""

from __future__ import annotations

from pathlib import Path

from ukge import UKGE, UncertainGraph, open_dataset, write
from ukge.evidence import Evidence
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import concat

HOSTILE = [
    ('<img src=x onerror="document.title=1">', "likes", "a/b", 0.9),
    ("../../etc/passwd", "likes", "a/b", 0.8),
    ("a/b", "likes", 'quote " and \\ back', 0.7),
    ("naïve Zürich 🏔", "likes", "a/b", 0.6),
    ("concept:city:new_york", "likes", "concept:city:boston", 0.95),
    ("narcissus", "likes", "narcissus", 0.5),
    ("narcissus", "<img src=x onerror=alert(1)>", "../../etc/passwd", 0.9),
]


def make_run(
    home: Path, *, seed: int = 0, scorer: str = "distmult", n_entities: int = 300, n_facts: int = 3_000
) -> Path:
    """Train a run for two epochs, with PyTorch, so that no test waits for a compiler."""
    world = generate(n_entities=n_entities, n_facts=n_facts, seed=seed).graph
    home.mkdir(parents=True, exist_ok=True)
    data = home / "world.tsv"
    write(concat([world, UncertainGraph.from_facts(HOSTILE)]), data)
    model = UKGE("ukge-logi", dim=16, epochs=2, every=1, lr=0.02, batch_size=256, engine="torch", scorer=scorer)
    model.fit(open_dataset(data), out=home / "run", reference=str(data))
    return home / "run"


def make_judged_run(home: Path, *, n_entities: int = 160, n_facts: int = 900, trees: int = 8) -> Path:
    """Train a smaller run and fit evidence to it, with few trees."""
    run = make_run(home, n_entities=n_entities, n_facts=n_facts)
    Evidence.fit(run, open_dataset(home / "world.tsv"), iterations=trees, folds=2).save(run / "evidence")
    return run
