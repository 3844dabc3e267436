"""The names that settings take: those that come with ukge, for editors and for a quick check, and where others are."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal, get_args

ModelName = Literal[
    "complex", "complex-all", "distmult", "transe", "ukge-logi", "ukge-n", "ukge-p", "ukge-rect", "urge"
]
ScorerName = Literal["complex", "distmult", "dot", "rotate", "transe", "transe-l1", "transe-l2"]
LinkName = Literal["identity", "logistic", "rectifier"]
LossName = Literal["logistic", "margin", "softmax", "squared"]
SamplerName = Literal["exhaustive", "independent", "none", "shared"]
OptimiserName = Literal["adagrad", "adam", "lazy-adam", "rowwise-adagrad"]
MetricName = Literal["mae", "mrr", "mse", "mse-positives", "ndcg"]
EngineName = Literal["auto", "fused", "queries", "torch"]


@dataclass(frozen=True, slots=True)
class Choices:
    """The names one setting takes. Its registry, as `module:name`, is loaded only for a name that is not ukge's own."""

    registry: str
    own: tuple[str, ...]

    def check(self, name: str) -> None:
        """Raise a `ConfigError` with the near names unless there is such a name."""
        if name not in self.own:
            module, _, attribute = self.registry.partition(":")
            getattr(import_module(module), attribute).get(name)


SCORERS = Choices("ukge.models.scorers:scorers", get_args(ScorerName))
LINKS = Choices("ukge.models.links:links", get_args(LinkName))
LOSSES = Choices("ukge.learning.objective:losses", get_args(LossName))
SAMPLERS = Choices("ukge.learning.sampling:samplers", get_args(SamplerName))
OPTIMISERS = Choices("ukge.learning.engines.torch_optimisers:optimisers", get_args(OptimiserName))
METRICS = Choices("ukge.learning.validation:metrics", get_args(MetricName))
ENGINES = Choices("ukge.learning.engines:engines", get_args(EngineName))
