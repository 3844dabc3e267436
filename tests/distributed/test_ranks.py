"""Two ranks: the same start, the same steps, the same predictions and the same checkpoints as one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.distributed.checks_by_ranks import CHECKS
from tests.distributed.launching import run_ranks

RANKS = 2


@pytest.fixture(scope="module")
def reports(torchrec: None, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    folder = tmp_path_factory.mktemp("ranks")
    done = run_ranks(RANKS, str(Path(__file__).with_name("checks_by_ranks.py")), str(folder))
    files = [folder / f"rank-{rank}.jsonl" for rank in range(RANKS)]
    assert all(file.is_file() for file in files), done.stderr
    found = []
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        found.append({line["check"]: line["problem"] for line in lines})
    return found


@pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
def test_ranks(name: str, reports: list[dict[str, str]]) -> None:
    for rank, report in enumerate(reports):
        assert name in report, f"rank {rank} never came to it"
        assert not report[name], f"rank {rank}: {report[name]}"
