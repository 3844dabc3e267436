"""Keys among sorted ones, and neighbours that two entities share, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from ukge.evidence.lookup import FEW, FactBatch, find
from ukge.evidence.paths import PathRules, inverse_steps, path_columns
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.weights import Prior


@pytest.mark.parametrize("known", [0, 1, 2, 3, 7, 64, 1_000])
@pytest.mark.parametrize("wanted", [0, 1, FEW, 5_000])
def test_each_key_is_found_where_it_stands(known: int, wanted: int) -> None:
    rng = np.random.default_rng(known + wanted)
    keys = np.sort(rng.choice(4 * known + 1, known, replace=False)).astype(np.int64) * 3
    asked = rng.integers(-5, 12 * known + 8, wanted)
    place = {int(key): at for at, key in enumerate(keys)}
    np.testing.assert_array_equal(find(keys, asked), [place.get(int(key), -1) for key in asked])


def test_shared_neighbours_of_hubs_and_of_entities_with_few_links() -> None:
    rng = np.random.default_rng(1)
    names = [f"e{at}" for at in range(120)]
    # e0 is linked to everyone, e1 to half of them: lists of neighbours so unlike are searched, others are read along
    pairs = [(0, at) for at in range(1, 120)] + [(1, at) for at in range(2, 60)]
    pairs += [(int(a), int(b)) for a, b in rng.integers(2, 120, (150, 2))]
    sure = rng.random(len(pairs)).round(3)
    graph = UncertainGraph.from_facts([(names[a], "r", names[b], c) for (a, b), c in zip(pairs, sure, strict=True)])
    near: dict[str, dict[str, float]] = {name: {} for name in names}
    for (a, b), c in zip(pairs, sure, strict=True):
        for one, other in ((names[a], names[b]), (names[b], names[a])):
            if one != other:
                near[one][other] = max(near[one].get(other, 0.0), float(np.float32(c)))
    asked = [(names[0], names[at]) for at in range(1, 120)] + [(names[a], names[b]) for a, b in pairs]
    head, tail = (np.array([graph.entities.id(pair[side]) for pair in asked], dtype=np.int32) for side in (0, 1))
    none = PathRules(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), Prior(0.5, 1.0), 0.5)
    out = np.empty((len(asked), 8), dtype=np.float32)
    inverse = inverse_steps(graph.undirected_relations)
    path_columns(FactIndex(graph), none, none.table(1), inverse, FactBatch.of(head, np.zeros_like(head), tail), out)
    for row, (h, t) in zip(out, asked, strict=True):
        common = near[h].keys() & near[t].keys() if h != t else set()
        either = (near[h].keys() | near[t].keys()) - {h, t}
        assert row[0] == len(common)
        assert row[1] == pytest.approx(sum(1 / np.log(1 + len(near[z])) for z in common), rel=1e-6)
        if h != t:
            assert row[2] == pytest.approx(len(common) / len(either) if either else 0.0)
        assert row[3] == pytest.approx(max((near[h][z] * near[t][z] for z in common), default=0.0), rel=1e-6)
        assert not row[4:].any()
