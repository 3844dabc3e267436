"""What ranks check among themselves; started by torchrun from `test_ranks.py`, writes one line per check."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ukge.distributed.checkpoints import Checkpoints
from ukge.distributed.engine import DistributedEngine
from ukge.distributed.export import read_streams
from ukge.distributed.table import ShardedTables
from ukge.distributed.world import FirstRankError, World, joined
from ukge.errors import ConfigError, DataError
from ukge.learning.data import TrainingData
from ukge.learning.engines.torch_engine import Batches
from ukge.learning.engines.torch_optimisers import Gradient, optimisers
from ukge.learning.objective import Batch, Weights, build_objective, score_batch
from ukge.logic.ground_rules import GroundRules
from ukge.models.model import Model, as_model, init
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters
from ukge.runs.directory import Progress
from ukge.settings.config import Config

N_ENTITIES, N_RELATIONS = 13, 3  # an odd number of rows: the shards are not equally long
Check = Callable[[World, Path], None]


def config_for(scorer: str = "distmult", **settings: object) -> Config:
    chosen = {
        "dim": 8,
        "sampler": "shared",
        "negatives": 3,
        "optimiser": "rowwise-adagrad",
        "lr": 0.1,
        "batch_size": 10,
    }
    return Config().replace(**{**chosen, "scorer": scorer, "rules_per_fact": 0.5, **settings})


def data_of(rank: int, n_facts: int) -> TrainingData:
    rng = np.random.default_rng(rank)

    def ids(n: int, bound: int) -> np.ndarray:
        return rng.integers(bound, size=n).astype(np.int32)

    values = rng.random((2, 6)).astype(np.float32)
    rules = GroundRules(ids(6, N_ENTITIES), ids(6, N_RELATIONS), ids(6, N_ENTITIES), values[0], values[1])
    ends = ids(n_facts, N_ENTITIES), ids(n_facts, N_RELATIONS), ids(n_facts, N_ENTITIES)
    return TrainingData(*ends, rng.random(n_facts).astype(np.float32), N_ENTITIES, N_RELATIONS, rules)


def engine_of(world: World, config: Config) -> DistributedEngine:
    return DistributedEngine(data_of(world.rank, 20 + world.rank), config, world)


def whole(engine: DistributedEngine) -> Parameters:
    """Return all weights on every rank."""
    table = engine.table
    padded = torch.zeros(table.block, table.shape[1])
    padded[: table.stop - table.first] = table.local
    parts = [torch.empty_like(padded) for _ in range(engine.world.size)]
    dist.all_gather(parts, padded)
    rows = torch.cat(parts)[: table.shape[0]].numpy()
    return Parameters(rows, engine.replicated["relation"].numpy().copy(), engine.replicated["link"].numpy().copy())


def starts_as_one_process_does(world: World, _: Path) -> None:
    for scorer in ("distmult", "rotate"):
        config = config_for(scorer)
        alone = init(scorers.get(scorer), N_ENTITIES, N_RELATIONS, 8, config.model.init_scale, config.runtime.seed)
        for name, array in whole(engine_of(world, config)).as_dict().items():
            np.testing.assert_array_equal(array, alone.as_dict()[name], err_msg=f"{scorer} {name}")


def steps_by_the_gradient_of_the_joint_objective(world: World, _: Path) -> None:
    """Two steps with unequal shares equal those of one process that sees all ranks' batches at once."""
    for scorer, sampler, optimiser in (
        ("distmult", "shared", "rowwise-adagrad"),
        ("complex", "independent", "rowwise-adagrad"),
        ("rotate", "shared", "adagrad"),
    ):
        config = config_for(scorer, sampler=sampler, optimiser=optimiser)
        engine = engine_of(world, config)
        tables = {name: torch.from_numpy(array.copy()) for name, array in whole(engine).as_dict().items()}
        steps = optimisers.get(optimiser)(tables, config.optimiser)
        picks = {rank: torch.arange(4 + 3 * rank) for rank in range(world.size)}
        n_facts = sum(len(own) for own in picks.values())
        sources = {rank: Batches(data_of(rank, 20 + rank), config, world.device) for rank in picks}
        for number in range(2):
            batches = {
                rank: source.draw(picks[rank], torch.Generator().manual_seed(number * 10 + rank))
                for rank, source in sources.items()
            }
            weights = {rank: len(own) / n_facts for rank, own in picks.items()}
            engine.step(batches[world.rank], weights[world.rank] * world.size)
            steps.step(gradients(tables, config, batches, weights))
            for name, array in whole(engine).as_dict().items():
                np.testing.assert_allclose(array, tables[name].numpy(), atol=2e-6, err_msg=f"{scorer} {name}")


def gradients(
    tables: dict[str, Tensor], config: Config, batches: dict[int, Batch], weights: dict[int, float]
) -> dict[str, Gradient]:
    leaves = {name: table.detach().clone().requires_grad_() for name, table in tables.items()}
    scorer, link = scorers.get(config.model.scorer), as_model(init_like(tables), config).link
    terms = build_objective(config.objective, unseen=True, rules=True)
    total = torch.zeros(())
    for rank, batch in batches.items():
        rows = leaves["entity"].index_select(0, torch.cat(batch.entity_ids()))
        scores = score_batch(scorer, link, Weights(rows, leaves["relation"], leaves["link"]), batch)
        total = total + weights[rank] * torch.stack([term.value(scores) for term in terms]).sum()
    found = torch.autograd.grad(total, list(leaves.values()))
    return {name: Gradient(gradient) for name, gradient in zip(leaves, found, strict=True)}


def init_like(tables: dict[str, Tensor]) -> Parameters:
    return Parameters.of({name: table.numpy() for name, table in tables.items()})


def predicts_what_one_process_predicts(world: World, _: Path) -> None:
    rng = np.random.default_rng(7)
    for scorer in ("distmult", "transe-l1"):
        config = config_for(scorer, link="logistic")
        engine = engine_of(world, config)
        engine.replicated["link"].copy_(torch.tensor([-0.7, 0.2]))
        undirected = np.array([False, True, False])
        alone = as_model(whole(engine), config, undirected=undirected)
        head, tail = rng.integers(N_ENTITIES, size=(2, 9))
        relation = rng.integers(N_RELATIONS, size=9)
        tables = ShardedTables(engine.table, engine.replicated)
        sharded = Model(tables, engine.scorer, engine.link, undirected)
        with tables.answering(engine.scorer):
            if world.first:
                for ours, theirs in (
                    (sharded.confidence(head, relation, tail), alone.confidence(head, relation, tail)),
                    (sharded.confidence(head[:1], relation[:1], tail[:1]), alone.confidence(head, relation, tail)[:1]),
                    (sharded.tail_scores(head, relation), alone.tail_scores(head, relation)),
                    (sharded.head_scores(relation, tail), alone.head_scores(relation, tail)),
                    (sharded.rank_tails(head, relation, 11), alone.rank_tails(head, relation, 11)),
                    (sharded.rank_heads(relation, tail, 2), alone.rank_heads(relation, tail, 2)),
                    (sharded.rank_heads(relation, tail, 99), alone.rank_heads(relation, tail, 99)),
                ):
                    for one, other in zip(np.atleast_1d(ours), np.atleast_1d(theirs), strict=True):
                        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=scorer)


def goes_on_from_a_checkpoint(world: World, folder: Path) -> None:
    """Three epochs, or two, a checkpoint, another engine and one: the same to the bit."""
    for optimiser in ("rowwise-adagrad", "adagrad"):
        config = config_for(optimiser=optimiser)
        path = folder / optimiser
        straight, broken, fresh = (engine_of(world, config) for _ in range(3))
        for number in range(3):
            straight.epoch(number)
        for number in range(2):
            broken.epoch(number)
        progress = Progress(epoch=2, best_epoch=1, best=0.5, stale=1, facts=82)
        saved = whole(broken)
        Checkpoints(path, broken).save(progress)
        broken.epoch(2)
        assert Checkpoints(path, fresh).load() == progress
        fresh.epoch(2)
        for name, array in whole(straight).as_dict().items():
            np.testing.assert_array_equal(whole(fresh).as_dict()[name], array, err_msg=f"{optimiser} {name}")
        if world.first:
            for name, stream in read_streams(path / "checkpoints" / "epoch-000002").items():
                exported = np.concatenate([block.reshape(-1) for block in stream.blocks()]).reshape(stream.shape)
                np.testing.assert_array_equal(exported, saved.as_dict()[name])
        world.barrier()


def refuses_what_ranks_cannot_do(world: World, _: Path) -> None:
    wrong: dict[str, Any] = {
        "optimiser": "adam",
        "dim": 6,
        "sampler": "exhaustive",
        "in_range": True,
        "memory_map": True,
    }
    for name, value in wrong.items():
        with pytest.raises(ConfigError) as caught:
            engine_of(world, config_for(**{name: value}))
        assert caught.value.hint, name


def tells_an_error_of_the_first_rank_once(world: World, _: Path) -> None:
    def fail() -> None:
        raise DataError("no such file")

    with pytest.raises(DataError if world.first else FirstRankError):
        world.by_first(fail)
    assert world.broadcast_text("größer" if world.first else "") == "größer"
    assert world.gathered(world.rank) == list(range(world.size))


CHECKS: tuple[Check, ...] = (
    starts_as_one_process_does,
    steps_by_the_gradient_of_the_joint_objective,
    predicts_what_one_process_predicts,
    goes_on_from_a_checkpoint,
    refuses_what_ranks_cannot_do,
    tells_an_error_of_the_first_rank_once,
)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with joined("cpu") as world, (folder / f"rank-{world.rank}.jsonl").open("w") as report:
        for check in CHECKS:
            problem = ""
            try:
                check(world, folder)
            except Exception:
                problem = traceback.format_exc()
            report.write(json.dumps({"check": check.__name__, "problem": problem}) + "\n")
            report.flush()
            if any(world.gathered(int(bool(problem)))):
                break  # ranks that no longer do the same would wait for each other


if __name__ == "__main__":
    main(Path(sys.argv[1]))
