"""How fast a large TSV becomes a checked graph, beside DuckDB reading the same file into a table.

Both run in turn, each time in a fresh process, and are timed without their imports. Ours also encodes names as ids and
checks every fact. The compiled name table is cached on disk when it is first used; that first run is not counted, but
shown. Exits with 1 if the ratio of the medians is above 2 or the peak memory above 3 GB.

    python benchmarks/read_speed.py [--rows 10000000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_RATIO = 2.0
MOST_BYTES = 3_000_000_000
ENTITIES = 1_000_000
RELATIONS = 200
COLUMNS = "{'head': 'varchar', 'relation': 'varchar', 'tail': 'varchar', 'confidence': 'double'}"


def generate(path: Path, rows: int) -> None:
    """Write facts with DuckDB; its hash of the row number is the seed, so the file is the same every time."""
    import duckdb

    duckdb.sql(f"""
        copy (
            select 'entity_' || (hash(i) % {ENTITIES})::varchar,
                   'relation_' || (hash(i + 1) % {RELATIONS})::varchar,
                   'entity_' || (hash(i + 7) % {ENTITIES})::varchar,
                   round((hash(i + 3) % 10000) / 10000.0, 4)
            from range({rows}) t(i)
        ) to '{path}' (delimiter '\t', header false)
    """)


def read_with_duckdb(path: str) -> tuple[float, int]:
    """Return the seconds and the rows."""
    import duckdb

    connection = duckdb.connect()
    started = time.perf_counter()
    connection.sql(
        f"create table facts as select * from read_csv('{path}', delim='\t', quote='', header=false, columns={COLUMNS})"
    )
    seconds = time.perf_counter() - started
    return seconds, int(connection.sql("select count(*) from facts").fetchall()[0][0])


def read_with_ukge(path: str) -> tuple[float, int]:
    """Return the seconds and the rows."""
    from ukge.graph.readers import read

    started = time.perf_counter()
    graph = read(path)
    return time.perf_counter() - started, len(graph)


READERS = {"duckdb": read_with_duckdb, "ukge": read_with_ukge}


def peak_bytes() -> int:
    """Return the most memory that this process has had (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def in_fresh_process(name: str, path: Path) -> tuple[float, int, int]:
    """Return seconds, rows and peak memory of one reading in a process of its own."""
    command = [sys.executable, __file__, "--child", name, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, rows, peak = json.loads(done.stdout)
    return seconds, rows, peak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="facts in the file")
    parser.add_argument("--repeats", type=int, default=3, help="readings of each kind")
    parser.add_argument("--child", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, file = arguments.child
        seconds, rows = READERS[name](file)
        print(json.dumps([seconds, rows, peak_bytes()]))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        return compare(Path(directory) / "facts.tsv", arguments.rows, arguments.repeats)


def compare(path: Path, rows: int, repeats: int) -> int:
    """Print the table and return the exit code."""
    generate(path, rows)
    print(f"{rows:,} facts, {path.stat().st_size / 1e6:,.0f} MB of TSV")
    first, _, _ = in_fresh_process("ukge", path)
    print(f"first ukge run, not counted (compiles, or loads what was compiled before): {first:.2f} s")
    seconds: dict[str, list[float]] = {name: [] for name in READERS}
    peaks = dict.fromkeys(READERS, 0)
    for _ in range(repeats):
        for name in READERS:
            took, found, peak = in_fresh_process(name, path)
            if found != rows:
                print(f"{name} read {found:,} rows instead of {rows:,}")
                return 1
            seconds[name].append(took)
            peaks[name] = max(peaks[name], peak)
    print(f"{'reader':8} {'seconds':24} {'median':>7} {'peak memory':>12}")
    for name, times in seconds.items():
        shown = " ".join(f"{second:.2f}" for second in times)
        print(f"{name:8} {shown:24} {statistics.median(times):7.2f} {peaks[name] / 1e9:9.2f} GB")
    ratio = statistics.median(seconds["ukge"]) / statistics.median(seconds["duckdb"])
    passed = ratio <= MOST_RATIO and peaks["ukge"] <= MOST_BYTES
    print(
        f"ratio of medians {ratio:.2f} (at most {MOST_RATIO:g}), peak {peaks['ukge'] / 1e9:.2f} GB (at most 3): ",
        end="",
    )
    print("passed" if passed else "FAILED")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
