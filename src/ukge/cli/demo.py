"""`ukge demo`: the whole way on a graph made on the spot, in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import as_flag, out, write_text
from ukge.cli.flags import Seed

if TYPE_CHECKING:
    from rich.console import Console

    from ukge.evaluation.evaluate import Evaluation
    from ukge.evaluation.protocols import Plan
    from ukge.graph.dataset import Dataset
    from ukge.graph.synthetic import World
    from ukge.learning.estimator import UKGE
    from ukge.logic.ground_rules import GroundRules

TRAINING: dict[str, Any] = {"dim": 48, "lr": 0.01, "l2": 0.01, "batch_size": 1024, "epochs": 60, "every": 5}
TAU = 0.85
SHOWN = (
    ("confidence", "mse"),
    ("confidence", "mae"),
    ("ranking_held_out", "linear"),
    ("classification", "f1"),
    ("classification", "accuracy"),
)
BESIDE = ("relation mean", "twin, else 0")


def demo(
    directory: Annotated[
        Path,
        typer.Option(
            "--out", help="Where to put what the demo makes; what an earlier one made is replaced.", metavar="DIR"
        ),
    ] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Make a synthetic graph, audit two cuts of it, mine rules, train a model, judge it, ask it, write a report."""
    from ukge.graph.audit import audit
    from ukge.graph.audit.rendering import histogram
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
    _say(console, f"{size}, for example:")
    for fact in graph[:3]:
        _say(console, f"({fact.head}, {fact.relation}, {fact.tail})  {fact.confidence:.3f}")
    _say(console, f"{len(world.planted_rules)} rules were planted in it, for example:")
    for rule in world.planted_rules[:3]:
        _say(console, str(rule))
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

    _step(console, 4, "Mine rules", f"ukge rules mine {directory}/leak-safe --out {directory}/rules.psl")
    rules = _mine(console, world, safe, directory)

    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in TRAINING.items())
    command = f"ukge train {directory}/leak-safe {flags} --rules {directory}/rules.psl --out {directory}/run"
    _step(console, 5, "Learn it", command)
    model = _train(safe, rules, directory)

    command = f"ukge evaluate {directory}/run --protocol clean --report {directory}/report"
    _step(console, 6, "Judge it: confidence, ranking, strong facts", command)
    plan, judged = _judge(console, safe, model)

    _step(console, 7, "Ask what was never seen", f"ukge predict {directory}/run FACTS.tsv --out judged.tsv")
    _ask(console, world, safe, model)
    _report(console, directory, plan, judged, model)


def _mine(console: Console, world: World, dataset: Dataset, directory: Path) -> GroundRules | None:
    """Mine the training facts, and say which of the planted rules were found and what else."""
    from ukge.learning.data import from_rules
    from ukge.logic.mining import MiningSettings, mine
    from ukge.logic.syntax import parse_rule, write_rules

    mined = mine(dataset.train, MiningSettings(strong=TAU))
    weighted = mined.weighted()
    write_rules(directory / "rules.psl", weighted)
    found = {rule.canonical() for rule in mined.rules}
    planted = {parse_rule(text).canonical() for text in world.planted_rules}
    following = {parse_rule(text).canonical() for text in world.implied_rules}
    wrong = len(found - planted - following)
    _say(
        console,
        f"{len(found)} rules: {len(found & planted)} of the {len(planted)} planted ones, "
        f"{len(found & following - planted)} that follow from them, {wrong} others. The surest:",
    )
    for scored in mined.scored[:3]:
        body = " & ".join(str(atom) for atom in scored.rule.body)
        told = f"{body} -> {scored.rule.head}  hit ratio {scored.measures.hit_ratio:.0%}"
        _say(console, told)
    return from_rules(dataset.train, weighted, TAU)


def _train(dataset: Dataset, rules: GroundRules | None, directory: Path) -> UKGE:
    from shutil import rmtree

    from ukge.learning.estimator import UKGE

    run = directory / "run"
    rmtree(run, ignore_errors=True)
    reference = str((directory / "leak-safe").resolve())
    return UKGE("ukge-rect", **TRAINING).fit(dataset, rules=rules, out=run, reference=reference, progress=True)


def _judge(console: Console, dataset: Dataset, model: UKGE) -> tuple[Plan, Evaluation]:
    """Print the three tasks beside two trivial baselines."""
    from rich.table import Table

    from ukge.evaluation.evaluate import evaluate, prepare
    from ukge.evaluation.metric import Bootstrap
    from ukge.evaluation.protocols import Settings
    from ukge.evaluation.tables import header

    plan = prepare(dataset, "clean", Settings(tau=TAU))
    judged = evaluate(plan, {"run": model.predictor}, bootstrap=Bootstrap(200))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("   predictor")
    for place in SHOWN:
        table.add_column(header(judged.rows[0].figure(*place).metric), justify="right")
    for name in (*BESIDE, "run"):
        figures = [judged.row(name).figure(*place) for place in SHOWN]
        table.add_row(f"   {name}", *(each.metric.text(each.value) for each in figures))
    console.print(table)
    return plan, judged


def _ask(console: Console, world: World, dataset: Dataset, model: UKGE) -> None:
    """Set predictions beside the truth, which in this world is known."""
    import numpy as np
    from rich.table import Table

    facts = dataset.test_with_negatives()
    true = world.true_confidence(facts.head, facts.relation, facts.tail)
    predicted = model.predict(facts)
    constant = float(np.mean(dataset.train.confidence)) * np.ones(len(facts))
    constant[len(dataset.test) :] = 0.0
    table = Table("   unseen fact", "predicted", "true", box=None, pad_edge=False, header_style="dim")
    for row in np.linspace(0, len(dataset.test) - 1, 6).astype(int):
        fact = dataset.test[int(row)]
        table.add_row(f"   ({fact.head}, {fact.relation}, {fact.tail})", f"{predicted[row]:.2f}", f"{true[row]:.2f}")
    console.print(table)
    _say(
        console,
        f"Error against the true confidence of {len(facts):,} unseen facts, half of them negative links: "
        f"MSE {np.mean((predicted - true) ** 2):.4f}; knowing which links are negative and giving all others "
        f"their mean would reach {np.mean((constant - true) ** 2):.4f}.",
    )


def _report(console: Console, directory: Path, plan: Plan, judged: Evaluation, model: UKGE) -> None:
    """Write the report, or say what it needs, and where everything is."""
    from ukge.errors import ConfigError
    from ukge.evaluation.report import write_report
    from ukge.runs.directory import Run

    try:
        trace = Run(directory / "run").trace()
        page = write_report(directory / "report", judged, plan, model.predictor, "run", trace)
        console.print(f"\nEverything is in {directory}/. Open {page}, and the pages of the audits.")
    except ConfigError as error:  # matplotlib is an extra: all else works without it
        console.print(f"\nEverything is in {directory}/ but the report: {error.what}. {error.hint}")


def _step(console: Console, number: int, title: str, command: str) -> None:
    from rich.text import Text

    console.print(Text.assemble("\n", (f"{number}. {title}", "bold")))
    _say(console, f"$ {command}", style="dim")


def _say(console: Console, text: str, *, bullet: str = "", style: str = "") -> None:
    """Print a paragraph, indented; a line that is too long for the terminal goes on below its first word."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid()
    grid.add_row(f"   {bullet}", Text(text, style=style, overflow="fold"))
    console.print(grid)


def _audit(console: Console, dataset: Dataset, directory: Path) -> None:
    from ukge.graph.audit import audit
    from ukge.graph.audit.rendering import as_page

    found = audit(dataset)
    for line in found.headlines(as_flag):
        _say(console, line, bullet="• ")
    page = directory / f"audit-{dataset.name}.html"
    write_text(page, as_page(found))
    _say(console, f"The whole audit: {page}", style="dim")
