"""`ukge fit`: from a file to calibrated answers, with everything chosen on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import as_flag, bold_every_other, err, note, out, print_json
from ukge.cli.flags import AsJson, Data, Quiet, Seed, Undirected, real
from ukge.cli.reading import Reading

if TYPE_CHECKING:
    from ukge.pipeline import Fitted

MOST_SHOWN = 5
"""Trials that are shown."""


def fit(
    data: Data,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Run directory to make; runs/DATA if not given.", metavar="RUN")
    ] = None,
    minutes: Annotated[
        float, real("--minutes", help="About how long it may take; a large graph takes longer.", high=1e6)
    ] = 10.0,
    final: Annotated[
        bool, typer.Option("--final", help="Then train once more on all facts, for use, in RUN.final.")
    ] = False,
    undirected: Undirected = None,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Begin anew, and replace the run that is there.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Make a run of a file of facts: settings searched, a model trained, evidence fitted, judged, and a page written.

    The facts are cut so that none of those that judge has a twin among those that teach. A command that was stopped
    goes on when it is given again. With --final, RUN.final learns from all facts; the figures are those of RUN.
    """
    from ukge.evaluation.tables import caption, summary
    from ukge.graph.catalogue import reference_to
    from ukge.pipeline import fit as make
    from ukge.progress.bars import WorkProgress

    dataset = reading.open(data, seed=seed, leak_safe=True, undirected=undirected)
    path = out_dir or Path("runs") / dataset.name.split()[0]
    title = f"fitting {dataset.name}: {len(dataset.train):,} facts"
    with _told_if_stopped(), WorkProgress(err(), title, quiet=quiet) as progress:
        found = make(
            dataset,
            path,
            minutes=minutes,
            final=final,
            seed=seed,
            reference=reference_to(data),
            overwrite=force,
            tell=progress.tell,
        )
    for each in found.notes(as_flag):
        note(each)
    if as_json:
        print_json(_as_json(found))
        return
    console = out()
    for sentence in found.sentences:
        console.print(sentence, markup=False, highlight=False)
    console.print(caption(found.evaluation), markup=False, highlight=False)
    console.print(summary(found.evaluation))
    _tell_settings(found)
    _tell_next(found)


@contextmanager
def _told_if_stopped() -> Iterator[None]:
    """Say to whoever stops it that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        note("stopped; the same command, without --force, goes on from here")
        raise


def _tell_settings(found: Fitted) -> None:
    from ukge.cli.tune import settings_table

    model, objective = found.config.model, found.config.objective
    told = f"{model.scorer}, {model.link}, dim {model.dim}, lr {found.config.optimiser.lr:.2g}, l2 {objective.l2:.2g}"
    if not found.trials:
        out().print(bold_every_other("a probe chose rate and λ; the best by validation: ", told))
        return
    tried = f"{len(found.trials)} settings were tried, the best by validation: "
    out().print(bold_every_other(tried, told))
    out().print(settings_table(found.trials, found.config.stopping.metric, MOST_SHOWN))


def _tell_next(found: Fitted) -> None:
    run, fact = quote(str(found.for_use)), found.dataset.val[0]
    head, relation = quote(fact.head), quote(fact.relation)
    page = "none without ukge[report]" if found.page is None else str(found.page)
    out().print(bold_every_other("the run is in ", str(found.run), "; the page: ", page))
    if found.final is not None:
        last = "; figures are of the run that was judged, "
        out().print(bold_every_other("the run of all facts, for use, is in ", str(found.final), last, str(found.run)))
    out().print("what to do next:")
    commands = [f"ukge rank {run} {relation} --head {head}", f"ukge complete {run}"]
    judge = f"ukge evaluate {quote(str(found.run))} --protocol clean"
    commands.append(f"{judge} --evidence" if found.best == "evidence" else judge)
    for command in (*commands, f"ukge serve {run}"):
        out().print(f"  {command}", soft_wrap=True, markup=False, highlight=False)


def _as_json(found: Fitted) -> dict[str, Any]:
    return {
        "run": str(found.run),
        "final": None if found.final is None else str(found.final),
        "page": None if found.page is None else str(found.page),
        "sentences": list(found.sentences),
        "settings": found.config.to_dict(),
        "trials": [asdict(trial) for trial in found.trials],
        "evaluation": found.evaluation.to_dict(as_flag),
        "notes": found.notes(as_flag),
    }
