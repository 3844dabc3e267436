"""Kernels are compiled anew when a file that they are made of has changed, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ukge

HELPER = """
from typing import NamedTuple

from ukge.compiled import kernel


class {name}(NamedTuple):
    x: float
    y: float


@kernel(nogil=True)
def add(pair):
    return pair.x + {times} * pair.y
"""
CALLER = """
from helpers.add import {name}, add
from ukge.compiled import kernel


@kernel(nogil=True)
def total(pair):
    return add(pair)


print(total({name}(1.0, 2.0)), sum(total.stats.cache_hits.values()))
"""


def write(place: Path, name: str = "Pair", times: int = 1) -> None:
    helpers = place / "helpers"
    helpers.mkdir(exist_ok=True)
    (helpers / "add.py").write_text(HELPER.format(name=name, times=times), encoding="utf-8")
    callers = place / "callers"
    callers.mkdir(exist_ok=True)
    (callers / "total.py").write_text(CALLER.format(name=name), encoding="utf-8")


def run(place: Path) -> tuple[float, int]:
    """Return what the kernel says in a process of its own, and how often it came from the cache."""
    path = os.pathsep.join([str(place), str(Path(ukge.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "HOME": str(place), "XDG_CACHE_HOME": str(place / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", "import callers.total"]
    done = subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True, text=True)
    value, hits = done.stdout.split()
    return float(value), int(hits)


def test_a_change_of_a_helper_in_another_folder_is_noticed(tmp_path: Path) -> None:
    write(tmp_path)
    assert run(tmp_path) == (3.0, 0)
    assert run(tmp_path) == (3.0, 1)
    write(tmp_path, times=5)
    assert run(tmp_path) == (11.0, 0)
    assert run(tmp_path) == (11.0, 1)


def test_a_class_of_arguments_may_go(tmp_path: Path) -> None:
    write(tmp_path, name="Pair")
    assert run(tmp_path) == (3.0, 0)
    write(tmp_path, name="Two")
    assert run(tmp_path) == (3.0, 0)


def test_a_folder_that_cannot_be_written_to_is_no_obstacle(tmp_path: Path) -> None:
    write(tmp_path)
    for folder in ("helpers", "callers"):
        (tmp_path / folder / "__pycache__").touch()  # a file where Numba and Python want a folder
    assert run(tmp_path) == (3.0, 0)
    assert run(tmp_path) == (3.0, 1)
