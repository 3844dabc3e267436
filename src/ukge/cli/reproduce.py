"""`ukge reproduce`: the paper's tables, with the published numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ukge.cli.console import ExitCode, err, note, out, print_json, write_text
from ukge.cli.flags import AsJson, Quiet, whole

GRAPHS = ("cn15k", "nl27k", "ppi5k")


def reproduce(
    graphs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Benchmarks or directories of parts; all three benchmarks if none is named.", metavar="GRAPH"
        ),
    ] = None,
    models: Annotated[
        str, typer.Option("--models", help="Models, with commas; all of each part if not given.", metavar="NAMES")
    ] = "",
    seeds: Annotated[int, whole("--seeds", help="Trainings of each model: seeds 0, 1, …", most=1000)] = 3,
    parts: Annotated[
        str,
        typer.Option(
            "--parts",
            help="What to train for, with commas: paper (its tables), rules (do they help?), clean (no leaks), field "
            "(the models published since).",
            metavar="NAMES",
        ),
    ] = "paper,rules",
    directory: Annotated[
        Path, typer.Option("--out", help="Where figures (*.json) and runs/ are kept.", metavar="DIR")
    ] = Path("results"),
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            help="The page to write, in place of an old one; results.md in DIR (of field alone, field.md).",
            metavar="FILE",
        ),
    ] = None,
    settings_from: Annotated[
        Path | None, typer.Option("--settings", help="Take GRAPH.toml from here, not the package's.", metavar="DIR")
    ] = None,
    training: Annotated[
        bool, typer.Option("--train/--no-train", help="Whether to train what is missing, or show what is there.")
    ] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Train what is missing and print the paper's tables: published, ours over seeds, and the difference.

    It may be stopped at any moment: a second call goes on where the first was. The settings of a model are those of
    the repository; any given here changes them for all models.
    """
    from ukge.cli.progress import ReproductionProgress
    from ukge.reproduction.document import render
    from ukge.reproduction.page import only_field, sections
    from ukge.reproduction.page import page as as_page
    from ukge.reproduction.reproduce import Request
    from ukge.reproduction.reproduce import reproduce as run

    request = Request(
        tuple(graphs or GRAPHS),
        _names(models),
        seeds,
        _names(parts),
        directory,
        settings_from,
        settings,
        training,
    )
    with ReproductionProgress(err(), quiet=quiet) as progress:
        found = run(request, progress)
    if as_json:
        from dataclasses import asdict

        print_json([asdict(each) for graph in found.graphs for each in graph.outcomes])
    else:
        out().print(render(sections(found)))
    target = page or directory / ("field.md" if only_field(found) else "results.md")
    write_text(target, as_page(found))
    note(f"wrote {target}")
    if found.failures:
        raise typer.Exit(ExitCode.FAILED)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
