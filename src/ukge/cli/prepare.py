"""`ukge data prepare`: from Parquet files in a bucket to a directory that ranks can share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import err, out, print_json


def prepare(
    source: Annotated[str, typer.Argument(help="Directory or bucket of Parquet files of facts.", metavar="SOURCE")],
    directory: Annotated[
        Path, typer.Argument(help="The directory to make; one that is there needs --force.", metavar="OUT")
    ],
    engine: Annotated[
        str, typer.Option("--engine", help="duckdb, spark, local[N] or spark://host:port.", metavar="NAME")
    ] = "duckdb",
    val: Annotated[float, typer.Option("--val", help="Share of the facts to validate on.")] = 0.01,
    test: Annotated[float, typer.Option("--test", help="Share of the facts to test on.")] = 0.01,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the choice.")] = 0,
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="Which column is which: head=a,confidence=score.", metavar="ROLE=COL,…"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a prepared directory that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Number the names of a graph in many Parquet files and cut it, without holding it in memory.

    What it makes is read by ukge train, by its ranks (--distributed) too.
    """
    from ukge.cli.reading import parse_columns
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
