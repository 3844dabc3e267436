"""A new run takes the place of the old one without dropping a request, and a broken one does not."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.serve.small_run import make_run

from ukge.asking.rank import Check, Found, Wanted
from ukge.serve.schema import RankQuery
from ukge.serve.server import create_app
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Live, Snapshot


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("other"), seed=1)


def switch(link: Path, target: Path) -> None:
    """Point a link elsewhere, in one step."""
    fresh = link.with_name("fresh")
    fresh.symlink_to(target)
    fresh.replace(link)


def test_requests_under_way_are_answered_by_the_run_they_began_with(run: Path, other: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(run)
    _, service = create_app(link, explorer=False, watch_seconds=None, limits=Limits(seconds=600))
    old = service.snapshot
    release = threading.Event()
    search = old.exact.search

    def slowly(wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        release.wait(600)
        return search(wanted, check)

    async def scenario() -> None:
        old.exact.search = slowly  # type: ignore[method-assign]
        names = [old.entities[at] for at in range(20)]
        query = [service.rank(RankQuery(relation=old.relations[0], head=name, k=3)) for name in names]
        tasks = [asyncio.create_task(each) for each in query]
        await asyncio.sleep(0.05)
        switch(link, other)
        assert await service.live.reload()
        assert service.snapshot is not old
        assert all(service.info().ready.values())
        release.set()
        answers = await asyncio.gather(*tasks)
        old.exact.search = search  # type: ignore[method-assign]
        for name, answer in zip(names, answers, strict=True):
            found = search([Wanted("tail", old.entity(name), 0, 3)])[0]
            assert [each.entity for each in answer.answers] == old.entities.decode(found.entity).to_pylist()
        fresh = service.snapshot
        answer = await service.rank(RankQuery(relation=fresh.relations[0], head=fresh.entities[0], k=1))
        assert len(answer.answers) == 1
        assert service.live.reloads == 1
        service.work.close()

    asyncio.run(scenario())


def test_a_broken_run_is_refused_and_the_old_one_stays(run: Path, tmp_path: Path) -> None:
    link, broken = tmp_path / "current", tmp_path / "broken"
    link.symlink_to(run)
    shutil.copytree(run, broken)
    (broken / "weights.safetensors").write_bytes(b"nothing")
    live = Live(link, Snapshot.open)
    before = live.current
    switch(link, broken)
    assert not asyncio.run(live.reload())
    assert live.current is before
    assert 'ukge_reloads_total{outcome="refused"} 1.0' in live.metrics.text().decode()
    assert 'ukge_reloads_total{outcome="loaded"} 0.0' in live.metrics.text().decode()


def test_the_watch_sees_a_new_run_and_only_a_new_one(run: Path, other: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(run)
    live = Live(link, Snapshot.open)

    async def scenario() -> None:
        watching = asyncio.create_task(live.watch(0.02))
        await asyncio.sleep(0.2)
        assert live.reloads == 0
        switch(link, other)
        while not live.reloads:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        watching.cancel()

    asyncio.run(scenario())
    assert live.reloads == 1
