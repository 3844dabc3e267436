"""Which trainings the tables need, and where each of them is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ukge.errors import ConfigError
from ukge.learning.rule_sources import MINED
from ukge.reproduction.recipes import ABLATION, MAIN, RANKING, Recipes, contestants

PAPER, RULES, CLEAN = "paper", "rules", "clean"
PARTS = (PAPER, RULES, CLEAN)


@dataclass(frozen=True, slots=True)
class Job:
    """One training: a model on a graph with a seed, for a task; `clean` on a leak-safe cut of the graph."""

    graph: str
    model: str
    seed: int
    task: str = MAIN
    clean: bool = False

    @property
    def label(self) -> str:
        """The model, with what makes this training of it different."""
        return self.model + f"-{RANKING}" * (self.task == RANKING) + f"-{CLEAN}" * self.clean

    @property
    def protocol(self) -> str:
        """The protocol that judges it."""
        return CLEAN if self.clean else PAPER

    @property
    def rules(self) -> str:
        """Where its rules come from. The authors' were grounded on their own split, so a clean one mines its own."""
        return MINED if self.clean else contestants.get(self.model).rules

    def run_path(self, out: Path) -> Path:
        """Return the run directory."""
        return out / "runs" / self.graph / self.label / f"seed-{self.seed}"

    def result_path(self, out: Path) -> Path:
        """Return the file of its figures."""
        return out / f"{self.graph}-{self.label}-seed-{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.graph} {self.label} seed {self.seed}"


def planned(
    graphs: Mapping[str, Recipes], models: Sequence[str], seeds: Iterable[int], parts: Sequence[str]
) -> list[Job]:
    """Return the trainings in the order in which they are done: graph by graph, seed by seed, clean ones last."""
    for part in parts:
        if part not in PARTS:
            raise ConfigError(f"unknown part '{part}'", hint=f"Known: {', '.join(PARTS)}.")
    for model in models:
        contestants.get(model)
    jobs: dict[Job, None] = {}
    for graph, recipes in graphs.items():
        for seed in seeds:
            if PAPER in parts:
                for model in models:
                    jobs[Job(graph, model, seed)] = None
                    if recipes.has_ranking(model):
                        jobs[Job(graph, model, seed, RANKING)] = None
            if RULES in parts:
                jobs |= {Job(graph, model, seed): None for model in ABLATION}
            if CLEAN in parts:
                jobs |= {Job(graph, model, seed, clean=True): None for model in models}
    return list(jobs)
