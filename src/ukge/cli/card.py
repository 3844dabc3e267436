"""`ukge card`: the model card of a run, and how to cite it."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import note
from ukge.cli.flags import Run, RunData, Seed, whole

PROTOCOL = "positives"
"""Judges confidences of test facts: no negative links are needed, which graphs draw differently."""


def card(
    run: Run,
    out_folder: Annotated[
        Path | None,
        typer.Option("--out", help="Write into this directory instead of the run.", metavar="DIR", show_default=False),
    ] = None,
    data: RunData = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Whether to measure the run on its test facts.")
    ] = True,
    replicates: Annotated[int, whole("--replicates", help="Resamples that intervals are made of.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Write a model card (README.md) and CITATION.cff for a run: figures with intervals, use, limits, what leaks.

    They replace older ones. The run itself stays as it is: its manifest lists neither.
    """
    from ukge.asking import Predictor
    from ukge.evaluation.evaluate import measure, prepare
    from ukge.evaluation.metric import Bootstrap
    from ukge.graph.audit.leaks import find_leaks
    from ukge.runs.card import Known, Measured, write_card
    from ukge.runs.learnt import open_run
    from ukge.storage.locks import alone

    opened = open_run(run, data)
    dataset = opened.dataset
    measured: list[Measured] = []
    if figures and len(dataset.test):
        plan = prepare(dataset, PROTOCOL)
        plan = replace(plan, tasks=tuple(each for each in plan.tasks if each.tables[0].kind == "confidence"))
        (row,) = measure(plan, {opened.name: opened.model}, Bootstrap(replicates, seed=seed))
        every = [each for own in row.figures.values() for each in own]
        bounds = [(None, None) if each.interval is None else (each.interval.low, each.interval.high) for each in every]
        measured = [
            Measured(each.metric.title, each.value, *own)
            for each, own in zip(every, bounds, strict=True)
            if isfinite(each.value)
        ]
    known = Known(
        opened.name,
        opened.run.manifest(),
        opened.run.config,
        {
            "facts": sum(map(len, dataset.parts.values())),
            "entities": len(dataset.entities),
            "relations": len(dataset.relations),
        },
        measured,
        f"The model alone, on {len(dataset.test):,} test facts (protocol {PROTOCOL}).",
        find_leaks(dataset).lines(),
        Predictor.open(run, data).judged_by,
    )
    place = run if out_folder is None else out_folder
    place.mkdir(parents=True, exist_ok=True)
    with alone(place):
        for path in write_card(place, known):
            note(f"wrote {path}")
