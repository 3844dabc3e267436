"""The examples of a Markdown page: console and Python blocks, in order, and what is said of running them.

A console block has commands behind `$ `; the other lines are what a command shows. A line `<!-- not run: why -->` above
a block says that it cannot run here, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
FENCE = re.compile(r"^```(\w*)\s*$")


@dataclass
class Command:
    """A command as it was typed, with the lines that the page shows of its answer."""

    text: str
    answer: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """One example: of a page, at a line, in a language."""

    page: Path
    line: int
    language: str
    lines: list[str]
    not_run: str | None

    @property
    def where(self) -> str:
        """Where it stands, for messages."""
        return f"{self.page.name}:{self.line}"

    def commands(self) -> list[Command]:
        """Return the commands of a console block, without comments behind them."""
        found: list[Command] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append(Command(re.split(r"\s{2,}#", line[2:])[0].strip()))
            elif found and found[-1].text.endswith("\\"):
                found[-1].text = found[-1].text[:-1] + line.strip()
            elif found and line.strip():
                found[-1].answer.append(line)
        return found


def blocks(page: Path) -> list[Block]:
    """Return the console and Python blocks of a page, in order."""
    found: list[Block] = []
    inside: Block | None = None
    above = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if inside is None and fence:
            why = NOT_RUN.search(above)
            inside = Block(page, number, fence[1], [], why[1] if why else None)
        elif inside is not None and line.startswith("```"):
            if inside.language in ("console", "python"):
                found.append(inside)
            inside = None
        elif inside is not None:
            inside.lines.append(line)
        if line.strip() and inside is None:
            above = line
    return found
