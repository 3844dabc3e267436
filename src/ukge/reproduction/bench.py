"""A graph on the bench: its cuts, the protocols prepared for them, and what was measured of it and is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ukge.evaluation.case_study import CASES, Case, Tail, informative_queries
from ukge.evaluation.evaluate import Row, evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Plan, Settings
from ukge.graph.catalogue import BENCHMARKS, open_dataset
from ukge.graph.dataset import Dataset
from ukge.logic.measures import ScoredRule, measure
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.syntax import parse_rule
from ukge.reproduction.cells import published
from ukge.reproduction.jobs import CLEAN, PAPER
from ukge.reproduction.recipes import Recipes
from ukge.settings.variants import paper_tau
from ukge.storage.files import write_atomically

WHOLE_STRONG = 0.9
"""τ at which the hit ratios of the whole graph come closest to the paper's (see docs/rules.md)."""
BEST_MINED = 3
NO_BOOTSTRAP = Bootstrap(0)
FORMAT = 1

Figures = Mapping[str, Mapping[str, float | None]]
"""Values by table and metric of a protocol."""


class Kept:
    """What was measured once and is kept as a small JSON file that is whole or not there."""

    def write(self, path: Path) -> None:
        """Write it with the format's number."""
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {"format": FORMAT, **asdict(self)}  # type: ignore[call-overload]
        write_atomically(path, (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read it; None where there is no readable one, which is then measured again."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("format") != FORMAT:
                return None
            values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
            if "cases" in values:
                values["cases"] = tuple(map(_case, values["cases"]))
            return cls(**values)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


@dataclass(frozen=True)
class Outcome(Kept):
    """The figures of one run under one protocol, with all that says which run it was."""

    graph: str
    model: str
    task: str
    clean: bool
    seed: int
    protocol: str
    tau: float
    rules: str
    settings: Mapping[str, Any]
    data: Mapping[str, str]
    weights: str
    training: Mapping[str, Any]
    versions: Mapping[str, str]
    figures: Figures
    cases: tuple[Case, ...] = ()
    notes: tuple[str, ...] = ()

    def judged_by(self, protocol: str) -> bool:
        """Return whether there are figures of a protocol beside its own."""
        return any(table.startswith(f"{protocol}/") for table in self.figures)

    def value(self, table: str, metric: str) -> float | None:
        """Return one figure, None where the protocol has none."""
        return self.figures.get(table, {}).get(metric)


@dataclass(frozen=True)
class Trivial(Kept):
    """What needs no model reaches: figures by the baseline's name, with the data and the τ they were measured at."""

    protocol: str
    tau: float
    data: Mapping[str, str]
    figures: Mapping[str, Figures]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphFindings(Kept):
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
        self._cuts: dict[str, tuple[int, Plan]] = {}

    def cut(self, protocol: str, seed: int = 0) -> Plan:
        """Return a protocol with its data: as it comes for `paper`, cut leak-safely with the seed for `clean`."""
        wanted = seed if protocol == CLEAN else 0
        held = self._cuts.get(protocol)
        if held is None or held[0] != wanted:
            dataset = open_dataset(self.reference, seed=wanted, leak_safe=protocol == CLEAN)
            # What the field publishes are ranks of tails: those of heads would take as long again.
            held = wanted, prepare(dataset, protocol, Settings(tau=self.tau, seed=wanted, sides=("tail",)))
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
        plan = self.cut(protocol, seed)
        data = fingerprints(plan.dataset)
        found = Trivial.read(path)
        if found is None or (dict(found.data), found.tau) != (data, self.tau):
            judged = evaluate(plan, {}, bootstrap=NO_BOOTSTRAP)
            figures = {row.name: figures_of(row) for row in judged.rows}
            found = Trivial(protocol, self.tau, data, figures, judged.notes)
            found.write(path)
        return found

    def trivial_path(self, out: Path, protocol: str, seed: int) -> Path:
        """Return where the figures of the trivial baselines are kept."""
        which = {PAPER: "", CLEAN: f"-{CLEAN}-seed-{seed}"}.get(protocol, f"-{protocol}")
        return out / f"{self.name}-trivial{which}.json"

    def findings(self, out: Path) -> GraphFindings:
        """Return statistics and rules of the graph, found once and kept in `out`."""
        path = out / f"{self.name}.json"
        dataset = self.cut(PAPER).dataset
        data = fingerprints(dataset)
        held = GraphFindings.read(path)
        if held is None or (held.data, held.tau) != (data, self.tau):
            held = GraphFindings(data, self.tau, _statistics(dataset), *self._rules(dataset))
            held.write(path)
        return held

    def _rules(self, dataset: Dataset) -> tuple[tuple[Mapping[str, Any], ...], int]:
        mined = mine(dataset.train, MiningSettings(strong=self.tau))
        rules = published().rules.get(self.name, ()) if self.published else ()
        named = set(dataset.relations)  # a copy of a benchmark may come without the names of its relations
        known = [each for each in rules if named.issuperset(parse_rule(each.rule).relations)]
        given = [parse_rule(each.rule) for each in known] or mined.rules[:BEST_MINED]
        train = measure(dataset.train, given, strong=self.tau)
        whole = measure(dataset.whole(), given, strong=WHOLE_STRONG)
        ratios: list[float | None] = [each.hit_ratio for each in known] if known else [None] * len(given)
        return tuple(_rule(*each) for each in zip(train, whole, ratios, strict=True)), len(mined)


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


def fingerprints(dataset: Dataset) -> dict[str, str]:
    """Return the fingerprints of the parts of a data set."""
    return {name: part.fingerprint for name, part in dataset.parts.items()}


def figures_of(row: Row) -> Figures:
    """Return the figures of a row of an evaluation as plain values."""
    return {table: {each.metric.name: each.to_dict()["value"] for each in row.figures[table]} for table in row.figures}


def under(protocol: str, figures: Figures) -> Figures:
    """Return the figures of a protocol beside `paper`, with its name before those of its tables."""
    return {f"{protocol}/{table}": values for table, values in figures.items()}


def _case(data: Mapping[str, Any]) -> Case:
    tails = {
        side: tuple(Tail(**{**tail, "parts": tuple(tail["parts"])}) for tail in data[side])
        for side in ("predicted", "true")
    }
    return Case(data["head"], data["relation"], tails["predicted"], tails["true"], data["known"])
