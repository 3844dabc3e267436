"""The losses and gradients of one given batch: as the objective states them, and as the fused kernels find them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ukge.learning.data import TrainingData
from ukge.learning.engines.fused import FusedEngine, optimisers
from ukge.learning.engines.fused.records import Extent, Ints, Moments, Occurrences, Tables, allocate
from ukge.learning.engines.torch_engine import differentiate, facts_on, rules_on
from ukge.learning.objective import Batch, build_objective
from ukge.learning.sampling import PerFact
from ukge.models.links import Link
from ukge.models.scorers import Scorer
from ukge.models.tables import Parameters
from ukge.models.tensors import to_tensor
from ukge.settings.config import ObjectiveConfig


def loss_and_gradients(
    parameters: Parameters,
    scorer: Scorer,
    link: Link,
    objective: ObjectiveConfig,
    batch: TrainingData,
    negative_heads: npt.NDArray[np.integer[Any]] | None = None,
    negative_tails: npt.NDArray[np.integer[Any]] | None = None,
    dtype: torch.dtype = torch.float64,
    **more: Any,
) -> tuple[dict[str, float], Parameters]:
    """Return each term of the objective on one batch and the gradients of their sum, arrays of `dtype`.

    `batch` holds the batch's own facts and the ground rules drawn for it; negatives are (b, n) heads and tails that
    replace those of each fact, or None for no unseen facts; `more` is what else a `Batch` holds. This is what every
    engine's step must agree with.
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
    scored = Batch(facts_on(batch, cpu), to_tensor(batch.confidence, cpu).to(dtype), negatives, rules, **more)
    values, gradients = differentiate(tables, scorer, link, terms, scored)
    arrays = {
        name: (gradients[name].values if name in gradients else torch.zeros_like(table)).numpy()
        for name, table in tables.items()
    }
    return {term.name: value for term, value in zip(terms, values.tolist(), strict=True)}, Parameters.of(arrays)


def fused_gradients(engine: FusedEngine, heads: Ints, tails: Ints, rules: Ints) -> tuple[dict[str, float], Parameters]:
    """Return the losses and gradients of one batch of all facts of a fused engine, with given corruptions and rules."""
    n_facts = len(engine.data)
    buffers = allocate(Extent(1, n_facts, len(rules), engine._negatives), engine.parameters, engine.threads)
    prepared = buffers.prepared
    prepared.n_facts[0], prepared.n_rules[0] = n_facts, len(rules)
    prepared.facts[0] = np.arange(n_facts)
    prepared.rules[0, : len(rules)] = rules
    prepared.drawn[0] = tails, heads
    facts, chosen = engine._fact_arrays(), engine._rule_arrays()
    entities = [facts.head, chosen.head[rules], facts.tail, chosen.tail[rules], tails.ravel(), heads.ravel()]
    _fill_index(np.concatenate(entities), buffers.by_entity)
    _fill_index(np.concatenate([facts.relation, chosen.relation[rules]]), buffers.by_relation)
    tables = engine._tables()
    found = Tables(*(np.zeros_like(table) for table in tables))
    unused = [np.zeros((len(table), 1), dtype=np.float32) for table in tables]
    moments = Moments(found.entity, unused[0], found.relation, unused[1], found.link, unused[2])
    engine._run(buffers, optimisers.NONE, moments)
    return engine._named(buffers.scratch.totals), Parameters(found.entity, found.relation, found.link[:, 0])


def _fill_index(keys: Ints, index: Occurrences) -> None:
    """Fill batch 0 of an occurrence index with NumPy."""
    index.order[0, : len(keys)] = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[index.order[0, : len(keys)]], return_index=True)
    index.n[0] = len(distinct)
    index.rows[0, : len(distinct)] = distinct
    index.starts[0, : len(distinct)] = first
    index.starts[0, len(distinct)] = len(keys)
