"""`ukge rules`: mine rules, look at them, measure them, ground them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import GAP, err, note, out, plain_table, print_json
from ukge.cli.flags import AsJson, Command, Data, EngineName, real, whole, with_flags
from ukge.cli.reading import Reading, with_reading
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

Rules = Annotated[
    str, typer.Argument(help="A file of rules, or one rule: 'r(A, B) & s(B, C) -> t(A, C)'.", metavar="RULES")
]
Strong = Annotated[
    float | None,
    real("--strong", help="τ: confidence above which a fact may be part of a body; 0.85 (ppi5k: 0.70) if not given."),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="What the engine holds before it spills to disk, such as 8GB.", metavar="SIZE"),
]
Form = Annotated[
    str | None, typer.Option("--rules-format", help="psl, anyburl or json; else the extension says it.", metavar="NAME")
]
Distinct = Annotated[
    bool,
    typer.Option("--distinct/--no-distinct", help="Whether different variables stand for different entities."),
]

# The paper's τ for its three graphs; all others take the common one.
STRONG, STRONG_OF = 0.85, {"ppi5k": 0.70}

ROOM_FOR_RULE = 44
"""Columns that a rule needs to be read."""


@dataclass(frozen=True)
class Work:
    """What the flags of every command on rules say, and what it works with by them."""

    strong: Strong = None
    form: Form = None
    engine: EngineName = "duckdb"
    memory: Memory = None
    reading: Reading = field(default_factory=Reading)

    def open(self, data: str) -> Dataset:
        """Open the facts."""
        if self.reading.format in ("psl", "anyburl"):
            hint = f"Rules: ‹rules_format={self.reading.format}›."
            raise ConfigError("‹format› says how facts are read", hint=hint)
        return self.reading.open(data)

    def tau(self, dataset: Dataset) -> float:
        """Return the confidence above which facts are strong."""
        return STRONG_OF.get(dataset.name, STRONG) if self.strong is None else self.strong

    def connected(self) -> AbstractContextManager[Engine]:
        """Connect the engine."""
        from ukge.logic.engine import connect

        return connect(self.engine, memory=self.memory)

    def read(self, rules: str) -> list[Rule]:
        """Return the rules of a file, or the one that is written out."""
        from ukge.logic.exchange import read_rules_file
        from ukge.logic.syntax import parse_rule

        if Path(rules).exists() or not any(arrow in rules for arrow in ("->", ">>", "<-", "<<")):
            return read_rules_file(rules, self.form)
        return [parse_rule(rules)]


def with_work(command: Command) -> Command:
    """Give a command the flags of `Work` instead of its parameter `work`."""
    make = with_reading(Work)
    flags = [each.replace(kind=each.KEYWORD_ONLY) for each in inspect.signature(make).parameters.values()]
    return with_flags(command, "work", flags, lambda given: make(**given))


@rules_app.command("mine")
@with_work
def mine(
    data: Data,
    max_length: Annotated[int, whole("--max-length", help="Body atoms at most: 1, 2 or 3.", most=3)] = 2,
    min_support: Annotated[int, whole("--min-support", help="Implied facts that must be observed.")] = 5,
    min_hit_ratio: Annotated[
        float, real("--min-hit-ratio", help="Share of implied facts that must be observed.")
    ] = 0.3,
    conjunctions: Annotated[
        bool, typer.Option("--conjunctions", help="Also bodies of two atoms over the head's own two entities.")
    ] = False,
    redundant: Annotated[
        bool, typer.Option("--redundant", help="Keep rules that are no better than a shorter one, too.")
    ] = False,
    top: Annotated[int | None, whole("--top", help="Rules to keep per head relation.")] = None,
    weights: Annotated[
        str, typer.Option(help="learnt (calibrated confidence) or fixed (1, as in the paper).")
    ] = "learnt",
    show: Annotated[int, whole("--show", help="Rules to print.", least=0)] = 30,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File to write the rules to; an old one is replaced.", metavar="FILE")
    ] = None,
    json: AsJson = False,
    *,
    work: Work,
) -> None:
    """Find all rules of the training facts, measure them, and print the best."""
    from ukge.logic.mining import MiningSettings
    from ukge.logic.mining import mine as find
    from ukge.progress.bars import WorkProgress

    dataset = work.open(data)
    asked = MiningSettings(
        strong=work.tau(dataset),
        max_length=max_length,
        conjunctions=conjunctions,
        min_support=min_support,
        min_hit_ratio=min_hit_ratio,
        keep_redundant=redundant,
        top=top,
    )
    title = f"mining {len(dataset.train):,} facts"
    with work.connected() as running, WorkProgress(err(), title) as progress:
        found = find(dataset.train, asked, engine=running, tell=progress.tell)
    scored = _weighted(found, weights)
    for line in found.report.lines():
        note(line)
    if out_file is not None:
        _write(out_file, scored, work.form, f"{len(scored)} rules mined from {dataset.name}")
    if json:
        from ukge.logic.exchange import as_json

        print_json({"rules": [as_json(one) for one in scored], "report": asdict(found.report)})
        return
    _print_table(scored[:show], f"{len(scored):,} rules of {dataset.name}, best first")
    if len(scored) > show:
        note(f"{len(scored) - show:,} more rules are not printed; --show and --out give them")


@rules_app.command("score")
@with_work
def score(
    data: Data,
    rules: Rules,
    distinct: Distinct = True,
    whole: Annotated[
        bool, typer.Option("--whole", help="Look heads up in all facts, held-out ones too, not in the training facts.")
    ] = False,
    json: AsJson = False,
    *,
    work: Work,
) -> None:
    """Measure given rules on the training facts."""
    from ukge.logic.measures import measure

    dataset = work.open(data)
    known = dataset.whole() if whole else None
    with work.connected() as running:
        scored = measure(
            dataset.train,
            work.read(rules),
            strong=work.tau(dataset),
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
@with_work
def show(
    data: Data,
    rules: Rules,
    examples: Annotated[int, whole("--examples", help="Ground rules to show per rule.", least=0)] = 3,
    observed: Annotated[bool, typer.Option("--observed", help="Also show ground rules with an observed head.")] = False,
    json: AsJson = False,
    *,
    work: Work,
) -> None:
    """Show rules at work: what they conclude from which facts."""
    from ukge.logic.grounding import GroundingSettings, ground

    dataset = work.open(data)
    settings = GroundingSettings(strong=work.tau(dataset), unseen_only=not observed)
    told: list[dict[str, Any]] = []
    with work.connected() as running:
        for rule in work.read(rules):
            found = ground(dataset.train, [rule], settings, engine=running)
            best = found.read().sort_by([("body", "descending"), ("head", "ascending"), ("tail", "ascending")])
            rows = [_named(row, dataset.train) for row in best.slice(0, examples).to_pylist()]
            told.append({"rule": str(rule), "ground_rules": len(found), "examples": rows})
    if json:
        print_json(told)
        return
    from ukge.progress.safe_console import one_line

    for one in told:
        out().print(one_line(f"{one['rule']}   ({one['ground_rules']:,} ground rules)"), style="bold")
        for row in one["examples"]:
            body = " & ".join(f"{fact} [{confidence:.3f}]" for fact, confidence in row["body"])
            out().print(one_line(f"  {body} -> {row['head']} [at least {row['value']:.3f}]"))


@rules_app.command("ground")
@with_work
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
    budget: Annotated[int, whole("--budget", help="Ground rules to make at most.", most=10**12)] = 10_000_000,
    observed: Annotated[bool, typer.Option("--observed", help="Also ground rules whose head is observed.")] = False,
    best: Annotated[bool, typer.Option("--best", help="Only the truest body for each rule and head.")] = False,
    distinct: Distinct = True,
    json: AsJson = False,
    *,
    work: Work,
) -> None:
    """Fill rules with strong facts and write the ground rules for unseen heads."""
    from ukge.logic.grounding import GroundingSettings, ground
    from ukge.progress.bars import WorkProgress

    dataset = work.open(data)
    settings = GroundingSettings(
        strong=work.tau(dataset), unseen_only=not observed, distinct=distinct, best_only=best, budget=budget
    )
    by_id = out_file.suffix == ".parquet"
    wanted, place = work.read(rules), out_file if by_id else None
    with work.connected() as running, WorkProgress(err(), f"grounding {len(wanted):,} rules") as progress:
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
    out().print(f"{len(found):,} ground rules written to {out_file}")


def _weighted(found: MinedRules, weights: str) -> list[ScoredRule]:
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
    """Return a ground rule with names for ids."""
    facts = [graph[row[f"fact_{place}"]] for place in (1, 2, 3) if row[f"fact_{place}"] is not None]
    body = [(f"{fact.relation}({fact.head}, {fact.tail})", fact.confidence) for fact in facts]
    ends = graph.entities[row["head"]], graph.entities[row["tail"]]
    head = f"{graph.relations[row['relation']]}({ends[0]}, {ends[1]})"
    return {"head": head, "value": row["body"], "body": body}


def _print_table(scored: Sequence[ScoredRule], title: str) -> None:
    """Print rules with as many of their measures as the terminal has room for, the telling ones first."""
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    console = out()
    columns = {
        "weight": [f"{one.rule.weight:.3f}" for one in scored],
        "hit ratio": [f"{one.measures.hit_ratio:.1%}" for one in scored],
        "support": [f"{one.measures.support:,}" for one in scored],
        "implied": [f"{one.measures.implied:,}" for one in scored],
        "coverage": [f"{one.measures.head_coverage:.1%}" for one in scored],
        "conf.": [f"{one.measures.confidence:.3f}" for one in scored],
        "PCA": [f"{one.measures.pca_confidence:.3f}" for one in scored],
        "error": [f"{one.measures.error:.3f}" for one in scored],
        "lift": [f"{one.measures.lift:.2f}" for one in scored],
    }
    widths = [max(len(name), *map(len, cells), 0) + GAP for name, cells in columns.items()]
    fitting = [name for at, name in enumerate(columns) if ROOM_FOR_RULE + sum(widths[: at + 1]) <= console.width]
    table = plain_table(title)
    table.add_column("rule", overflow="fold")
    for name in fitting:
        table.add_column(name, justify="right", no_wrap=True)
    for row, one in enumerate(scored):
        body = " & ".join(str(atom) for atom in one.rule.body)
        table.add_row(Text(one_line(f"{body} -> {one.rule.head}")), *(columns[name][row] for name in fitting))
    console.print(table)
    if len(fitting) < len(columns):
        note("a wider terminal, --json and --out show more measures: " + ", ".join([*columns][len(fitting) :]))
