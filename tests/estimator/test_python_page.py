"""The page for Python users, block by block as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.readme.blocks import blocks

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_blocks_of_the_page_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        exec(compile("\n" * block.line + "\n".join(block.lines), str(PAGE), "exec"), names)
    model, facts = names["model"], names["facts"]
    assert len(facts) == 1000
    assert model.score(facts[800:]) > 0.99  # as the page says
    assert list(names["judged"].columns) == ["head", "relation", "tail", "given", "confidence"]
    assert names["judged"].index.equals(facts.index[800:])
