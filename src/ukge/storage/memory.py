"""How much memory this process may still take: the least of what the machine, its control groups and its limits leave.

A container, a batch job or `ulimit -v` gives a process less than the machine has free; whoever looks at the machine
alone is killed for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil

MACHINE, GROUP, ADDRESSES, DATA = (
    "this machine",
    "its control group",
    "its address space (ulimit -v)",
    "its data (ulimit -d)",
)


class FreeMemory(NamedTuple):
    """Bytes that are free, and what of: what leaves the least."""

    bytes: int
    of: str


class _Mount(NamedTuple):
    """Where a hierarchy of control groups is mounted, and which of its groups is there."""

    place: Path
    root: PurePosixPath


class _Group(NamedTuple):
    """The files of a version of control groups: limit, usage, and the entry of cached files that can be given back."""

    limit: str
    usage: str
    cached: str


_VERSIONS = {
    "cgroup": _Group("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "cgroup2": _Group("memory.max", "memory.current", "inactive_file"),
}


def free_memory(root: Path = Path("/")) -> FreeMemory:
    """Return how many bytes are free, and what sets that limit; `/proc` and control groups are looked for in `root`."""
    found = [FreeMemory(psutil.virtual_memory().available, MACHINE)]
    found += [FreeMemory(free, GROUP) for free in _left_by_groups(root)]
    found += _left_by_limits()
    least = min(found)
    return least._replace(bytes=max(least.bytes, 0))


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield what the control groups of this process leave, from its own up to the outermost that can be seen."""
    for kind, path in _memberships(root):
        files = _VERSIONS[kind]
        for mount in _mounts(root, kind):
            inside = path.relative_to(mount.root) if path.is_relative_to(mount.root) else PurePosixPath()
            for level in (inside, *inside.parents):
                left = _left_by(mount.place / level, files)
                if left is not None:
                    yield left


def _memberships(root: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """Yield the control groups of this process that limit memory: version 1 has one of its own for it, 2 has one."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (number == "0" and not controllers) or "memory" in controllers.split(","):
            yield "cgroup" if controllers else "cgroup2", PurePosixPath(path)


def _mounts(root: Path, kind: str) -> Iterator[_Mount]:
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, (system, *options) = before.split(), after.split()
        if system == kind and (kind == "cgroup2" or "memory" in options[-1].split(",")):
            place = fields[4].encode().decode("unicode_escape")  # spaces are \040
            yield _Mount(root / place.lstrip("/"), PurePosixPath(fields[3]))


def _left_by(folder: Path, files: _Group) -> int | None:
    """Return what one control group leaves, None if it has no limit."""
    limit, usage = _text(folder / files.limit).strip(), _text(folder / files.usage).strip()
    if not limit.isdigit() or not usage.isdigit() or int(limit) >= sys.maxsize >> 1:
        return None
    stat = (line.split() for line in _text(folder / "memory.stat").splitlines())
    cached = next((int(value) for name, value in stat if name == files.cached), 0)
    return int(limit) - max(int(usage) - cached, 0)


def _left_by_limits() -> Iterator[FreeMemory]:
    """Yield what the limits of this process leave, where the system has such."""
    try:
        import resource  # noqa: PLC0415 — not on Windows
    except ImportError:
        return
    used = psutil.Process().memory_info()
    for name, bytes_used, told in (("RLIMIT_AS", used.vms, ADDRESSES), ("RLIMIT_DATA", getattr(used, "data", 0), DATA)):
        limit = resource.getrlimit(getattr(resource, name))[0]
        if limit != resource.RLIM_INFINITY:
            yield FreeMemory(limit - bytes_used, told)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
