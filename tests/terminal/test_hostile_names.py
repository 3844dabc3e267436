"""Names that others gave cannot command the terminal on which they are shown, whichever command shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.terminal.screens import LONG, Shown, tells_its_share, typed

CLIPBOARD, CLEAR, CSI, TURN = "\x1b]52;c;ZXZpbA==\x07", "\x1b[2J\x1b[H", "\x9b31m", "\u202e"
ATTACKS = (CLIPBOARD, CLEAR, "\x1b[1A", "\x1b]0;", CSI, TURN, "\x07", "\x08", "\x7f", "\x0e", "\x00", "\u2066")
"""What no name may bring to a terminal; Rich itself moves the cursor up only after it began a bar."""

BROKEN = "e\n¦\tx\u2028y\r\x08"
EVIL = [f"{CLIPBOARD}a", f"b{CLEAR}", f"c{CSI}", f"{TURN}d", BROKEN, "f\x7f\x0e", "[red]g[/red]", "\x1b]0;h"]
RELATIONS = [f"[bold]likes[/bold]{CLIPBOARD}", f"knows{CLEAR}{TURN}", f"near{CSI}"]
FILE = f"facts[red]{CLEAR}{TURN}.jsonl"
MARKUP = "[red]"


def facts(path: Path, count: int = 900) -> None:
    """Write a graph whose every name is hostile."""
    rows = []
    for i in range(count):
        head, tail = f"{EVIL[i % 8]}{i * i % 23}", f"{EVIL[i * 7 % 8]}{(i * 7 + i // 23) % 29}"
        rows.append({"head": head, "relation": RELATIONS[i % 3], "tail": tail, "confidence": (i % 9 + 1) / 10})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[Shown]:
    directory = tmp_path_factory.mktemp("hostile")
    facts(directory / FILE)
    head, tail, relation = f"{EVIL[0]}0", f"{EVIL[7]}7", RELATIONS[1]
    named = ["--head", head]
    asked = f"as[red]ked{CLEAR}.jsonl"
    row = {"head": head, "relation": relation, "tail": f"{BROKEN}16", "confidence": 0.5}
    (directory / asked).write_text(json.dumps(row) + "\n", encoding="utf-8")
    (directory / f"bad{CLEAR}.tsv").write_text(f"a{CLEAR}\tr\tb\t1.5\n", encoding="utf-8")
    tiny = ["--dim", "8", "--epochs", "2", "--every", "1", "--batch-size", "64"]
    easy = ["--strong", "0.1"]
    run = f"run[red]{CLEAR}"
    return typed(
        [
            ["data", "info", FILE],
            ["data", "split", FILE, "--out", f"cut{CLEAR}", "--val", "0.15", "--undirected", "auto"],
            ["data", "convert", FILE, f"out{CSI}.csv"],
            ["data", "convert", FILE, "broken.tsv"],
            ["audit", FILE],
            ["train", FILE, *tiny, "--out", run, "--val-is-no-flag" + CLEAR],
            ["train", FILE, *tiny, "--out", run],
            ["tune", FILE, *tiny[2:], "--trials", "1", "--space", "near", "--out", f"study{CSI}"],
            ["evidence", "fit", run, "--trees", "2"],
            ["rank", run, relation, *named, "-k", "5"],
            ["rank", run, relation, *named, "-k", "5", "--json"],
            ["rank", run, relation, "--head", f"no{CLEAR}one"],
            ["rank", run, relation, *named, "-k", f"no{CLEAR}number"],
            ["explain", run, head, relation, tail],
            ["explain", run, head, relation, tail, "--json"],
            ["complete", run, "-k", "5", "--min-confidence", "0"],
            ["doubt", run, "-k", "5"],
            ["predict", run, asked],
            ["fuse", run, asked],
            ["evaluate", run, "--replicates", "2"],
            ["compare", run],
            [
                "rules",
                "mine",
                FILE,
                *easy,
                "--min-support",
                "1",
                "--min-hit-ratio",
                "0",
                "--top",
                "3",
                "--out",
                "r.psl",
            ],
            ["rules", "show", FILE, "r.psl", *easy],
            ["rules", "score", FILE, "r.psl", *easy],
            ["data", "info", f"bad{CLEAR}.tsv"],
            ["data", "info", f"nowhere{CLEAR}{MARKUP}"],
            ["serve", f"nowhere{CLEAR}"],
            ["reproduce", f"nowhere{CLEAR}"],
            [f"no{CLEAR}command"],
        ],
        directory,
        80,
        {},
    )


def test_no_name_commands_the_terminal(shown: list[Shown]) -> None:
    for each in shown:
        text = re.sub(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)", "", each.written)  # Rich's colours and bars
        found = [attack for attack in ATTACKS if attack in text]
        assert not found, f"{each.command!r} wrote {found!r}: {text!r}"
        assert "\x1b" not in text, f"{each.command!r}: {text!r}"
        assert "Traceback" not in each.written, each.written


def test_long_work_tells_its_share_and_leaves_no_bar(shown: list[Shown]) -> None:
    found = [each for each in shown if each.command.startswith(LONG) and each.code in (0, 3)]
    assert len(found) == 7
    for each in found:
        tells_its_share(each)


def test_what_is_shown_is_what_the_name_says(shown: list[Shown]) -> None:
    for command in ("data info facts", "audit", "rank", "explain", "doubt", "rules show"):
        written = next(each.written for each in shown if each.command.startswith(command))
        assert "␛" in written, f"{command}: {written}"
    names = "".join(each.written for each in shown)
    assert "[red]g[/red]" in names
    assert "[bold]likes[/bold]" in names
    assert "\\u202e" in next(each.written for each in shown if "--json" in each.command), "JSON stays JSON"


def test_a_line_end_in_a_name_breaks_no_line(shown: list[Shown]) -> None:
    """Whoever shows the name has all of it on one line, unless the terminal is too narrow: signs, no line ends."""
    seen = set()
    for each in shown:
        assert not any(line.lstrip().startswith("¦") for line in each.screen), f"{each.command}: {each.screen}"
        seen |= {each.command.split()[0] for line in each.screen if "e␊¦␉x�y␍␈" in line}
    assert {"rank", "complete", "predict", "doubt"} <= seen
    refused = next(each for each in shown if each.command.endswith("broken.tsv"))
    assert refused.code == 2
    assert "column entity: name holds a tab or a line end (found 'e\\n¦" in refused.written


def test_every_command_did_what_was_asked(shown: list[Shown]) -> None:
    mistakes = ("data info bad", "data info nowhere", "serve", "reproduce", "no", "rank run[red]")
    for each in shown:
        if not each.command.startswith(mistakes) and not each.command.endswith(("broken.tsv", f"flag{CLEAR}")):
            assert each.code in (0, 3), f"{each.command!r}: {each.written}"
