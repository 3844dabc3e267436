"""The batches of a PyTorch training: facts of the data, and the unseen facts and ground rules drawn for them."""

from __future__ import annotations

import torch
from torch import Tensor

from ukge.learning.objective import Batch, RuleBatch, Term, build_objective
from ukge.learning.sampling import Facts, rule_count, samplers
from ukge.learning.training_data import TrainingData
from ukge.logic.ground_rules import GroundRules
from ukge.models.tensors import to_tensor
from ukge.settings.config import Config


class Batches:
    """Training data on a device, from which batches are drawn."""

    def __init__(self, data: TrainingData, config: Config, device: torch.device) -> None:
        self._device = device
        self._rules_per_fact = config.sampling.rules_per_fact
        self._facts = facts_on(data, device)
        self._confidence = to_tensor(data.confidence, device)
        self._rules = None
        if data.rules is not None and len(data.rules) > 0 and self._rules_per_fact > 0:
            self._rules = rules_on(data.rules, device)
        self._sampler = samplers.get(config.sampling.sampler)(data, config.sampling, device)
        self.terms: list[Term] = build_objective(
            config.objective, unseen=self._sampler.draws, rules=self._rules is not None
        )

    def draw(self, picks: Tensor, generator: torch.Generator) -> Batch:
        """Return the facts picked, with unseen facts and ground rules drawn for them."""
        facts = _pick(self._facts, picks)
        negatives = self._sampler.sample(facts, generator)
        return Batch(facts, self._confidence[picks], negatives, self._draw_rules(len(picks), generator))

    def _draw_rules(self, n_facts: int, generator: torch.Generator) -> RuleBatch | None:
        if self._rules is None:
            return None
        count = rule_count(n_facts, self._rules_per_fact)
        picks = torch.randint(len(self._rules.body), (count,), generator=generator, device=self._device)
        return RuleBatch(_pick(self._rules.facts, picks), self._rules.body[picks], self._rules.weight[picks])


def facts_on(columns: TrainingData | GroundRules, device: torch.device) -> Facts:
    """Return facts, or the heads of ground rules, on a device."""
    return Facts(*(to_tensor(ids, device) for ids in (columns.head, columns.relation, columns.tail)))


def rules_on(rules: GroundRules, device: torch.device) -> RuleBatch:
    """Return ground rules on a device."""
    return RuleBatch(facts_on(rules, device), to_tensor(rules.body, device), to_tensor(rules.weight, device))


def _pick(facts: Facts, picks: Tensor) -> Facts:
    return Facts(*(column[picks].long() for column in facts))
