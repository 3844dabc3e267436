"""The final run: once more with what was chosen, on all facts, for use.

The models learn from every fact for as many epochs as were best in the judged run. Nothing is held out, so nothing
stops them early, and nothing is left that a head or bounds of their own could be fitted to: of facts that it has learnt
a model is far surer than of others, and a head fitted to those would trust it too much. So the trees and bounds are
those of the judged run, fitted to facts that its models had not seen. They are read over an index of all facts and over
the models that learnt from all. The links that they are asked about are to these models what held-out facts were to the
judged ones, and the same settings, seed and epochs keep what the models believe on one scale. (A head of its own, on a
cut of its own, would have to be fitted to models that lack the facts held out for it: not to those in use.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ukge.evidence import Evidence
from ukge.evidence.backbones import backbones_of
from ukge.evidence.storage import StoredParts
from ukge.evidence.tables import Tables
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.runs.directory import EVIDENCE, Run
from ukge.settings.config import Config

ENGINE = "duckdb"


def all_known(dataset: Dataset) -> Dataset:
    """Return a data set whose training facts are those of all parts."""
    none = dataset.val[:0], dataset.test[:0]
    return Dataset(dataset.name, dataset.whole(), *none, inverses=dataset.inverses, claims=dataset.claims)


def as_long(judged: Path) -> Config:
    """Return the settings of a judged run, for as many epochs as were best, with one look at the end."""
    run = Run.open(judged)
    epochs = max(1, run.manifest()["result"]["best_epoch"])
    return run.config.replace(epochs=epochs, every=epochs)


def evidence_over_all(judged: Path, models: Sequence[Path], dataset: Dataset) -> Evidence:
    """Return the evidence of a judged run, read from all facts and from models that learnt from all.

    The models stand in the order of those that the evidence was fitted over.
    """
    fitted = Evidence(StoredParts(judged / EVIDENCE, added=False))
    index, old = FactIndex(dataset.train), fitted.features
    backbones = tuple(
        replace(new, name=before.name) for new, before in zip(backbones_of(models, dataset), old.backbones, strict=True)
    )
    return fitted.over(replace(old, index=index, tables=Tables.of(index, ENGINE), backbones=backbones))
