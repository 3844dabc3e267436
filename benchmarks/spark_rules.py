"""Rules on Spark against DuckDB: mines NL27k's strong facts and grounds what was found, on both engines.

Spark runs as two executors, each a process of its own on this machine, unless --master says otherwise. Rules, their
measures, and ground rules with the values of their bodies must be the same; exits with 1 otherwise.

    python benchmarks/spark_rules.py [--graph nl27k] [--master 'local-cluster[2,1,1024]'] [--rules 50]

Needs the graph in the directory that UKGE_DATA names, and Java.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TWO_EXECUTORS = "local-cluster[2,1,1024]"
CLOSE = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="nl27k")
    parser.add_argument("--master", default=TWO_EXECUTORS)
    parser.add_argument("--rules", type=int, default=50, help="how many of the mined rules to ground")
    arguments = parser.parse_args()
    if "UKGE_DATA" not in os.environ:
        print("UKGE_DATA does not name a directory with the benchmark graphs: nothing to compare")
        return
    if importlib.util.find_spec("pyspark") is None or (shutil.which("java") is None and "JAVA_HOME" not in os.environ):
        print("Spark or Java is not installed: nothing to compare")
        return
    from ukge.graph.catalogue import open_dataset
    from ukge.logic.engine import connect

    train = open_dataset(arguments.graph).train
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("duckdb", arguments.master):
            started = time.monotonic()
            with connect(name) as engine:
                ready = time.monotonic()
                found[name] = mined_and_grounded(train, engine, arguments.rules, Path(folder))
            rules, grounded = found[name]["rules"], found[name]["heads"]
            print(
                f"{name}: {len(rules):,} rules, {len(grounded):,} ground rules in {time.monotonic() - ready:.0f} s "
                f"(start {ready - started:.0f} s)",
                flush=True,
            )
    one, other = found.values()
    same_rules, same_heads = one["rules"].keys() == other["rules"].keys(), one["heads"].equals(other["heads"])
    same = same_rules and same_heads
    far = max((abs(a - b) for rule in one["rules"] for a, b in pairs(rule, one, other)), default=0.0) if same else 1.0
    bodies = float(abs(one["body"] - other["body"]).max()) if same and len(one["body"]) else 0.0
    print(f"the same rules: {same_rules}, the same ground rules: {same_heads}")
    print(f"measures differ by at most {far:.1e}, bodies by at most {bodies:.1e}")
    sys.exit(not same or far > CLOSE or bodies > CLOSE)


def pairs(rule: str, one: dict[str, Any], other: dict[str, Any]) -> list[tuple[float, float]]:
    return list(zip(one["rules"][rule], other["rules"][rule], strict=True))


def mined_and_grounded(train: Any, engine: Any, n_rules: int, folder: Path) -> dict[str, Any]:
    import pyarrow as pa

    from ukge.logic.grounding import GroundingSettings, ground
    from ukge.logic.mining import MiningSettings, mine

    mined = mine(train, MiningSettings(strong=0.85), engine=engine)
    rules = sorted(mined.rules, key=str)[:n_rules]
    settings = GroundingSettings(strong=0.85, best_only=True)
    grounded = ground(train, rules, settings, engine=engine, out=folder / f"{engine.name}.parquet")
    read = grounded.read()
    table = pa.table({name: read[name] for name in read.column_names})  # engines differ in what they note of a column
    order = [(name, "ascending") for name in table.column_names if name != "body"]
    table = table.sort_by(order)
    measures = {str(each.rule): list(each.measures.as_dict().values()) for each in mined.scored}
    return {"rules": measures, "heads": table.drop_columns(["body"]), "body": table["body"].to_numpy()}


if __name__ == "__main__":
    main()
