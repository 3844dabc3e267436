"""`ukge rules`: mine rules, look at them, measure them, ground them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note, out, print_json
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from ukge.graph.dataset import Dataset
    from ukge.graph.uncertain import UncertainGraph
    from ukge.logic.engine import Engine
    from ukge.logic.measures import ScoredRule
    from ukge.logic.mining import MinedRules
    from ukge.logic.rules import Rule

rules_app = typer.Typer(
    help="Mine rules, look at them, measure them, ground them.", no_args_is_help=True, add_completion=False
)

Data = Annotated[str, typer.Argument(help="A benchmark, 'synthetic', a directory of parts, or one file of facts.")]
Rules = Annotated[str, typer.Argument(help="A file of rules, or one rule: 'r(A, B) & s(B, C) -> t(A, C)'.")]
Strong = Annotated[
    float | None,
    typer.Option("--strong", help="τ: confidence above which a fact may be part of a body. 0.85; on ppi5k 0.70."),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="duckdb, spark, local[N] or spark://host:port.", metavar="NAME")
]
Memory = Annotated[
    str | None, typer.Option("--memory", help="What the engine holds before it spills to disk, such as 8GB.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Form = Annotated[
    str | None, typer.Option("--format", help="psl, anyburl or json; by default the file's extension says it.")
]
Distinct = Annotated[
    bool,
    typer.Option("--distinct/--no-distinct", help="Whether different variables stand for different entities."),
]

# The paper's τ for its three graphs; all others take the common one.
STRONG, STRONG_OF = 0.85, {"ppi5k": 0.70}


@rules_app.command("mine")
def mine(
    data: Data,
    strong: Strong = None,
    max_length: Annotated[int, typer.Option(help="Body atoms at most: 1, 2 or 3.")] = 2,
    min_support: Annotated[int, typer.Option(help="Implied facts that must be observed.")] = 5,
    min_hit_ratio: Annotated[float, typer.Option(help="Share of implied facts that must be observed.")] = 0.3,
    conjunctions: Annotated[
        bool, typer.Option("--conjunctions", help="Also bodies of two atoms over the head's own two entities.")
    ] = False,
    redundant: Annotated[
        bool, typer.Option("--redundant", help="Keep rules that are no better than a shorter one, too.")
    ] = False,
    top: Annotated[int | None, typer.Option(help="Rules to keep per head relation.")] = None,
    weights: Annotated[
        str, typer.Option(help="learnt (calibrated confidence) or fixed (1, as in the paper).")
    ] = "learnt",
    show: Annotated[int, typer.Option(help="Rules to print.")] = 30,
    out_file: Annotated[Path | None, typer.Option("--out", help="File to write the rules to.")] = None,
    form: Form = None,
    engine: EngineName = "duckdb",
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Find all rules of the training facts, measure them, and print the best."""
    from ukge.logic.mining import MiningSettings
    from ukge.logic.mining import mine as find

    dataset = _open(data)
    asked = MiningSettings(
        strong=_strong(strong, dataset),
        max_length=max_length,
        conjunctions=conjunctions,
        min_support=min_support,
        min_hit_ratio=min_hit_ratio,
        keep_redundant=redundant,
        top=top,
    )
    with _engine(engine, memory) as running, err().status(f"mining {len(dataset.train):,} facts"):
        found = find(dataset.train, asked, engine=running)
    scored = _weighted(found, weights)
    for line in found.report.lines():
        note(line)
    if out_file is not None:
        _write(out_file, scored, form, f"{len(scored)} rules mined from {dataset.name}")
    if json:
        from dataclasses import asdict

        from ukge.logic.exchange import as_json

        print_json({"rules": [as_json(one) for one in scored], "report": asdict(found.report)})
        return
    _print_table(scored[:show], f"{len(scored):,} rules of {dataset.name}, best first")
    if len(scored) > show:
        note(f"{len(scored) - show:,} more rules are not printed; --show and --out give them")


@rules_app.command("score")
def score(
    data: Data,
    rules: Rules,
    strong: Strong = None,
    distinct: Distinct = True,
    whole: Annotated[
        bool, typer.Option("--whole", help="Look heads up in all facts, held-out ones too, not in the training facts.")
    ] = False,
    form: Form = None,
    engine: EngineName = "duckdb",
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Measure given rules on the training facts."""
    from ukge.logic.measures import measure

    dataset = _open(data)
    known = dataset.whole() if whole else None
    with _engine(engine, memory) as running:
        scored = measure(
            dataset.train,
            _read(rules, form),
            strong=_strong(strong, dataset),
            distinct=distinct,
            known=known,
            engine=running,
        )
    if json:
        from ukge.logic.exchange import as_json

        print_json([as_json(one) for one in scored])
        return
    _print_table(scored, f"{len(scored):,} rules on {dataset.name}")


@rules_app.command("show")
def show(
    data: Data,
    rules: Rules,
    examples: Annotated[int, typer.Option(help="Ground rules to show per rule.")] = 3,
    strong: Strong = None,
    observed: Annotated[bool, typer.Option("--observed", help="Also show ground rules with an observed head.")] = False,
    form: Form = None,
    engine: EngineName = "duckdb",
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Show rules at work: what they conclude from which facts."""
    from ukge.logic.grounding import GroundingSettings, ground

    dataset = _open(data)
    settings = GroundingSettings(strong=_strong(strong, dataset), unseen_only=not observed)
    told: list[dict[str, Any]] = []
    with _engine(engine, memory) as running:
        for rule in _read(rules, form):
            found = ground(dataset.train, [rule], settings, engine=running)
            best = found.read().sort_by([("body", "descending"), ("head", "ascending"), ("tail", "ascending")])
            rows = [_named(row, dataset.train) for row in best.slice(0, examples).to_pylist()]
            told.append({"rule": str(rule), "ground_rules": len(found), "examples": rows})
    if json:
        print_json(told)
        return
    for one in told:
        out().print(f"{one['rule']}   ({one['ground_rules']:,} ground rules)", style="bold", markup=False)
        for row in one["examples"]:
            body = " & ".join(f"{fact} [{confidence:.3f}]" for fact, confidence in row["body"])
            out().print(f"  {body} -> {row['head']} [at least {row['value']:.3f}]", markup=False)


@rules_app.command("ground")
def ground_rules(
    data: Data,
    rules: Rules,
    out_file: Annotated[
        Path,
        typer.Option("--out", help="Parquet file of all columns by id; any other format of facts holds heads by name."),
    ],
    strong: Strong = None,
    budget: Annotated[int, typer.Option(help="Ground rules to make at most.")] = 10_000_000,
    observed: Annotated[bool, typer.Option("--observed", help="Also ground rules whose head is observed.")] = False,
    best: Annotated[bool, typer.Option("--best", help="Only the truest body for each rule and head.")] = False,
    distinct: Distinct = True,
    form: Form = None,
    engine: EngineName = "duckdb",
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Fill rules with strong facts and write the ground rules for unseen heads."""
    from ukge.logic.grounding import GroundingSettings, ground

    dataset = _open(data)
    settings = GroundingSettings(
        strong=_strong(strong, dataset), unseen_only=not observed, distinct=distinct, best_only=best, budget=budget
    )
    by_id = out_file.suffix == ".parquet"
    with _engine(engine, memory) as running, err().status("grounding"):
        found = ground(dataset.train, _read(rules, form), settings, out=out_file if by_id else None, engine=running)
    if not by_id:
        from ukge.graph.writers import write

        write(found.heads(dataset.train), out_file)
    for line in found.report.lines():
        note(line)
    if json:
        told = [{"rule": str(one.rule), "estimate": one.estimate, "pruned": one.pruned} for one in found.report.rules]
        print_json({"ground_rules": len(found), "file": str(out_file), "rules": told})
        return
    out().print(f"{len(found):,} ground rules written to {out_file}", markup=False)


def _open(data: str) -> Dataset:
    from ukge.graph.catalogue import open_dataset

    return open_dataset(data)


def _strong(given: float | None, dataset: Dataset) -> float:
    return STRONG_OF.get(dataset.name, STRONG) if given is None else given


@contextmanager
def _engine(name: str, memory: str | None) -> Iterator[Engine]:
    from ukge.logic.engine import connect

    with connect(name, memory=memory) as running:
        yield running


def _read(rules: str, form: str | None) -> list[Rule]:
    from ukge.logic.exchange import read_rules_file
    from ukge.logic.syntax import parse_rule

    if Path(rules).exists() or not any(arrow in rules for arrow in ("->", ">>", "<-", "<<")):
        return read_rules_file(rules, form)
    return [parse_rule(rules)]


def _weighted(found: MinedRules, weights: str) -> list[ScoredRule]:
    from dataclasses import replace

    from ukge.logic.weights import fixed_weights

    if weights not in ("learnt", "fixed"):
        raise ConfigError(f"unknown weights {weights!r}", hint="Known: learnt, fixed.")
    rules = found.weighted() if weights == "learnt" else fixed_weights(found.rules)
    return [replace(one, rule=rule) for one, rule in zip(found.scored, rules, strict=True)]


def _write(path: Path, scored: Sequence[ScoredRule], form: str | None, comment: str) -> None:
    from ukge.logic.exchange import format_of, write_scored

    write_scored(path, scored, form or format_of(path), comment=comment)
    note(f"{len(scored):,} rules written to {path}")


def _named(row: dict[str, Any], graph: UncertainGraph) -> dict[str, Any]:
    facts = [graph[row[f"fact_{place}"]] for place in (1, 2, 3) if row[f"fact_{place}"] is not None]
    body = [(f"{fact.relation}({fact.head}, {fact.tail})", fact.confidence) for fact in facts]
    ends = graph.entities[row["head"]], graph.entities[row["tail"]]
    head = f"{graph.relations[row['relation']]}({ends[0]}, {ends[1]})"
    return {"head": head, "value": row["body"], "body": body}


def _print_table(scored: Sequence[ScoredRule], title: str) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("rule", overflow="fold", ratio=1)
    for name in ("weight", "hit ratio", "support", "implied", "coverage", "conf.", "PCA", "error", "lift"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in scored:
        figures = one.measures
        body = " & ".join(str(atom) for atom in one.rule.body)
        table.add_row(
            f"{body} -> {one.rule.head}",
            f"{one.rule.weight:.3f}",
            f"{figures.hit_ratio:.1%}",
            f"{figures.support:,}",
            f"{figures.implied:,}",
            f"{figures.head_coverage:.1%}",
            f"{figures.confidence:.3f}",
            f"{figures.pca_confidence:.3f}",
            f"{figures.error:.3f}",
            f"{figures.lift:.2f}",
        )
    out().print(table)
