"""Spark gives what DuckDB gives. In one file, so that one session is started for all of it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.distributed.test_prepare import HELD_OUT, named
from tests.logic.test_relational import figures, random_graph

from ukge.distributed.prepare import prepare
from ukge.graph.partitioned import PARTS
from ukge.graph.synthetic import stream_parquet
from ukge.logic.engine import Engine, connect, using
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.mining import MiningSettings, mine


@pytest.fixture(scope="module")
def spark() -> Iterator[Engine]:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    # Tables of a few hundred rows are done before compiled code would pay.
    options = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    arguments = " ".join(f"--conf '{name}={value}'" for name, value in options.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
        with connect("local[2]") as started:
            yield started


def test_spark_and_duckdb_agree(spark: Engine, tmp_path: Path) -> None:
    graph = random_graph()
    asked = MiningSettings(strong=0.5, min_support=2, min_hit_ratio=0.2)
    with using("duckdb") as duckdb:
        mined = {engine.name: mine(graph, asked, engine=engine) for engine in (duckdb, spark)}
        told = {name: figures(one) for name, one in mined.items()}
        assert set(told["duckdb"]) == set(told["spark"])
        assert len(told["duckdb"]) > 10
        for rule, values in told["duckdb"].items():
            np.testing.assert_array_equal(told["spark"][rule], values, err_msg=rule)
        assert mined["duckdb"].prior == mined["spark"].prior
        assert mined["duckdb"].report == mined["spark"].report
        rules = mined["duckdb"].rules[:4]
        settings = GroundingSettings(strong=0.5, best_only=True)
        one = ground(graph, rules, settings, engine=duckdb)
        other = ground(graph, rules, settings, engine=spark, out=tmp_path / "ground.parquet")
    assert len(one) > 10
    assert one.report == other.report
    assert one.read().drop_columns(["body"]).to_pylist() == other.read().drop_columns(["body"]).to_pylist()
    assert np.allclose(one.arrays().body, other.arrays().body)
    assert [path.name for path in tmp_path.iterdir()] == ["ground.parquet"]


def test_spark_prepares_the_same_ids_and_parts(spark: Engine, tmp_path: Path) -> None:
    bucket = str(tmp_path / "bucket")
    stream_parquet(tmp_path / "bucket", 200, 1000, seed=3, partition_by="relation")
    found = prepare(bucket, tmp_path / "by-spark", HELD_OUT, spark)
    prepared = prepare(bucket, tmp_path / "prepared", HELD_OUT)
    assert found.facts == prepared.facts
    for kind in ("entity", "relation"):
        assert found.vocabulary(kind) == prepared.vocabulary(kind)
    for part in PARTS:
        assert sorted(named(found, part)) == sorted(named(prepared, part)), part
