"""How well claims of known truth are fused: without labels and with some, beside what people do otherwise.

    python benchmarks/claims.py [--seeds 101 102 103 104 105] [--claims 30000]

Every seed makes a synthetic world and its claims. Each way gives every fact a confidence; with n labels, those of the
same n facts. All are judged by the facts that nobody has a label of: area under the ROC curve, Brier score, and
calibration error over 15 bins of equal mass. Crowd-kit is measured if it is installed (`pip install crowd-kit`). The
generator and all settings were fixed on seeds 0 to 2.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from ukge import Claims, fuse
from ukge.evaluation.confidence import calibration
from ukge.evidence.fuse import logit
from ukge.fusing.voices import Voices
from ukge.graph.synthetic import ClaimedWorld, generate_claims

Floats = npt.NDArray[np.float64]
LABELS = (100, 400, 2_000)
BINS = 15


def majority(claims: Claims) -> Floats:
    """The share of the sources that speak of a fact's head which claim the fact."""
    voices = Voices.of(claims)
    head = np.asarray(claims.facts.head)
    speaks = np.zeros((claims.facts.n_entities, len(voices.names)), np.bool_)
    speaks[head[voices.fact], voices.voice] = True
    return np.asarray(voices.says.sum(axis=1) / speaks[head].sum(axis=1))


def dawid_skene(claims: Claims, *, all_vote: bool) -> Floats:
    """Crowd-kit's: a source votes yes on what it claims, and no on the rest, of all facts or of those of its heads."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    voices = Voices.of(claims)
    head, says = np.asarray(claims.facts.head), voices.says
    speaks = np.zeros((claims.facts.n_entities, len(voices.names)), np.bool_)
    speaks[head[voices.fact], voices.voice] = True
    fact, source = np.nonzero(speaks[head] | all_vote)
    votes = pd.DataFrame({"task": fact, "worker": source, "label": says[fact, source].astype(int)})
    chance = DawidSkene(n_iter=100).fit_predict_proba(votes)
    return np.asarray(chance.reindex(index=range(len(says)), columns=[0, 1]).fillna(0.0)[1], np.float64)


def regression(claims: Claims, rows: npt.NDArray[np.int64], label: Floats, *, confidences: bool) -> Floats:
    """A logistic regression on who claims a fact, and perhaps on the log-odds of how sure each is."""
    from sklearn.linear_model import LogisticRegression

    voices = Voices.of(claims)
    columns = [voices.says.astype(np.float64)]
    columns += [np.asarray(voices.matrix(logit(voices.confidence)), np.float64)] if confidences else []
    table = np.concatenate(columns, axis=1)
    model = LogisticRegression(max_iter=1_000).fit(table[rows], label)
    return np.asarray(model.predict_proba(table)[:, 1], np.float64)


def ways(made: ClaimedWorld, order: npt.NDArray[np.int64]) -> Iterator[tuple[str, Floats]]:
    claims, truth = made.claims, made.holds.astype(np.float64)
    yield "majority vote", majority(claims)
    yield "mean of the sources' confidences", claims.facts.confidence
    if find_spec("crowdkit") is not None:
        yield "Dawid-Skene of crowd-kit, silence of all is a no", dawid_skene(claims, all_vote=True)
        yield "Dawid-Skene of crowd-kit, of who knows the head", dawid_skene(claims, all_vote=False)
    yield "ukge fuse", fuse(claims).confidence
    for number in LABELS:
        rows = order[:number]
        label = np.full(len(truth), np.nan)
        label[rows] = truth[rows]
        yield f"{number:,} labels: regression on sources", regression(claims, rows, truth[rows], confidences=False)
        both = regression(claims, rows, truth[rows], confidences=True)
        yield f"{number:,} labels: regression on sources and confidences", both
        yield f"{number:,} labels: ukge fuse", fuse(claims, labelled=label).confidence


def judged(confidence: Floats, truth: Floats) -> tuple[float, float, float]:
    from sklearn.metrics import roc_auc_score

    brier = float(np.mean((confidence - truth) ** 2))
    return float(roc_auc_score(truth, confidence)), brier, calibration(confidence, truth, BINS).ece


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103, 104, 105])
    parser.add_argument("--claims", type=int, default=30_000)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    if find_spec("crowdkit") is None:
        print("crowd-kit is not installed, and not measured")
    scores: dict[str, list[tuple[float, float, float]]] = {}
    seconds: dict[str, list[float]] = {}
    within = []
    for seed in asked.seeds:
        made = generate_claims(asked.claims, seed=seed)
        print(f"seed {seed}: {made}", flush=True)
        truth = made.holds.astype(np.float64)
        order = np.random.default_rng(seed).permutation(len(truth))
        test = order[max(LABELS) :]
        before = time.process_time()
        for name, confidence in ways(made, order):
            scores.setdefault(name, []).append(judged(confidence[test], truth[test]))
            seconds.setdefault(name, []).append(time.process_time() - before)
            before = time.process_time()
        within += intervals(made)
    print(f"\n{'mean over seeds':<52} {'AUC':>7} {'Brier':>7} {'ECE':>7} {'CPU s':>7}")
    for name, found in scores.items():
        auc, brier, ece = np.mean(found, axis=0)
        print(f"{name:<52} {auc:7.4f} {brier:7.4f} {ece:7.4f} {np.median(seconds[name]):7.1f}")
    print(f"\nsources whose true share lies in the 90 % interval, without labels: {np.mean(within):.0%}")


def intervals(made: ClaimedWorld) -> list[bool]:
    """Whether the share of each source's facts that hold lies within its interval."""
    claims, found = made.claims, []
    for each in fuse(claims).sources:
        facts = np.unique(claims.fact[claims.source == claims.sources.id(each.name)])
        found.append(bool(each.low <= made.holds[facts].mean() <= each.high))
    return found


if __name__ == "__main__":
    main()
