"""`ukge evaluate` and `ukge compare`: runs judged by a protocol, beside what needs no model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import as_flag, err, note, out, print_json
from ukge.cli.flags import AsJson, RunData, Seed, real, whole
from ukge.cli.results import order_only
from ukge.errors import ConfigError, RunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ukge.evaluation.evaluate import Evaluation
    from ukge.evaluation.protocols import Plan
    from ukge.evaluation.tasks import Predictor
    from ukge.runs.learnt import OpenedRun

Protocol = Annotated[
    str,
    typer.Option(
        "--protocol",
        help="paper, split, positives, clean or uncertainty; figures of different ones do not compare.",
        metavar="NAME",
    ),
]
Tau = Annotated[
    float | None,
    real("--tau", help="Confidence above which a fact is strong; the paper's on its graphs, else the run's."),
]
Replicates = Annotated[int, whole("--replicates", help="Bootstrap draws for the intervals; 0 for none.", least=0)]


def evaluate(
    run: Annotated[Path, typer.Argument(help="A finished run directory.", metavar="RUN")],
    protocol: Protocol = "paper",
    data: RunData = None,
    tau: Tau = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Judge the run's evidence instead of its model.", show_default=False)
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Also write a page with pictures into DIR; an old one is replaced.", metavar="DIR"
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option("--query", help="A query of the report's case study: 'head,relation'.", metavar="HEAD,RELATION"),
    ] = None,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Judge a run on its test facts, beside trivial baselines, by one of the protocols of the field."""
    from ukge.evaluation.tables import render
    from ukge.runs.learnt import open_run

    if query and report is None:
        raise ConfigError("‹query› chooses a table of the report", hint="Say where the report goes with ‹report=DIR›.")
    opened = open_run(run, data)
    asked = []
    if report is not None:  # what cannot be drawn or asked is told before the work, not after it
        from ukge.evaluation.case_study import parse_query
        from ukge.evaluation.report import drawing, write_report

        drawing()
        asked = [parse_query(each, opened.dataset) for each in query or ()]
    predictor = _evidence_of(opened, protocol) if evidence else opened.model
    name = f"{opened.name}/evidence" if evidence else opened.name
    plan = _prepared([opened], protocol, tau, seed)
    if not evidence:
        plan = _remarked(plan, {name: opened})
    judged = _judged(plan, {name: predictor}, replicates, seed)
    if as_json:
        print_json(judged.to_dict(as_flag))
    else:
        out().print(render(judged, as_flag))
    if report is not None:
        page = write_report(report, judged, plan, predictor, name, opened.run.trace(), asked, as_flag)
        note(f"wrote {page}")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Finished run directories.", metavar="RUN")],
    protocol: Protocol = "paper",
    data: RunData = None,
    tau: Tau = None,
    replicates: Replicates = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: rows are runs, columns metrics, the best in bold; each data set has a table of its own."""
    from ukge.evaluation.tables import render
    from ukge.runs.learnt import open_run

    groups: dict[tuple[str, str], list[OpenedRun]] = {}
    for path in dict.fromkeys(each.resolve() for each in runs):
        opened = open_run(path, data)
        groups.setdefault(opened.data_key, []).append(opened)
    found = []
    for group in groups.values():
        named = _named(group)
        plan = _remarked(_prepared(group, protocol, tau, seed), named)
        found.append(_judged(plan, {name: each.model for name, each in named.items()}, replicates, seed))
    if as_json:
        print_json([each.to_dict(as_flag) for each in found])
        return
    for each in found:
        out().print(render(each, as_flag))


def _prepared(runs: Sequence[OpenedRun], protocol: str, tau: float | None, seed: int) -> Plan:
    """Return the protocol, prepared for the data set that the runs share."""
    from ukge.evaluation.evaluate import prepare
    from ukge.evaluation.protocols import Settings

    own = sorted({each.tau for each in runs})
    if tau is None and len(own) > 1:
        values = ", ".join(f"{each:g}" for each in own)
        raise ConfigError(
            f"the runs hold facts to be strong above different τ: {values}", hint="Choose one: ‹tau=...›."
        )
    return prepare(runs[0].dataset, protocol, Settings(tau=own[0] if tau is None else tau, seed=seed))


def _remarked(plan: Plan, runs: Mapping[str, OpenedRun]) -> Plan:
    """Return the plan with a note on each run that learnt an order: its errors are those of no confidences."""
    notes = [text for name, each in runs.items() for text in order_only(each.run.config, name)]
    return replace(plan, notes=(*plan.notes, *notes))


def _evidence_of(opened: OpenedRun, protocol: str) -> Predictor:
    """Return what the run's evidence says, in the reading that the protocol asks for."""
    from ukge.evidence.evidence import Evidence, HeldFacts

    found = (HeldFacts if protocol == "positives" else Evidence).load(opened.run.path)
    if (found.entities, found.relations) != (opened.dataset.entities, opened.dataset.relations):
        raise RunError(
            f"the evidence in {opened.run.path} is of other names than the run's data",
            hint=f"Fit it again: ukge evidence fit {opened.run.path}",
        )
    return found


def _judged(plan: Plan, predictors: Mapping[str, Predictor], replicates: int, seed: int) -> Evaluation:
    from ukge.evaluation.evaluate import evaluate as evaluate_plan
    from ukge.evaluation.metric import Bootstrap
    from ukge.progress.bars import WorkProgress

    with WorkProgress(err()) as progress:
        return evaluate_plan(
            plan,
            predictors,
            bootstrap=Bootstrap(replicates, seed=seed),
            tell=progress.tell,
        )


def _named(group: Sequence[OpenedRun]) -> dict[str, OpenedRun]:
    """Name runs by their directories, with as many of the directories above as it takes to tell them apart."""
    paths = [each.run.path.resolve().parts for each in group]
    length = next(n for n in range(1, max(map(len, paths)) + 1) if len({path[-n:] for path in paths}) == len(paths))
    return {"/".join(path[-length:]): each for path, each in zip(paths, group, strict=True)}
