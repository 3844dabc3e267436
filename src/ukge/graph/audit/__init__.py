"""The audit: what is wrong with a data set, and what needs no model, before anybody trains one."""

from ukge.graph.audit.baselines import Baseline, Errors
from ukge.graph.audit.counts import NameCounts, PartCounts
from ukge.graph.audit.negatives import FalseNegative, Negatives
from ukge.graph.audit.repeats import Conflict, Repeats
from ukge.graph.audit.report import Audit, audit
from ukge.graph.audit.symmetry import Symmetry
from ukge.graph.audit.twins import Twin, Twins

__all__ = [
    "Audit",
    "Baseline",
    "Conflict",
    "Errors",
    "FalseNegative",
    "NameCounts",
    "Negatives",
    "PartCounts",
    "Repeats",
    "Symmetry",
    "Twin",
    "Twins",
    "audit",
]
