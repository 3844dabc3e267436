"""How rules and ground rules are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ukge.cli.console import GAP, note, out, plain_table

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph
    from ukge.logic.measures import ScoredRule


ROOM_FOR_RULE = 44
"""Columns that a rule needs to be read."""


def named(row: dict[str, Any], graph: UncertainGraph) -> dict[str, Any]:
    """Return a ground rule with names for ids."""
    facts = [graph[row[f"fact_{place}"]] for place in (1, 2, 3) if row[f"fact_{place}"] is not None]
    body = [(f"{fact.relation}({fact.head}, {fact.tail})", fact.confidence) for fact in facts]
    ends = graph.entities[row["head"]], graph.entities[row["tail"]]
    head = f"{graph.relations[row['relation']]}({ends[0]}, {ends[1]})"
    return {"head": head, "value": row["body"], "body": body}


def print_table(scored: Sequence[ScoredRule], title: str) -> None:
    """Print rules with as many of their measures as the terminal has room for, the telling ones first."""
    from rich.text import Text

    console = out()
    columns = {
        "weight": [f"{one.rule.weight:.3f}" for one in scored],
        "hit ratio": [f"{one.measures.hit_ratio:.1%}" for one in scored],
        "support": [f"{one.measures.support:,}" for one in scored],
        "implied": [f"{one.measures.implied:,}" for one in scored],
        "coverage": [f"{one.measures.head_coverage:.1%}" for one in scored],
        "conf.": [f"{one.measures.confidence:.3f}" for one in scored],
        "PCA": [f"{one.measures.pca_confidence:.3f}" for one in scored],
        "error": [f"{one.measures.error:.3f}" for one in scored],
        "lift": [f"{one.measures.lift:.2f}" for one in scored],
    }
    widths = [max(len(name), *map(len, cells), 0) + GAP for name, cells in columns.items()]
    fitting = [name for at, name in enumerate(columns) if ROOM_FOR_RULE + sum(widths[: at + 1]) <= console.width]
    table = plain_table(title)
    table.add_column("rule", overflow="fold")
    for name in fitting:
        table.add_column(name, justify="right", no_wrap=True)
    for row, one in enumerate(scored):
        body = " & ".join(str(atom) for atom in one.rule.body)
        table.add_row(Text(f"{body} -> {one.rule.head}"), *(columns[name][row] for name in fitting))
    console.print(table)
    if len(fitting) < len(columns):
        note("a wider terminal, --json and --out show more measures: " + ", ".join([*columns][len(fitting) :]))
