"""`ukge data`: find, fetch, describe, convert, cut and make data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import note, out, plain_table, print_json, tell_leaks
from ukge.cli.prepare import prepare
from ukge.cli.reading import Data, Reading, Undirected, tell_undirected, undirected_said, with_reading

if TYPE_CHECKING:
    from ukge.graph.dataset import Dataset
    from ukge.graph.uncertain import UncertainGraph

app = typer.Typer(help="Find, fetch, describe, convert, cut and make data.", no_args_is_help=True, add_completion=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Input = Annotated[Path, typer.Argument(help="A file of facts.", metavar="IN")]
Output = Annotated[Path, typer.Argument(help="The file to write; an old one is replaced.", metavar="OUT")]
To = Annotated[
    str | None, typer.Option("--to", help="Format of the output; else its extension says it.", metavar="NAME")
]
Aggregate = Annotated[
    str | None,
    typer.Option(
        "--aggregate", help="Make one fact of repeated triples: mean, max, noisy-or, last, error.", metavar="HOW"
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random choice.")]


@app.command("list")
def list_benchmarks(json: Json = False) -> None:
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


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="cn15k, nl27k or ppi5k.", metavar="NAME")], json: Json = False
) -> None:
    """Fetch a benchmark unless it is here, and check that it is the real thing."""
    from ukge.graph.catalogue import load, locate

    dataset = load(name)
    place = locate(name)
    if json:
        print_json({**_sizes(dataset), "path": str(place.path) if place else None})
        return
    out().print(f"{name} is complete and verified: {place.path if place else ''}", markup=False)
    if dataset.queries is None:
        note("this copy has no ranking queries: the authors publish them only as a pickle, which is not opened")


@app.command("info")
@with_reading
def info(
    data: Data,
    json: Json = False,
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


@app.command("convert")
@with_reading
def convert(
    source: Input,
    target: Output,
    to: To = None,
    aggregate: Aggregate = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Read facts in one format, check them, and write them in another."""
    _write(_aggregated(reading.read(source), aggregate), target, to, json)


@app.command("normalise")
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
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Turn the weights of a file into confidences."""
    _write(replace(reading, normalise=scale).read(source), target, to, json)


@app.command("split")
@with_reading
def split(
    source: Input,
    directory: Annotated[
        Path,
        typer.Option(
            "--out", help="The directory to write, for ukge train; one with files needs --force.", metavar="DIR"
        ),
    ],
    val: Annotated[float, typer.Option("--val", help="Fraction of validation facts.")] = 0.07,
    test: Annotated[float, typer.Option("--test", help="Fraction of test facts.")] = 0.08,
    seed: Seed = 0,
    leak_safe: Annotated[
        bool,
        typer.Option("--leak-safe", help="Keep all facts of the same two entities in one part, so that none leaks."),
    ] = False,
    negatives: Annotated[
        str | None,
        typer.Option(
            "--negatives",
            help="Draw negative links for the test: uniform, range, paper, degree, other-relation, mixture.",
            metavar="KIND",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the data set that is in the directory.")] = False,
    aggregate: Aggregate = None,
    undirected: Undirected = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Cut a file of facts into train, validation and test."""
    from ukge.graph.audit.leaks import find_leaks
    from ukge.graph.catalogue import save_dataset
    from ukge.graph.negatives import with_negatives
    from ukge.graph.split import split as split_graph
    from ukge.graph.undirected import undirected_graph

    graph = _aggregated(reading.read(source), aggregate)
    graph = undirected_graph(graph, undirected_said(undirected), tell_undirected)
    chosen = graph.undirected
    dataset = split_graph(
        graph, val=val, test=test, seed=seed, leak_safe=leak_safe, undirected=chosen, name=directory.name
    )
    if negatives is not None:
        dataset = with_negatives(dataset, negatives, seed)
    save_dataset(dataset, directory, overwrite=force)
    leaks = find_leaks(dataset)
    if json:
        print_json({**_sizes(dataset), "path": str(directory), "leaks": leaks.to_dict()})
        return
    sizes = ", ".join(f"{what} {value:,}" for what, value in _sizes(dataset).items() if isinstance(value, int))
    out().print(f"wrote {directory}: {sizes}", markup=False)
    tell_leaks(leaks, out())


@app.command("generate")
def generate(
    target: Annotated[
        Path,
        typer.Option("--out", help="The file to write; an old one is replaced.", metavar="FILE"),
    ],
    entities: Annotated[int, typer.Option("--entities", help="How many entities.", min=1)] = 1_000,
    facts: Annotated[int, typer.Option("--facts", help="How many facts.", min=1)] = 20_000,
    noise: Annotated[float, typer.Option("--noise", help="Deviation of what is observed from the truth.")] = 0.05,
    seed: Seed = 0,
    to: To = None,
    json: Json = False,
) -> None:
    """Make a synthetic uncertain graph whose true confidences and rules are known."""
    from ukge.graph.synthetic import generate as generate_world
    from ukge.graph.synthetic import stream_parquet

    if target.suffix == ".parquet" and to in (None, "parquet"):
        world = stream_parquet(target, entities, facts, seed, noise=noise)
        _say_written(target, json, facts, entities, len(world.relations))
    else:
        _write(generate_world(entities, facts, seed, noise).graph, target, to, json)


app.command("prepare")(prepare)


def _aggregated(graph: UncertainGraph, how: str | None) -> UncertainGraph:
    if how is None:
        return graph
    from ukge.graph.aggregate import aggregate

    done = aggregate(graph, how)
    note(f"{done.removed:,} repeated rows went into one fact each ({how})")
    return done.graph


def _write(graph: UncertainGraph, target: Path, to: str | None, json: bool) -> None:
    from ukge.graph.writers import write

    write(graph, target, format=to)
    _say_written(target, json, len(graph), graph.n_entities, graph.n_relations)


def _say_written(target: Path, json: bool, facts: int, entities: int, relations: int) -> None:
    if json:
        print_json({"path": str(target), "facts": facts, "entities": entities, "relations": relations})
    else:
        size = f"{facts:,} facts, {entities:,} entities, {relations:,} relations"
        out().print(f"wrote {target}: {size}", markup=False)


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
    """Add a row of plain text: names may hold what Rich would take for markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells))
