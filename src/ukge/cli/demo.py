"""`ukge demo`: the whole way on a graph made on the spot, in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import out
from ukge.cli.files import write_text

if TYPE_CHECKING:
    from rich.console import Console

    from ukge.graph.dataset import Dataset
    from ukge.graph.synthetic import World

TRAINING: dict[str, Any] = {"dim": 48, "lr": 0.01, "l2": 0.01, "batch_size": 1024, "epochs": 60, "every": 5}


def demo(
    directory: Annotated[Path, typer.Option("--out", help="Where to put what the demo makes.", metavar="DIR")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option("--seed", help="Seed of the synthetic world.")] = 0,
) -> None:
    """Make a synthetic graph, look at it, cut it twice, audit both cuts, train a model and ask it."""
    from ukge.graph.audit import audit
    from ukge.graph.audit.text import histogram
    from ukge.graph.catalogue import save_dataset
    from ukge.graph.negatives import with_negatives
    from ukge.graph.split import split
    from ukge.graph.synthetic import generate
    from ukge.graph.writers import write

    console = out()
    world = generate(seed=seed)
    graph = world.graph
    _step(console, 1, "A graph whose facts carry a confidence", f"ukge data generate --out {directory}/world.tsv")
    directory.mkdir(parents=True, exist_ok=True)
    write(graph, directory / "world.tsv")
    size = f"{len(graph):,} facts over {graph.n_entities:,} entities and {graph.n_relations:,} relations"
    console.print(f"   {size}, for example:", markup=False)
    for fact in graph[:3]:
        console.print(f"   ({fact.head}, {fact.relation}, {fact.tail})  {fact.confidence:.3f}", markup=False)
    console.print(f"   {len(world.planted_rules)} rules were planted in it, for example:", markup=False)
    for rule in world.planted_rules[:3]:
        console.print(f"   {rule}", markup=False)
    console.print()
    console.print(histogram(audit(graph).whole))

    _step(
        console, 2, "Cut at random", f"ukge data split {directory}/world.tsv --negatives range --out {directory}/random"
    )
    random = with_negatives(split(graph, seed=seed, name="random"), seed=seed)
    save_dataset(random, directory / "random", overwrite=True)
    _audit(console, random, directory)

    _step(
        console, 3, "Cut leak-safe", f"ukge data split {directory}/world.tsv --leak-safe --out {directory}/leak-safe …"
    )
    safe = with_negatives(split(graph, seed=seed, leak_safe=True, name="leak-safe"), seed=seed)
    save_dataset(safe, directory / "leak-safe", overwrite=True)
    _audit(console, safe, directory)

    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in TRAINING.items())
    command = f"ukge train {directory}/leak-safe {flags} --out {directory}/run"
    _step(console, 4, "Learn it, and ask what was never seen", command)
    _train(console, world, safe, directory)

    console.print(
        f"\nEverything is in {directory}/. Next: ukge audit {directory}/random, or open the pages.", markup=False
    )


def _train(console: Console, world: World, dataset: Dataset, directory: Path) -> None:
    """Train on the leak-safe cut and set predictions beside the truth, which in this world is known."""
    from shutil import rmtree

    import numpy as np
    from rich.table import Table

    from ukge.cli.console import err
    from ukge.cli.progress import TrainingProgress
    from ukge.estimator import UKGE

    run = directory / "run"
    rmtree(run, ignore_errors=True)
    with TrainingProgress(err(), "ukge-rect", quiet=False) as progress:
        model = UKGE("ukge-rect", **TRAINING).fit(
            dataset, out=run, reference=str(directory / "leak-safe"), callbacks=[progress.on_epoch]
        )
    facts = dataset.test_with_negatives()
    true = world.true_confidence(facts.head, facts.relation, facts.tail)
    predicted = model.predict(facts)
    constant = float(np.mean(dataset.train.confidence)) * np.ones(len(facts))
    constant[len(dataset.test) :] = 0.0
    console.print(
        f"   Error against the true confidence of {len(facts):,} unseen facts, half of them negative links: "
        f"MSE {np.mean((predicted - true) ** 2):.4f};\n   knowing which links are negative and giving all others "
        f"their mean would reach {np.mean((constant - true) ** 2):.4f}.",
        markup=False,
    )
    table = Table("unseen fact", "predicted", "true", box=None, pad_edge=False)
    for row in np.linspace(0, len(dataset.test) - 1, 6).astype(int):
        fact = dataset.test[int(row)]
        table.add_row(f"({fact.head}, {fact.relation}, {fact.tail})", f"{predicted[row]:.2f}", f"{true[row]:.2f}")
    console.print(table)


def _step(console: Console, number: int, title: str, command: str) -> None:
    from rich.text import Text

    console.print(Text.assemble("\n", (f"{number}. {title}", "bold"), ("   " + command, "dim")))


def _audit(console: Console, dataset: Dataset, directory: Path) -> None:
    from ukge.graph.audit import audit
    from ukge.graph.audit.html import render

    found = audit(dataset)
    for line in found.headlines():
        console.print(f"   • {line}", markup=False)
    page = directory / f"audit-{dataset.name}.html"
    write_text(page, render(found))
    console.print(f"   The whole audit: {page}", markup=False, style="dim")
