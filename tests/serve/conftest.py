"""Fixtures of the service's tests; lets them share `tests.serve.small_run`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ukge.serve.server import create_app
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Snapshot

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.serve.serving import serving
from tests.serve.small_run import doubt_with_few_trees, make_run


@pytest.fixture(scope="package", autouse=True)
def _few_trees_of_doubt() -> Iterator[None]:
    """Every service looks for doubtful facts when it starts."""
    with pytest.MonkeyPatch.context() as patch:
        doubt_with_few_trees(patch)
        yield


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run directory."""
    return make_run(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="package")
def snapshot(run: Path) -> Snapshot:
    """The run, opened."""
    opened = Snapshot.open(run)
    opened.warm()
    opened.rulebook.get()
    return opened


@pytest.fixture(scope="package")
def client(run: Path) -> Iterator[TestClient]:
    """A client of the service, without explorer, with small limits, and time enough to compile on a busy machine."""
    app, service = create_app(run, explorer=False, limits=Limits(facts=20, k=50, body_bytes=10_000, seconds=600))
    with TestClient(app, raise_server_exceptions=True) as asking:
        for later in (service.snapshot.rulebook, service.snapshot.doubts, service.snapshot.audit):
            later.get()
        yield asking


@pytest.fixture(scope="package")
def port(run: Path) -> Iterator[int]:
    """The port of a service that runs in a process of its own, with the explorer."""
    with serving(run, "--no-watch", "--time-limit", "60", explorer=True) as (_, number):
        yield number
