"""What the false facts of a graph are like: links of every kind, and how many observed facts may be of each.

Nobody says which facts of an extracted graph are false, but links that are taken to be false can be drawn, in several
ways. Where many of a kind look as hardly any observed fact does, few facts are like that kind; where observed facts are
as common there as the links, many may be. So for every kind trees tell its links from the facts, and the shares β of
the kinds are the largest that contradict the facts nowhere:

    Σ_k β_k · P_k(S) ≤ P_facts(S)     for the sets S that the trees find unlike facts,

a linear program. The rest of the facts hold. It is an upper bound that is reached where facts that hold and false ones
can be told apart somewhere (Blanchard, Lee and Scott, 2010, for one kind).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.evidence.features import Features
from ukge.evidence.fitting import knowing_other_parts, negatives_by_kind
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, Trees, grow, side_by_side
from ukge.graph.dataset import Dataset
from ukge.graph.keys import contains
from ukge.graph.negatives import SHARES

DRAWN = (*SHARES, "fitting")
"""The kinds that are told from the facts."""

MOST_FACTS, MOST_OF_A_KIND = 20_000, 10_000
"""Facts, and links of each kind, that the shares are found from at most."""

TREES, FOLDS = 60, 2
"""Trees that tell a kind from the facts, and parts that are judged by trees of the others."""

LEVELS = np.linspace(0.2, 0.95, 8)
"""Shares of a kind's links in the sets that are compared. Smaller sets are left out: a kind that is drawn a little
otherwise than the false facts came about would count as one that the graph does not have at all."""

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FalseLinks:
    """Evidence about links of several kinds, of the other parts, as that about the facts is."""

    columns: Matrix
    part: Rows
    kind: Rows
    """the place of each link's kind in `kinds`"""
    kinds: tuple[str, ...]

    def weight(self, shares: Floats, spread: float) -> Floats:
        """Return the weights of the links that give each kind its share; `spread` of the whole goes to all alike."""
        count = np.bincount(self.kind, minlength=len(self.kinds))
        total = shares.sum()
        own = shares / total if total > 0 else np.full(len(shares), 1.0 / len(shares))
        each = (own * (1.0 - spread) + spread / len(shares)) / np.maximum(count, 1)
        return np.asarray(each[self.kind])


def false_links(
    features: Features,
    part: Rows,
    trusted: npt.NDArray[np.bool_],
    settings: EvidenceSettings,
    on_share: Callable[[float], None] = lambda _: None,
) -> FalseLinks:
    """Draw links of every kind like the facts of each part that are trusted, and gather what the other parts say.

    No link is an observed fact. Those like a false fact would be wrong twice, as no observed fact is, so links are
    made of trusted facts.
    """
    graph = features.index.graph
    known = np.sort(graph.keys())
    rng = np.random.default_rng([settings.seed, 2])
    each = replace(settings, negatives=dict.fromkeys(DRAWN, 1.0), negatives_per_fact=float(len(DRAWN)))
    most = -(-MOST_OF_A_KIND // (int(part.max(initial=0)) + 1))
    found: list[tuple[Matrix, int, str]] = []
    for number, (held, others) in enumerate(knowing_other_parts(features, part, on_share)):
        rows = np.sort(rng.permutation(np.flatnonzero(held & trusted))[:most])
        if len(rows) == 0:
            continue
        sound = Dataset("", graph[np.flatnonzero(~held & trusted)], graph[rows], graph[:0])
        try:
            by_kind, _ = negatives_by_kind(sound, replace(each, seed=settings.seed + number))
        except DataError:  # a small part of a dense graph
            continue
        for kind, links in by_kind.items():
            new = links[~contains(known, links.keys())]
            found.append((others.columns(new.head, new.relation, new.tail), number, kind))
    if not found:
        raise DataError("no false links were found to compare the facts with", hint="Is the graph complete?")
    kinds = tuple(sorted({kind for _, _, kind in found}))
    size = [len(columns) for columns, _, _ in found]
    return FalseLinks(
        np.concatenate([columns for columns, _, _ in found]),
        np.repeat([number for _, number, _ in found], size),
        np.repeat([kinds.index(kind) for _, _, kind in found], size),
        kinds,
    )


def shares_of_kinds(
    columns: Matrix,
    part: Rows,
    links: FalseLinks,
    settings: EvidenceSettings,
    on_share: Callable[[float], None] = lambda _: None,
) -> Floats:
    """Return which share of the facts may be like the links of each kind."""
    rng = np.random.default_rng([settings.seed, 3])
    rows = np.sort(rng.permutation(len(columns))[:MOST_FACTS])
    few = replace(settings, iterations=min(TREES, settings.iterations))
    fold, link_fold = part[rows] % FOLDS, links.part % FOLDS
    numbers = range(len(links.kinds))

    def fit(number: int, kind: int) -> Trees:
        own = rows[fold != number]
        others = np.flatnonzero((link_fold != number) & (links.kind == kind))
        return told_apart(columns[own], links.columns[others], np.ones(len(own)), np.ones(len(others)), few)

    jobs = [(number, kind) for number in range(FOLDS) for kind in numbers]
    grown = side_by_side([lambda job=job: fit(*job) for job in jobs], on_share)  # type: ignore[misc]
    facts, false = np.empty((len(rows), len(numbers))), np.empty((len(links.part), len(numbers)))
    for (number, kind), trees in zip(jobs, grown, strict=True):
        facts[fold == number, kind] = trees.predict(columns[rows[fold == number]])
        false[link_fold == number, kind] = trees.predict(links.columns[link_fold == number])
    return largest_shares(facts, [false[links.kind == kind] for kind in numbers])


def told_apart(facts: Matrix, links: Matrix, fact_weight: Floats, weight: Floats, settings: EvidenceSettings) -> Trees:
    """Return trees whose log-odds tell facts from links, which weigh as much together."""
    of_facts = fact_weight * (len(facts) / max(fact_weight.sum(), 1e-12))
    of_links = weight * (len(facts) / max(weight.sum(), 1e-12))
    truth = np.repeat([1.0, 0.0], [len(facts), len(links)])
    weights = np.concatenate([of_facts, of_links])
    return grow("log_loss", np.concatenate([facts, links]), truth, settings, weight=weights)


def largest_shares(facts: Floats, links: Sequence[Floats]) -> Floats:
    """Return the largest shares of the kinds that contradict the facts nowhere.

    `facts` has a column of log-odds for each kind, as has each kind's own array of `links`.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 — answers that need no doubt do not load it

    usable = [kind for kind, own in enumerate(links) if len(own)]
    left, right = [], []
    for kind in usable:
        for level in LEVELS:
            edge = np.quantile(links[kind][:, kind], level)
            left.append([float((links[each][:, kind] <= edge).mean()) for each in usable])
            seen = float((facts[:, kind] <= edge).mean())
            right.append(seen + np.sqrt(seen / len(facts)))  # chance alone may have left that many out
    solved = linprog(-np.ones(len(usable)), A_ub=np.array(left), b_ub=np.array(right), bounds=(0.0, 1.0))
    shares = np.zeros(len(links))
    shares[usable] = np.maximum(solved.x, 0.0)
    return shares / max(1.0, float(shares.sum()))


def by_name(links: FalseLinks, shares: Floats) -> Mapping[str, float]:
    """Return the shares of the kinds by their names."""
    return dict(zip(links.kinds, shares.tolist(), strict=True))
