"""The PyTorch engine: every scorer, link, loss, sampler and optimiser, on any device that PyTorch has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.learning.engines.batches import Batches, facts_on, rules_on
from ukge.learning.engines.on_device import OnDevice
from ukge.learning.engines.torch_optimisers import Gradient
from ukge.learning.objective import Batch, Term, Weights, build_objective, score_batch
from ukge.learning.sampling import PerFact, epoch_generator, epoch_order
from ukge.learning.training_data import TrainingData
from ukge.models.links import Link
from ukge.models.parameters import Parameters
from ukge.models.scorers import Scorer
from ukge.models.tensors import to_tensor
from ukge.settings.config import Config, ObjectiveConfig


class TorchEngine(OnDevice):
    """Trains fact by fact: every scorer, link, loss, sampler and optimiser."""

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config, scorer: Scorer, link: Link) -> None:
        super().__init__(parameters, data, config)
        self._scorer = scorer
        self._link = link
        self._batches = Batches(data, config, self.device)

    @property
    def _names(self) -> Sequence[str]:
        return [term.name for term in self._batches.terms]

    def _steps(self, number: int) -> Iterator[tuple[Tensor, int]]:
        seed = self._config.runtime.seed
        order = torch.from_numpy(epoch_order(self._n_facts, seed, number)).to(self.device)
        generator = epoch_generator(seed, number, self.device)
        for picks in torch.split(order, self._config.optimiser.batch_size):
            yield self._step(picks, generator), len(picks)

    def _step(self, picks: Tensor, generator: torch.Generator) -> Tensor:
        batch = self._batches.draw(picks, generator)
        values, gradients = _differentiate(
            self._tables, self._scorer, self._link, self._batches.terms, batch, by_rows=self._optimiser.by_rows
        )
        self._optimiser.step(gradients)
        return values


def loss_and_gradients(
    parameters: Parameters,
    scorer: Scorer,
    link: Link,
    objective: ObjectiveConfig,
    batch: TrainingData,
    negative_heads: npt.NDArray[np.integer[Any]] | None = None,
    negative_tails: npt.NDArray[np.integer[Any]] | None = None,
    dtype: torch.dtype = torch.float64,
) -> tuple[dict[str, float], Parameters]:
    """Return each term of the objective on one batch and the gradients of their sum, arrays of `dtype`.

    `batch` holds the batch's own facts and the ground rules drawn for it; negatives are (b, n) heads and tails that
    replace those of each fact, or None for no unseen facts. This is what every engine's step must agree with.
    """
    cpu = torch.device("cpu")
    tables = {name: torch.tensor(array, dtype=dtype) for name, array in parameters.as_dict().items()}
    negatives = None
    if negative_heads is not None and negative_tails is not None:
        negatives = PerFact(*(to_tensor(ids.astype(np.int64), cpu) for ids in (negative_heads, negative_tails)))
    rules = None
    if batch.rules is not None and len(batch.rules) > 0:
        rules = rules_on(batch.rules, cpu)
        rules = rules._replace(body=rules.body.to(dtype), weight=rules.weight.to(dtype))
    terms = build_objective(objective, unseen=negatives is not None, rules=rules is not None)
    scored = Batch(facts_on(batch, cpu), to_tensor(batch.confidence, cpu).to(dtype), negatives, rules)
    values, gradients = _differentiate(tables, scorer, link, terms, scored)
    arrays = {
        name: (gradients[name].values if name in gradients else torch.zeros_like(table)).numpy()
        for name, table in tables.items()
    }
    return {term.name: value for term, value in zip(terms, values.tolist(), strict=True)}, Parameters(**arrays)


def _differentiate(
    tables: Mapping[str, Tensor],
    scorer: Scorer,
    link: Link,
    terms: Sequence[Term],
    batch: Batch,
    *,
    by_rows: bool = False,
) -> tuple[Tensor, dict[str, Gradient]]:
    """Return the values of the terms and the gradients of their sum: of whole tables, or of touched entity rows."""
    leaves = {name: table.detach().requires_grad_() for name, table in tables.items()}
    rows = None
    wanted = torch.cat(batch.entity_ids())
    if by_rows:
        rows, wanted = torch.unique(wanted, return_inverse=True)
        leaves["entity"] = tables["entity"].index_select(0, rows).requires_grad_()
    weights = Weights(leaves["entity"].index_select(0, wanted), leaves["relation"], leaves["link"])
    scores = score_batch(scorer, link, weights, batch)
    values = torch.stack([term.value(scores) for term in terms])
    found = torch.autograd.grad(values.sum(), list(leaves.values()), allow_unused=True)
    gradients = {name: Gradient(part) for name, part in zip(leaves, found, strict=True) if part is not None}
    if "entity" in gradients:
        gradients["entity"] = gradients["entity"]._replace(rows=rows)
    return values.detach(), gradients
