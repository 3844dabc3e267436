"""The rule syntax: what is read, what is printed, and how an error points at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import RuleError
from ukge.logic.exchange import read_rules_file
from ukge.logic.rules import Atom, Rule
from ukge.logic.syntax import parse_rule, parse_rules, write_rules

TRANSITIVE = "1.0: Synonym(A, B) & Synonym(B, C) -> Synonym(A, C) ^2"
names = st.text(min_size=1, max_size=12).filter(lambda name: "\x00" not in name)
variables = st.sampled_from(["A", "B", "C"])
atoms = st.builds(Atom, names, variables, variables)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    body = draw(st.lists(atoms, min_size=1, max_size=3))
    bound = sorted({v for atom in body for v in atom.variables})
    head = Atom(draw(names), draw(st.sampled_from(bound)), draw(st.sampled_from(bound)))
    weight = draw(st.floats(0, 1e6, allow_nan=False))
    try:
        return Rule(tuple(body), head, weight, draw(st.booleans()), draw(st.booleans()))
    except RuleError:
        return Rule((body[0],), Atom("r", *body[0].variables), weight)


def test_the_example_of_the_paper() -> None:
    rule = parse_rule(TRANSITIVE)
    assert rule == Rule((Atom("Synonym", "A", "B"), Atom("Synonym", "B", "C")), Atom("Synonym", "A", "C"), 1.0, True)
    assert str(rule) == TRANSITIVE


@given(rules())
@settings(deadline=None, max_examples=60)
def test_what_is_printed_is_read_back(rule: Rule) -> None:
    assert parse_rule(str(rule)) == rule


def test_other_spellings() -> None:
    rule = parse_rule("0.4: a(A,B) && b(A,C) >> !c(B,C)   # inverse first atom")
    assert rule == Rule((Atom("a", "A", "B"), Atom("b", "A", "C")), Atom("c", "B", "C"), 0.4, False, True)
    assert parse_rule("0.4: ~c(B, C) <- a(A, B) & b(A, C)") == rule
    assert parse_rule("0.4: !c(B, C) << a(A, B) & b(A, C) ^1 // linear") == rule
    assert parse_rule('"concept:plays"(A, B) -> "say \\"hi\\""(B, A)').weight == 1.0
    assert parse_rule('"concept:plays"(A, B) -> "say \\"hi\\""(B, A)').head.relation == 'say "hi"'


@pytest.mark.parametrize(
    ("text", "what", "marked"),
    [
        ("1.0: Synonym(A, B) & Synonym(B, C -> Synonym(A, C)", "expected ')'", "->"),
        ("1.0: a(A, B) -> b(A, C)", "variable C of the head", "C"),
        ("1.0: a(A, B) & b(C, D) -> c(A, B)", "share no variable", "1.0"),
        ("a(A, B) & b(A, B) & c(A, B) & d(A, B) -> e(A, B)", "one to 3 atoms", "a"),
        ("a(A, B) & !b(B, C) -> c(A, C)", "only the head can be negated", "!"),
        ("!a(A, B) -> c(A, B)", "only the head can be negated", "!"),
        ('a(A, B) -> "b(A, B)', "closing quote", '"'),
        ("a(A, 'x') -> b(A, A)", "constants", "'x'"),
        ("a(A, B) | b(A, B)", "disjunctions", "|"),
        ("a(A, B) & (A != B) -> b(A, B)", "inequalities", "("),
        ("a(A, B) -> b(A, B) .", "hard rules", "."),
        ("a(A, B) -> b(A, B) ^3", "^1 or ^2", "3"),
        ("-1: a(A, B) -> b(A, B)", "from 0 upwards", "-1"),
        ("2 a(A, B) -> b(A, B)", "expected ':'", "a"),
        ("a(A, B) -> b(A, B) -> c(A, B)", "end of the rule", "->"),
        ("a(A, B) -> ?(A, B)", "cannot be read", "?"),
        ("a(A, B)", "expected '&'", ""),
        ('""(A, B) -> a(A, B)', "not empty", '""'),
    ],
)
def test_errors_point_at_the_place(text: str, what: str, marked: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(f"# a comment\n\n{text}\n", source="my.psl")
    message, source, marks = caught.value.what.split("\n")
    assert message.startswith("my.psl, line 3: ")
    assert what in message
    assert source == f"  {text}"
    at = marks.index("^")
    assert marks.strip() == "^" * max(1, len(marked))
    assert source[at : at + len(marked)] == marked
    assert caught.value.hint is not None


def test_files_keep_rules_and_drop_comments(tmp_path: Path) -> None:
    path = tmp_path / "rules.psl"
    wanted = [parse_rule(TRANSITIVE), parse_rule('0.5: "a b"(A, B) -> c(B, A)')]
    write_rules(path, wanted, comment="two rules\n\nof mine")
    assert path.read_text(encoding="utf-8").startswith("# two rules\n#\n# of mine\n1.0: Synonym")
    assert read_rules_file(path) == wanted
    assert [p.name for p in tmp_path.iterdir()] == ["rules.psl"]


def test_a_missing_or_binary_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="cannot read"):
        read_rules_file(tmp_path / "none.psl")
    (tmp_path / "binary.psl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RuleError, match="not UTF-8"):
        read_rules_file(tmp_path / "binary.psl")


def test_canonical_form_forgets_names_order_and_weight() -> None:
    first = parse_rule("0.3: a(X, Y) & b(X, Z) -> c(Y, Z)")
    second = parse_rule("0.9: b(P, Q) & a(P, R) -> c(R, Q) ^2")
    assert first.canonical() == second.canonical()
    assert first.canonical() != parse_rule("a(Y, X) & b(X, Z) -> c(Y, Z)").canonical()
    assert first.canonical() != parse_rule("a(X, Y) & b(X, Z) -> !c(Y, Z)").canonical()


def test_generalisations_are_parts_of_the_body_with_the_same_head() -> None:
    found = set(parse_rule("b(B, A) & a(A, B) -> c(A, B)").generalisations())
    assert found == {parse_rule("a(X, Y) -> c(X, Y)").canonical(), parse_rule("b(Y, X) -> c(X, Y)").canonical()}
    assert not list(parse_rule("a(A, B) & b(B, C) -> c(A, C)").generalisations())
    longer = parse_rule("a(A, B) & b(B, C) & d(A, C) -> c(A, C)")
    assert parse_rule("a(A, B) & b(B, C) -> c(A, C)").canonical() in set(longer.generalisations())


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -0.1])
def test_a_weight_is_a_number_from_0_upwards(weight: float) -> None:
    with pytest.raises(RuleError, match="from 0 upwards"):
        Rule((Atom("a", "A", "B"),), Atom("b", "A", "B"), weight)
