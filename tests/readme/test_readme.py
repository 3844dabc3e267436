"""The README from top to bottom, as a newcomer types it: a new environment, base dependencies, a terminal, no data.

Then the console blocks of docs/. It takes minutes, so it runs by `make test-readme` alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.readme.blocks import Block, Command, blocks
from tests.readme.terminal import Terminal

ROOT = Path(__file__).parents[2]
TORCH = "torch==2.13.0"  # by this name it is the build without CUDA; a range would fetch gigabytes
INSTALL = re.compile(r"pip install (['\"]?)(?:\.|ukge)(\[[\w,]+\])?\1(?=\s|$)")

pytestmark = pytest.mark.skipif(not os.environ.get("UKGE_README"), reason="make test-readme runs the README")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
    subprocess.run(build, check=True)
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal in an empty directory, with a new environment in which nothing but torch is installed."""
    place = tmp_path_factory.mktemp("person")
    environment, directory, home = place / "environment", place / "work", place / "home"
    directory.mkdir()
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    subprocess.run([str(environment / "bin" / "pip"), "install", "--quiet", TORCH], check=True)
    shell = Terminal(environment / "bin", directory, home)
    yield shell
    shell.stop()


def test_the_readme_then_the_docs(wheel: Path, terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    """In one test, because every block stands on those before it."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    skipped = []
    try:
        for page in pages:
            for block in blocks(page):
                if block.not_run:
                    skipped.append(f"{block.where}: {block.not_run}")
                elif block.language == "console":
                    for command in block.commands():
                        _type(terminal, command, block, wheel)
                elif page.name == "README.md":
                    script = terminal.directory / f"{page.stem}_{block.line}.py"
                    script.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
                    terminal.run(f"python {script.name}")
            if page.name == "python.md":
                script = terminal.directory / "python.py"
                script.write_text("\n".join(line for each in blocks(page) for line in each.lines), encoding="utf-8")
                terminal.run(f"python {script.name}")
            terminal.stop()
    finally:
        with capsys.disabled():
            sys.stdout.write("\n".join(["", "The last lines of the terminal:", *terminal.screen[-20:], ""]))
            sys.stdout.write("\n".join(["Not run:", *skipped, ""]))


def _type(terminal: Terminal, command: Command, block: Block, wheel: Path) -> None:
    text = INSTALL.sub(lambda found: f"pip install --quiet '{wheel}{found[2] or ''}'", command.text)
    if text.startswith("ukge serve"):
        seen = terminal.serve(text)
    else:
        refused = bool(command.answer) and command.answer[0].startswith("Error:")
        seen = terminal.run(text, expected=2 if refused else 0)
    flat = " ".join(seen.split())
    for line in command.answer:
        parts = [re.escape(" ".join(part.split())) for part in line.split("…")]
        assert re.search(".*".join(parts), flat), f"{block.where}: {line!r} is not what was shown:\n{seen}"


def test_make_demo_in_a_fresh_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The README's first command, on a machine that has nothing of ours."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "ukge")], check=True)
    (tmp_path / "home").mkdir()
    shell = Terminal(Path(sys.base_prefix) / "bin", tmp_path / "ukge", tmp_path / "home")
    try:
        shell.run("make demo")
    finally:
        with capsys.disabled():
            sys.stdout.write("\n".join(["", "The last lines of make demo:", *shell.screen[-20:], ""]))
    assert (tmp_path / "ukge" / "demo" / "report" / "index.html").is_file()
