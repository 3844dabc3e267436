"""A small run to serve: a synthetic world with some names that try to break things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ukge import UKGE, UncertainGraph, open_dataset, write
from ukge.evidence import Evidence, EvidenceSettings
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

NASTY = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' x='",
    "back\\slash\\",
    "javascript:alert(1)",
    "{{7*7}}{% raw %}",
    "${alert(1)}`",
    "nul\x00 bell\x07 escape\x1b[31m delete\x7f",
    "two\nlines\tand\r\nmore",
    "\u202egnp.exe\u202c \u2066isolated",
    "שלום עולם",
    "</style></title></textarea><svg onload=alert(1)>",
    "a/b?c=d&e=f#g%20h+i",
    "../../etc/passwd",
    "😀" * 20 + "x" * 3_000,
    "<!-- --><![CDATA[ ]]>",
    ' aria-label="x" v-html="alert(1)" :title=alert(1) ',
]
"""Names that want to be markup, script, property, address, template or another line."""

FEW_TREES = """
from ukge.evidence import EvidenceSettings, doubt
doubt.PARTS, doubt.SETTINGS = 4, EvidenceSettings(iterations=10, folds=2)
"""
"""What a process says so that it finds doubtful facts in a moment; what is asked about them is the same."""

SERVICE = f"{FEW_TREES}\nfrom ukge.cli import main\nmain()"
"""The command, for a process of its own."""


def doubt_with_few_trees(patch: pytest.MonkeyPatch) -> None:
    """Let this process find doubtful facts in a moment."""
    patch.setattr("ukge.evidence.doubt.PARTS", 4)
    patch.setattr("ukge.evidence.doubt.SETTINGS", EvidenceSettings(iterations=10, folds=2))


def make_run(home: Path, *, seed: int = 0, scorer: str = "distmult", n_entities: int = 160, n_facts: int = 900) -> Path:
    """Train a run for two epochs, with PyTorch, so that no test waits for a compiler."""
    world = generate(n_entities=n_entities, n_facts=n_facts, seed=seed).graph
    home.mkdir(parents=True, exist_ok=True)
    data = home / "world.tsv"
    write(concat([world, UncertainGraph.from_facts(HOSTILE)]), data)
    model = UKGE("ukge-logi", dim=16, epochs=2, every=1, lr=0.02, batch_size=256, engine="torch", scorer=scorer)
    model.fit(open_dataset(data), out=home / "run", reference=str(data))
    return home / "run"


def make_nasty_run(home: Path) -> Path:
    """Train a run and fit evidence to it where nearly every name is nasty: entities, relations, sources, data set.

    Relations keep what rules are found by, so that rules have nasty names too.
    """
    world = generate(n_entities=160, n_facts=1_200, seed=0).graph
    relations = {name: f"{NASTY[at % len(NASTY)]}{at}" for at, name in enumerate(world.relations)}
    relations |= dict(zip(world.relations, NASTY, strict=False))
    entities = {name: f"{NASTY[at % len(NASTY)]} {at}" for at, name in enumerate(world.entities)}
    facts = [
        (entities[fact.head], relations[fact.relation], entities[fact.tail], fact.confidence, NASTY[at % len(NASTY)])
        for at, fact in enumerate(world)
    ]
    own = [(nasty, NASTY[at - 1], NASTY[at - 2], 0.5 + 0.02 * at) for at, nasty in enumerate(NASTY)]
    data = home / "<img src=x onerror=alert(1)>\"'.parquet"
    write(concat([UncertainGraph.from_facts(facts), UncertainGraph.from_facts(own)]), data)
    model = UKGE("ukge-logi", dim=8, epochs=2, every=1, lr=0.02, batch_size=256, engine="torch")
    dataset = open_dataset(data)
    run = home / "<img src=x onerror=alert(1)> \"run'"
    model.fit(dataset, out=run, reference=str(data))
    Evidence.fit(run, dataset, iterations=8, folds=2).save(run / "evidence")
    return run


def make_judged_run(home: Path, *, n_entities: int = 160, n_facts: int = 900, trees: int = 8) -> Path:
    """Train a smaller run and fit evidence to it, with few trees."""
    run = make_run(home, n_entities=n_entities, n_facts=n_facts)
    few: dict[str, Any] = {"iterations": trees, "expectation_trees": trees, "folds": 2, "rank_queries": 40}
    Evidence.fit(run, open_dataset(home / "world.tsv"), **few).save(run / "evidence")
    return run
