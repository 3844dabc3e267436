"""A small budget of hostile inputs, always the same ones, and every finding of longer runs (`make fuzz`) once more."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fuzz.directories import Directory
from tests.fuzz.outcomes import ACCEPTED, MISREAD, UNCAUGHT, UNCHECKED
from tests.fuzz.targets import FOUND, PACKERS, Target, targets, unpacked

from ukge import UncertainGraph

INPUTS = 30


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target | Directory]:
    """All targets but evidence: to fit it takes longer than all others together."""
    found = [target for target in targets(tmp_path_factory.mktemp("seeds")) if target.name != "evidence"]
    return {target.name.replace(":", "").replace(" ", "-"): target for target in found}


def test_hostile_inputs_are_refused_or_read_right(every: dict[str, Target | Directory], tmp_path: Path) -> None:
    for name, target in every.items():
        target.prepare(tmp_path)
        draw = random.Random(name)
        read = 0
        for number in range(INPUTS):
            extension, data, plain = target.inputs(draw)
            path = tmp_path / f"input.{extension}"
            path.write_bytes(data)
            outcome = target.outcome(path, plain)
            assert outcome.kind not in (UNCAUGHT, MISREAD), f"{name}, input {number}: {outcome.detail}\n{data[:2000]!r}"
            read += outcome.kind in (ACCEPTED, UNCHECKED)
        assert read, f"{name} read nothing, so that nothing was tried"


@pytest.mark.parametrize("found", sorted(FOUND.glob("*/*")), ids=lambda path: "/".join(path.parts[-2:]))
def test_findings_stay_mended(every: dict[str, Target | Directory], tmp_path: Path, found: Path) -> None:
    target = every[found.parent.name]
    path = tmp_path / f"input{''.join(found.suffixes)}"
    shutil.copy(found, path)
    pack = path.suffix.removeprefix(".")
    outcome = target.outcome(path, unpacked(path.read_bytes(), pack) if pack in PACKERS else path.read_bytes())
    assert outcome.kind not in (UNCAUGHT, MISREAD), outcome.detail


def test_doubles_notice_what_is_read_wrong(every: dict[str, Target | Directory], tmp_path: Path) -> None:
    noticed = set()
    for name, target in every.items():
        if not isinstance(target, Target) or target.double is None or name.startswith("rules"):
            continue
        data = target.seeds[0]
        path = tmp_path / f"seed.{target.extension}"
        path.write_bytes(data)
        right = target.call(path)
        lost = replace(target, call=partial(_instead, right[:-1]))
        other = replace(target, call=partial(_instead, right.with_confidence(right.confidence * 0.999999)))
        assert target.outcome(path, data).kind == ACCEPTED, name
        assert [each.outcome(path, data).kind for each in (lost, other)] == [MISREAD, MISREAD], name
        noticed.add(name)
    assert len(noticed) == 15


def _instead(graph: UncertainGraph, _path: Path) -> UncertainGraph:
    return graph
