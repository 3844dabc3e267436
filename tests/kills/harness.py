"""A kill, or a full disk, at every file operation of every command that works for long.

Commands run in forks of one process that has imported everything, with `interpose.c` between them and the disk. A point
is one operation: the process ends there (a write is half done), or the disk is full from there on. Then the command is
given again as a user would, and what it leaves must be what an undisturbed run leaves, and nothing beside it.

    python tests/kills/harness.py                     every point of every command, as `make kills` does
    python tests/kills/harness.py train --every 10    some points of one
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
KILLED, FULL, SMALL = "kill", "full disk", "small disk"
MISTAKE = 2
SIZES = range(0, 400, 20)
"""Kilobytes of disks that commands are tried on; on the larger ones they fit."""
LARGE = "64m"

QUICK = ["--dim", "4", "--epochs", "3", "--every", "1", "--engine", "torch", "--threads", "1", "--rules", "none"]
TRAIN = ["train", "{given}/data", "--out", "{here}/run", *QUICK, "--checkpoint-seconds", "0", "--quiet"]
EVIDENCE = ["evidence", "fit", "{here}/run", "--trees", "3"]
TUNED = ["--dim", "4", "--epochs", "2", "--every", "1", "--engine", "torch", "--threads", "1", "--rules", "none"]
TUNE = ["tune", "{given}/data", "--out", "{here}/study", *TUNED, "--batch-size", "64", "--trials", "2", "--quiet"]
PREPARE = ["data", "prepare", "{given}/parquet", "{here}/prepared", "--val", "0.1", "--test", "0.1"]
ADD = ["add", "{here}/run", "{given}/new.tsv"]
UNDO = ["undo", "{here}/run", "--all"]
REFRESH = ["refresh", "{here}/run", "--quiet"]
FUSE = ["fuse", "{given}/judged", "{given}/candidates.tsv", "--out", "{here}/fused.tsv"]


@dataclass(frozen=True)
class Command:
    """A command, what must be there before it, how it is given again, and what two runs of it must have in common."""

    words: Sequence[str]
    result: Callable[[Path], object]
    given: Mapping[str, str] = field(default_factory=dict)
    """what is copied to the directory of a point: its name there, and the name of what is given"""
    resume: Sequence[str] = ()
    """how a run is gone on with, if there is one"""
    still: Sequence[str] = ()
    """a question that must be answered after the kill, before the command is given again"""
    over: str = ""
    """what a command says that is given again although it had done its work"""


def begun(here: Path) -> bool:
    """Return whether a new run has taken its place and is not finished: nothing else is there to be asked."""
    from ukge.runs.directory import Run

    return (here / "run").exists() and Run.open(here / "run").manifest()["status"] == "started"


def digests(folder: Path, *names: str) -> dict[str, str]:
    """Return a digest of each file of a folder that matches one of the patterns."""
    files = sorted({file for name in names for file in folder.glob(name) if file.is_file()})
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def of_run(here: Path) -> object:
    """Return what two trainings have in common: all but times, and the checkpoint, which may hold one more."""
    from ukge.runs.directory import Run

    run = Run.open(here / "run")
    trace = [(line["epoch"], line["loss"], line["value"]) for line in run.trace()]
    told = {name: value for name, value in run.manifest().items() if name not in ("files", "checksum")}
    return digests(run.path, "*.parquet", "data/*", "config.toml", "weights.safetensors"), trace, told


def of_evidence(here: Path) -> object:
    """Return the run, which must be as it was, and its evidence."""
    return of_run(here), digests(here / "run" / "evidence", "*")


def of_added(here: Path) -> object:
    """Return the run, which must be as it was, and what stands added: whole, or not at all."""
    from ukge.asking import Predictor
    from ukge.runs.directory import Run

    run = Run.open(here / "run")
    opened = Predictor.open(run.path)
    said = opened.judge(*opened.known.all()[:3]).confidence.tolist()
    standing = () if run.added is None else tuple((each.facts, each.entities) for each in run.added.additions)
    sums = {} if run.added is None else digests(run.path / "added", "*")
    sums.pop("journal.jsonl", None)  # it has times
    sums.pop("sums.safetensors", None)  # and this its checksum
    return of_evidence(here), list(map(list, opened.names)), sorted(opened.dataset.train), said, standing, sums


def of_refreshed(here: Path) -> object:
    """Return what two refreshes have in common."""
    return of_added(here), (here / "run" / "added").exists()


def of_study(here: Path) -> object:
    """Return what the trials that ended found, and the settings that are told to be the best."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.study import load_study
    from optuna.trial import TrialState

    study = load_study(
        study_name="ukge", storage=JournalStorage(JournalFileBackend(str(here / "study" / "journal.log")))
    )
    ended = [(trial.params, trial.value) for trial in study.trials if trial.state == TrialState.COMPLETE]
    best = min(ended, key=lambda trial: trial[1] or 0.0)
    text = (here / "study" / "best.toml").read_text(encoding="utf-8")
    assert f"lr = {best[0]['lr']}\n" in text, "best.toml holds the best settings"
    return ended, digests(here / "study", "study.json", "best.toml")


def of_prepared(here: Path) -> object:
    """Return the facts of a prepared directory."""
    from ukge.graph.partitioned import open_prepared

    dataset = open_prepared(here / "prepared").dataset()
    return sorted(dataset.entities), {part: sorted(graph) for part, graph in dataset.parts.items()}


GIVEN = {"old": [*TRAIN, "--seed", "7"], "run": TRAIN, "judged": EVIDENCE, "added": ADD, "prepared": PREPARE}
"""What commands are given to work on, and how it is made."""
FROM = {"judged": "run", "added": "judged"}
"""What it is made from."""
RESUME = ["train", "--resume", "{here}/run", "--quiet"]
RANK = ["predict", "{here}/run", "{given}/candidates.tsv", "--out", "{here}/asked.tsv"]
COMMANDS: dict[str, Command] = {
    "train": Command(TRAIN, of_run, resume=RESUME),
    "train --force": Command([*TRAIN, "--force"], of_run, {"run": "old"}, still=RANK),
    "train --memory-map": Command([*TRAIN, "--memory-map"], of_run, resume=RESUME),
    "evidence fit": Command(EVIDENCE, of_evidence, {"run": "run"}, still=RANK),
    "evidence fit, again": Command(EVIDENCE, of_evidence, {"run": "judged"}, still=RANK),
    "tune": Command(TUNE, of_study),
    "data prepare": Command(PREPARE, of_prepared),
    "data prepare --force": Command([*PREPARE, "--force"], of_prepared, {"prepared": "prepared"}),
    "add": Command(ADD, of_added, {"run": "judged"}, still=RANK),
    "undo": Command(UNDO, of_added, {"run": "added"}, still=RANK, over="nothing is added to"),
    "refresh": Command(REFRESH, of_refreshed, {"run": "added"}, still=RANK, over="nothing is added to"),
    "fuse --out": Command(FUSE, lambda here: digests(here, "fused.tsv")),
}


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, negative by a signal; file operations, and all that it said."""

    code: int
    operations: int
    said: str


class Server:
    """A process that has imported everything and runs each command in a fork of it."""

    def __init__(self, library: Path) -> None:
        single = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "LD_PRELOAD": str(library)}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "server.py"), str(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **single},
        )

    def run(self, words: Sequence[str], root: Path, at: int = 0, *, full: bool = False) -> Ended:
        """Run a command; at its `at`-th operation below `root` it is killed, or the disk is full."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([list(words), str(root), at, full]) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class Fault:
    """A point from which a command did not come back."""

    command: str
    kind: str
    at: int
    why: str

    def __str__(self) -> str:
        return f"{self.command}, {self.kind} at operation {self.at}: {self.why}"


class Harness:
    """What is given to the commands, and what each leaves when nobody disturbs it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        library = place / "interpose.so"
        compiler = shutil.which("cc") or "cc"
        subprocess.run(
            [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "interpose.c"), "-ldl"], check=True
        )
        self.server = Server(library)
        self.given = place / "given"
        self.given.mkdir()
        self._expected: dict[str, tuple[object, int]] = {}
        self._give()

    @classmethod
    @contextmanager
    def at(cls, place: Path) -> Iterator[Self]:
        """Make a harness for the time of a block."""
        harness = cls(place)
        try:
            yield harness
        finally:
            harness.server.close()

    def _give(self) -> None:
        from ukge.graph.catalogue import save_dataset
        from ukge.graph.split import split
        from ukge.graph.synthetic import generate
        from ukge.graph.uncertain import UncertainGraph
        from ukge.graph.writers import write

        graph = generate(n_entities=150, n_facts=800, seed=1).graph
        save_dataset(split(graph, seed=0, name="world"), self.given / "data")
        (self.given / "parquet").mkdir()
        write(graph, self.given / "parquet" / "facts.parquet")
        write(graph[:20], self.given / "candidates.tsv")
        first = graph[0]
        new = [("a new one", first.relation, first.tail, 0.9), (first.head, "a new relation", "another", 0.4)]
        write(UncertainGraph.from_facts([*new, (first.head, first.relation, first.tail, 0.11)]), self.given / "new.tsv")

    def _need(self, given: str) -> Path:
        """Return what is given to a command, made by commands when it is first needed."""
        place = self.given / given
        if not place.exists():
            here, words = self.place / "making", GIVEN[given]
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir()
            if given in FROM:
                shutil.copytree(self._need(FROM[given]), here / "run")
            ended = self.server.run(self._words(words, here), here)
            if ended.code != 0:
                raise RuntimeError(f"{words}: {ended.said}")
            next(path for path in here.iterdir()).rename(place)
        return place

    def _fresh(self, name: str, given: Mapping[str, str]) -> Path:
        here = self.place / name
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        for target, source in given.items():
            shutil.copytree(self._need(source), here / target)
        return here

    def _words(self, words: Sequence[str], here: Path) -> list[str]:
        if "{given}/judged" in words:
            self._need("judged")
        return [word.format(here=here, given=self.given) for word in words]

    def expected(self, name: str) -> tuple[object, int]:
        """Return what a command leaves when nobody disturbs it, and how many file operations it takes."""
        if name not in self._expected:
            command, here = COMMANDS[name], self._fresh("undisturbed", COMMANDS[name].given)
            ended = self.run(name, here)
            if ended.code != 0:
                raise RuntimeError(f"{name}: {ended.said}")
            self._expected[name] = command.result(here), ended.operations
        return self._expected[name]

    def run(self, name: str, here: Path) -> Ended:
        """Run a command in a directory, undisturbed."""
        return self.server.run(self._words(COMMANDS[name].words, here), here)

    def fault(self, name: str, at: int, kind: str = KILLED) -> Fault | None:
        """Disturb a command at one operation, or give it on a disk of so many kilobytes; then give it again.

        Returns what is wrong then.
        """
        if kind == SMALL:
            return self._on_a_small_disk(name, at)
        command, (expected, _) = COMMANDS[name], self.expected(name)
        here = self._fresh("point", command.given)
        first = self.server.run(self._words(command.words, here), here, at, full=kind == FULL)
        if kind == KILLED and first.code not in (-signal.SIGKILL, 0):
            return Fault(name, kind, at, f"ended with {first.code}: {first.said[-500:]}")
        if kind == FULL and (first.code not in (0, MISTAKE) or (first.code and "no space is left" not in first.said)):
            return Fault(name, kind, at, f"said of the full disk (exit code {first.code}): {first.said[-800:]}")
        return self.after(name, at, kind, here, expected)

    def _on_a_small_disk(self, name: str, kilobytes: int) -> Fault | None:
        """Give a command on a disk with so much room, make room, give it again, and return what is wrong then."""
        expected, _ = self.expected(name)
        disk = self.place / "disk"
        disk.mkdir(exist_ok=True)
        _mount("-t", "tmpfs", "-o", f"size={LARGE}", "tmpfs", str(disk))
        try:
            here = disk / "here"
            here.mkdir()
            for target, source in COMMANDS[name].given.items():
                shutil.copytree(self._need(source), here / target)
            used = sum(file.lstat().st_blocks // 2 for file in disk.rglob("*"))
            _mount("-o", f"remount,size={max(used + kilobytes, 4)}k", str(disk))  # to the kernel, 0 is no limit
            first = self.run(name, here)
            _mount("-o", f"remount,size={LARGE}", str(disk))
            if first.code not in (0, MISTAKE) or (first.code and "no space is left" not in first.said):
                return Fault(name, SMALL, kilobytes, f"said (exit code {first.code}): {first.said[-800:]}")
            return self.after(name, kilobytes, SMALL, here, expected)
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def after(self, name: str, at: int, kind: str, here: Path, expected: object) -> Fault | None:
        """Give a command again and return what is wrong with what it leaves."""
        command = COMMANDS[name]
        if command.still and not begun(here):
            asked = self.server.run(self._words(command.still, here), here)
            if asked.code != 0:
                return Fault(name, kind, at, f"what was there before cannot be asked any more: {asked.said[-500:]}")
            (here / "asked.tsv").unlink()
        words = command.resume if command.resume and (here / "run").exists() else command.words
        again = self.server.run(self._words(words, here), here)
        done = bool(command.over) and again.code == MISTAKE and command.over in again.said
        if again.code != 0 and not done:
            return Fault(name, kind, at, f"dead end: {again.said[-800:]}")
        found = command.result(here)
        if found != expected:
            return Fault(name, kind, at, "another result")
        left = [str(file.relative_to(here)) for file in here.rglob(".*")]
        return Fault(name, kind, at, f"left over: {', '.join(left)}") if left else None


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


def small_disks_can_be_made() -> bool:
    """Return whether this process may mount a disk of its own."""
    with tempfile.TemporaryDirectory() as place:
        try:
            _mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", place)
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", place], check=True)
        return True


@dataclass(frozen=True)
class Row:
    """What became of the points of one command."""

    command: str
    kind: str
    points: int
    faults: Sequence[Fault]

    def __str__(self) -> str:
        dead = sum("dead end" in fault.why for fault in self.faults)
        return f"{self.command:24}{self.kind:12}{self.points:8}{self.points - len(self.faults):13}{dead:11}"


def main(chosen: Sequence[str], every: int, kinds: Sequence[str]) -> int:
    """Try every point of the chosen commands, or each of so many, print the table, and return the number of faults."""
    rows = []
    if SMALL in kinds and not small_disks_can_be_made():
        sys.stderr.write("small disks are left out: only root can mount one\n")
        kinds = [kind for kind in kinds if kind != SMALL]
    with tempfile.TemporaryDirectory(prefix="ukge-kills-") as place, Harness.at(Path(place)) as harness:
        for kind, name in itertools.product(kinds, chosen):
            points = SIZES if kind == SMALL else range(1, harness.expected(name)[1] + 1, every)
            found = [harness.fault(name, at, kind) for at in points]
            row = Row(name, kind, len(found), [fault for fault in found if fault is not None])
            rows.append(row)
            sys.stderr.write("".join(f"{line}\n" for line in (*row.faults[:5], row)))
            sys.stderr.flush()
    head = f"{'command':24}{'fault':12}{'points':>8}{'same result':>13}{'dead ends':>11}"
    sys.stdout.write("".join(f"{line}\n" for line in (head, *rows)))
    return sum(len(row.faults) for row in rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A kill, or a full disk, at every file operation of long commands.")
    parser.add_argument("commands", nargs="*", help=f"Some of: {', '.join(COMMANDS)}")
    parser.add_argument("--every", type=int, default=1, help="Try every so many-th operation.")
    parser.add_argument("--fault", action="append", choices=(KILLED, FULL, SMALL), help="All if not given.")
    given = parser.parse_args()
    sys.exit(min(1, main(given.commands or list(COMMANDS), given.every, given.fault or (KILLED, FULL, SMALL))))
