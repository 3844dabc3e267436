"""`fit`, `predict`, `rank`, `save`, `load`: a model as users of scikit-learn expect one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ukge.config import Config
from ukge.engines.base import GroundRules
from ukge.errors import ConfigError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.keepers import as_model
from ukge.model import Model
from ukge.queries import asked_relation
from ukge.runs import DataNote, Run
from ukge.trained import Callback, Trained
from ukge.variants import variant

IN_MEMORY = "(in memory)"


class Answer(NamedTuple):
    """One candidate for the missing entity of a query, with its predicted confidence."""

    entity: str
    confidence: float


class UKGE:
    """A model of the paper, by name, with any setting changed: `UKGE("ukge-rect", dim=64, lr=0.005)`."""

    def __init__(self, model: str = "ukge-rect", *, config: Config | None = None, **settings: Any) -> None:
        self.model = model
        self.config = (variant(model) if config is None else config).replace(**settings)
        self.entities: Vocabulary | None = None
        self.relations: Vocabulary | None = None
        self.trained: Trained | None = None
        self._predictor: Model | None = None

    def fit(
        self,
        data: UncertainGraph | Dataset,
        *,
        rules: GroundRules | str | Path | None = None,
        out: str | Path | None = None,
        reference: str = IN_MEMORY,
        leak_safe: bool = False,
        callbacks: Iterable[Callback] = (),
        on_facts: Callable[[int], None] | None = None,
    ) -> Self:
        """Train on a graph (7 % of it are kept aside to choose the epoch) or on a data set's training facts.

        `rules` are ground rules, or where they come from: "own" (those of the data set, the default), "mined", "none",
        or a file (see `ukge.rule_sources`). With `out`, the run is kept in that directory; `reference` says where
        `ukge train --resume` finds the data again.
        """
        from ukge.engines import resolve  # noqa: PLC0415 — whoever asks a trained model needs nothing of training
        from ukge.graph.split import split  # noqa: PLC0415
        from ukge.train import train  # noqa: PLC0415

        seed = self.config.runtime.seed
        dataset = data if isinstance(data, Dataset) else split(data, test=0.0, seed=seed, leak_safe=leak_safe)
        self.config = self.config.replace(engine=resolve(self.config))
        ground = self._ground_rules(dataset, rules)
        run = None
        if out is not None:
            note = DataNote(reference, dataset.train.fingerprint, dataset.val.fingerprint, seed, leak_safe)
            run = Run.create(out, self.config, note, dataset.entities, dataset.relations, ground, model=self.model)
        try:
            trained = train(
                dataset.train,
                dataset.val,
                self.config,
                rules=ground,
                run=run,
                callbacks=callbacks,
                on_facts=on_facts,
            )
        except ConfigError:
            if run is not None:
                run.discard_if_untrained()
            raise
        self._take(trained, dataset.entities, dataset.relations)
        return self

    @classmethod
    def resume(
        cls,
        path: str | Path,
        data: Dataset | None = None,
        *,
        callbacks: Iterable[Callback] = (),
        on_facts: Callable[[int], None] | None = None,
    ) -> Self:
        """Go on with an interrupted run; the data is opened again from where the run says, unless given."""
        from ukge.graph.catalogue import open_dataset  # noqa: PLC0415
        from ukge.train import train  # noqa: PLC0415

        run = Run.open(path)
        note = run.data
        if run.manifest().get("distributed"):
            raise RunError(
                f"{run.path} was trained with --distributed, and its checkpoints are in shards",
                hint=f"torchrun --nproc-per-node 1 --no-python ukge train --distributed --resume {run.path}",
            )
        if data is None:
            if note.reference == IN_MEMORY:
                raise RunError(f"{run.path} learnt from data in memory", hint="Resume it from Python, giving the data.")
            data = open_dataset(note.reference, seed=note.seed, leak_safe=note.leak_safe)
        for part, expected in (("train", note.train), ("val", note.val)):
            if data.parts[part].fingerprint != expected:
                raise RunError(
                    f"{run.path} learnt from other data: the {part} facts of {note.reference} have changed since",
                    hint="Restore the data, or train a new run.",
                )
        estimator = cls(run.manifest()["model"], config=run.config)
        trained = train(
            data.train,
            data.val,
            estimator.config,
            rules=run.rules,
            run=run,
            resume=True,
            callbacks=callbacks,
            on_facts=on_facts,
        )
        estimator._take(trained, data.entities, data.relations)
        return estimator

    def predict(self, facts: UncertainGraph | Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
        """Return the confidence of each fact, given as a graph or as (head, relation, tail) names."""
        return self.predictor.confidence(*self._ids(facts)).astype(np.float64)

    def rank(
        self, head: str | None = None, relation: str | None = None, k: int = 10, *, tail: str | None = None
    ) -> list[Answer]:
        """Return the k most confident answers to (head, relation, ?) or, with `tail`, to (?, relation, tail)."""
        entities, relations = self._vocabularies
        asked = np.array([relations.id(asked_relation(head, relation, tail, k))])
        if head is not None:
            ranking = self.predictor.rank_tails(np.array([entities.id(head)]), asked, k)
        else:
            ranking = self.predictor.rank_heads(asked, np.array([entities.id(str(tail))]), k)
        names = entities.decode(ranking.entity[0]).to_pylist()
        return [Answer(name, float(value)) for name, value in zip(names, ranking.confidence[0], strict=True)]

    def save(self, path: str | Path) -> None:
        """Write the model to a run directory."""
        if self.trained is None:
            raise RunError("there is nothing to save: the model is not trained", hint="Call fit first.")
        entities, relations = self._vocabularies
        note = DataNote(IN_MEMORY, "", "", self.config.runtime.seed)
        run = Run.create(path, self.config, note, entities, relations, None, model=self.model)
        result = {"metric": self.trained.metric, "best": self.trained.best, "best_epoch": self.trained.best_epoch}
        run.save_weights(self.trained.parameters, result)
        run.update(status="finished", result={**result, "epochs": self.trained.epochs})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a trained model from a run directory; every file is checked against its checksum."""
        run = Run.open(path)
        manifest = run.manifest()
        if manifest["status"] != "finished":
            raise RunError(
                f"{run.path} is not finished (status: {manifest['status']})",
                hint=f"Go on with it: ukge train --resume {run.path}",
            )
        estimator = cls(manifest["model"], config=run.config)
        result = manifest["result"]
        trained = Trained(
            run.load_weights(),
            estimator.config,
            result["metric"],
            result["best"],
            result["best_epoch"],
            result["epochs"],
            0.0,
        )
        estimator._take(trained, *run.vocabularies)
        return estimator

    def _ground_rules(self, dataset: Dataset, rules: GroundRules | str | Path | None) -> GroundRules | None:
        if isinstance(rules, GroundRules):
            return rules
        objective = self.config.objective
        if objective.rule_weight == 0 and objective.rule_prior == 0:
            return None
        from ukge.rule_sources import OWN, rules_for  # noqa: PLC0415 — the relational engine takes time to load

        return rules_for(dataset, rules or OWN, self.config.sampling.tau)

    @property
    def predictor(self) -> Model:
        """The trained model by ids."""
        if self._predictor is None:
            raise RunError("the model is not trained", hint="Call fit first, or load a run.")
        return self._predictor

    @property
    def _vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        if self.entities is None or self.relations is None:
            raise RunError("the model is not trained", hint="Call fit first, or load a run.")
        return self.entities, self.relations

    def _take(self, trained: Trained, entities: Vocabulary, relations: Vocabulary) -> None:
        self.trained = trained
        self.entities, self.relations = entities, relations
        self._predictor = as_model(trained.parameters, self.config)

    def _ids(self, facts: UncertainGraph | Sequence[Sequence[str]]) -> tuple[Ids, Ids, Ids]:
        entities, relations = self._vocabularies
        if isinstance(facts, UncertainGraph):
            if facts.entities == entities and facts.relations == relations:
                return facts.head, facts.relation, facts.tail
            table = facts.facts()
            names = [table[column] for column in ("head", "relation", "tail")]
        else:
            names = [[fact[i] for fact in facts] for i in range(3)]
        columns = []
        for values, vocabulary in zip(names, (entities, relations, entities), strict=True):
            ids = vocabulary.encode(values)
            if (ids < 0).any():
                vocabulary.id(str(values[int(np.argmax(ids < 0))]))
            columns.append(ids)
        return columns[0], columns[1], columns[2]
