"""`ukge rules`: mine rules, look at them, measure them, ground them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note, out, print_json
from ukge.cli.reading import Data, Reading, with_reading
from ukge.cli.rules_shown import named, print_table
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from ukge.graph.dataset import Dataset
    from ukge.logic.engine import Engine
    from ukge.logic.measures import ScoredRule
    from ukge.logic.mining import MinedRules
    from ukge.logic.rules import Rule

rules_app = typer.Typer(
    help="Mine rules, look at them, measure them, ground them.", no_args_is_help=True, add_completion=False
)

Rules = Annotated[
    str, typer.Argument(help="A file of rules, or one rule: 'r(A, B) & s(B, C) -> t(A, C)'.", metavar="RULES")
]
Strong = Annotated[
    float | None,
    typer.Option(
        "--strong", help="τ: confidence above which a fact may be part of a body; 0.85 (ppi5k: 0.70) if not given."
    ),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="duckdb, spark, local[N] or spark://host:port.", metavar="NAME")
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="What the engine holds before it spills to disk, such as 8GB.", metavar="SIZE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Form = Annotated[
    str | None, typer.Option("--rules-format", help="psl, anyburl or json; else the extension says it.", metavar="NAME")
]
Distinct = Annotated[
    bool,
    typer.Option("--distinct/--no-distinct", help="Whether different variables stand for different entities."),
]

# The paper's τ for its three graphs; all others take the common one.
STRONG, STRONG_OF = 0.85, {"ppi5k": 0.70}


@rules_app.command("mine")
@with_reading
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
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File to write the rules to; an old one is replaced.", metavar="FILE")
    ] = None,
    form: Form = None,
    engine: EngineName = "duckdb",
    memory: Memory = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Find all rules of the training facts, measure them, and print the best."""
    from ukge.logic.mining import MiningSettings
    from ukge.logic.mining import mine as find
    from ukge.progress.bars import WorkProgress

    dataset = _open(data, reading)
    asked = MiningSettings(
        strong=_strong(strong, dataset),
        max_length=max_length,
        conjunctions=conjunctions,
        min_support=min_support,
        min_hit_ratio=min_hit_ratio,
        keep_redundant=redundant,
        top=top,
    )
    title = f"mining {len(dataset.train):,} facts"
    with _engine(engine, memory) as running, WorkProgress(err(), title) as progress:
        found = find(dataset.train, asked, engine=running, tell=progress.tell)
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
    print_table(scored[:show], f"{len(scored):,} rules of {dataset.name}, best first")
    if len(scored) > show:
        note(f"{len(scored) - show:,} more rules are not printed; --show and --out give them")


@rules_app.command("score")
@with_reading
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
    *,
    reading: Reading,
) -> None:
    """Measure given rules on the training facts."""
    from ukge.logic.measures import measure

    dataset = _open(data, reading)
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
    print_table(scored, f"{len(scored):,} rules on {dataset.name}")


@rules_app.command("show")
@with_reading
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
    *,
    reading: Reading,
) -> None:
    """Show rules at work: what they conclude from which facts."""
    from ukge.logic.grounding import GroundingSettings, ground

    dataset = _open(data, reading)
    settings = GroundingSettings(strong=_strong(strong, dataset), unseen_only=not observed)
    told: list[dict[str, Any]] = []
    with _engine(engine, memory) as running:
        for rule in _read(rules, form):
            found = ground(dataset.train, [rule], settings, engine=running)
            best = found.read().sort_by([("body", "descending"), ("head", "ascending"), ("tail", "ascending")])
            rows = [named(row, dataset.train) for row in best.slice(0, examples).to_pylist()]
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
@with_reading
def ground_rules(
    data: Data,
    rules: Rules,
    out_file: Annotated[
        Path,
        typer.Option(
            "--out",
            help="The file to write; an old one is replaced. .parquet has all columns, by id; others heads by name.",
            metavar="FILE",
        ),
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
    *,
    reading: Reading,
) -> None:
    """Fill rules with strong facts and write the ground rules for unseen heads."""
    from ukge.logic.grounding import GroundingSettings, ground
    from ukge.progress.bars import WorkProgress

    dataset = _open(data, reading)
    settings = GroundingSettings(
        strong=_strong(strong, dataset), unseen_only=not observed, distinct=distinct, best_only=best, budget=budget
    )
    by_id = out_file.suffix == ".parquet"
    wanted, place = _read(rules, form), out_file if by_id else None
    with _engine(engine, memory) as running, WorkProgress(err(), f"grounding {len(wanted):,} rules") as progress:
        found = ground(dataset.train, wanted, settings, out=place, engine=running, tell=progress.tell)
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


def _open(data: str, reading: Reading) -> Dataset:
    if reading.format in ("psl", "anyburl"):
        raise ConfigError("‹format› says how facts are read", hint=f"Rules: ‹rules_format={reading.format}›.")
    return reading.open(data)


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
