"""A graph on the bench: its cuts, the protocols prepared for them, and what can be said of it without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ukge.evaluation.case_study import CASES, informative_queries
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Plan, Settings
from ukge.graph.catalogue import BENCHMARKS, open_dataset
from ukge.graph.dataset import Dataset
from ukge.logic.measures import ScoredRule, measure
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.syntax import parse_rule
from ukge.reproduction.jobs import CLEAN, PAPER
from ukge.reproduction.outcomes import Trivial, figures_of, fingerprints, read_json, write_json
from ukge.reproduction.published import published
from ukge.reproduction.recipes import Recipes
from ukge.settings.variants import paper_tau

WHOLE_STRONG = 0.9
"""τ at which the hit ratios of the whole graph come closest to the paper's (see docs/rules.md)."""
BEST_MINED = 3
NO_BOOTSTRAP = Bootstrap(0)


@dataclass(frozen=True, eq=False)
class Cut:
    """A data set with the protocol that judges models trained on it."""

    dataset: Dataset
    plan: Plan


@dataclass(frozen=True)
class GraphFindings:
    """Statistics of a graph and its rules, as the tables 1 and 2 print them."""

    data: Mapping[str, str]
    tau: float
    statistics: Mapping[str, float]
    rules: tuple[Mapping[str, Any], ...]
    mined: int


class Bench:
    """A graph by catalogue name or path; only one leak-safe cut is held at a time."""

    def __init__(self, reference: str, recipes: Recipes, tau: float | None = None) -> None:
        self.published = reference in BENCHMARKS
        by_path = not self.published and Path(reference).exists()
        self.reference = str(Path(reference).resolve()) if by_path else reference
        self.name = graph_name(reference)
        self.recipes = recipes
        known = paper_tau(self.name)
        self.tau: float = known if self.published or tau is None else tau
        self._cuts: dict[str, tuple[int, Cut]] = {}

    def cut(self, protocol: str, seed: int = 0) -> Cut:
        """Return the data for a protocol: as it comes for `paper`, cut leak-safely with the seed for `clean`."""
        wanted = seed if protocol == CLEAN else 0
        held = self._cuts.get(protocol)
        if held is None or held[0] != wanted:
            dataset = open_dataset(self.reference, seed=wanted, leak_safe=protocol == CLEAN)
            held = wanted, Cut(dataset, prepare(dataset, protocol, Settings(tau=self.tau, seed=wanted)))
            self._cuts[protocol] = held
        return held[1]

    def queries(self) -> list[tuple[int, int]]:
        """Return the queries of the case study: the paper's, or some that show something."""
        dataset = self.cut(PAPER).dataset
        known = published().cases.get(self.name, ()) if self.published else ()
        asked = [
            (dataset.entities.id(case.head), dataset.relations.id(case.relation))
            for case in known
            if case.head in dataset.entities and case.relation in dataset.relations
        ]
        return asked or informative_queries(dataset, CASES // 2)

    def trivial(self, out: Path, protocol: str, seed: int = 0) -> Trivial:
        """Return what the trivial baselines reach, measured once and kept in `out`."""
        path = self.trivial_path(out, protocol, seed)
        cut = self.cut(protocol, seed)
        data = fingerprints(cut.dataset)
        found = Trivial.read(path)
        if found is None or (dict(found.data), found.tau) != (data, self.tau):
            judged = evaluate(cut.plan, {}, bootstrap=NO_BOOTSTRAP)
            figures = {row.name: figures_of(row) for row in judged.rows}
            found = Trivial(protocol, self.tau, data, figures, judged.notes)
            found.write(path)
        return found

    def trivial_path(self, out: Path, protocol: str, seed: int) -> Path:
        """Return where the figures of the trivial baselines are kept."""
        return out / f"{self.name}-trivial{f'-{CLEAN}-seed-{seed}' if protocol == CLEAN else ''}.json"

    def findings(self, out: Path) -> GraphFindings:
        """Return statistics and rules of the graph, found once and kept in `out`."""
        path = out / f"{self.name}.json"
        dataset = self.cut(PAPER).dataset
        data = fingerprints(dataset)
        held = read_json(path)
        if held is None or (held.get("data"), held.get("tau")) != (data, self.tau):
            held = {"data": data, "tau": self.tau, "statistics": _statistics(dataset), **self._rules(dataset)}
            write_json(path, held)
        return GraphFindings(held["data"], held["tau"], held["statistics"], tuple(held["rules"]), held["mined"])

    def _rules(self, dataset: Dataset) -> dict[str, Any]:
        mined = mine(dataset.train, MiningSettings(strong=self.tau))
        rules = published().rules.get(self.name, ()) if self.published else ()
        named = set(dataset.relations)  # a copy of a benchmark may come without the names of its relations
        known = [each for each in rules if named.issuperset(parse_rule(each.rule).relations)]
        given = [parse_rule(each.rule) for each in known] or mined.rules[:BEST_MINED]
        train = measure(dataset.train, given, strong=self.tau)
        whole = measure(dataset.whole(), given, strong=WHOLE_STRONG)
        ratios: list[float | None] = [each.hit_ratio for each in known] if known else [None] * len(given)
        rows = [_rule(*each) for each in zip(train, whole, ratios, strict=True)]
        return {"rules": rows, "mined": len(mined)}


def graph_name(reference: str) -> str:
    """Return what a graph is called in tables and file names."""
    return reference if reference in BENCHMARKS else Path(reference).name.split(".")[0]


def _statistics(dataset: Dataset) -> dict[str, float]:
    whole = dataset.whole()
    return {
        "entities": int(np.union1d(whole.head, whole.tail).size),
        "relations": int(np.unique(whole.relation).size),
        "facts": len(whole),
        "distinct": int(np.unique(whole.keys()).size),
        "mean": float(whole.confidence.mean()),
        "deviation": float(whole.confidence.std()),
    }


def _rule(train: ScoredRule, whole: ScoredRule, ratio: float | None) -> dict[str, Any]:
    body = " & ".join(str(atom) for atom in train.rule.body)
    measured = {
        name: {"hit_ratio": 100.0 * each.measures.hit_ratio, **_counts(each)}
        for name, each in (("train", train), ("whole", whole))
    }
    return {"rule": f"{body} -> {train.rule.head}", "published": ratio, **measured}


def _counts(scored: ScoredRule) -> dict[str, Any]:
    return {name: value for name, value in asdict(scored.measures).items() if name in ("support", "implied")}
