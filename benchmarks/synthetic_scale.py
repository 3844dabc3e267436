"""Ten million synthetic facts to Parquet: seconds and peak memory, in a process of its own. Fails above 2 GB.

python benchmarks/synthetic_scale.py [--facts 10000000] [--entities 500000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_GB = 2.0


def peak_gb() -> float:
    """The largest resident size of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024**2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**3


def measure(facts: int, entities: int, path: Path) -> dict[str, float]:
    from ukge.graph.synthetic import stream_parquet

    start = time.perf_counter()
    stream_parquet(path, entities, facts, seed=0)
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 1), "peak_gb": round(peak_gb(), 2), "file_mb": round(path.stat().st_size / 1e6)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--entities", type=int, default=500_000)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.facts, given.entities, given.child)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--facts", str(given.facts), "--entities", str(given.entities)]
        command += ["--child", f"{folder}/facts.parquet"]
        child = subprocess.run(command, check=False, capture_output=True, text=True)
    if child.returncode != 0:
        print(child.stderr, file=sys.stderr)
        return 1
    found = json.loads(child.stdout)
    rate = given.facts / found["seconds"] / 1e6
    print(f"{given.facts:,} facts, {given.entities:,} entities: {found['seconds']} s ({rate:.2f} M facts/s), ", end="")
    print(f"peak {found['peak_gb']} GB of {LIMIT_GB:g} GB allowed, file {found['file_mb']:,.0f} MB")
    return 0 if found["peak_gb"] <= LIMIT_GB else 1


if __name__ == "__main__":
    sys.exit(main())
