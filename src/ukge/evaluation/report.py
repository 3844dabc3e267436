"""The report: what an evaluation found, as one HTML page that needs nothing else, and pictures to use elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ukge.errors import ConfigError, DataError, Wording, in_python
from ukge.evaluation import breakdown
from ukge.evaluation.baselines import baseline_predictors
from ukge.evaluation.case_study import Case, informative_queries, study
from ukge.evaluation.classification import Classification
from ukge.evaluation.confidence import reliability
from ukge.evaluation.evaluate import Evaluation
from ukge.evaluation.protocols import Plan
from ukge.evaluation.tables import columns, half_width, header, is_best
from ukge.evaluation.tasks import ClassificationTask, ConfidenceTask, LinkTask, Predictor, RankingTask
from ukge.html import render as fill
from ukge.storage.files import write_atomically

BESIDE = "twin, else 0"
"""The baseline that pictures show beside the model: the strongest of those that only look up."""

MOST_RELATIONS = 20
MOST_RANKS = 1000


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of the page: the stem of its file, its PNG, what it shows, and whether it takes the whole width."""

    name: str
    title: str
    note: str
    png: bytes
    wide: bool = False

    @property
    def base64(self) -> str:
        """The PNG as text, for the page."""
        return b64encode(self.png).decode("ascii")


def drawing() -> ModuleType:
    """Return the module that draws; it needs matplotlib, and says so if that is missing."""
    try:
        return import_module("ukge.evaluation.pictures")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the report needs {error.name}, which is not installed", hint="pip install 'ukge[report]'"
        ) from None


def write_report(
    directory: Path,
    evaluation: Evaluation,
    plan: Plan,
    predictor: Predictor,
    name: str,
    trace: Sequence[Mapping[str, Any]] = (),
    queries: Sequence[tuple[int, int]] = (),
    wording: Wording = in_python,
) -> Path:
    """Write index.html and its pictures into a directory, and return the page.

    `name` is the predictor's row in the evaluation; `trace` the lines of its training; `queries` (head and relation
    ids) choose the case study, which otherwise takes queries of several relations by itself; `wording` is how hints
    name arguments.
    """
    cases = study(plan.dataset, predictor, queries or informative_queries(plan.dataset))
    pictures = draw(evaluation, plan, predictor, name, trace)
    if directory.exists() and not directory.is_dir():
        raise DataError("is a file, not a directory", source=str(directory), hint="Choose another name.")
    directory.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        write_atomically(directory / f"{picture.name}.png", picture.png)
    page = directory / "index.html"
    write_atomically(page, render(evaluation, pictures, cases, name, wording).encode())
    return page


def render(
    evaluation: Evaluation,
    pictures: Sequence[Picture],
    cases: Sequence[Case],
    name: str,
    wording: Wording = in_python,
) -> str:
    """Return the report as the text of an HTML page, in the words of a surface."""
    shown = {"evaluation": evaluation, "pictures": pictures, "cases": cases, "name": name, "wording": wording}
    return fill("report.html", columns=columns, half_width=half_width, header=header, is_best=is_best, **shown)


def draw(
    evaluation: Evaluation, plan: Plan, predictor: Predictor, name: str, trace: Sequence[Mapping[str, Any]]
) -> list[Picture]:
    """Return the pictures that the tasks of the protocol allow."""
    draws = drawing()
    trivial = baseline_predictors(plan.dataset.train)
    found: list[Picture] = []
    with draws.look():
        for task in plan.tasks:
            if isinstance(task, ConfidenceTask):
                found += _confidence(draws, evaluation, task, predictor, name, trivial["relation mean"])
            elif isinstance(task, RankingTask):
                found += _ranking(draws, task, predictor, name, trivial[BESIDE])
            elif isinstance(task, ClassificationTask):
                found += _classification(draws, evaluation, task, predictor, name, trivial[BESIDE])
            elif isinstance(task, LinkTask):
                ranks = {str(side): each.filtered for side, each in task.ranks(predictor).items()}
                curve = draws.hits_curve(ranks, min(MOST_RANKS, predictor.n_entities))
                found.append(Picture("hits", "Hits at k", "share of test facts at rank k or better", draws.png(curve)))
        if trace:
            curves = draws.training_curves(trace)
            found.append(Picture("training", "Training", "losses and validation", draws.png(curves), wide=True))
    return found


def _confidence(
    draws: Any, evaluation: Evaluation, task: ConfidenceTask, predictor: Predictor, name: str, trivial: Predictor
) -> Iterator[Picture]:
    predicted, observed = task.predict(predictor), task.facts.confidence
    ece = evaluation.row(name).figure("confidence", "ece").value
    curve = draws.reliability_curve(reliability(predicted, observed), name, ece)
    yield Picture("reliability", "Reliability", "a prediction should be met on average", draws.png(curve))
    cloud = draws.predicted_against_observed(predicted, observed)
    yield Picture("predicted", "Predicted against observed", "every test fact and link", draws.png(cloud))
    bands = draws.errors_by_band(breakdown.errors_by_band(observed, predicted))
    yield Picture("bands", "Error by confidence band", "", draws.png(bands))
    relations = [
        breakdown.errors_by_relation(task.facts, each, MOST_RELATIONS) for each in (predicted, task.predict(trivial))
    ]
    bars = draws.errors_by_relation(*relations, "relation mean")
    note = f"the {len(relations[0])} relations with most test facts and links"
    yield Picture("relations", "Error by relation", note, draws.png(bars))


def _ranking(draws: Any, task: RankingTask, predictor: Predictor, name: str, trivial: Predictor) -> Iterator[Picture]:
    groups = {
        label: breakdown.by_query_size(*task.by_query(each)) for label, each in ((name, predictor), (BESIDE, trivial))
    }
    table = task.tables[0]
    held_out = "" if table.name == "ranking" else "tails known to train left out"
    if groups[name]:
        yield Picture(table.name, "nDCG by query size", held_out, draws.png(draws.ndcg_by_size(groups)))


def _classification(
    draws: Any, evaluation: Evaluation, task: ClassificationTask, predictor: Predictor, name: str, trivial: Predictor
) -> Iterator[Picture]:
    row = evaluation.row(name)
    f1, accuracy, precision, recall = (figure.value for figure in row.figures["classification"])
    reached = Classification(f1, accuracy, precision, recall)
    curves = {name: task.curve(predictor), BESIDE: task.curve(trivial)}
    figure = draws.precision_recall_curve(curves, name, reached)
    yield Picture("precision_recall", "Precision and recall of strong facts", f"τ = {task.tau:g}", draws.png(figure))
