"""`kill -9` at random moments, twenty times: nothing is lost and the result is the same to the bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ukge.graph.catalogue import save_dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE
from ukge.runs.directory import Run

EPOCHS = 60
SETTINGS: dict[str, Any] = {
    "dim": 16,
    "epochs": EPOCHS,
    "every": 5,
    "patience": 1000,
    "batch_size": 128,
    "threads": 1,
    "checkpoint_seconds": 0.0,
}

# The driver forks a child per attempt, so that twenty attempts pay for imports once. It never trains itself. Each is
# killed a moment after some more epochs, or none: by the clock, a slow machine would be killed before it trains. A run
# that ends before it is killed is one that was resumed to its end; the next kill meets a new one.
DRIVER = """
import json, os, random, signal, sys, time
from importlib import import_module
from pathlib import Path
for needed in ("torch", "ukge.learning.train", "ukge.learning.engines.fused", "ukge.runs.learnt"):
    import_module(needed)
from ukge.learning.estimator import UKGE
from ukge.graph.catalogue import open_dataset

data, runs, settings = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
dataset = open_dataset(data)

def epochs(run):
    trace = run / "trace.jsonl"
    return trace.read_bytes().count(b"\\n") if trace.is_file() else 0

moments = random.Random(0)
kills = finished = resumed = 0
while kills < 8 or finished == 0:
    run = runs / str(finished)
    resumed += (run / "manifest.json").is_file()
    child = os.fork()
    if child == 0:
        if (run / "manifest.json").is_file():
            UKGE.resume(run)
        else:
            UKGE("ukge-rect", **settings).fit(dataset, out=run, reference=data)
        os._exit(0)
    ended = 0
    if kills < 8:
        until = epochs(run) + moments.randrange(5)
        while epochs(run) < until and not ended:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.002)
        if not ended:
            time.sleep(moments.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
    if not ended:
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        kills += 1
    else:
        assert os.WEXITSTATUS(status) == 0
        finished += 1
print(kills, finished, resumed)
"""


def test_killed_again_and_again_and_resumed(tmp_path: Path) -> None:
    dataset = split(generate(n_entities=300, n_facts=3000, seed=1).graph, seed=0, name="world")
    save_dataset(dataset, tmp_path / "data")
    UKGE("ukge-rect", **SETTINGS).fit(dataset, out=tmp_path / "whole")
    whole = tmp_path / "whole"
    driver = [sys.executable, "-c", DRIVER, str(tmp_path / "data"), str(tmp_path / "runs"), json.dumps(SETTINGS)]
    done = subprocess.run(driver, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    kills, finished, resumed = (int(number) for number in done.stdout.split())
    assert kills == 8
    assert resumed > 0, "every kill came before the training"
    assert finished >= 1
    for number in range(finished):
        run = tmp_path / "runs" / str(number)
        assert (run / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
        trace = Run(run).trace()
        assert [line["epoch"] for line in trace] == list(range(1, EPOCHS + 1))
        # Weights are promised to the bit; the sum of an epoch's losses, which nothing depends on, is only told.
        told = [line["loss"] for line in Run(whole).trace()]
        assert [line["loss"] for line in trace] == pytest.approx(told, rel=1e-9)
