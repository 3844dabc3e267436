"""Who sees a training: a terminal, a notebook, a log if asked, and nobody else."""

from __future__ import annotations

import io
import sys
import threading
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent
from ukge.progress.bars import NotebookBars, TrainingProgress, watched_training


class Page:
    """What a notebook was told to show, one content after another."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.outputs = 0

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Page:
        assert raw
        assert display_id
        self.outputs += 1
        self.shown.append(content)
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        self.shown.append(content)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    drawn = Page()
    module = ModuleType("IPython.display")
    module.display = drawn.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("ukge.progress.bars.PAUSE", 0.0)
    return drawn


def event(epoch: int) -> EpochEvent:
    return EpochEvent(epoch, 10, {"facts": 0.5}, 0.5, 4000, 2.0, "<mse>", 0.25, 0.25, epoch)


def test_a_notebook_gets_one_output_that_changes_and_goes(page: Page) -> None:
    """Rich shows nothing there without widgets that may not be installed."""
    console = Console(file=io.StringIO(), force_jupyter=True)
    with TrainingProgress(console) as shown:
        shown.on_epoch(event(1))
        shown.on_epoch(event(2))
    assert page.outputs == 1
    first, second, last = page.shown
    assert 'value="0.1000"' in first["text/html"]
    assert "20% epoch 2/10" in second["text/html"]
    assert "best &lt;mse&gt; 0.25" in second["text/html"]
    assert second["text/plain"].startswith(" 20%  epoch 2/10")
    assert last == {"text/html": "", "text/plain": ""}
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""  # no lines beside it


def test_pictures_of_a_moment_ago_are_not_drawn_again(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.progress.bars.PAUSE", 3600.0)
    bars = NotebookBars()
    for done in (0.1, 0.2, 0.3):
        bars.draw([(done, "work")])
    assert len(page.shown) == 1
    bars.clear()
    assert len(page.shown) == 2


def test_nothing_is_shown_where_nobody_looks(
    frame: pd.DataFrame, quick: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    UKGE(**quick).fit(frame)
    UKGE(**quick).fit(frame, progress=False)
    told = capsys.readouterr()
    assert told.out + told.err == ""


def test_asked_for_a_log_gets_lines(
    frame: pd.DataFrame, quick: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[int] = []
    UKGE(**quick).fit(frame, progress=True, callbacks=[lambda each: heard.append(each.epoch)])
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("ukge-rect on graph: 930 facts\n")
    assert told.err.count("epoch 4/4") == 1
    assert heard == [1, 2, 3, 4]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_looked_at_but_not_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    watchers: list[int] = []

    def watch() -> None:
        with watched_training(None, "title", [], None) as (callbacks, _):
            watchers.append(len(callbacks))

    watch()
    worker = threading.Thread(target=watch)
    worker.start()
    worker.join()
    monkeypatch.setattr("ukge.progress.bars.current_process", lambda: type("Worker", (), {"name": "LokyProcess-1"}))
    watch()
    monkeypatch.undo()
    assert watchers == [1, 0, 0]


def test_facts_are_counted_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    counted: list[int] = []
    with watched_training(True, "", [], counted.append) as (_, count):
        assert count is not None
        count(7)
    with watched_training(False, "", [], counted.append) as (_, count):
        assert count is not None
        count(8)
    assert counted == [7, 8]
