"""Relations without a direction: one fact however a file writes it, in parts, counts, links and what is saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ukge.cli.console import as_flag
from ukge.errors import ConfigError, DataError
from ukge.graph.audit import audit
from ukge.graph.catalogue import open_dataset, save_dataset
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.negatives import negative_links
from ukge.graph.partitioned import save_prepared
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import Undirected, find_inverses, find_undirected, take_undirected, undirected_dataset
from ukge.graph.writers import write

Rows = list[tuple[str, str, str, float]]


def pairs(n: int = 60, facts: int = 400, seed: int = 0) -> Rows:
    """Facts of one relation, each pair once, its first name before its second."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation([(i, j) for i in range(n) for j in range(i + 1, n)])[:facts]
    return [
        (f"p{i:03}", "interacts", f"p{j:03}", round(float(c), 3))
        for (i, j), c in zip(chosen, rng.random(facts), strict=True)
    ]


def in_both_directions(rows: Rows) -> Rows:
    return rows + [(t, r, h, c) for h, r, t, c in rows]


def in_any_direction(rows: Rows, seed: int = 1) -> Rows:
    turned = np.random.default_rng(seed).random(len(rows)) < 0.5
    return [(t, r, h, c) if back else (h, r, t, c) for (h, r, t, c), back in zip(rows, turned, strict=True)]


def shuffled(rows: Rows, seed: int = 2) -> Rows:
    return [rows[at] for at in np.random.default_rng(seed).permutation(len(rows))]


DIRECTED: Rows = [(f"p{i:03}", "regulates", f"p{(i * 7 + 3) % 60:03}", 0.5) for i in range(60)]


@pytest.mark.parametrize("beside", [[], DIRECTED])
def test_however_a_file_writes_the_facts_the_split_is_the_same(beside: Rows) -> None:
    rows = pairs()
    ways = {
        "once": (rows, "auto"),
        "twice": (in_both_directions(rows), "auto"),
        "twice, shuffled": (shuffled(in_both_directions(rows)), "auto"),
        "in any direction": (shuffled(in_any_direction(rows)), "interacts"),
    }
    cuts = {}
    for name, (facts, undirected) in ways.items():
        graph = UncertainGraph.from_facts(shuffled([*facts, *beside]) if beside else facts)
        cuts[name] = split(graph, seed=3, undirected=undirected)
    first = cuts["once"]
    assert first.undirected == ("interacts",)
    assert sum(len(part) for part in first.parts.values()) == 400 + len(beside)
    for each in cuts.values():
        assert list(each.entities) == sorted(first.entities)
        for part, expected in first.parts.items():
            assert each.parts[part] == expected


def test_no_fact_has_its_mirror_in_another_part() -> None:
    cut = split(UncertainGraph.from_facts(in_both_directions(pairs())), test=0.2, val=0.2)
    known = FactIndex(cut.train)
    for part in (cut.val, cut.test):
        assert len(part) == 80
        assert not known.known(part.head, part.relation, part.tail).any()
        assert not known.known(part.tail, part.relation, part.head).any()


def test_taken_as_they_stand_both_directions_are_facts_of_their_own() -> None:
    cut = split(UncertainGraph.from_facts(in_both_directions(pairs())), undirected="none")
    assert cut.undirected == ()
    assert sum(len(part) for part in cut.parts.values()) == 800


def test_names_may_stand_between_commas_and_must_be_known() -> None:
    graph = UncertainGraph.from_facts([*in_any_direction(pairs()), *DIRECTED])
    assert take_undirected(graph, "interacts,regulates").undirected == ("interacts", "regulates")
    assert take_undirected(graph, ["regulates"]).undirected == ("regulates",)
    with pytest.raises(ConfigError, match="no relation 'interact'"):
        take_undirected(graph, "interact")


def test_a_fact_of_two_parts_stays_in_train(tmp_path: Path) -> None:
    for part, rows in {
        "train": [("a", "near", "b", 0.2), ("b", "near", "c", 0.4), ("a", "likes", "b", 0.5)],
        "val": [("b", "near", "a", 0.8), ("d", "near", "c", 0.6)],
        "test": [("c", "near", "b", 0.4), ("d", "near", "a", 0.9), ("a", "likes", "b", 0.5)],
    }.items():
        write(UncertainGraph.from_facts(rows), tmp_path / f"{part}.tsv")
    told: list[Undirected] = []
    dataset = open_dataset(tmp_path, undirected="near", on_undirected=told.append)
    assert [tuple(fact)[:4] for fact in dataset.train] == [
        ("a", "likes", "b", 0.5),
        ("a", "near", "b", 0.2),
        ("b", "near", "c", 0.4),
    ]
    assert [tuple(fact)[:4] for fact in dataset.val] == [("c", "near", "d", 0.6)]
    assert [tuple(fact)[:4] for fact in dataset.test] == [("a", "likes", "b", 0.5), ("a", "near", "d", 0.9)]
    assert told == [Undirected(("near",), rows=6, facts=4, left=2)]
    assert told[0].line() == (
        "near has no direction: 6 rows are 4 facts (2 of them in two parts, which train keeps); undirected='none' "
        "takes them as they stand"
    )
    assert len(open_dataset(tmp_path).val) == 2, "three facts say nothing by themselves"


def test_queries_links_and_rule_heads_keep_their_meaning() -> None:
    names = [("b", "near", "a", 0.2), ("c", "likes", "a", 0.4)]
    graph = UncertainGraph.from_facts(names)
    queries = np.array([[graph.entities.id("b"), graph.relations.id("near")]], dtype=np.int32)
    empty = graph[:0]
    dataset = Dataset("small", graph, empty, empty, negatives=graph, queries=queries, ground_rules=graph[:1])
    taken = undirected_dataset(dataset, "near")
    assert taken.negatives is not None
    assert {fact[:3] for fact in taken.negatives} == {("a", "near", "b"), ("c", "likes", "a")}
    assert taken.queries is not None
    assert (taken.entities[int(taken.queries[0, 0])], taken.relations[int(taken.queries[0, 1])]) == ("b", "near")
    assert taken.ground_rules is not None
    assert taken.ground_rules[0][:3] == ("a", "near", "b")


def test_a_directory_remembers_what_has_no_direction(tmp_path: Path) -> None:
    graph = UncertainGraph.from_facts(in_any_direction(pairs()))
    for name, undirected in (("told", "interacts"), ("none", "none")):
        cut = split(graph, undirected=undirected)
        save_dataset(cut, tmp_path / name)
        again = open_dataset(tmp_path / name)
        assert again.undirected == cut.undirected
        assert all(again.parts[part] == cut.parts[part] for part in cut.parts)
    twice = split(UncertainGraph.from_facts(in_both_directions(pairs())), undirected="none")
    save_dataset(twice, tmp_path / "twice")
    assert open_dataset(tmp_path / "twice").undirected == ()
    assert open_dataset(tmp_path / "twice", undirected="interacts").undirected == ("interacts",)
    (tmp_path / "none" / "dataset.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(DataError, match=r"dataset\.json"):
        open_dataset(tmp_path / "none")


def test_links_are_no_mirrors_of_facts_and_ends_are_drawn_alike() -> None:
    graph = take_undirected(UncertainGraph.from_facts(pairs(facts=800)), "interacts")
    for kind in ("uniform", "range", "paper", "degree"):
        links = negative_links(graph, kind=kind, n=200)
        assert links.undirected == graph.undirected
        assert (links.head < links.tail).all()
        assert not FactIndex(graph).known(links.tail, links.relation, links.head).any()
        assert len(np.unique(links.keys())) == 200
    star = take_undirected(UncertainGraph.from_facts([("a", "near", f"b{i:02}", 0.5) for i in range(30)]), "near")
    drawn = negative_links(star, kind="range", n=300, true_negatives=False)
    assert 0 < (drawn.head == 0).mean() < 1, "the range of near holds a, which stands first in every fact"


def test_inverse_relations_are_found_and_kept_together() -> None:
    rng = np.random.default_rng(0)
    chosen = rng.permutation([(i, j) for i in range(40) for j in range(40) if i < j])[:200]
    parents = [(f"e{i:02}", "parentOf", f"e{j:02}", 0.9) for i, j in chosen]
    children = [(t, "childOf", h, 0.8) for h, _, t, _ in parents[:190]]
    others = [(f"e{j:02}", "knows", f"e{i:02}", 0.3) for i, j in chosen[:100]]
    graph = UncertainGraph.from_facts([*parents, *children, *others])
    assert find_inverses(graph) == (("parentOf", "childOf"),)
    cut = split(graph, test=0.2, val=0.1, undirected="none")
    assert cut.inverses == (("parentOf", "childOf"),)
    part = {(fact.head, fact.relation, fact.tail): name for name, facts in cut.parts.items() for fact in facts}
    assert sum(part[t, "childOf", h] == part[h, "parentOf", t] for h, _, t, _ in parents[:190]) == 190
    assert len(cut.test) == pytest.approx(98, abs=1)
    assert find_inverses(UncertainGraph.from_facts([*parents, *children[:150]])) == ()


def test_inverses_are_saved(tmp_path: Path) -> None:
    parents = [(f"e{i:02}", "parentOf", f"e{i + 1:02}", 0.9) for i in range(40)]
    children = [(t, "childOf", h, 0.8) for h, _, t, _ in parents]
    cut = split(UncertainGraph.from_facts([*parents, *children]), undirected="none")
    save_dataset(cut, tmp_path / "cut")
    assert open_dataset(tmp_path / "cut").inverses == cut.inverses == (("parentOf", "childOf"),)


def test_the_audit_counts_a_mirror_as_the_same_fact() -> None:
    rows = pairs()
    graph = take_undirected(UncertainGraph.from_facts(in_both_directions(rows)), "auto")
    found = audit(graph)
    assert (found.whole.rows, found.whole.distinct) == (400, 400)
    (relation,) = found.symmetry
    assert (relation.undirected, relation.perhaps) == (True, False)
    assert any("interacts is taken to have no direction" in line for line in found.headlines())
    train = take_undirected(UncertainGraph.from_facts([("a", "near", "b", 0.2), ("b", "near", "c", 0.4)]), "near")
    test = train.with_facts([1], [0], [0], [0.6])
    (_, twins) = audit(Dataset("d", train, train[:0], test)).twins
    assert (twins.exact.rows, twins.inverse.rows) == (1, 0)
    assert twins.exact.gap == pytest.approx(0.4)


def test_the_audit_hints_at_what_may_have_no_direction() -> None:
    once = UncertainGraph.from_facts(in_any_direction(pairs()))
    assert find_undirected(once) == ()
    assert any(line.endswith("say so: undirected=interacts") for line in audit(once).headlines())
    assert any(line.endswith("say so: --undirected interacts") for line in audit(once).headlines(as_flag))
    levels = [(f"e{i:03}", "in", f"e{i // 3 - 1:03}", 0.5) for i in range(6, 90)]
    assert not any("undirected" in line for line in audit(UncertainGraph.from_facts(levels)).headlines())


def test_a_prepared_directory_is_taken_as_it_stands_and_that_is_said(tmp_path: Path) -> None:
    pairs = [(f"p{a:02}", f"p{a + 1 + b:02}", 0.5) for a in range(20) for b in range(3)]
    both = [fact for a, b, c in pairs for fact in ((a, "interacts", b, c), (b, "interacts", a, c))]
    save_prepared(split(UncertainGraph.from_facts(both), undirected="none"), None, tmp_path / "prepared")
    heard: list[str] = []
    opened = open_dataset(tmp_path / "prepared", on_undirected=lambda found: heard.append(found.line(as_flag)))
    assert opened.undirected == ()
    assert heard == [
        "as far as the facts tell, interacts has no direction, but the parts of a prepared directory are taken as they "
        "stand; --undirected interacts makes a fact and its mirror one"
    ]
    named = open_dataset(tmp_path / "prepared", undirected="interacts")
    assert named.undirected == ("interacts",)
    assert len(named.whole()) == len(pairs)
