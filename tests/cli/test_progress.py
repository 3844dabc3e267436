"""What a training shows while it runs."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from ukge.cli.progress import TrainingProgress


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> TrainingProgress:
    """The bar of a training, on a terminal that is not there; its clock goes on by 10 s at a time."""
    clock = iter([100.0, 110.0, 120.0])
    monkeypatch.setattr("ukge.cli.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    return TrainingProgress(Console(file=io.StringIO(), force_terminal=True), "ppi5k", quiet=False)


def test_a_long_epoch_shows_how_far_it_is(shown: TrainingProgress) -> None:
    shown.on_facts(2_000_000)
    assert shown.bar.tasks[0].fields["news"] == "2,000k facts of this epoch  200k facts/s"
    shown.on_facts(1_000_000)
    assert shown.bar.tasks[0].fields["news"] == "3,000k facts of this epoch  150k facts/s"


def test_a_short_epoch_shows_what_it_ended_with(shown: TrainingProgress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.cli.progress.time", SimpleNamespace(monotonic=lambda: 101.0))
    shown.on_facts(5000)
    assert shown.bar.tasks[0].fields["news"] == "starting"
