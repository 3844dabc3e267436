"""`ukge evaluate` and `ukge compare`: runs judged by a protocol, beside what needs no model."""

from __future__ import annotations

import re
from dataclasses import replace
from os.path import commonprefix
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
    from ukge.evaluation.metric import Bootstrap
    from ukge.evaluation.paper_tables import Comparison
    from ukge.evaluation.protocols import Plan
    from ukge.evaluation.tasks import Predictor
    from ukge.runs.learnt import OpenedRun

Protocol = Annotated[
    str,
    typer.Option(
        "--protocol",
        help="paper, split, positives, focus, clean or uncertainty; figures of different ones do not compare.",
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
    from ukge.evaluation.metric import Bootstrap
    from ukge.evaluation.tables import render
    from ukge.runs.learnt import open_run

    if query and report is None:
        raise ConfigError("‹query› chooses a table of the report", hint="Say where the report goes with ‹report=DIR›.")
    opened = open_run(run, data)
    _tell_of_additions(opened)
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
    judged = _judged(plan, {name: predictor}, Bootstrap(replicates, seed=seed))
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
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Judge the runs' evidence beside their models.", show_default=False)
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", help="The model that others are tested against; the first one if not given."),
    ] = None,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", help="Also write a table for a paper: .tex (LaTeX) or .md (Markdown).", metavar="FILE"),
    ] = None,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: rows are runs, columns metrics, the best in bold; each data set has a table of its own.

    Runs that differ in their seed alone stand together. Differences from the first model, or from the one that
    --against names, are tested: pairs of answers to the same test facts, by bootstrap and by permutation.
    """
    from ukge.evaluation.metric import Bootstrap
    from ukge.evaluation.paper_tables import format_of
    from ukge.evaluation.tables import differences, over_seeds, render
    from ukge.runs.learnt import open_run
    from ukge.storage.files import write_atomically

    written = None if out_file is None else format_of(out_file)
    groups: dict[tuple[str, str], list[OpenedRun]] = {}
    for path in dict.fromkeys(each.resolve() for each in runs):
        opened = open_run(path, data)
        _tell_of_additions(opened)
        groups.setdefault(opened.data_key, []).append(opened)
    found: list[Comparison] = []
    for group in groups.values():
        named = _named(group)
        plan = _remarked(_prepared(group, protocol, tau, seed), named)
        found.append(_compared(plan, named, protocol, against, Bootstrap(replicates, seed=seed), evidence=evidence))
    if written is not None and out_file is not None:
        write_atomically(out_file, "\n".join(map(written, found)).encode())
    if as_json:
        print_json(
            [
                {**each.evaluation.to_dict(as_flag), "contrasts": [one.to_dict() for one in each.contrasts]}
                for each in found
            ]
        )
    for each in () if as_json else found:
        out().print(render(each.evaluation, as_flag))
        if any(len(model.rows) > 1 for model in each.models):
            out().print(over_seeds(each.evaluation, each.models))
        if each.contrasts:
            out().print(differences(each.contrasts))
    if out_file is not None:
        note(f"wrote {out_file}")


def _tell_of_additions(opened: OpenedRun) -> None:
    """Say that a run knows facts which its training has not seen."""
    added = opened.run.added
    if added is not None:
        count = f"{len(added.facts):,} facts were" if len(added.facts) != 1 else "1 fact was"
        note(f"{count} added to {opened.name} since its training: they are known, and held out no more if they were")


def _compared(
    plan: Plan,
    runs: Mapping[str, OpenedRun],
    protocol: str,
    against: str | None,
    bootstrap: Bootstrap,
    *,
    evidence: bool,
) -> Comparison:
    """Judge runs, and test how models differ; runs that differ in their seed alone are one model."""
    from ukge.evaluation.paper_tables import Comparison
    from ukge.evaluation.significance import contestants, contrasts

    predictors: dict[str, Predictor] = {name: each.model for name, each in runs.items()}
    alike = _seeds_together(runs)
    if evidence:
        predictors |= {f"{name}/evidence": _evidence_of(each, protocol) for name, each in runs.items()}
        alike |= {f"{model}/evidence": [f"{name}/evidence" for name in names] for model, names in alike.items()}
    judged = _judged(plan, predictors, bootstrap)
    models = contestants(judged, alike)
    tested = contrasts(judged, models, against, bootstrap) if bootstrap.replicates and len(models) > 1 else ()
    return Comparison(judged, models, tested)


def _seeds_together(runs: Mapping[str, OpenedRun]) -> dict[str, list[str]]:
    """Return the names of runs by model; of several that differ in their seed alone, what their names share."""
    alike: dict[str, list[str]] = {}
    for name, opened in runs.items():
        alike.setdefault(str(opened.run.config.replace(seed=0).to_dict()), []).append(name)
    found: dict[str, list[str]] = {}
    for names in alike.values():
        shared = re.sub(r"[-_/. ]*(seed)?[-_/. ]*\d*$", "", commonprefix(names)) or names[0]  # noqa: RUF071 — letters
        model = names[0] if len(names) == 1 else f"{shared} × {len(names)} seeds"
        found[model if model not in found else f"{model} ({names[0]})"] = names
    return found


def _prepared(runs: Sequence[OpenedRun], protocol: str, tau: float | None, seed: int) -> Plan:
    """Return the protocol, prepared for the data set that the runs share."""
    from ukge.evaluation.evaluate import prepare
    from ukge.evaluation.protocols import Settings

    for each in runs:
        judged = each.run.manifest().get("judged")
        if judged is not None:
            raise RunError(
                f"{each.run.path} learnt from all facts, so none is left to judge it by",
                hint=f"Judge the run whose figures stand for it: {each.run.path.with_name(judged)}",
            )
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


def _judged(plan: Plan, predictors: Mapping[str, Predictor], bootstrap: Bootstrap) -> Evaluation:
    from ukge.evaluation.evaluate import evaluate as evaluate_plan
    from ukge.progress.bars import WorkProgress

    with WorkProgress(err()) as progress:
        return evaluate_plan(plan, predictors, bootstrap=bootstrap, tell=progress.tell)


def _named(group: Sequence[OpenedRun]) -> dict[str, OpenedRun]:
    """Name runs by their directories, with as many of the directories above as it takes to tell them apart."""
    paths = [each.run.path.resolve().parts for each in group]
    length = next(n for n in range(1, max(map(len, paths)) + 1) if len({path[-n:] for path in paths}) == len(paths))
    return {"/".join(path[-length:]): each for path, each in zip(paths, group, strict=True)}
