"""What long work shows while it runs: on a terminal, and in a log file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ukge.learning.train import EpochEvent
from ukge.progress.bars import Clock, TrainingProgress, WorkProgress, duration


class Hands:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    set_by_test = Hands()
    monkeypatch.setattr("ukge.progress.bars.time", set_by_test)
    return set_by_test


def event(epoch: int, value: float | None = None) -> EpochEvent:
    return EpochEvent(epoch, 10, {"facts": 0.5}, 0.5, 4000, 2.0, "mse", value, value, epoch if value else 0)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "xterm"})


def log_file() -> Console:
    return Console(file=io.StringIO(), width=80)


def written(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_bar_without_a_total_is_drawn(hands: Hands) -> None:
    """The first picture is drawn before anybody knows how many epochs there are: once it was a traceback."""
    with TrainingProgress(terminal(), "ppi5k", quiet=False) as progress:
        progress.bar.refresh()
        assert progress.bar.tasks[0].fields["news"] == "starting"


def test_a_long_epoch_shows_how_far_it_is(hands: Hands) -> None:
    shown = TrainingProgress(terminal(), "ppi5k", quiet=False)
    hands.now += 10.0
    shown.on_facts(2_000_000)
    assert shown.bar.tasks[0].fields["news"] == "epoch 1  2,000k facts  200k facts/s"
    hands.now += 10.0
    shown.on_facts(1_000_000)
    assert shown.bar.tasks[0].fields["news"] == "epoch 1  3,000k facts  150k facts/s"


def test_a_short_epoch_shows_what_it_ended_with(hands: Hands) -> None:
    shown = TrainingProgress(terminal(), "ppi5k", quiet=False)
    hands.now += 1.0
    shown.on_facts(5000)
    assert shown.bar.tasks[0].fields["news"] == "starting"
    hands.now += 1.0
    shown.on_epoch(event(1))
    assert shown.bar.tasks[0].fields["news"] == "epoch 1/10  18 s left  loss 0.5000  2k facts/s"
    assert shown.bar.tasks[0].percentage == pytest.approx(10.0)


def test_a_log_file_gets_lines_with_share_and_time_left(hands: Hands) -> None:
    console = log_file()
    with TrainingProgress(console, "ppi5k", quiet=False) as progress:
        hands.now += 2.0
        progress.on_epoch(event(1))
        for epoch in (2, 3):
            hands.now += 2.0
            progress.on_epoch(event(epoch, 0.25 if epoch == 3 else None))
    assert written(console) == [
        "ppi5k",
        "epoch 1/10 (10%)  loss 0.5000  2k facts/s  18 s left",
        "epoch 3/10 (30%)  loss 0.5000  mse 0.25000  2k facts/s  14 s left",
    ]


def test_a_training_that_goes_on_counts_only_its_own_time(hands: Hands) -> None:
    shown = TrainingProgress(terminal(), "ppi5k", quiet=False)
    hands.now += 2.0
    shown.on_epoch(event(9))
    assert "2 s left" in shown.bar.tasks[0].fields["news"]


def test_a_dumb_terminal_gets_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    with WorkProgress(console) as progress:
        progress.tell("mining rules", 0.0)
    assert written(console) == ["0%  mining rules"]


def test_steps_of_a_work_are_lines_with_their_share(hands: Hands) -> None:
    console = log_file()
    with WorkProgress(console) as progress:
        progress.tell("mining rules", 0.0)
        hands.now += 5.0
        progress.tell("mining rules", 0.1)  # the same step, soon after: no line of its own
        hands.now += 5.0
        progress.tell("growing trees", 0.2)
        hands.now += 10.0
        progress.tell("growing trees", 0.4)
    assert written(console) == [
        "0%  mining rules",
        "20%  growing trees  40 s left",
        "40%  growing trees  30 s left",
    ]


def test_quiet_is_quiet(hands: Hands) -> None:
    console = log_file()
    with TrainingProgress(console, "ppi5k", quiet=True) as progress:
        progress.on_epoch(event(1, 0.5))
    assert written(console) == []


def test_nobody_knows_the_time_left_at_the_start(hands: Hands) -> None:
    clock = Clock()
    assert clock.left(0.0) == ""
    assert clock.left(1.0) == ""


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (187, "3:07 min"), (3900, "1:05 h")])
def test_a_duration_is_said_as_people_say_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said
