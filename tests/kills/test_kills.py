"""A few of the points that `make kills` tries all of, and disks that are too small."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.kills.harness import FULL, KILLED, SMALL, Harness, small_disks_can_be_made

POINTS = {
    "train": ((KILLED, 0.97), (FULL, 0.5)),
    "train --force": ((KILLED, 0.6),),
    "data prepare": ((KILLED, 0.7),),
    "evidence fit": ((KILLED, 0.7),),
    "add": ((KILLED, 0.3), (KILLED, 0.97), (FULL, 0.6)),
    "undo": ((KILLED, 0.5),),
    "refresh": ((KILLED, 0.8),),
}
"""Where in a command's operations what happens to it."""


@pytest.mark.skipif(sys.platform != "linux", reason="file operations are watched on Linux alone")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc) to watch file operations with")
def test_commands_that_are_disturbed_end_as_if_they_had_not_been(tmp_path: Path) -> None:
    faults = []
    with Harness.at(tmp_path) as harness:
        for name, points in POINTS.items():
            _, operations = harness.expected(name)
            assert operations > 10, name
            faults += [harness.fault(name, int(share * operations), kind) for kind, share in points]
        if small_disks_can_be_made():
            faults.append(harness.fault("train", 100, SMALL))
    assert [str(fault) for fault in faults if fault is not None] == []
