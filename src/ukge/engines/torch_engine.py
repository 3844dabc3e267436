"""The PyTorch engine: every scorer, link, loss, sampler and optimiser, on any device that PyTorch has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.config import Config, ObjectiveConfig
from ukge.engines.base import EpochResult, Parameters, State, TrainingData
from ukge.engines.batches import Batches, facts_on, rules_on
from ukge.engines.torch_optimisers import Gradient, optimisers
from ukge.links import Link
from ukge.model import resolve_device, to_tensor
from ukge.objective import Batch, Term, Weights, build_objective, score_batch
from ukge.sampling import PerFact, epoch_generator, epoch_order
from ukge.scoring import Scorer


class TorchEngine:
    """Trains `parameters` on `data`. On the CPU it works on their arrays in place; elsewhere `sync` brings them back.

    On the CPU with one thread an epoch is repeatable to the bit; with more threads, or on other devices, sums may be
    rounded in another order.
    """

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config, scorer: Scorer, link: Link) -> None:
        self.parameters = parameters
        self.device = resolve_device(config.runtime.device)
        self._config = config
        self._scorer = scorer
        self._link = link
        self._tables = {name: torch.from_numpy(a).to(self.device) for name, a in parameters.as_dict().items()}
        self._batches = Batches(data, config, self.device)
        self._optimiser = optimisers.get(config.optimiser.optimiser)(self._tables, config.optimiser)

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0). A loss that is not finite is returned like any other."""
        seed, size = self._config.runtime.seed, self._config.optimiser.batch_size
        order = torch.from_numpy(epoch_order(len(self._batches), seed, number)).to(self.device)
        generator = epoch_generator(seed, number, self.device)
        values = []
        with _threads(self._config.runtime.threads):
            for picks in torch.split(order, size):
                values.append(self._step(picks, generator))
                if on_facts is not None:
                    on_facts(len(picks))
        means = torch.stack(values).cpu().double().mean(dim=0).tolist()
        named = zip(self._batches.terms, means, strict=True)
        return EpochResult(len(order), {term.name: mean for term, mean in named})

    def sync(self) -> None:
        """Copy the weights back into `parameters`, if they are on another device than the CPU."""
        if self.device.type != "cpu":
            for name, array in self.parameters.as_dict().items():
                np.copyto(array, self._tables[name].cpu().numpy())

    def state(self) -> State:
        """Return the optimiser's state; on the CPU as views, which the next epoch changes."""
        return self._optimiser.state()

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        self._optimiser.load_state(state)

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


@contextmanager
def _threads(wanted: int) -> Iterator[None]:
    """Use `wanted` CPU threads for a while; 0 leaves PyTorch's own choice, which is all cores."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
