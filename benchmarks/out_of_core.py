"""Ten million entities on one machine: from partitioned Parquet by name to one trained epoch.

Makes a synthetic graph as a directory of Parquet files by relation, prepares it with DuckDB, and trains one epoch with
a memory-mapped entity table (dimension 128) and row-wise Adagrad. Each stage is a process of its own. Printed are its
time and its highest memory: what it holds itself (anonymous pages), and what of mapped files was in memory besides,
which the system takes back when others need it.

Exits with 1 if a stage held more than 24 GB in all.

    python benchmarks/out_of_core.py --full [--folder DIRECTORY]

The full size needs about 25 GB of disk; without --full it runs at a hundredth of that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_BYTES = 24 * 2**30
GIB = 2**30
UKGE = [sys.executable, "-c", "from ukge.cli import main; main()"]
MAKE = """
import sys
from ukge.graph.synthetic import stream_parquet
stream_parquet(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), partition_by="relation")
"""


def resident(pid: int) -> tuple[int, int]:
    """Return the bytes of a process's own pages and of its pages of mapped files that are in memory."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss")}
    return sizes.get("RssAnon", 0), sizes.get("RssFile", 0) + sizes.get("RssShmem", 0)


def stage(name: str, command: list[str]) -> int:
    """Run a stage, print what it took, and return the most memory it had."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    own = files = together = 0
    while process.poll() is None:
        anonymous, mapped = resident(process.pid)
        own, files, together = max(own, anonymous), max(files, mapped), max(together, anonymous + mapped)
        time.sleep(0.2)
    if process.returncode:
        sys.exit(f"{name} failed")
    seconds = time.monotonic() - started
    print(f"{name:<8} {seconds:7.0f} s   own {own / GIB:5.1f} GiB   mapped {files / GIB:5.1f} GiB", flush=True)
    return together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--facts", type=int, default=200_000)
    parser.add_argument("--full", action="store_true", help="10,000,000 entities and 20,000,000 facts")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--folder", type=Path, help="where to work; else a temporary directory")
    arguments = parser.parse_args()
    entities, facts = (10_000_000, 20_000_000) if arguments.full else (arguments.entities, arguments.facts)
    print(f"{entities:,} entities × 128, {facts:,} facts")
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="out-of-core-") as temporary:
        bucket, prepared, run = (Path(temporary) / name for name in ("bucket", "prepared", "run"))
        most = stage("make", [sys.executable, "-c", MAKE, str(bucket), str(entities), str(facts)])
        cut = ["--val", "0.005", "--test", "0.005"]
        most = max(most, stage("prepare", [*UKGE, "data", "prepare", str(bucket), str(prepared), *cut]))
        settings = ["--memory-map", "--optimiser", "rowwise-adagrad", "--lr", "0.1", "--epochs", "1", "--every", "1"]
        settings += ["--batch-size", str(arguments.batch_size), "--rules", "none", "--quiet", "--out", str(run)]
        most = max(most, stage("train", [*UKGE, "train", str(prepared), *settings]))
        (line,) = (run / "trace.jsonl").read_text(encoding="utf-8").splitlines()
        told = json.loads(line)
        weights = (run / "weights.safetensors").stat().st_size
        print(
            f"the epoch itself {told['seconds']:.0f} s, {told['facts_per_second']:,} facts/s, "
            f"validation MSE {told['value']:.4f}; weights {weights / GIB:.1f} GiB"
        )
    print(f"most memory of a stage: {most / GIB:.1f} GiB (at most {MOST_BYTES / GIB:.0f})")
    sys.exit(most > MOST_BYTES)


if __name__ == "__main__":
    main()
