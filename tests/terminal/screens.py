"""Commands typed on a pseudo-terminal, and what they show."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pyte
from tests.terminal.typing_commands import DONE

HERE = Path(__file__).parent
BAR = "━━━"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONG = ("train", "tune", "evidence fit", "evaluate", "complete", "doubt", "rules mine", "rules ground")
"""Commands that show how far they are."""


@dataclass(frozen=True)
class Shown:
    """What a command wrote to the terminal, and what a person sees on it when the command has ended."""

    command: str
    code: int
    written: str
    screen: list[str]


def typed(commands: list[list[str]], directory: Path, columns: int, environment: dict[str, str]) -> list[Shown]:
    """Run commands on a pseudo-terminal of so many columns and return what each showed."""
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    child = pexpect.spawn(
        sys.executable,
        [str(HERE / "typing_commands.py"), json.dumps(commands)],
        cwd=str(directory),
        env={**plain, "TERM": "xterm-256color", **environment},
        dimensions=(200, columns),
        encoding="utf-8",
        timeout=400,
    )
    found = []
    for command in commands:
        child.expect([rf"{DONE} (\d+)\r\n", pexpect.EOF])
        written = str(child.before)
        assert isinstance(child.match, re.Match), written
        screen = pyte.Screen(columns, 2000)
        pyte.Stream(screen).feed(written)
        lines = [line.rstrip() for line in screen.display]
        found.append(Shown(" ".join(command), int(child.match[1]), written, [line for line in lines if line]))
    child.expect(pexpect.EOF)
    child.wait()  # to be killed at once, as closing would, is too soon for a process on a busy machine
    return found


def tells_its_share(each: Shown, *, dumb: bool = False) -> None:
    """Check that a command told how far it was, and left nothing of that on the screen."""
    text = ESCAPE.sub("", each.written)
    assert re.search(r"\d ?%", text), f"{each.command}: no share of the work was told\n{text}"
    assert (BAR in text) != dumb, f"{each.command}\n{text}"
    # A bar that is wider than the terminal wraps; then its first lines are not wiped and stay.
    assert not any(BAR in line for line in each.screen), "\n".join(each.screen)
