"""Commands that show progress, on a real (pseudo-)terminal: wide, narrow, without colours, and dumb.

Those that work on a run are in `test_hostile_names.py`, which asks them anyway.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.terminal.screens import LONG, tells_its_share, typed

COLOUR = re.compile(r"\x1b\[(?:[0-9]*;)*(?:3[0-7]|38|4[0-7]|9[0-7])(?:;[0-9]*)*m")
TINY = ["--dim", "16", "--epochs", "8", "--every", "2", "--lr", "0.05", "--l2", "0.001", "--batch-size", "256"]


COMMANDS = [
    ["data", "generate", "--out", "world.tsv", "--entities", "200", "--facts", "1500"],
    ["data", "split", "world.tsv", "--val", "0.15", "--negatives", "range", "--out", "world"],
    ["train", "world", *TINY, "--out", "run"],
    ["train", "--resume", "run"],
    ["predict", "run", "world.tsv", "--out", "judged.tsv"],
    ["rules", "mine", "world", "--out", "rules.psl"],
    ["rules", "ground", "world", "rules.psl", "--out", "ground.parquet"],
]
SOME = 3
"""Commands that are enough to see that a wide terminal, or one without colours, or without anything, is respected."""

KINDS = {
    "80 columns": (80, {}),
    "200 columns": (200, {}),
    "no colour": (80, {"NO_COLOR": "1"}),
    "dumb": (80, {"TERM": "dumb"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_shows_itself_well(kind: str, tmp_path: Path) -> None:
    columns, environment = KINDS[kind]
    shown = typed(COMMANDS if kind == "80 columns" else COMMANDS[:SOME], tmp_path, columns, environment)
    for each in shown:
        assert each.code == 0, f"{each.command}\n" + "\n".join(each.screen)
        assert "Traceback" not in each.written, each.written
        if each.command.startswith(LONG) and "--resume" not in each.command:
            tells_its_share(each, dumb=kind == "dumb")
    written = "".join(each.written for each in shown)
    assert bool(COLOUR.search(written)) == (not environment)
    assert ("\x1b" in written) == (kind != "dumb")
