"""A few of the points that `make kills` tries all of, and disks that are too small."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.kills.harness import COMMANDS, FULL, KILLED, Harness, small_disks_can_be_made

SHARES = (0.3, 0.97)
"""Where in a command's operations it is killed: while it makes its directory, and at its end."""


@pytest.mark.skipif(sys.platform != "linux", reason="file operations are watched on Linux alone")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc) to watch file operations with")
def test_commands_that_are_disturbed_end_as_if_they_had_not_been(tmp_path: Path) -> None:
    faults = []
    with Harness.at(tmp_path) as harness:
        for name in COMMANDS:
            _, operations = harness.expected(name)
            assert operations > 3, name
            faults += [harness.fault(name, max(1, int(share * operations)), KILLED) for share in SHARES]
            faults.append(harness.fault(name, operations // 2, FULL))
        if small_disks_can_be_made():
            faults += [harness.on_a_small_disk("train", 100), harness.on_a_small_disk("data prepare", 24)]
    assert [str(fault) for fault in faults if fault is not None] == []
