"""What a command loads before it answers: nothing that the answer does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ukge.graph.dataset import Dataset

NEVER = (
    "torch",
    "pandas",
    "sklearn",
    "ibis",
    "duckdb",
    "matplotlib",
    "crepes",
    "scipy.linalg",
    "psutil",
    "fastapi",
    "jinja2",
    "mcp",
)
"""Libraries that only training, fitting, mining or serving need; Numba itself loads no more than the top of SciPy."""

COMPILER = "numba"
"""A question about few facts is answered before it were loaded."""

NUMBERS = ("numpy", "pyarrow", COMPILER)

MAIN = """
import json, sys
from ukge.cli import main
try:
    main()
finally:
    print(json.dumps([name for name in json.loads(sys.stdin.read()) if name in sys.modules]), file=sys.stderr)
"""


def loaded(names: tuple[str, ...], *arguments: object) -> list[str]:
    """Run a command in a process of its own and return which of some modules it loaded."""
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, input=json.dumps(names), check=True)
    assert done.stdout or "written to" in done.stderr
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def fact(dataset: Dataset) -> tuple[str, str, str]:
    """A fact that the runs know."""
    known = dataset.train[0]
    return known.head, known.relation, known.tail


def test_what_the_command_says_of_itself_needs_no_numbers() -> None:
    assert loaded((*NEVER, *NUMBERS, "pydantic"), "--help") == []
    assert loaded((*NEVER, *NUMBERS, "pydantic", "rich"), "--version") == []
    assert loaded((*NEVER, *NUMBERS), "train", "--help") == []


def test_ranking_with_evidence(home: Path, fact: tuple[str, str, str]) -> None:
    head, relation, _ = fact
    assert loaded((*NEVER, COMPILER), "rank", home / "run", relation, "--head", head) == []


def test_explaining(home: Path, fact: tuple[str, str, str]) -> None:
    assert loaded((*NEVER, COMPILER), "explain", home / "run", *fact) == []


def test_judging_a_file(home: Path, fact: tuple[str, str, str], tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("\t".join(fact) + "\n", encoding="utf-8")
    assert loaded((*NEVER, COMPILER), "predict", home / "run", facts, "--out", tmp_path / "judged.tsv") == []
    assert loaded((*NEVER, COMPILER), "predict", home / "plain", facts, "--out", tmp_path / "judged.parquet") == []


def test_a_model_alone_compiles_nothing(home: Path, fact: tuple[str, str, str]) -> None:
    _, relation, tail = fact
    assert loaded((*NEVER, COMPILER), "rank", home / "plain", relation, "--tail", tail) == []
