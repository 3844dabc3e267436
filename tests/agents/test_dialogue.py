"""docs/agents.md shows what a client is told; whoever changes the words writes the page anew (see its comment)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.agents.dialogue import DIALOGUE, PAGE, talk

NUMBER = re.compile(r"-?\+?\d+\.\d+")


def test_the_page_shows_what_is_said(asked: Path) -> None:
    found = DIALOGUE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    shown, said = _by_words(found[2]), _by_words(asyncio.run(talk(asked)))
    assert [words for words, _ in said] == [words for words, _ in shown]
    # Another processor may round otherwise, and trees turn that into a little more.
    for (words, own), (_, others) in zip(said, shown, strict=True):
        assert own == pytest.approx(others, abs=0.05), words


def _by_words(text: str) -> list[tuple[str, list[float]]]:
    """Return every line without its numbers, and these; reasons that weigh the same may come in any order."""
    return sorted((NUMBER.sub("#", line), [float(each) for each in NUMBER.findall(line)]) for line in text.splitlines())
