"""Inference by rules alone: the confidences of unseen facts that violate the ground rules least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ukge.errors import ConfigError
from ukge.graph.aggregate import aggregate
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Ids
from ukge.logic.engine import Engine, using
from ukge.logic.ground_rules import GroundingReport
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.hlmrf import Floats, MapState, solve
from ukge.logic.program import GroundProgram, NegativePrior, ground_program
from ukge.logic.rules import Rule
from ukge.settings.knobs import check_number


@dataclass(frozen=True, eq=False)
class Inferred:
    """Unseen facts with the confidences that the rules give them, and how they were found."""

    graph: UncertainGraph
    state: MapState
    program: GroundProgram

    @property
    def report(self) -> GroundingReport:
        """What was grounded, what was left out, and why."""
        return self.program.grounded.report

    def confidence(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return the inferred confidences of triples by id, 0 for those that no rule speaks of."""
        return np.nan_to_num(FactIndex(self.graph).stored(head, relation, tail))


def infer(
    graph: UncertainGraph,
    rules: Sequence[Rule],
    *,
    targets: UncertainGraph | None = None,
    rounds: int = 1,
    joint: bool = False,
    prior: NegativePrior | None = None,
    settings: GroundingSettings | None = None,
    engine: str | Engine = "duckdb",
) -> Inferred:
    """Return the MAP state of the ground program: the confidences of the targets.

    Without `targets` they are the unseen heads that rules imply, in `rounds` steps: what one round implies may be part
    of the bodies of the next. With `joint`, targets stand in bodies as well, so that their confidences depend on each
    other: PSL's program in full, which takes far longer on a large graph. More than one round needs it.
    """
    check_number(int, "rounds", rounds, least=1, most=1_000)
    if rounds > 1 and not joint:
        raise ConfigError(f"{rounds} rounds need targets in bodies", hint="Ask for ‹joint=True›.")
    wanted = settings or GroundingSettings()
    with using(engine) as running:
        unknown = implied_heads(graph, rules, wanted, rounds, running) if targets is None else targets
        given = prior or NegativePrior()
        program = ground_program(running, graph, rules, unknown, wanted, given, joint=joint)
    state = solve(program.hinges)
    return Inferred(program.targets.with_confidence(np.clip(state.values, 0.0, 1.0)), state, program)


def implied_heads(
    graph: UncertainGraph, rules: Sequence[Rule], settings: GroundingSettings, rounds: int, engine: str | Engine
) -> UncertainGraph:
    """Return the unseen facts that rules with a positive head imply, each once, as sure as their truest body."""
    positive = [rule for rule in rules if not rule.negated]
    asked = replace(settings, unseen_only=True, best_only=True)
    heads = graph[:0]
    for _ in range(rounds):
        known = concat([graph, heads])
        found = ground(known, positive, asked, engine=engine)
        heads = concat([heads, aggregate(found.heads(graph), "max").graph])
    return heads
