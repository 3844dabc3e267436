"""`ukge data`: find, fetch, describe, convert, cut and make data; `ukge audit`: what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import as_flag, err, note, out, plain_table, print_json, tell_leaks, write_text
from ukge.cli.flags import AsJson, Data, EngineName, Seed, SpreadsheetSafe, To, Undirected, real, whole
from ukge.cli.reading import Reading, parse_columns, tell_undirected, undirected_said, with_reading
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from ukge.graph.claims import Claims
    from ukge.graph.dataset import Dataset
    from ukge.graph.uncertain import UncertainGraph

data_app = typer.Typer(
    help="Find, fetch, describe, convert, cut and make data.", no_args_is_help=True, add_completion=False
)

Input = Annotated[Path, typer.Argument(help="A file of facts.", metavar="IN")]
Output = Annotated[Path, typer.Argument(help="The file to write; an old one is replaced.", metavar="OUT")]
Aggregate = Annotated[
    str | None,
    typer.Option(
        "--aggregate", help="Make one fact of repeated triples: mean, max, noisy-or, last, error.", metavar="HOW"
    ),
]
Val = Annotated[float, real("--val", help="Share of the facts to validate on.")]
Test = Annotated[float, real("--test", help="Share of the facts to test on.")]
Noise = Annotated[float, real("--noise", help="Deviation of what is observed from the truth.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the directory.")]


@data_app.command("list")
def list_benchmarks(json: AsJson = False) -> None:
    """List the benchmarks, and where on this machine each was found."""
    from ukge.graph.catalogue import BENCHMARKS, cache_directory, locate

    rows: list[dict[str, Any]] = []
    for name, each in BENCHMARKS.items():
        place = locate(name)
        where = {"path": str(place.path), "found_by": place.why} if place else {"path": None, "found_by": None}
        facts = sum(each.rows[part][0] for part in ("train", "val", "test"))
        size = {"entities": each.entities, "relations": each.relations, "facts": facts}
        rows.append({"name": name, "title": each.title, **size, **where})
    if json:
        print_json(rows)
        return
    table = _table("name", "source", "entities", "relations", "facts", "where")
    for row in rows:
        numbers = [f"{row[key]:,}" for key in ("entities", "relations", "facts")]
        where_text = f"{row['path']} ({row['found_by']})" if row["path"] else "not here: ukge data get " + row["name"]
        _add(table, row["name"], row["title"], *numbers, where_text)
    out().print(table)
    note(f"benchmarks are fetched into {cache_directory()}")


@data_app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="cn15k, nl27k or ppi5k.", metavar="NAME")], json: AsJson = False
) -> None:
    """Fetch a benchmark unless it is here, and check that it is the real thing."""
    from ukge.graph.catalogue import load, locate

    dataset = load(name)
    place = locate(name)
    if json:
        print_json({**_sizes(dataset), "path": str(place.path) if place else None})
        return
    out().print(f"{name} is complete and verified: {place.path if place else ''}")
    if dataset.queries is None:
        note("this copy has no ranking queries: the authors publish them only as a pickle, which is not opened")


@data_app.command("info")
@with_reading
def info(
    data: Data,
    json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Say what a data set holds."""
    path = Path(data)
    if path.is_file():
        graph = reading.read(path)
        sizes = {"name": path.name, "entities": graph.n_entities, "relations": graph.n_relations, "facts": len(graph)}
        examples = graph
    else:
        dataset = reading.open(data)
        sizes, examples = _sizes(dataset), dataset.train
    first = [fact._asdict() for fact in examples[:5]]
    if json:
        print_json({**sizes, "examples": first})
        return
    table = _table("what", "value")
    for what, value in sizes.items():
        _add(table, what.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    out().print(table)
    shown = _table("head", "relation", "tail", "confidence", text=3)
    for fact in first:
        _add(shown, fact["head"], fact["relation"], fact["tail"], f"{fact['confidence']:.4g}")
    out().print(shown)


@data_app.command("convert")
@with_reading
def convert(
    source: Input,
    target: Output,
    to: To = None,
    aggregate: Aggregate = None,
    safe: SpreadsheetSafe = False,
    json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Read facts in one format, check them, and write them in another."""
    from ukge.graph.writers import network_format

    options = {"spreadsheet_safe": True} if safe else {}
    rows, claims = reading.read_with_claims(source)
    graph = _aggregated(rows, aggregate)
    if claims is not None and aggregate is None and to is None and _tells_more(claims, target):
        from ukge.graph.writers.claims import write_claims

        write_claims(claims, target, **options)
        _say_written(target, json, len(claims), graph.n_entities, graph.n_relations)
    else:
        _write(graph, target, to, json, **options)
    if len(graph.nodes) and network_format(target, to) is None:
        note(f"{target} has no place for what is known of the nodes: GraphML, CX2, SIF and KGX (--to kgx) have one")


@data_app.command("normalise")
@partial(with_reading, without=["normalise"])
def normalise(
    source: Input,
    target: Output,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            help="A recipe (conceptnet, nell) or scales, such as 'clip:0.1,3 log minmax:0.1,1'.",
            metavar="SCALE",
        ),
    ],
    to: To = None,
    json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Turn the weights of a file into confidences."""
    _write(replace(reading, normalise=scale).read(source), target, to, json)


@data_app.command("split")
@with_reading
def split(
    source: Input,
    directory: Annotated[
        Path,
        typer.Option(
            "--out", help="The directory to write, for ukge train; one with files needs --force.", metavar="DIR"
        ),
    ],
    val: Val = 0.07,
    test: Test = 0.08,
    seed: Seed = 0,
    leak_safe: Annotated[
        bool,
        typer.Option("--leak-safe", help="Keep all facts of the same two entities in one part, so that none leaks."),
    ] = False,
    negatives: Annotated[
        str | None,
        typer.Option(
            "--negatives",
            help="Draw negative test links: uniform, corruption, degree, range, paper, other-relation, fitting, "
            "mixture.",
            metavar="KIND",
        ),
    ] = None,
    force: Force = False,
    aggregate: Aggregate = None,
    undirected: Undirected = None,
    json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Cut a file of facts into train, validation and test."""
    from ukge.graph.audit.leaks import find_leaks
    from ukge.graph.catalogue import save_dataset
    from ukge.graph.negatives import with_negatives
    from ukge.graph.split import split as split_graph
    from ukge.graph.undirected import undirected_graph

    rows, claims = reading.read_with_claims(source)
    graph = _aggregated(rows, aggregate)
    graph = undirected_graph(graph, undirected_said(undirected), tell_undirected)
    chosen = graph.undirected
    dataset = split_graph(
        graph, val=val, test=test, seed=seed, leak_safe=leak_safe, undirected=chosen, name=directory.name
    )
    dataset = replace(dataset, claims=claims)
    if negatives is not None:
        dataset = with_negatives(dataset, negatives, seed)
    save_dataset(dataset, directory, overwrite=force)
    leaks = find_leaks(dataset)
    if json:
        print_json({**_sizes(dataset), "path": str(directory), "leaks": leaks.to_dict()})
        return
    sizes = ", ".join(f"{what} {value:,}" for what, value in _sizes(dataset).items() if isinstance(value, int))
    out().print(f"wrote {directory}: {sizes}")
    tell_leaks(leaks, out())


@data_app.command("generate")
def generate(
    target: Annotated[
        Path,
        typer.Option("--out", help="The file to write; an old one is replaced.", metavar="FILE"),
    ],
    entities: Annotated[
        int | None,
        whole("--entities", help="How many entities: 1,000 if not said, and with --claims one to every 50 claims."),
    ] = None,
    facts: Annotated[
        int | None,
        whole("--facts", help="How many facts the world shows: 20,000 if not said, and 20 an entity with --claims."),
    ] = None,
    noise: Noise = 0.05,
    seed: Seed = 0,
    claims: Annotated[
        int | None,
        whole("--claims", help="Write so many claims of several sources instead, such as 30000, and their truth."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="With --claims: where the truth goes; else NAME.truth beside it.", metavar="FILE"),
    ] = None,
    to: To = None,
    json: AsJson = False,
) -> None:
    """Make a synthetic uncertain graph whose true confidences and rules are known, or claims about one.

    Claims are of sources of different skill: curated ones, extractors, language models, overconfident ones, and some
    that copy. The truth has a row for every fact that is claimed, with a label, 1 where it holds, in random order.
    """
    from ukge.graph.synthetic import generate as generate_world
    from ukge.graph.synthetic import stream_parquet

    if claims is not None:
        _generate_claims(target, truth, claims, (entities, facts), seed, json)
        return
    if truth is not None:
        raise ConfigError("‹truth› says where the truth of claims goes", hint="Say how many: ‹claims=30000›.")
    entities, facts = entities or 1_000, facts or 20_000
    if target.suffix == ".parquet" and to in (None, "parquet"):
        world = stream_parquet(target, entities, facts, seed, noise=noise)
        _say_written(target, json, facts, entities, len(world.relations))
    else:
        _write(generate_world(entities, facts, seed, noise).graph, target, to, json)


def _generate_claims(
    target: Path, truth: Path | None, count: int, size: tuple[int | None, int | None], seed: int, json: bool
) -> None:
    from ukge.graph.files import compression_of
    from ukge.graph.synthetic import generate_claims
    from ukge.graph.writers.tables import check_table_path, write_table

    check_table_path(target)
    if truth is None:
        name = target.with_suffix("") if compression_of(target) else target
        truth = target.with_name(f"{name.stem}.truth{target.name[len(name.stem) :]}")
    check_table_path(truth)
    made = generate_claims(count, *size, seed)
    write_table(target, made.claims.table())
    write_table(truth, made.truth(seed))
    numbers = {"claims": len(made.claims), "facts": len(made.holds), "sources": len(made.kinds)}
    if json:
        print_json({"path": str(target), "truth": str(truth), **numbers, "true": int(made.holds.sum())})
    else:
        said = ", ".join(f"{number:,} {what}" for what, number in numbers.items())
        out().print(f"wrote {target}: {said}; and {truth}: which facts hold ({made.holds.mean():.0%})")


@data_app.command("prepare")
def prepare(
    source: Annotated[str, typer.Argument(help="Directory or bucket of Parquet files of facts.", metavar="SOURCE")],
    directory: Annotated[
        Path, typer.Argument(help="The directory to make; one that is there needs --force.", metavar="OUT")
    ],
    engine: EngineName = "duckdb",
    val: Val = 0.01,
    test: Test = 0.01,
    seed: Seed = 0,
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="Which column is which: head=a,confidence=score.", metavar="ROLE=COL,…"),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Number the names of a graph in many Parquet files and cut it, without holding it in memory.

    What it makes is read by ukge train, by its ranks (--distributed) too.
    """
    from ukge.distributed.prepare import PrepareSettings
    from ukge.distributed.prepare import prepare as run
    from ukge.progress.bars import WorkProgress

    settings = PrepareSettings(val, test, seed, parse_columns(columns) if columns else None)
    with WorkProgress(err(), f"preparing {source}") as progress:
        found = run(source, directory, settings, engine, overwrite=force, tell=progress.tell)
    if as_json:
        sizes = {"entities": found.n_entities, "relations": found.n_relations, "facts": dict(found.facts)}
        print_json({"directory": str(directory), **sizes})
        return
    facts = ", ".join(f"{part} {n:,}" for part, n in found.facts.items())
    out().print(f"{directory}: {found.n_entities:,} entities, {found.n_relations:,} relations; {facts}")


def audit(
    data: Data,
    json: AsJson = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write it as one HTML page.", metavar="FILE")] = None,
    leak_safe: Annotated[
        bool, typer.Option("--leak-safe", help="Cut the data anew, leak-safe, and audit that.")
    ] = False,
    seed: Seed = 0,
    undirected: Undirected = None,
    *,
    reading: Reading,
) -> None:
    """Find repeats, conflicts, leaks between parts, negative links that are facts, and what needs no model."""
    from ukge.graph.audit import audit as audit_data
    from ukge.graph.audit.rendering import as_page, as_text
    from ukge.graph.undirected import undirected_graph

    path = Path(data)
    if path.is_file() and not leak_safe:
        rows, claims = reading.read_with_claims(path)
        graph = undirected_graph(rows, undirected_said(undirected), tell_undirected)
        found = audit_data(graph, name=path.name, claims=claims)
    else:
        found = audit_data(reading.open(data, seed=seed, leak_safe=leak_safe, undirected=undirected))
    if html is not None:
        write_text(html, as_page(found))
        note(f"wrote {html}")
    if json:
        print_json(found.to_dict(as_flag))
    else:
        out().print(as_text(found, as_flag))


def _tells_more(claims: Claims, target: Path) -> bool:
    """Return whether claims tell more than facts with a source, and the file can hold it; else say what is lost."""
    from ukge.graph.claims import BESIDES
    from ukge.graph.writers.tables import is_table

    more = [name for name in BESIDES if getattr(claims, name) is not None]
    if more and not is_table(target):
        note(f"{target}: {', '.join(more)} of the claims cannot be written in this format")
    return bool(more) and is_table(target)


def _aggregated(graph: UncertainGraph, how: str | None) -> UncertainGraph:
    if how is None:
        return graph
    from ukge.graph.aggregate import aggregate

    done = aggregate(graph, how)
    note(f"{done.removed:,} repeated rows went into one fact each ({how})")
    return done.graph


def _write(graph: UncertainGraph, target: Path, to: str | None, json: bool, **options: Any) -> None:
    from ukge.graph.writers import write

    write(graph, target, format=to, **options)
    _say_written(target, json, len(graph), graph.n_entities, graph.n_relations)


def _say_written(target: Path, json: bool, facts: int, entities: int, relations: int) -> None:
    if json:
        print_json({"path": str(target), "facts": facts, "entities": entities, "relations": relations})
    else:
        size = f"{facts:,} facts, {entities:,} entities, {relations:,} relations"
        out().print(f"wrote {target}: {size}")


def _sizes(dataset: Dataset) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "name": dataset.name,
        "entities": len(dataset.entities),
        "relations": len(dataset.relations),
        **{part: len(graph) for part, graph in dataset.parts.items()},
    }
    if dataset.undirected:
        sizes["undirected"] = ", ".join(dataset.undirected)
    extras = {"negatives": dataset.negatives, "ground_rules": dataset.ground_rules, "queries": dataset.queries}
    return {**sizes, **{what: len(part) for what, part in extras.items() if part is not None}}


def _table(*columns: str, text: int = 1) -> Any:
    table = plain_table()
    for at, column in enumerate(columns):
        number = at >= text and column in ("entities", "relations", "facts", "value", "confidence")
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _add(table: Any, *cells: str) -> None:
    """Add a row of plain text: names may hold what Rich would take for markup, and ends of lines."""
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    table.add_row(*(Text(one_line(cell)) for cell in cells))
