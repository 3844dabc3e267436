"""Rules written for other tools and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logic.psl_program import predicate, psl_program

from ukge.errors import RuleError
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.exchange import anyburl_line, anyburl_rule, read_anyburl, read_json, read_rules_file, write_scored
from ukge.logic.measures import measure
from ukge.logic.program import NegativePrior
from ukge.logic.syntax import parse_rule
from ukge.logic.weights import Prior, fixed_weights, learn_prior, learn_weights

RULE = parse_rule('0.5: "c:plays"(A, B) & sport(A, C) -> teamSport(B, C) ^2')
GRAPH = UncertainGraph.from_facts(
    [
        ("a", "c:plays", "t", 1.0),
        ("a", "sport", "s", 0.9),
        ("t", "teamSport", "s", 0.95),
        ("b", "c:plays", "u", 1.0),
        ("b", "sport", "s", 1.0),
        ("u", "teamSport", "x", 0.9),
        ("a", "c:plays", "t", 0.8),
    ]
)


def test_anyburl_text_there_and_back() -> None:
    (scored,) = measure(GRAPH, [RULE])
    assert anyburl_line(scored) == "2\t1\t0.5\tteamSport(X,Y) <= c:plays(A,X), sport(A,Y)"
    (back,) = read_anyburl(anyburl_line(scored) + "\n\n")
    assert back.canonical() == RULE.canonical()
    assert back.weight == 0.5
    assert read_anyburl("r(X,Y) <= r(Y,X)")[0].weight == 1.0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("r(X,Y) -> s(X,Y)", "line 2: not a rule"),
        ("1\t2\tr(X,Y) <= s(X,Y)", "not a rule"),
        ("r(X,me) <= s(X,Y)", "not an atom over two variables"),
        ("1\t1\tmuch\tr(X,Y) <= s(X,Y)", "much"),
        ("r(X,Y) <= s(X,A)", "does not occur in the body"),
    ],
)
def test_what_anyburl_did_not_write(text: str, what: str) -> None:
    with pytest.raises(RuleError, match=what):
        read_anyburl(f"\n{text}", source="rules.txt")


def test_what_anyburl_cannot_say() -> None:
    with pytest.raises(RuleError, match="cannot say the relation name 'plays for'"):
        anyburl_rule(parse_rule('"plays for"(A, B) -> r(A, B)'))
    with pytest.raises(RuleError, match="negated"):
        anyburl_rule(parse_rule("p(A, B) -> !r(A, B)"))


def test_files_in_all_formats(tmp_path: Path) -> None:
    scored = measure(GRAPH, [RULE])
    for form in ("psl", "anyburl", "json"):
        write_scored(tmp_path / form, scored, form, comment="mine")
    assert read_rules_file(tmp_path / "psl") == [RULE]
    assert read_json((tmp_path / "json").read_text()) == [RULE]
    told = json.loads((tmp_path / "json").read_text())[0]
    assert (told["support"], told["implied"], told["hit_ratio"]) == (1, 2, 0.5)
    with pytest.raises(RuleError, match="unknown format"):
        write_scored(tmp_path / "x", scored, "prolog")
    with pytest.raises(RuleError, match="does not hold rules"):
        read_json("{")


def test_a_figure_that_does_not_exist_is_null_in_json(tmp_path: Path) -> None:
    write_scored(tmp_path / "json", measure(GRAPH, [parse_rule("sport(A, B) -> sport(B, A)")]), "json")
    assert json.loads((tmp_path / "json").read_text())[0]["error"] is None


def test_a_program_for_psl() -> None:
    targets = UncertainGraph.from_columns(
        ["u"], ["teamSport"], ["s"], [0.0], entities=GRAPH.entities, relations=GRAPH.relations
    )
    program = psl_program(GRAPH, [RULE], targets, prior=NegativePrior(0.1))
    plays, sport, team = "R0_c_plays", "R1_sport", "R2_teamSport"
    assert program["rules"][0] == (
        f"0.5: {plays}(A, B) & {sport}(A, C) & (A != B) & (A != C) & (B != C) -> {team}(B, C) ^2"
    )
    assert f"0.1: !{team}(A, B) ^2" in program["rules"]
    assert program["predicates"][f"{team}/2"]["targets"] == [["u", "s"]]
    assert program["predicates"][f"{plays}/2"]["observations"] == [["a", "t", 0.9], ["b", "u", 1.0]]
    assert predicate(7, "—") == "R7"


def test_weights_are_shares_of_truth_drawn_to_their_mean() -> None:
    scored = measure(GRAPH, [RULE], strong=0.5)
    (rule,) = learn_weights(scored, Prior(0.5, 2.0))
    shown, implied = 0.8, 0.8 + 1.0
    assert rule.weight == pytest.approx((shown + 2.0 * 0.5) / (implied + 2.0))
    assert learn_prior(scored) == Prior(0.5, 1.0)
    assert [one.weight for one in fixed_weights([RULE])] == [1.0]
    assert learn_weights([]) == []


def test_the_prior_is_the_stronger_the_more_alike_rules_are() -> None:
    def rules(shares: list[int]) -> list[str]:
        return [f"p{i}(A, B) -> q{i}(A, B)" for i in range(len(shares))]

    def prior(shares: list[int]) -> Prior:
        facts = []
        for i, share in enumerate(shares):
            facts += [(f"h{n}", f"p{i}", "t", 1.0) for n in range(100)]
            facts += [(f"h{n}", f"q{i}", "t", 1.0) for n in range(share)]
        return learn_prior(measure(UncertainGraph.from_facts(facts), [parse_rule(text) for text in rules(shares)]))

    alike, spread = prior([40, 50, 60]), prior([10, 50, 90])
    assert alike.mean == pytest.approx(spread.mean) == pytest.approx(0.5)
    assert alike.strength > 10 * spread.strength
