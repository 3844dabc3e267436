"""Which facts are strong: how likely it is that a confidence is above τ, asked of trees directly.

The mean confidence is a poor guide to that. A fact that is certain if it holds, and does so with a chance of 0.8, has
the mean of one that is known to have 0.8; and where confidences are a few round numbers, the mean lies between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ukge.errors import ConfigError, DataError
from ukge.evidence.boosting import grow
from ukge.evidence.regressor import Examples, even_weights
from ukge.evidence.trees import Floats, Trees

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence
    from ukge.graph.given import Facts


@dataclass(frozen=True, eq=False)
class StrongClassifier:
    """Says how likely facts have a confidence above `tau`, links that may be false among them."""

    evidence: Evidence
    trees: Trees
    tau: float

    def chance(self, facts: Facts, *, count_itself: bool = False) -> Floats:
        """Return the chance of each fact to be a strong one; `count_itself` as in `Evidence.predict`."""
        ids = self.evidence.ids(facts)
        own = None if count_itself else self.evidence.own_facts(*ids)
        return 1.0 / (1.0 + np.exp(-self.trees.predict(self.evidence.features.columns(*ids, own))))


def fit_strong_classifier(evidence: Evidence, examples: Examples, tau: float) -> StrongClassifier:
    """Fit trees to strong validation facts against the weak ones and negative links."""
    if not 0.0 <= tau < 1.0:
        raise ConfigError(f"τ is {tau:g}", hint="Give a confidence of at least 0 and below 1.")
    strong = examples.confidence > tau
    if not strong.any() or (strong.all() and not len(examples.negatives)):
        raise DataError(f"no validation fact has a confidence above {tau:g}", hint="Give a lower τ.")
    n, m = len(examples.facts), len(examples.negatives)
    both = np.concatenate([examples.facts, examples.negatives])
    truth = np.concatenate([strong, np.zeros(m, dtype=np.bool_)])
    trees = grow("log_loss", both, truth, evidence.settings, weight=even_weights(n, m))
    return StrongClassifier(evidence, trees, tau)
