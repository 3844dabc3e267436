"""Files of a served run that are cut, overwritten or deleted: what was checked goes on being served, to the digit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.serve.serving import serving
from tests.serve.small_run import make_judged_run

QUESTIONS = [
    ("/v1/rank", {"head": "a/b", "relation": "likes", "k": "20"}),
    ("/v1/rank", {"tail": "a/b", "relation": "likes", "k": "20", "type": "fitting"}),
    ("/v1/confidence", {"head": "a/b", "relation": "likes", "tail": "narcissus"}),
    ("/v1/explain", {"head": "narcissus", "relation": "likes", "tail": "narcissus"}),
    ("/v1/complete", {"relation": "likes", "k": "5"}),
    ("/v1/entities", {"search": "nar"}),
    ("/v1/entity/a%2Fb", {}),
    ("/v1/rules", {"limit": "5"}),
    ("/v1/doubtful", {"limit": "5"}),
    ("/v1/reliability", {}),
]


@pytest.fixture(scope="module", params=["model", "evidence"])
def served(request: pytest.FixtureRequest, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without and one with evidence."""
    home = tmp_path_factory.mktemp("served")
    if request.param == "evidence":
        return make_judged_run(home)
    shutil.copytree(run, home / "run")
    return home / "run"


def answers(port: int) -> list[str]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        told = []
        for path, query in QUESTIONS:
            response = client.get(path, params=query)
            while response.status_code == 503:  # still being prepared
                time.sleep(0.2)
                response = client.get(path, params=query)
            assert response.status_code == 200, response.text
            told.append(response.text)
        return told


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 3)


def overwrite(file: Path) -> None:
    with file.open("r+b") as handle:  # in place: who has it mapped sees it
        handle.write(os.urandom(max(1, file.stat().st_size)))


def refused(port: int, process: subprocess.Popen[str], before: float) -> float:
    """Tell the service to reload, and return how many runs it has refused by then."""
    process.send_signal(signal.SIGHUP)
    while True:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
        (line,) = [each for each in text.splitlines() if each.startswith('ukge_reloads_total{outcome="refused"}')]
        if float(line.split()[1]) > before:
            return float(line.split()[1])
        assert process.poll() is None
        time.sleep(0.1)


@pytest.fixture
def asked(served: Path, tmp_path: Path) -> Iterator[tuple[Path, int, subprocess.Popen[str], list[str]]]:
    copy = tmp_path / "copy"
    shutil.copytree(served, copy)
    with serving(copy, "--no-watch", "--index-above", "10") as (process, port):
        while not all(httpx.get(f"http://127.0.0.1:{port}/v1/info", timeout=60).json()["ready"].values()):
            time.sleep(0.2)
        yield copy, port, process, answers(port)


def test_answers_stay_whatever_happens_to_the_files(
    asked: tuple[Path, int, subprocess.Popen[str], list[str]],
) -> None:
    run, port, process, before = asked
    files = sorted(file for file in run.rglob("*") if file.is_file() and file.suffix != ".lock")
    assert any(file.name == "weights.safetensors" for file in files)
    times = 0.0
    spoil: Callable[[Path], None]
    for spoil in (overwrite, cut, Path.unlink):
        for file in files:
            spoil(file)
        assert answers(port) == before
        assert process.poll() is None
        times = refused(port, process, times)
        assert answers(port) == before
    shutil.rmtree(run)
    assert answers(port) == before
    assert httpx.get(f"http://127.0.0.1:{port}/v1/info", timeout=60).json()["reloads"] == 0
