"""How far what is added has come from what was trained, and from when on a run should be refreshed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ukge.evidence.storage import has_evidence
from ukge.runs.journal import Addition, Drift, Journal

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor
    from ukge.graph.queries import Floats
    from ukge.graph.uncertain import UncertainGraph

SHARE, SHARE_OF_MODEL = 0.15, 0.02
"""Facts added for each fact trained on from which on a refresh is due: where evidence judges, which counts new facts,
and where the model alone does, which learns nothing of entities that it knows (docs/additions.md has the figures)."""

GREATER = 1.5
"""How much greater the error on what came last may be than that on validation facts."""

LAST, FEWEST = 2_000, 200
"""Facts that came last by which that is judged, and how many it needs."""


def drift(predictor: Predictor, incoming: UncertainGraph, stored: Floats, n_added: int, n_trained: int) -> Drift:
    """Return how far incoming facts are from what a run says of them before it takes them in.

    They are over the names that the run will have; `stored` are the confidences that it gives them already, if any.
    """
    entities, relations = map(len, predictor.names)
    known = (incoming.head < entities) & (incoming.tail < entities) & (incoming.relation < relations)
    rows = np.flatnonzero(known & (stored != incoming.confidence))
    share = n_added / max(n_trained, 1)
    if not len(rows):
        return Drift(None, _usual(predictor), 0, share)
    asked = incoming.head[rows], incoming.relation[rows], incoming.tail[rows]
    said = predictor.judge(*asked, assume_holds=True).confidence
    before = float(np.mean((said - incoming.confidence[rows]) ** 2))
    return Drift(before, _usual(predictor), len(rows), share)


def _usual(predictor: Predictor) -> float | None:
    """Return the error on validation facts that nothing was fitted to."""
    if predictor.evidence is not None:
        return predictor.evidence.unseen_errors()["mse_if_held"]
    val = predictor.dataset.val
    if not len(val):
        return None
    said = predictor.model.confidence(val.head, val.relation, val.tail)
    return float(np.mean((said - val.confidence) ** 2))


def refresh_due(run: Path) -> str | None:
    """Say why a run should be refreshed by now; None if it need not be."""
    return due_after(Journal(run).standing, SHARE if has_evidence(run) else SHARE_OF_MODEL)


def due_after(additions: Sequence[Addition], most: float) -> str | None:
    """Say why a run with such additions should be refreshed, if at most such a share may be added."""
    if not additions:
        return None
    last = additions[-1].drift
    if last.share > most:
        return f"{last.share:.1%} as many facts were added as were trained on (from {most:.0%} on it pays)"
    judged, total = 0, 0.0
    for each in reversed(additions):
        if each.drift.before is not None:
            judged, total = judged + each.drift.judged, total + each.drift.judged * each.drift.before
        if judged >= LAST:
            break
    if last.usual is None or judged < FEWEST or total / judged <= GREATER * last.usual:
        return None
    return (
        f"the run errs more on what comes than it did (mean squared error {total / judged:.4f} on the last {judged:,} "
        f"facts before they were taken in, {last.usual:.4f} on validation facts)"
    )
