"""Kernels are compiled anew when a file that they are made of has changed, and only then."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ukge
from ukge.compiled import _read

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


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "flipped": lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
    "other": lambda content: content[::-1],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_not_a_byte_of_a_damaged_file_is_taken(damage: str, tmp_path: Path) -> None:
    kept, file = pickle.dumps(list(range(100))), tmp_path / "kernel.nbi"
    file.write_bytes(hashlib.sha256(kept).digest() + kept)
    assert _read(file) == list(range(100))
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert _read(file) is None


def test_a_damaged_cache_is_rebuilt(tmp_path: Path) -> None:
    write(tmp_path)
    assert run(tmp_path) == (3.0, 0)
    for ending in ("nbi", "nbc"):
        for file in tmp_path.rglob(f"*.{ending}"):
            file.write_bytes(DAMAGES["flipped"](file.read_bytes()))
        assert run(tmp_path) == (3.0, 0), ending
    assert run(tmp_path) == (3.0, 1)


def test_machine_code_for_other_arguments_is_not_taken(tmp_path: Path) -> None:
    """Two processes that save at once may write to one file, of which the index then says something else."""
    write(tmp_path)
    more = CALLER.format(name="Pair").replace("print", "total(Pair(1, 2))\nprint")
    (tmp_path / "callers" / "total.py").write_text(more, encoding="utf-8")
    assert run(tmp_path) == (3.0, 0)
    one, other = sorted(tmp_path.rglob("total.total*.nbc"))
    other.write_bytes(one.read_bytes())
    assert run(tmp_path) == (3.0, 1)
    assert run(tmp_path) == (3.0, 2)


def test_without_a_place_for_a_cache_everything_is_compiled_anew(tmp_path: Path) -> None:
    write(tmp_path)
    for folder in ("helpers", "callers"):
        (tmp_path / folder / "__pycache__").touch()
    (tmp_path / "cache").touch()  # a file where the user's caches should be
    assert run(tmp_path) == (3.0, 0)
    assert run(tmp_path) == (3.0, 0)


READ_ONLY = """
mount --bind "$SOURCES" "$SOURCES" && mount -o remount,ro,bind "$SOURCES" || exit 77
mount -t tmpfs -o ro tmpfs "$HOME" || exit 77
"$PYTHON" -c "$COMMANDS"
"""
COMMANDS = """
from ukge.cli import run

for line in (
    "audit facts.tsv --html audit.html",
    "train facts.tsv --out run --epochs 1 --dim 4 --engine torch --undirected none --quiet",
    "predict run facts.tsv --out judged.tsv",
    "evaluate run --report report.html",
):
    assert run(line.split()) == 0, line
"""
"""In one process, which has to compile all it needs."""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts of one process alone are Linux's")
def test_commands_run_with_a_home_and_sources_that_are_read_only(tmp_path: Path) -> None:
    lines = [f"e{i * i % 23}\tr{i % 3}\te{(i * 7 + i // 23) % 23}\t0.{i % 9 + 1}\n" for i in range(240)]
    (tmp_path / "facts.tsv").write_text("".join(lines), encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    sources = str(Path(ukge.__file__).parents[1])
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {**kept, "HOME": str(home), "PYTHONPATH": sources, "SOURCES": sources, "PYTHON": sys.executable}
    environment |= {"COMMANDS": COMMANDS, "NUMBA_OPT": "0"}  # that it is compiled counts here, not how fast it gets
    try:
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", READ_ONLY],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"nothing can be mounted read-only here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / name).exists() for name in ("audit.html", "run/weights.safetensors", "report.html"))
    assert not any(home.iterdir())
