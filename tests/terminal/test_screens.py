"""Every command that shows progress, on a real (pseudo-)terminal: wide, narrow, without colours, and dumb."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.terminal.screens import Shown, typed

BAR = "━━━"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9]*;)*(?:3[0-7]|38|4[0-7]|9[0-7])(?:;[0-9]*)*m")
TINY = ["--dim", "16", "--epochs", "8", "--every", "2", "--lr", "0.05", "--l2", "0.001", "--batch-size", "256"]
TREES = ["--trees", "3"]


COMMANDS = [
    ["data", "generate", "--out", "world.tsv", "--entities", "200", "--facts", "1500"],
    ["data", "split", "world.tsv", "--val", "0.15", "--negatives", "range", "--out", "world"],
    ["train", "world", *TINY, "--out", "run"],
    ["train", "--resume", "run"],
    ["tune", "world", *TINY[2:], "--trials", "2", "--space", "near", "--out", "study"],
    ["evidence", "fit", "run", *TREES],
    ["evaluate", "run", "--replicates", "10"],
    ["complete", "run", "-k", "3", "--min-confidence", "0"],
    ["doubt", "run", "-k", "3"],
    ["predict", "run", "world.tsv", "--out", "judged.tsv"],
    ["rules", "mine", "world", "--out", "rules.psl"],
    ["rules", "ground", "world", "rules.psl", "--out", "ground.parquet"],
]
LONG = ("train world", "tune", "evidence fit", "evaluate", "complete", "doubt", "rules mine", "rules ground")


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
        if each.command.startswith(LONG):
            _tells_its_share(each, dumb=kind == "dumb")
    written = "".join(each.written for each in shown)
    assert bool(COLOUR.search(written)) == (not environment)
    assert ("\x1b" in written) == (kind != "dumb")


def _tells_its_share(each: Shown, *, dumb: bool) -> None:
    text = ESCAPE.sub("", each.written)
    assert re.search(r"\d ?%", text), f"{each.command}: no share of the work was told\n{text}"
    assert (BAR in text) != dumb, f"{each.command}\n{text}"
    # A bar that is wider than the terminal wraps; then its first lines are not wiped and stay.
    assert not any(BAR in line for line in each.screen), "\n".join(each.screen)
