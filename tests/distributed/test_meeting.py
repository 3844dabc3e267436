"""Ranks that are started again, with what the dead left behind, agree; and so they know a run that is theirs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch._C._distributed_c10d import HashStore, Store

from ukge.distributed import training
from ukge.distributed.training import Job
from ukge.distributed.world import World, agreed_name
from ukge.errors import RunError
from ukge.graph.catalogue import save_dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.runs.directory import Run
from ukge.settings.config import Config

PATIENCE = timedelta(seconds=30)


def met(store: Store, size: int, late: int = 0) -> list[str]:
    """Let ranks meet of which one comes late; return the name that each knows."""

    def join(rank: int) -> str:
        time.sleep(0.2 if rank == late else 0.0)
        return agreed_name(store, rank, size, PATIENCE)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(join, range(size)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_start_has_a_name_of_its_own(size: int) -> None:
    store = HashStore()
    names = [met(store, size, late) for late in (*range(size), 0)]
    assert all(len(set(each)) == 1 for each in names), "the ranks of a start agree"
    assert len({each[0] for each in names}) == len(names), "no name comes twice"


def test_a_start_that_broke_off_and_another_number_of_ranks_do_no_harm() -> None:
    store = HashStore()
    first = met(store, 2)[0]
    store.set("asked/1", "a question of a rank that died before it was answered")
    store.set("asked/2", "another")
    after = met(store, 3, late=2)
    assert len({first, *after}) == 2
    assert len(set(met(store, 2, late=1))) == 1


def test_a_rank_that_never_comes_is_named() -> None:
    store = HashStore()
    store.set("asked/1", "of a dead rank")
    with pytest.raises(RunError, match="rank 1, 2 did not come"):
        agreed_name(store, 0, 3, timedelta(seconds=0.1))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    save_dataset(split(generate(n_entities=100, n_facts=300, seed=1).graph, seed=0, name="world"), tmp_path / "world")
    return Job(str(tmp_path / "world"), "ukge-rect", Config(), tmp_path / "run", rules="none")


def alone() -> World:
    return World(0, 1, torch.device("cpu"), 1, HashStore())


def test_the_same_launch_goes_on_with_its_run(job: Job) -> None:
    world = alone()
    training._begin(job, world)
    Run(job.out).append_trace({"epoch": 1})
    training._begin(job, world)
    assert Run(job.out).trace() == [{"epoch": 1}]


def test_a_run_that_was_half_made_is_made_again(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    world = alone()
    with monkeypatch.context() as patched:
        patched.setattr(training, "save_prepared", die)
        with pytest.raises(KeyboardInterrupt):
            training._begin(job, world)
    training._begin(job, world)
    assert Run.open(job.out).manifest()["distributed"]


def test_the_run_of_another_launch_is_refused_every_time(job: Job) -> None:
    training._begin(job, alone())
    before = (job.out / "manifest.json").read_bytes()
    world = alone()
    for _ in range(2):
        with pytest.raises(RunError, match="exists and is not empty"):
            training._begin(job, world)
    assert (job.out / "manifest.json").read_bytes() == before
