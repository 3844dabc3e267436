"""`ukge evidence`: fit calibrated trees over what the graph says and what trained runs believe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import bold_every_other, err, note, out, print_json
from ukge.cli.flags import AsJson, RunData, Seed, whole
from ukge.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from ukge.evidence import Evidence
    from ukge.evidence.kinds import KindErrors
    from ukge.graph.dataset import Dataset

evidence_app = typer.Typer(
    help="What the graph says beside the embedding: fit it to a run.", no_args_is_help=True, add_completion=False
)


@evidence_app.callback()
def _group() -> None:
    """Confidences from what the graph itself says, with bounds."""


@evidence_app.command("fit")
def fit(
    runs: Annotated[list[Path], typer.Argument(help="Finished runs on the same data, one or more.", metavar="RUN")],
    error: Annotated[
        str, typer.Option("--error", help="The error to make small: squared or absolute.", metavar="KIND")
    ] = "squared",
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Where to keep it; in the first run if not given. Old evidence is replaced.", metavar="DIR"
        ),
    ] = None,
    negatives: Annotated[
        str | None,
        typer.Option(
            "--negatives",
            help="What false links are like: a kind (uniform, corruption, degree, range, paper, other-relation, "
            "fitting), or shares of some, as in corruption=3,paper=1; all of them if not said.",
            metavar="KINDS",
            show_default=False,
        ),
    ] = None,
    data: RunData = None,
    trees: Annotated[int, whole("--trees", help="How many boosted trees each part has.", most=100_000)] = 200,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn how confident facts are from what the graph says of them and what trained runs believe.

    The evidence comes from the runs' training facts; how much each piece counts is learnt from their validation facts
    and from negative links.
    """
    from ukge.evidence import Evidence, EvidenceSettings
    from ukge.evidence.settings import as_error, as_shares
    from ukge.progress.bars import WorkProgress
    from ukge.runs.directory import EVIDENCE
    from ukge.storage.locks import alone

    settings = EvidenceSettings(error=as_error(error), seed=seed, iterations=trees)
    if negatives is not None:
        settings = settings.replace(negatives=as_shares(negatives))
    dataset = _shared_data(runs, data)
    place = out_dir or runs[0] / EVIDENCE
    with alone(out_dir or runs[0]):
        with WorkProgress(err(), f"evidence of {len(dataset.train):,} facts") as progress:
            fitted = Evidence.fit(list(runs), dataset, settings=settings, tell=progress.tell)
            # What only questions need is compiled once on a machine: now, and not while somebody waits for an answer.
            fitted.explain(*dataset.val[0][:3])
        fitted.save(place)
    for each in fitted.notes:
        note(each)
    _report(fitted, dataset, place, as_json=as_json)


def _shared_data(runs: list[Path], data: str | None) -> Dataset:
    from ukge.runs.directory import Run

    opened = [Run.open(path) for path in runs]
    seen = {(run.data.train, run.data.val) for run in opened}
    if len(seen) > 1:
        raise RunError("the runs learnt from different data", hint="Give runs that were trained on the same data set.")
    return opened[0].dataset(data)


def _report(fitted: Evidence, dataset: Dataset, place: Path, *, as_json: bool) -> None:
    measured, by_kind = fitted.unseen_errors(), fitted.errors_by_kind()
    if as_json:
        from dataclasses import asdict

        kinds = {kind: asdict(errors) for kind, errors in by_kind.items()}
        about = {"evidence": str(place), "facts": len(dataset.val), "error": fitted.settings.error}
        print_json({**about, **measured, "kinds": kinds})
        return
    held = f"MSE {measured['mse_if_held']:.5f}, MAE {measured['mae_if_held']:.4f} (facts taken to hold)"
    told = bold_every_other(
        "validation facts, each predicted by trees that did not see it: MSE ",
        f"{measured['mse']:.5f}",
        ", MAE ",
        f"{measured['mae']:.4f}",
        f" (with as many negative links), {held}; the evidence is in ",
        str(place),
    )
    out().print(told)
    out().print(_by_kind(by_kind))


def _by_kind(by_kind: Mapping[str, KindErrors]) -> RenderableType:
    """Return a table of errors and calibration by kind of negative links."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("with negative links of kind")
    for title in ("MSE", "MAE", "calibration error", "MSE if told so"):
        table.add_column(title, justify="right", no_wrap=True)
    for kind, errors in by_kind.items():
        told = "–" if errors.told is None else f"{errors.told:.5f}"
        table.add_row(kind, f"{errors.mse:.5f}", f"{errors.mae:.4f}", f"{errors.ece:.4f}", told)
    return table
