"""`ukge demo`: the whole way on a graph made on the spot, in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import out
from ukge.cli.files import write_text

if TYPE_CHECKING:
    from rich.console import Console

    from ukge.graph.dataset import Dataset


def demo(
    directory: Annotated[Path, typer.Option("--out", help="Where to put what the demo makes.", metavar="DIR")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option("--seed", help="Seed of the synthetic world.")] = 0,
) -> None:
    """Make a synthetic graph, look at it, cut it twice, and audit both cuts."""
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

    console.print(
        f"\nEverything is in {directory}/. Next: ukge audit {directory}/random, or open the pages.", markup=False
    )


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
