"""Training below an encoder: rows are learnt, and what the scorer compares is made of them and their neighbours'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.learning.data import TrainingData
from ukge.learning.engines.torch_engine import TorchEngine, cpu_threads, gradients_of
from ukge.learning.objective import Batch, Weights, score_batch
from ukge.learning.sampling import Facts, epoch_generator
from ukge.models.encoders import encoders
from ukge.models.links import Link
from ukge.models.model import Model
from ukge.models.neighbourhood import Edges
from ukge.models.scorers import Scorer
from ukge.models.tables import Parameters, State
from ukge.settings.config import Config
from ukge.storage.arrays import Expected

PREFIX = "encoder."

AT_ONCE = 1 << 17
"""Edges whose entities are encoded together when all are."""


class EncodingEngine(TorchEngine):
    """Trains the rows of entities and relations and the encoder's tables, which its state holds.

    `parameters` are what the encoder makes of them, without anything dropped, as soon as `sync` was called. A batch
    needs the edges of its own entities alone, and their tails' rows: with one layer that is all there is to it.
    """

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config, scorer: Scorer, link: Link) -> None:
        encoder = encoders.get(config.model.encoder)
        if encoder is None:
            raise ConfigError("there is no encoder to train", hint="Name one: ‹encoder='attention'›.")
        self._encoder = encoder
        self._width = scorer.entity_width(config.model.dim)
        if self._width != scorer.relation_width(config.model.dim) or scorer.phases:
            raise ConfigError(
                f"the encoder '{config.model.encoder}' needs rows of entities and relations that are alike, and the "
                f"scorer '{config.model.scorer}' has others",
                hint="Choose ‹scorer='distmult'› or ‹scorer='complex'›.",
            )
        if parameters.shared:
            raise ConfigError(
                "encoders make rows of entities and relations, for scorers that have no tables besides",
                hint="Leave out ‹encoder›.",
            )
        super().__init__(parameters, data, config, scorer, link)
        self._edges = self._all_edges()
        self._dropping: torch.Generator | None = None
        self._behind = True

    def _on_device(self, parameters: Parameters) -> dict[str, Tensor]:
        """Return copies of the first rows, and the encoder's own tables as they start."""
        tables = {name: torch.tensor(a, device=self.device) for name, a in parameters.as_dict().items()}
        rng = np.random.Generator(np.random.Philox(key=[self._config.runtime.seed, len(tables)]))
        for name, rows, columns, start in self._encoder.tables(self._width):
            tables[name] = torch.from_numpy(start.draw(rng, (rows, columns))).to(self.device)
        return tables

    def _all_edges(self) -> Edges:
        """Return those of the training facts, and of the pseudo facts there are."""
        head, relation, tail = self._data.observed()
        if self._batches.pseudo is not None:
            others = self._batches.pseudo.columns
            head, relation = np.append(head, others["head"]), np.append(relation, others["relation"])
            tail = np.append(tail, others["tail"])
        if self._encoder.backwards:
            head, relation, tail = np.append(head, tail), np.append(relation, relation), np.append(tail, head)
        return Edges(head, relation, tail, self._data.n_entities, self.device)

    def begin_student(self, teacher: Model) -> None:
        """Begin anew, with the edges of the pseudo facts, too."""
        super().begin_student(teacher)
        self._edges, self._behind = self._all_edges(), True

    def _steps(self, number: int) -> Iterator[tuple[Tensor, int]]:
        self._dropping = epoch_generator(self._config.runtime.seed + 1, number, self.device)
        self._behind = True
        yield from super()._steps(number)

    def _step(self, batch: Batch, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        wanted, places = torch.unique(torch.cat(batch.entity_ids()), return_inverse=True)
        near, leaves, rows = self._edges.around(wanted), dict(self.tables), None
        if self._optimiser.by_rows:
            rows, local = torch.unique(torch.cat([near.own, near.tail]), return_inverse=True)
            own, tail = local.split([len(near.own), len(near.tail)])
            near, leaves["entity"] = near._replace(own=own, tail=tail), self.tables["entity"][rows]
        leaves = {name: table.detach().requires_grad_() for name, table in leaves.items()}
        entity = self._encoder.entities(leaves, near, self._dropping)
        weights = Weights(entity.index_select(0, places), self._encoder.relations(leaves), leaves["link"])
        scores = score_batch(self._scorer, self._link, weights, batch)
        values = torch.stack([term.value(scores) for term in self._batches.terms])
        self._optimiser.step(gradients_of(values, leaves, rows))
        return values.detach()

    @torch.no_grad()
    def _predict(self, facts: Facts) -> Tensor:
        ids, places = torch.unique(torch.cat([facts.head, facts.tail]), return_inverse=True)
        head, tail = self._encoder.entities(self.tables, self._edges.around(ids))[places].chunk(2)
        g = self._scorer.plausibility(head, self._encoder.relations(self.tables)[facts.relation], tail)
        found: Tensor = self._link.predict(g, *self.tables["link"])
        return found

    @torch.no_grad()
    def sync(self) -> None:
        """Encode all entities and relations into `parameters`, if anything was learnt since."""
        if not self._behind:
            return
        n = self._data.n_entities
        step = max(1, n * AT_ONCE // len(self._edges))
        with cpu_threads(self._config.runtime.threads):
            for first in range(0, n, step):
                ids = torch.arange(first, min(first + step, n), device=self.device)
                found = self._encoder.entities(self.tables, self._edges.around(ids))
                self.parameters.entity[first : first + step] = found.cpu().numpy()
            self.parameters.relation[:] = self._encoder.relations(self.tables).cpu().numpy()
        self.parameters.link[:] = self.tables["link"].cpu().numpy()
        self._behind = False

    def state(self) -> State:
        """Return the tables that are trained, and what the next step depends on besides."""
        return super().state() | {f"{PREFIX}{name}": table.cpu().numpy() for name, table in self.tables.items()}

    def load_state(self, state: State) -> None:
        """Take up what `state` gave."""
        super().load_state(state)
        for name, table in self.tables.items():
            table.copy_(torch.from_numpy(state[f"{PREFIX}{name}"]))
        self._edges, self._behind = self._all_edges(), True

    def expected(self) -> dict[str, Expected]:
        """Return what must be true of the tables and of what else is not as large as they."""
        tables: Mapping[str, Tensor] = self.tables
        own = {f"{PREFIX}{name}": Expected("float32", tuple(table.shape)) for name, table in tables.items()}
        return super().expected() | own
