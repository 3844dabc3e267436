"""The audit: what is wrong with a data set, and what needs no model, before anybody trains one."""

from ukge.graph.audit.baselines import Baseline, Errors
from ukge.graph.audit.leaks import Twin, Twins
from ukge.graph.audit.negatives import FalseNegative, Negatives
from ukge.graph.audit.report import Audit, audit
from ukge.graph.audit.statistics import Conflict, NameCounts, PartCounts, Repeats, Symmetry

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
