"""A model of one's own: the example of docs/models.md, and files that are none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ukge.graph.synthetic import generate
from ukge.graph.writers import write

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def ukge(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from ukge.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, as the page has it."""
    (code,) = re.findall(r"```python\n(# my_scorer.py.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path_factory.mktemp("plugin") / "my_scorer.py"
    file.write_text(code, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world as a file."""
    file = tmp_path_factory.mktemp("facts") / "facts.tsv"
    write(generate(n_entities=200, n_facts=1500, seed=3).graph, file)
    return file


def test_the_example_of_the_page_is_trained_and_asked(mine: Path, facts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    brief = "--dim", 8, "--epochs", 2, "--probe", "none", "--quiet"
    done = ukge("train", facts, "--plugin", mine, "--model", "simple", "--out", run, *brief)
    assert done.returncode == 0, done.stderr
    head, relation, *_ = facts.read_text(encoding="utf-8").splitlines()[1].split("\t")
    for told in (
        ukge(f"--plugin={mine}", "rank", run, relation, "--head", head, "--json"),
        ukge("rank", run, relation, "--head", head, "--json", UKGE_PLUGIN=str(mine)),
    ):
        assert told.returncode == 0, told.stderr
        assert '"confidence"' in told.stdout
    alone = ukge("rank", run, relation, "--head", head)
    assert alone.returncode == 2
    assert "unknown scorer 'simple'" in alone.stderr
    assert "--plugin FILE" in " ".join(alone.stderr.split())


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import ukge\n\nraise ValueError('no')\n", "line 3: ValueError: no"),
        ("def (\n", "SyntaxError"),
        (
            "from ukge.models.scorers import scorers\nscorers.register('distmult')(scorers.get('dot'))\n",
            "scorer 'distmult' is registered twice",
        ),
    ],
)
def test_a_file_that_is_none_is_named_without_a_traceback(code: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(code, encoding="utf-8")
    told = ukge("audit", "--plugin", file, "synthetic")
    assert told.returncode == 2
    assert what in " ".join(told.stderr.split())
    assert "Traceback" not in told.stderr


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    told = ukge("audit", "synthetic", "--plugin", tmp_path / "absent.py")
    assert told.returncode == 2
    assert "there is no plugin" in told.stderr
    told = ukge("audit", "synthetic", "--plugin")
    assert told.returncode == 2
    assert "--plugin names no file" in told.stderr
