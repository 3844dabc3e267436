"""Numbers that reach the graph and the logic have bounds: an error that tells them, and no traceback from below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ukge.errors import ConfigError
from ukge.graph.negatives import negative_links
from ukge.graph.split import split
from ukge.graph.synthetic import generate, stream_parquet
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.grounding import GroundingSettings
from ukge.logic.mining import MiningSettings
from ukge.storage.memory import FreeMemory

GRAPH = UncertainGraph.from_facts([("a", "r", "b", 0.5), ("b", "r", "c", 0.6), ("c", "r", "a", 0.7)])
HUGE = 10**30


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split(GRAPH, seed=-1), "seed must be at least 0"),
        (lambda: split(GRAPH, seed=HUGE), "seed must be .*at most"),
        (lambda: split(GRAPH, val=float("nan")), "leave nothing to learn from"),
        (lambda: negative_links(GRAPH, seed=-1), "seed must be at least 0"),
        (lambda: negative_links(GRAPH, n=HUGE), "n must be .*at most"),
        (lambda: generate(seed=-1), "seed must be at least 0"),
        (lambda: generate(n_entities=-5), "has 100 to 2,147,483,647 entities, not -5"),
        (lambda: generate(n_entities=HUGE), "has 100 to 2,147,483,647 entities"),
        (lambda: generate(n_entities=2**31 - 1), "takes about .* GB of memory"),
        (lambda: generate(n_facts=HUGE), "GB of memory"),
        (lambda: stream_parquet("never.parquet", 10**6, 10**12), "takes about .* GB of memory"),
        (lambda: stream_parquet("never.parquet", 10**6, HUGE), "1 to 1,000,000,000,000"),
        (lambda: generate(noise=float("nan")), "not a deviation"),
        (lambda: MiningSettings(min_support=HUGE), "min_support must be .*at most"),
        (lambda: MiningSettings(max_length=4), "max_length must be .*at most 3"),
        (lambda: MiningSettings(min_hit_ratio=float("nan")), "min_hit_ratio must be"),
        (lambda: MiningSettings(strong=1.0), "from 0 up to 1, not 1.0"),
        (lambda: MiningSettings(top=0), "top must be at least 1"),
        (lambda: MiningSettings(max_walks=-1), "max_walks must be at least 1"),
        (lambda: GroundingSettings(budget=-1), "budget must be at least 0"),
        (lambda: GroundingSettings(budget=HUGE), "budget must be .*at most"),
        (lambda: GroundingSettings(min_body=float("inf")), "min_body must be"),
    ],
)
def test_a_number_out_of_bounds_is_an_error_that_tells_them(
    call: Callable[[], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ukge.graph.synthetic.latent.free_memory", lambda: FreeMemory(8 << 30, "this machine"))
    monkeypatch.setattr("ukge.graph.synthetic.world.free_memory", lambda: FreeMemory(8 << 30, "this machine"))
    with pytest.raises(ConfigError, match=message):
        call()
