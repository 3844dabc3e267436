"""The relational seam: the same results for any number of threads, and a wrong name is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ukge.errors import ConfigError
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.engine import connect, using
from ukge.logic.mining import MinedRules, MiningSettings, mine


def random_graph(seed: int = 0, n_facts: int = 400) -> UncertainGraph:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 25, (2, n_facts))
    names = Vocabulary([f"e{i}" for i in range(25)]), Vocabulary(["p", "q", "r"], kind="relation")
    return UncertainGraph.from_ids(ends[0], rng.integers(0, 3, n_facts), ends[1], rng.random(n_facts), *names)


def figures(mined: MinedRules) -> dict[str, list[float]]:
    return {str(one.rule): list(one.measures.as_dict().values()) for one in mined.scored}


def test_neither_threads_nor_the_order_of_facts_change_a_digit() -> None:
    graph = random_graph(n_facts=4000)
    shuffled = graph[np.random.default_rng(1).permutation(len(graph))]
    asked = MiningSettings(strong=0.2, min_support=2, min_hit_ratio=0.1)
    told = []
    for facts, threads in ((graph, 1), (graph, 2), (shuffled, 2)):
        with connect("duckdb", threads=threads) as engine:
            mined = mine(facts, asked, engine=engine)
        told.append((figures(mined), mined.prior))
    assert len(told[0][0]) > 10
    assert told[1] == told[0]
    assert told[2] == told[0]


def test_duckdb_spills_to_a_directory_that_it_removes(tmp_path: Path) -> None:
    engine = connect("duckdb", memory="60MB", threads=1, spill=tmp_path)
    (spill,) = tmp_path.iterdir()
    numbers = pa.table({"n": pa.array(np.random.default_rng(0).permutation(3_000_000))})
    table = engine.load(numbers)
    ordered = engine.keep(table.order_by("n").mutate(text=table.n.cast("string")))
    assert engine.rows(ordered.agg(n=ordered.text.nunique()))[0]["n"] == 3_000_000
    assert list(spill.iterdir())
    engine.close()
    assert not list(tmp_path.iterdir())


def test_the_default_engine_is_closed_and_a_given_one_is_not() -> None:
    with connect("duckdb") as engine:
        with using(engine) as same:
            assert same is engine
        assert engine.rows(engine.load(pa.table({"n": [1]}))) == [{"n": 1}]


@pytest.mark.parametrize("name", ["postgres", "spark:/host", "loca[2]", ""])
def test_unknown_engines_list_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown engine") as caught:
        connect(name)
    assert "duckdb, spark, local[N], spark://host:port" in str(caught.value.hint)


def test_a_wrong_memory_limit_is_said() -> None:
    with pytest.raises(ConfigError, match="DuckDB does not start"):
        connect("duckdb", memory="much")
