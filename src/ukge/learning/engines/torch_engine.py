"""The PyTorch engine: every scorer, link, loss, sampler and optimiser, on any device that PyTorch has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ukge.errors import ConfigError, RunError
from ukge.learning.data import TrainingData
from ukge.learning.engines import EpochResult
from ukge.learning.engines.torch_optimisers import Gradient, optimisers
from ukge.learning.labelled import Labelled, corrupted, fewer
from ukge.learning.objective import Batch, RuleBatch, Weights, build_objective, score_batch
from ukge.learning.pool import Pool
from ukge.learning.pseudo import PseudoFacts
from ukge.learning.sampling import Facts, Independent, PerFact, epoch_generator, epoch_order, rule_count, samplers
from ukge.logic.ground_rules import GroundRules
from ukge.models.links import Link
from ukge.models.losses import PoolSettings, PseudoSettings, Redrawn, Term, losses
from ukge.models.model import Model, init
from ukge.models.scorers import Scorer
from ukge.models.tables import Parameters, State, shared_of
from ukge.models.tensors import resolve_device, to_tensor
from ukge.settings.config import Config
from ukge.storage.arrays import Expected


class OnDevice(ABC):
    """What every PyTorch engine shares: tables on a device, an optimiser, and an epoch as a row of steps.

    On the CPU it works on their arrays in place; elsewhere `sync` brings them back.

    On the CPU with one thread an epoch is repeatable to the bit; with more threads, or on other devices, sums may be
    rounded in another order.
    """

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config) -> None:
        data.check(parameters)
        self.parameters = parameters
        self.device = resolve_device(config.runtime.device)
        self._config = config
        self._n_facts = len(data)
        self.tables = self._on_device(parameters)
        self._optimiser = optimisers.get(config.optimiser.optimiser)(self.tables, config.optimiser)

    def _on_device(self, parameters: Parameters) -> dict[str, Tensor]:
        """Return the tables that are trained; on the CPU, the parameters' own arrays."""
        return {name: torch.from_numpy(a).to(self.device) for name, a in parameters.as_dict().items()}

    @property
    @abstractmethod
    def _names(self) -> Sequence[str]:
        """Names of the objective's terms."""

    @abstractmethod
    def _steps(self, number: int) -> Iterator[tuple[Tensor, int]]:
        """Take the steps of an epoch; yield for each the values of the terms and how many facts it was about."""

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0). A loss that is not finite is returned like any other."""
        values = []
        with cpu_threads(self._config.runtime.threads):
            for found, facts in self._steps(number):
                values.append(found)
                if on_facts is not None:
                    on_facts(facts)
        means = torch.stack(values).cpu().double().mean(dim=0).tolist()
        return EpochResult(self._n_facts, dict(zip(self._names, means, strict=True)))

    def sync(self) -> None:
        """Copy the weights back into `parameters`, if they are on another device than the CPU."""
        if self.device.type != "cpu":
            for name, array in self.parameters.as_dict().items():
                np.copyto(array, self.tables[name].cpu().numpy())

    def state(self) -> State:
        """Return the optimiser's state; on the CPU as views, which the next epoch changes."""
        return self._optimiser.state()

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        self._optimiser.load_state(state)


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
            config.objective,
            unseen=self._sampler.draws,
            rules=self._rules is not None,
            relations=data.relation_names,
        )
        self._seed = config.runtime.seed
        loss = losses.get(config.objective.loss)
        self._redrawn: Redrawn | None = getattr(loss, "redrawn", None)
        self._of_unseen: Callable[[Scorer], Scorer] | None = getattr(loss, "of_unseen", None)
        self._corruptions: tuple[int, Facts] | None = None
        settings: PoolSettings | None = getattr(loss, "pool", None)
        self.pool = None if settings is None else Pool(settings, data)
        taught: PseudoSettings | None = getattr(losses.get(config.objective.loss), "pseudo", None)
        self.pseudo = None if taught is None else PseudoFacts(taught, data)
        if self.pool is not None and not isinstance(self._sampler, Independent):
            raise ConfigError(
                "a pool is filled with corruptions of single facts", hint="Choose ‹sampler='independent'›."
            )

    def draw(self, picks: Tensor, generator: torch.Generator, epoch: int = 0) -> Batch:
        """Return the facts picked, with unseen facts and ground rules drawn for them."""
        facts = _pick(self._facts, picks)
        negatives, labelled = self._sampler.sample(facts, generator), None
        if self.pool is not None and len(self.pool) and isinstance(negatives, PerFact):
            share = self.pool.settings.share(epoch)
            if share > 0.0:
                wanted = round(share * 2 * negatives.heads.numel())
                negatives = fewer(negatives, 1.0 - share)
                labelled = Labelled.draw(self.pool.columns, wanted, generator, self._device)
        if self.pseudo is not None:
            labelled = self.pseudo.draw(len(picks), generator, self._device)
        rules = self._draw_rules(len(picks), generator)
        unlabelled = self._unlabelled(picks, epoch)
        confidence = self._confidence[picks]
        return Batch(facts, confidence, negatives, rules, labelled, epoch, unlabelled, self._of_unseen)

    def _unlabelled(self, picks: Tensor, epoch: int) -> Facts | None:
        """Return the corruptions of the facts picked that are kept for some epochs, if the loss asks for any."""
        wanted = self._redrawn
        if wanted is None or epoch < wanted.since:
            return None
        first = epoch - (epoch - wanted.since) % wanted.every
        if self._corruptions is None or self._corruptions[0] != first:
            # By the seed and the epoch alone, so that a run that goes on has the same ones.
            generator = epoch_generator(self._seed, first, self._device, 1)
            head, relation, tail = (column.long() for column in self._facts)
            other_head = self._sampler.heads.draw_each(tail, relation, 1, generator)[0].squeeze(1)
            other_tail = self._sampler.tails.draw_each(head, relation, 1, generator)[0].squeeze(1)
            by_head = torch.rand(len(head), generator=generator, device=self._device) < 0.5
            ends = torch.where(by_head, other_head, head), torch.where(by_head, tail, other_tail)
            self._corruptions = first, Facts(ends[0], relation, ends[1])
        return _pick(self._corruptions[1], picks)

    def gather(self, batch: Batch, predict: Callable[[Facts], Tensor], generator: torch.Generator) -> None:
        """Put fresh corruptions of a batch's facts into the pool, with what the model says of them now."""
        if self.pool is not None and batch.epoch >= self.pool.settings.gather:
            unseen = self._sampler.sample(batch.facts, generator)
            if isinstance(unseen, PerFact):
                facts = corrupted(batch.facts, unseen)
                self.pool.put(*(column.cpu().numpy() for column in (*facts, predict(facts))))

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


class TorchEngine(OnDevice):
    """Trains fact by fact: every scorer, link, loss, sampler and optimiser."""

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config, scorer: Scorer, link: Link) -> None:
        super().__init__(parameters, data, config)
        self._scorer = scorer
        self._link = link
        self._batches = Batches(data, config, self.device)
        self._data = data

    @property
    def _names(self) -> Sequence[str]:
        return [term.name for term in self._batches.terms]

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0), and say how many pseudo facts there were."""
        found, pseudo = super().epoch(number, on_facts), self._batches.pseudo
        return found if pseudo is None else replace(found, pseudo=len(pseudo))

    def has_taught(self, epochs: int, *, tired: bool) -> bool:
        """Return whether the loss has a teacher whose epochs are over, or bring nothing more, and no student yet."""
        pseudo = self._batches.pseudo
        if pseudo is None or pseudo.taught:
            return False
        return tired or epochs >= pseudo.settings.epochs(self._config.stopping.epochs)

    def begin_student(self, teacher: Model) -> None:
        """Begin with the first weights again, and with what the teacher finds likely besides the facts."""
        if self._batches.pseudo is None:
            raise RunError("there is no teacher to learn from")
        self._batches.pseudo.ask(teacher)
        model, data = self._config.model, self._data
        first = init(
            self._scorer, data.n_entities, data.n_relations, model.dim, model.init_scale, self._config.runtime.seed
        )
        for name, table in self._on_device(first).items():
            self.tables[name].copy_(table)
        self._optimiser = optimisers.get(self._config.optimiser.optimiser)(self.tables, self._config.optimiser)

    def _steps(self, number: int) -> Iterator[tuple[Tensor, int]]:
        seed = self._config.runtime.seed
        order = torch.from_numpy(epoch_order(self._n_facts, seed, number)).to(self.device)
        generator = epoch_generator(seed, number, self.device)
        for picks in torch.split(order, self._config.optimiser.batch_size):
            batch = self._batches.draw(picks, generator, number)
            yield self._step(batch, generator), len(picks)
            self._batches.gather(batch, self._predict, generator)

    @torch.no_grad()
    def _predict(self, facts: Facts) -> Tensor:
        """Return the confidences of facts, as the weights are now."""
        entity, relation, link = (self.tables[name] for name in ("entity", "relation", "link"))
        scorer = self._scorer.bound(shared_of(self.tables))
        g = scorer.plausibility(entity[facts.head], relation[facts.relation], entity[facts.tail])
        return self._link.predict(g, link[0], link[1])

    def state(self) -> State:
        """Return the optimiser's state, and the pool or the pseudo facts if the loss has any."""
        found = super().state()
        for part in (self._batches.pool, self._batches.pseudo):
            found |= {} if part is None else part.state()
        return found

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        for part in (self._batches.pool, self._batches.pseudo):
            if part is not None:
                part.load_state(state)
        theirs = self.expected().keys()
        super().load_state({name: array for name, array in state.items() if name not in theirs})

    def expected(self) -> dict[str, Expected]:
        """Return what must be true of the parts of a state that are not as large as the tables."""
        found: dict[str, Expected] = {}
        for part in (self._batches.pool, self._batches.pseudo):
            found |= {} if part is None else part.expected()
        return found

    def _step(self, batch: Batch, generator: torch.Generator) -> Tensor:
        values, gradients = differentiate(
            self.tables,
            self._scorer.learning(generator),
            self._link,
            self._batches.terms,
            batch,
            by_rows=self._optimiser.by_rows,
        )
        self._optimiser.step(gradients)
        return values


def differentiate(
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
    scores = score_batch(scorer.bound(shared_of(leaves)), link, weights, batch)
    values = torch.stack([term.value(scores) for term in terms])
    return values.detach(), gradients_of(values, leaves, rows)


def gradients_of(values: Tensor, leaves: Mapping[str, Tensor], rows: Tensor | None) -> dict[str, Gradient]:
    """Return the gradients of the sum of terms; `rows` says which entities the leaf holds, None if all."""
    found = torch.autograd.grad(values.sum(), list(leaves.values()), allow_unused=True)
    gradients = {name: Gradient(part) for name, part in zip(leaves, found, strict=True) if part is not None}
    if "entity" in gradients:
        gradients["entity"] = gradients["entity"]._replace(rows=rows)
    return gradients


@contextmanager
def cpu_threads(wanted: int) -> Iterator[None]:
    """Use `wanted` CPU threads for a while; 0 leaves PyTorch's own choice, which is all cores."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
