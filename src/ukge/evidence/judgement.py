"""What evidence says of facts, as columns: a confidence, its bounds, and the reason that moved it most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ukge.evidence.explain import top_reasons
from ukge.graph.uncertain import UncertainGraph

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence
    from ukge.graph.vocabulary import Ids


def judgements(
    evidence: Evidence, head: Ids, relation: Ids, tail: Ids, *, coverage: float = 0.9, reasons: bool = True
) -> dict[str, Any]:
    """Return the columns confidence, low, high and, if asked for, reason of facts by ids."""
    columns = evidence.evidence.columns(head, relation, tail)
    low, high = evidence.interval_of(columns, relation, coverage)
    found: dict[str, Any] = {"confidence": evidence.head.predict(columns), "low": low, "high": high}
    if reasons:
        names = evidence.entities, evidence.relations
        facts = UncertainGraph.from_ids(head, relation, tail, np.zeros(len(head)), *names)
        found["reason"] = [each.sentence for each in top_reasons(evidence, facts)]
    return found
