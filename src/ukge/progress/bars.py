"""How long work shows itself: bars on a terminal and in a notebook, lines in a log file, nothing if quiet is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import current_process
from threading import current_thread, main_thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from ukge.html import render
from ukge.progress.safe_console import SafeConsole

if TYPE_CHECKING:
    from ukge.learning.train import Callback, EpochEvent

LONG_EPOCH = 3.0
"""Seconds after which an epoch shows how far it is."""

LINE_SECONDS = 10.0
"""Seconds between two lines of one step in a log file, at least."""

PAUSE = 0.1
"""Seconds between two pictures at least: each is a message to the browser."""

Bar = tuple[float | None, str]
"""How much of the work is done, None while nobody knows, and what there is to tell."""

TOLD = "compiling for this machine; later runs take it from the cache …"
TOLD_EACH_TIME = "compiling for this machine; each run does, because no cache can be written here …"


class Clock:
    """Tells how long work will take, from how long its share so far took."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.first = 0.0

    def start(self, share: float = 0.0) -> None:
        """Begin to count: work that is resumed has a share done already."""
        self.began, self.first = time.monotonic(), share

    def left(self, share: float) -> str:
        """Return the time left in words; nothing as long as nobody can know."""
        done = share - self.first
        if done <= 0.0 or share >= 1.0:
            return ""
        return f"{duration((time.monotonic() - self.began) * (1.0 - share) / done)} left"


@contextmanager
def when_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell it once if anything has to be compiled inside the block: a first run that only seems to hang is a bad one.

    Code that comes from the cache is silent.
    """
    from numba.core import event  # noqa: PLC0415 — it takes time to load

    from ukge.compiled import all_kept  # noqa: PLC0415

    class Once(event.Listener):  # type: ignore[misc, unused-ignore]
        told = False

        def on_start(self, event: object) -> None:  # noqa: ARG002
            if not self.told:
                self.told = True
                tell(TOLD if all_kept() else TOLD_EACH_TIME)

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Once()):
        yield


class NotebookBars:
    """One output of a cell that shows bars while work is done, and nothing afterwards.

    A plain display, drawn again in place, without widgets that may not be installed.
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = -PAUSE

    def draw(self, bars: Sequence[Bar]) -> None:
        """Show the bars, unless they were shown a moment ago."""
        if time.monotonic() - self._drawn >= PAUSE:
            self._drawn = time.monotonic()
            text = "\n".join(news if share is None else f"{share:>4.0%}  {news}" for share, news in bars)
            self._show({"text/html": render("bars.html", bars=bars), "text/plain": text})

    def clear(self) -> None:
        """Take the bars away."""
        if self._handle is not None:
            self._show({"text/html": "", "text/plain": ""})

    def _show(self, content: dict[str, str]) -> None:
        from IPython.display import display  # type: ignore[import-not-found]  # noqa: PLC0415 — there in a notebook

        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class LiveBars:
    """Bars on a terminal that can redraw a line or in a notebook, lines elsewhere, and a word when code is compiled."""

    def __init__(self, console: Console, title: str = "", *, quiet: bool = False) -> None:
        self.console = console
        self.title = title
        self.quiet = quiet
        self.live = console.is_terminal and not console.is_dumb_terminal and not quiet
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self.bar = Progress(
            BarColumn(bar_width=12),
            TextColumn("{task.percentage:>3.0f} %", table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[news]}", markup=False, table_column=rest),
            console=console,
            transient=True,
            expand=True,
            disable=not self.live,
        )
        self.page = NotebookBars() if console.is_jupyter and not quiet else None
        self.clock = Clock()
        self._last_line = -LINE_SECONDS

    def __enter__(self) -> Self:
        self._compiling = when_compiling(self._tell_compiling)
        self._compiling.__enter__()
        if self.title and not self.quiet:
            self.console.print(Text(self.title), soft_wrap=True)
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
        if self.page is not None:
            self.page.clear()
        self._compiling.__exit__(kind, error, trace)

    def show(self, task: TaskID, share: float | None, *news: str) -> None:
        """Set a bar, or leave it where it is, and what stands beside it."""
        if share is None:
            self.bar.update(task, news=joined(*news))
        else:
            self.bar.update(task, total=1.0, completed=share, news=joined(*news))
        if self.page is not None:
            shares = [(each.completed if each.total else None, each.fields["news"]) for each in self.bar.tasks]
            self.page.draw([bar for bar, each in zip(shares, self.bar.tasks, strict=True) if each.visible])

    def line(self, *news: str, hurry: bool = True) -> None:
        """Write a line where there are no bars; one that is not in a hurry only if the last was long ago."""
        now = time.monotonic()
        if self.live or self.page is not None or self.quiet or not (hurry or now - self._last_line >= LINE_SECONDS):
            return
        self._last_line = now
        self.console.print(Text(joined(*news)), soft_wrap=True)

    def _tell_compiling(self, told: str) -> None:
        if not self.quiet:
            self.console.print(told, style="dim")


class TrainingProgress(LiveBars):
    """A bar over the epochs with time left, loss, validation metric and facts per second."""

    def __init__(self, console: Console, title: str = "", *, quiet: bool = False) -> None:
        super().__init__(console, title, quiet=quiet)
        self.task = self.bar.add_task("", total=None, news="starting")
        self.event: EpochEvent | None = None
        self.done = 0
        self.since = time.monotonic()

    def on_facts(self, facts: int) -> None:
        """Count facts within an epoch, and show them where an epoch is long."""
        self.done += facts
        seconds = time.monotonic() - self.since
        if seconds <= LONG_EPOCH:
            return
        epoch = 1 if self.event is None else self.event.epoch + 1
        news = (f"epoch {epoch}", f"{_thousands(self.done)} facts", f"{_thousands(self.done / seconds)} facts/s")
        self.show(self.task, None, *news)
        self.line(*news, hurry=False)

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch; where there is no terminal, those that were validated, and one now and then."""
        if self.event is None:
            self.clock.start((event.epoch - 1) / event.epochs)
            self.clock.began -= event.seconds
        self.event, self.done, self.since = event, 0, time.monotonic()
        share = event.epoch / event.epochs
        epoch, left = f"epoch {event.epoch}/{event.epochs}", self.clock.left(share)
        loss, speed = f"loss {event.loss:.4f}", f"{_thousands(event.facts / max(event.seconds, 1e-9))} facts/s"
        best = "" if event.best is None else f"best {event.metric} {event.best:.4f}"
        student = f"student of {event.pseudo:,} pseudo facts" if event.pseudo else ""
        self.show(self.task, share, epoch, student and "student", left, loss, best, speed)
        value = "" if event.value is None else f"{event.metric} {event.value:.5f}"
        self.line(f"{epoch} ({share:.0%})", loss, value, speed, left, student, hurry=event.value is not None)


@contextmanager
def watched_training(
    asked: bool | None, title: str, callbacks: Iterable[Callback], on_facts: Callable[[int], None] | None
) -> Iterator[tuple[list[Callback], Callable[[int], None] | None]]:
    """Show a training, if asked or, where it is left open, if somebody looks; yield who hears of epochs and of facts.

    Asked for, it has a title, and where there is no terminal it writes lines.
    """
    console = SafeConsole(stderr=True)
    if not (_somebody_looks(console) if asked is None else asked):
        yield list(callbacks), on_facts
        return
    with TrainingProgress(console, title if asked else "", quiet=False) as shown:

        def count(facts: int) -> None:
            shown.on_facts(facts)
            if on_facts is not None:
                on_facts(facts)

        yield [*callbacks, shown.on_epoch], count


def _somebody_looks(console: Console) -> bool:
    """Return whether a bar would be seen, and alone: workers of a search would draw theirs over each other."""
    alone = current_process().name == "MainProcess" and current_thread() is main_thread()
    return alone and (console.is_jupyter or (console.file.isatty() and not console.is_dumb_terminal))


class WorkProgress(LiveBars):
    """One bar over work in steps: which step it is at, how much of all is done, and how long the rest will take."""

    def __init__(self, console: Console, title: str = "", *, quiet: bool = False) -> None:
        super().__init__(console, title, quiet=quiet)
        self.task = self.bar.add_task("", total=None, news="starting")
        self.step = ""

    def tell(self, step: str, share: float | None = None) -> None:
        """Show a step, and the share of all work that is done when it is known."""
        left = "" if share is None else self.clock.left(share)
        self.show(self.task, share, step, left)
        self.line("" if share is None else f"{share:.0%}", step, left, hurry=step != self.step)
        self.step = step


@contextmanager
def watched_work(asked: bool | None, title: str) -> Iterator[Callable[[str, float], None] | None]:
    """Show work in steps, if asked or, where it is left open, if somebody looks; yield who hears of its steps."""
    console = SafeConsole(stderr=True)
    if not (_somebody_looks(console) if asked is None else asked):
        yield None
        return
    with WorkProgress(console, title if asked else "", quiet=False) as shown:
        yield shown.tell


def joined(*news: str) -> str:
    """Join what there is to tell."""
    return "  ".join(each for each in news if each)


def duration(seconds: float) -> str:
    """Return a time as people say it: 42 s, 3:07 min, 1:05 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02} h"


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f}k" if value >= 1000 else f"{value:.0f}"
