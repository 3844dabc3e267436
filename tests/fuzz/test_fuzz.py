"""A small budget of hostile inputs, always the same ones, and every finding of longer runs (`make fuzz`) once more."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from tests.fuzz.directories import Directory
from tests.fuzz.outcomes import MISREAD, UNCAUGHT
from tests.fuzz.targets import FOUND, Target, targets

INPUTS = 30


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target | Directory]:
    work = tmp_path_factory.mktemp("seeds")
    found = targets(work)
    for target in found:
        if target.name != "evidence":  # to fit it takes longer than all others together
            target.prepare(work)
    found = [target for target in found if target.name != "evidence"]
    return {target.name.replace(":", "").replace(" ", "-"): target for target in found}


def test_hostile_inputs_are_refused_or_read_right(every: dict[str, Target | Directory], tmp_path: Path) -> None:
    for name, target in every.items():
        draw = random.Random(name)
        read = 0
        for number in range(INPUTS):
            extension, data, plain = target.inputs(draw)
            path = tmp_path / f"input.{extension}"
            path.write_bytes(data)
            outcome = target.outcome(path, plain)
            assert outcome.kind not in (UNCAUGHT, MISREAD), f"{name}, input {number}: {outcome.detail}\n{data[:2000]!r}"
            read += outcome.kind == "accepted"
        assert read, f"{name} read nothing, so that nothing was tried"


@pytest.mark.parametrize("found", sorted(FOUND.glob("*/*")), ids=lambda path: "/".join(path.parts[-2:]))
def test_findings_stay_mended(every: dict[str, Target | Directory], tmp_path: Path, found: Path) -> None:
    target = every[found.parent.name]
    path = tmp_path / f"input{''.join(found.suffixes)}"
    shutil.copy(found, path)
    packed = path.suffix in (".gz", ".zst")
    outcome = target.outcome(path, None if packed else path.read_bytes())
    assert outcome.kind not in (UNCAUGHT, MISREAD), outcome.detail
