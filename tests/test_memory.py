"""Memory is judged by the least of machine, control groups and limits of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ukge.errors import ConfigError
from ukge.learning import memory
from ukge.learning.memory import estimate, refuse_if_too_large
from ukge.logic import engine
from ukge.settings.config import Config
from ukge.storage.memory import ADDRESSES, DATA, GROUP, MACHINE, FreeMemory, free_memory

GIB = 2**30
UNLIMITED = "9223372036854771712"


def system(root: Path, cgroup: str, mounts: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mounts, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


V1_MOUNTS = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n35 31 0:32 {root} {place} rw - cgroup cgroup rw,memory\n"
V2_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def v1(place: str, limit: str, usage: int, cached: int = 0) -> dict[str, str]:
    return {
        f"{place}/memory.limit_in_bytes": f"{limit}\n",
        f"{place}/memory.usage_in_bytes": f"{usage}\n",
        f"{place}/memory.stat": f"cache 7\ntotal_inactive_file {cached}\n",
    }


def v2(place: str, limit: str, usage: int, cached: int = 0) -> dict[str, str]:
    return {
        f"{place}/memory.max": f"{limit}\n",
        f"{place}/memory.current": f"{usage}\n",
        f"{place}/memory.stat": f"anon 7\ninactive_file {cached}\n",
    }


MEMORY = "sys/fs/cgroup/memory"
CASES = {
    "version 2, nested: the outer one leaves less": (
        "0::/outer/inner\n",
        V2_MOUNTS,
        v2("sys/fs/cgroup/outer", str(GIB), GIB // 2, GIB // 4) | v2("sys/fs/cgroup/outer/inner", str(GIB), 0),
        GIB - GIB // 4,
    ),
    "version 2, nested: the inner one leaves less": (
        "0::/outer/inner\n",
        V2_MOUNTS,
        v2("sys/fs/cgroup/outer", "max", 5) | v2("sys/fs/cgroup/outer/inner", str(GIB), 24),
        GIB - 24,
    ),
    "version 2, seen from inside a container": ("0::/\n", V2_MOUNTS, v2("sys/fs/cgroup", str(GIB), 99), GIB - 99),
    "version 1, nested": (
        "5:devices:/\n4:cpu,memory:/outer/inner\n",
        V1_MOUNTS.format(root="/", place="/sys/fs/cgroup/memory"),
        v1(MEMORY, UNLIMITED, 5) | v1(f"{MEMORY}/outer", str(GIB), 8) | v1(f"{MEMORY}/outer/inner", str(2 * GIB), 0),
        GIB - 8,
    ),
    "version 1, a container whose group is mounted as the root": (
        "4:memory:/docker/4711\n",
        V1_MOUNTS.format(root="/docker/4711", place="/sys/fs/cgroup/memory"),
        v1(MEMORY, str(GIB), 2 * GIB, GIB + 10),
        10,
    ),
    "both versions side by side, in a place with a space": (
        "4:memory:/job\n0::/job\n",
        V1_MOUNTS.format(root="/", place="/my\\040groups") + V2_MOUNTS,
        v1("my groups/job", str(GIB), 16) | v2("sys/fs/cgroup/job", "max", 0),
        GIB - 16,
    ),
    "more used than is allowed": ("0::/\n", V2_MOUNTS, v2("sys/fs/cgroup", "1000", 3000), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_least_of_the_control_groups_counts(name: str, tmp_path: Path) -> None:
    cgroup, mounts, files, free = CASES[name]
    assert free_memory(system(tmp_path, cgroup, mounts, files)) == FreeMemory(free, GROUP)


@pytest.mark.parametrize(
    "files",
    [{}, v2("sys/fs/cgroup", "max", 5), {"sys/fs/cgroup/memory.max": "what?\n"}, v2("sys/fs/cgroup", str(2**60), 5)],
)
def test_without_a_limit_the_machine_counts(files: dict[str, str], tmp_path: Path) -> None:
    found = free_memory(system(tmp_path, "0::/\n", V2_MOUNTS, files))
    assert found.of == MACHINE
    assert found.bytes > 0


def test_a_refusal_says_what_of(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = estimate(Config().replace(dim=1000), n_entities=50_000_000, n_relations=10, n_facts=1000)
    assert needed.parameters == 4 * (50_000_000 * 1000 + 10 * 1000)
    monkeypatch.setattr(memory, "free_memory", lambda: FreeMemory(16 * GIB, GROUP))
    told = r"training needs about .* GiB of memory, and 8\.0 GiB of its control group are free"
    with pytest.raises(ConfigError, match=told) as caught:
        refuse_if_too_large(needed, processes=2)
    assert "rowwise-adagrad" in str(caught.value)
    refuse_if_too_large(estimate(Config().replace(dim=8), n_entities=100, n_relations=2, n_facts=1000))
    with pytest.raises(ConfigError, match="negatives"):
        refuse_if_too_large(estimate(Config().replace(sampler="exhaustive"), 1_000_000, 10, 1000), processes=4)


LIMITED = """
import resource, sys
import psutil
from ukge.learning.memory import MemoryEstimate, refuse_if_too_large
from ukge.errors import ConfigError
name, used = sys.argv[1], psutil.Process().memory_info()
used = used.vms if name == "RLIMIT_AS" else used.data
resource.setrlimit(getattr(resource, name), (used + 2**28, resource.RLIM_INFINITY))
refuse_if_too_large(MemoryEstimate(2**20, 0, 0, 0, 0))
try:
    refuse_if_too_large(MemoryEstimate(2**28 + 2**20, 0, 0, 0, 0))
except ConfigError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep to these limits")
@pytest.mark.parametrize(("name", "told"), [("RLIMIT_AS", ADDRESSES), ("RLIMIT_DATA", DATA)])
def test_a_limit_of_the_process_counts(name: str, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, name], capture_output=True, text=True, check=True)
    assert f"MiB of {told} are free" in done.stdout


@pytest.fixture
def group() -> Path:
    """A control group of version 1 or 2 with a limit of 1 GiB, made for this test."""
    for place, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        made = Path(place) / f"ukge-test-{uuid.uuid4().hex[:8]}"
        try:
            made.mkdir()
            (made / limit).write_text(str(GIB))
        except OSError:
            continue
        return made
    pytest.skip("no control group with a limit can be made here")


def test_a_real_control_group_counts(group: Path) -> None:
    code = "from ukge.storage.memory import free_memory; print(*free_memory(), sep=';')"
    entered = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
    try:
        done = subprocess.run([sys.executable, "-c", entered + code], capture_output=True, text=True, check=True)
    finally:
        os.rmdir(group)
    free, of = done.stdout.strip().split(";")
    assert of == GROUP
    assert GIB // 2 < int(free) <= GIB


def test_duckdb_holds_no_more_than_its_share_of_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for free, held in ((FreeMemory(10 * GIB, GROUP), "8.0 GiB"), (FreeMemory(10 * GIB, MACHINE), None)):
        monkeypatch.setattr(engine, "free_memory", lambda free=free: free)
        with engine.using("duckdb") as opened:
            limit = opened._run.execute("SELECT current_setting('memory_limit')").fetchone()[0]  # type: ignore[attr-defined]
        assert (limit == held) == (held is not None)
