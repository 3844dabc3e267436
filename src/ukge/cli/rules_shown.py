"""How rules and ground rules are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ukge.cli.console import out

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph
    from ukge.logic.measures import ScoredRule


def named(row: dict[str, Any], graph: UncertainGraph) -> dict[str, Any]:
    """Return a ground rule with names for ids."""
    facts = [graph[row[f"fact_{place}"]] for place in (1, 2, 3) if row[f"fact_{place}"] is not None]
    body = [(f"{fact.relation}({fact.head}, {fact.tail})", fact.confidence) for fact in facts]
    ends = graph.entities[row["head"]], graph.entities[row["tail"]]
    head = f"{graph.relations[row['relation']]}({ends[0]}, {ends[1]})"
    return {"head": head, "value": row["body"], "body": body}


def print_table(scored: Sequence[ScoredRule], title: str) -> None:
    """Print measured rules as a table."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("rule", overflow="fold", ratio=1)
    for name in ("weight", "hit ratio", "support", "implied", "coverage", "conf.", "PCA", "error", "lift"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in scored:
        figures = one.measures
        body = " & ".join(str(atom) for atom in one.rule.body)
        table.add_row(
            f"{body} -> {one.rule.head}",
            f"{one.rule.weight:.3f}",
            f"{figures.hit_ratio:.1%}",
            f"{figures.support:,}",
            f"{figures.implied:,}",
            f"{figures.head_coverage:.1%}",
            f"{figures.confidence:.3f}",
            f"{figures.pca_confidence:.3f}",
            f"{figures.error:.3f}",
            f"{figures.lift:.2f}",
        )
    out().print(table)
