"""Files that are none, places that cannot be written, readers that go: a message and an exit code, no traceback."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ukge.cli import run
from ukge.cli.console import ExitCode
from ukge.graph.dataset import Dataset
from ukge.storage.files import read_given

UKGE = [sys.executable, "-c", "from ukge.cli import main; main()"]
KINDS = ("missing", "directory", "pipe", "binary", "empty", "below a file", "not\udcfftext")
SECONDS = 60
"""A pipe that nobody writes to must be refused; without this a test would wait for ever."""

READING = (
    "data info IT",
    "data convert IT out.tsv",
    "data normalise IT out.tsv --scale minmax:0,1",
    "data split IT --out cut",
    "data prepare IT out",
    "audit IT",
    "train IT --epochs 1",
    "train FACTS --epochs 1 --config IT",
    "train FACTS --epochs 1 --rules IT",
    "train --resume IT",
    "tune IT --trials 1",
    "rules mine IT",
    "rules score FACTS IT",
    "rank IT r --head a",
    "explain IT a r b",
    "doubt IT",
    "complete IT",
    "complete RUN --exclude IT",
    "predict RUN IT --out out.tsv",
    "predict RUN FACTS --with IT --out out.tsv",
    "fuse RUN IT --out out.tsv",
    "fuse RUN FACTS --labelled IT --out out.tsv",
    "evaluate IT",
    "compare IT",
    "evidence fit IT",
    "serve IT",
    "serve RUN --api-key-file IT",
    "reproduce IT",
    "reproduce FACTS --no-train --settings IT",
)
FINE = {"--config IT": ("empty",), "score FACTS IT": ("empty",), "--settings IT": ("directory",)}
"""What is no mistake."""

WRITING = (
    "data convert FACTS IT --to tsv",
    "data generate --out IT --to tsv --facts 100",
    "audit FACTS --html IT",
    "rank RUN RELATION --head HEAD --out IT",
    "complete RUN -k 1 --out IT",
    "predict RUN FACTS --out IT",
)


@pytest.fixture
def place(tmp_path: Path, home: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A directory to work in, what stands for the words of a command, and an end to waiting."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "directory").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    fact = dataset.train[0]
    (tmp_path / "facts.tsv").write_text("".join(f"{f.head}\t{f.relation}\t{f.tail}\t0.5\n" for f in dataset.train))

    def waited(*_: object) -> None:
        raise AssertionError("it waits for a pipe that nobody writes to")

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(SECONDS)
    yield {"RUN": str(home / "run"), "FACTS": "facts.tsv", "RELATION": fact.relation, "HEAD": fact.head}
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def filled(command: str, place: dict[str, str], it: str) -> list[str]:
    return [{**place, "IT": it}.get(word, word) for word in command.split()]


@pytest.mark.parametrize("command", READING)
def test_what_is_no_file_is_refused(
    command: str, place: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for kind in KINDS:
        if any(command.endswith(end) and kind in kinds for end, kinds in FINE.items()):
            continue
        it = {"below a file": "facts.tsv/x"}.get(kind, kind)
        code = run(filled(command, place, it))
        told = capsys.readouterr()
        assert code == ExitCode.MISTAKE, f"{kind}: {told.err}{told.out}"
        assert told.err.strip(), kind
        assert "Traceback" not in told.err
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("most", [-1, 3])
def test_a_pipe_that_somebody_writes_to_is_read_to_its_end(most: int) -> None:
    """The shell's <(…): what is there already, and what comes later; nothing at all is refused, as where nobody is."""
    for seconds, said in ((0.0, b"[model]\n"), (0.2, b"[model]\n"), (0.0, b"")):
        reading, writing = os.pipe()

        def write(writing: int = writing, seconds: float = seconds, said: bytes = said) -> None:
            time.sleep(seconds)
            os.write(writing, said)
            os.close(writing)

        writer = threading.Thread(target=write)
        writer.start()
        if not seconds:
            writer.join()
        if said:
            assert read_given(f"/dev/fd/{reading}", most) == (said if most < 0 else said[:most])
        else:
            with pytest.raises(OSError, match="nobody writes"):
                read_given(f"/dev/fd/{reading}", most)
        writer.join()
        os.close(reading)


@pytest.mark.parametrize("command", WRITING)
def test_what_cannot_be_written_is_told(
    command: str, place: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    form = "" if "--to" in command or "--html" in command else ".tsv"
    for kind in ("directory", "pipe", "below a file"):
        it = {"below a file": "facts.tsv/x"}.get(kind, kind) + form
        if form and kind != "below a file":
            (tmp_path / kind).rename(it)
        code = run(filled(command, place, it))
        told = capsys.readouterr()
        assert code == ExitCode.MISTAKE, f"{kind}: {told.err}"
        assert it.split("/")[0] in told.err, told.err
    assert stat.S_ISFIFO((tmp_path / f"pipe{form}").stat().st_mode), "what is no file is not replaced by one"


def shell(line: str, place: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line in bash, where $UKGE is the command."""
    environment = {**os.environ, **place, "PYTHON": sys.executable, "MAIN": UKGE[2]}
    whole = f'set -o pipefail; ukge() {{ "$PYTHON" -c "$MAIN" "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", whole], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ('ukge data info "$FACTS" --json > /dev/full', 2, "No space left"),
        ("ukge --help > /dev/full", 2, "No space left"),
        ('ukge rank "$RUN" "$RELATION" --head "$HEAD" -k 200 | true', 141, ""),
        ('ukge data info "$FACTS" >&-', 0, ""),
        ("ukge data info nowhere 2>&-", 2, ""),
        ('PYTHONUTF8=0 LC_ALL=C PYTHONIOENCODING=ascii ukge audit "$FACTS"', 2, "ascii"),
    ],
)
def test_readers_that_go(line: str, code: int, told: str, place: dict[str, str]) -> None:
    done = shell(line, place)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
