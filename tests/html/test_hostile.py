"""Names from anywhere, through everything that shows them: what comes out has the elements of the templates only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jinja2 import UndefinedError
from tests.evaluation.table_predictor import TablePredictor

import ukge
from ukge.evaluation.case_study import Case, Tail
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.report import Picture
from ukge.evaluation.report import render as report_page
from ukge.evidence.explain import Explanation
from ukge.evidence.reasons import Reason
from ukge.graph.audit import audit
from ukge.graph.audit.rendering import as_page as audit_page
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.html import render
from ukge.html.pictures import curve, histogram, reliability

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)",
    "back\\slash\\",
    "</style></title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; & <!-- ]]>",
]
PLAIN = [f"plain{number}" for number in range(len(HOSTILE))]


class Outline(HTMLParser):
    """The elements of a page with the names of their attributes, its addresses, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")]
        self.words += [value for _, value in attrs if value]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment that no template wrote: {data}")


def same_outline(shown: Callable[[list[str]], str]) -> Outline:
    """Show hostile names and plain ones, and return the outline of the first, which must be that of the second."""
    found, expected = Outline(shown(HOSTILE)), Outline(shown(PLAIN))
    assert found.elements == expected.elements
    assert all(address.startswith(("/", "data:image/png;base64,")) for address in found.addresses)
    return found


def facts(names: list[str]) -> list[tuple[str, str, str, float]]:
    """Return facts in which every name is once a head, a relation and a tail; some are said twice."""
    turned = [*names[1:], names[0]]
    once = [(a, b, f"{a}{b}", 0.1 + 0.08 * at) for at, (a, b) in enumerate(zip(names, turned, strict=True))]
    return [*once, *((head, relation, tail, 0.95) for head, relation, tail, _ in once[:4])]


def dataset(names: list[str]) -> Dataset:
    whole = UncertainGraph.from_facts(facts(names))
    return Dataset(names[0], whole, whole[:2], whole[2:6], negatives=whole[6:9])


def test_the_audit_page() -> None:
    found = same_outline(lambda names: audit_page(audit(dataset(names))))
    for name in HOSTILE:
        assert any(name in word for word in found.words)


def test_the_report_page() -> None:
    def shown(names: list[str]) -> str:
        data = dataset(names)
        size = len(data.entities)
        predictor = TablePredictor(np.full((len(data.relations), size, size), 0.5, dtype=np.float32))
        plan = prepare(data, "positives", Settings(tau=0.6))
        found = evaluate(plan, {names[1]: predictor}, bootstrap=Bootstrap(2))
        tails = tuple(Tail(name, 0.5, None if at else 0.4, ("train",)) for at, name in enumerate(names))
        cases = [Case(names[2], names[3], tails, tails, 1)]
        return report_page(found, [Picture("a", names[4], names[5], b"png")], cases, names[1])

    assert any(HOSTILE[1] in word for word in same_outline(shown).words)


def cards(names: list[str]) -> Iterator[str]:
    data = dataset(names)
    yield data._repr_html_()
    yield data.train._repr_html_()
    reasons = tuple(Reason("rule", f"Because of {name}.", 0.2 - 0.1 * at) for at, name in enumerate(names))
    yield Explanation((names[0], names[1], names[2]), 0.3, (0.1, 0.5), 0.5, reasons, observed=0.4)._repr_html_()
    yield render("bars.html", bars=[(0.5, names[0]), (None, names[1])])
    yield histogram([1, 0, 3], names[3])
    yield from (curve([(1, 2.0), (2, 1.0)], name, best=2) for name in names)


def test_cards_and_pictures() -> None:
    shown = same_outline(lambda names: "".join(cards(names)))
    assert any(HOSTILE[1] in word for word in shown.words)


def explorer(names: list[str]) -> Iterator[str]:
    """The explorer's templates, with every name in every place that has one."""
    from ukge.asking.neighbourhood import Edge
    from ukge.logic.rules import Atom, Rule
    from ukge.serve import schema
    from ukge.serve.explorer.entity import NARROW, WIDE, Listed, neighbourhood
    from ukge.serve.explorer.parts import markup, url

    a, b, *_ = names
    observed = [
        schema.ObservedFact(head=one, relation=one, tail=two, confidence=0.4)
        for one, two in zip(names, [*names[1:], a], strict=True)
    ]
    bounds = schema.Interval(low=0.1, high=0.9)
    answers = [schema.Answer(entity=name, confidence=0.5, interval=bounds, observed=0.4) for name in names]
    matches = [
        SimpleNamespace(name=name, label=f"{name}!", category=name, facts=3, types=[name], alias=name) for name in names
    ]
    for name in names:
        yield markup("relations.html", head=None, tail=name, relations=names)
        yield markup("relations.html", head=name, tail=None, relations=names)
        yield markup("answers.html", found=SimpleNamespace(head=None, relation=name, tail=name, answers=answers))
        yield markup("problem.html", what=name, near=names, kind="entity")
        yield markup("problem.html", what=name, near=names, kind="relation")
        for canvas in (WIDE, NARROW):
            edges = [Edge(name, each, each, each, 0.5, guess=True) for each in names]
            yield neighbourhood(name, edges, {(a, b): 0.5}, canvas)
        reasons = [schema.ReasonOut(kind=name, sentence=name, contribution=0.1, facts=observed, rule=name)]
        fact = {"head": name, "relation": name, "tail": name, "observed": 0.1, "base": 0.5, "interval": bounds}
        why = schema.ExplainResponse(**fact, confidence=0.5, opinion="model", reasons=reasons)  # type: ignore[arg-type]
        yield markup("why.html", fact=why, telling=reasons, others=reasons, kinds={})
        known = {"types": names[:2], "description": name, "aliases": names, "about": {name: name, "parts": names}}
        entity = SimpleNamespace(name=name, label=name, category=name, as_head=1, as_tail=1, **known)
        groups = [Listed(each, each in names[:4], observed, answers) for each in names]
        yield markup("entity.html", shown=entity, groups=groups, few=2, most=3, wide="", narrow="")
        rule = Rule((Atom(name, "A", "B"), Atom(name, "B", "C")), Atom(name, "A", "C"), 1.0)
        figures = SimpleNamespace(number=1, rule=name, hit_ratio=0.5, support=1, implied=2, head_coverage=0.1, weight=1)
        head = SimpleNamespace(head=name, relation=name, tail=name, observed=None, confidence=0.5)
        examples = [SimpleNamespace(body=observed, head=head)]
        yield markup("rule.html", rule=rule, written=name, figures=figures, examples=examples)
        yield markup("rules.html", rules=[figures], total=9, parse_rule=lambda _, rule=rule: rule)
        yield markup("api.html", shell=name, python=name, routes=[("GET", "/v1", name)])
    yield markup("offers.html", found=matches, address=lambda name: url("/entity", name=name))
    info = SimpleNamespace(facts=1, entities=1, relations=1, opinion="model", model=a, data=b, strong_above=0.5)
    asked = list(zip(names, names, strict=True))
    yield markup("home.html", info=info, known=matches, questions=asked, histogram=histogram([1], a))
    yield markup(
        "doubtful.html",
        facts=[schema.DoubtOut(head=name, relation=name, tail=name, stored=0.1, predicted=0.9) for name in names],
    )
    curves = [(a, SimpleNamespace(ece=0.1, spearman=-0.5, bins=[]))]
    drawn: dict[str, Any] = {"reliability": reliability, "histogram": histogram, "shown": 9}
    yield markup("quality.html", curves=curves, found=audit(dataset(names)), **drawn)


def reviewed(names: list[str]) -> Iterator[str]:
    """The templates of the pages on which people doubt and review."""
    from ukge.asking.review import ToReview
    from ukge.graph.fact import Fact
    from ukge.serve import schema
    from ukge.serve.desk import Said
    from ukge.serve.explorer.parts import markup

    for name in names:
        told = ToReview(name, name, name, 0.9, 0.5, name, (name, name))
        shown_words = {"yes": (name, name)}
        yield markup(
            "review_fact.html", fact=told, rows=[Fact(name, name, name, 0.5, name)], word="yes", words=shown_words
        )
        reasons = [schema.ReasonOut(kind=name, sentence=name, contribution=0.1, facts=[], rule=name)]
        yield markup("review_why.html", fact=told, reasons=reasons, kinds={})
        yield markup("review_progress.html", by=name, said=Said(3, 2, 1), done=1, rounds=2, of=20)
        yield markup("note.html", text=name)
        false = schema.LikelyFalseOut(head=name, relation=name, tail=name, stored=0.9, chance=0.1, source=name)
        yield markup("likely_false.html", told=schema.LikelyFalseResponse(false=0.5, labels=3, facts=[false]))
        line = schema.SourceDoubtOut(source=name, facts=3, gap=-0.1, too_high=0.1, too_low=0.1, false=0.5)
        yield markup("doubt_by_source.html", sources=[line], unnamed="")


def test_the_explorer() -> None:
    pytest.importorskip("nicegui")
    shown = same_outline(lambda names: "".join([*explorer(names), *reviewed(names)]))
    assert any(HOSTILE[1] in word for word in shown.words)


def test_a_name_in_a_property_stays_within_it() -> None:
    pytest.importorskip("nicegui")
    from nicegui import Client, ui
    from nicegui.page import page

    from ukge.serve.explorer.parts import EntityField

    with Client(page("/nowhere")):
        for name in HOSTILE:
            field = EntityField(SimpleNamespace(), name, str)  # type: ignore[arg-type]
            (entry,) = [each for each in field.box if isinstance(each, ui.input)]
            plain = EntityField(SimpleNamespace(), "plain", str)  # type: ignore[arg-type]
            (other,) = [each for each in plain.box if isinstance(each, ui.input)]
            assert entry.props["aria-label"] == name
            assert set(entry.props) == set(other.props)


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("login.html", action="/login")


MARKUP = re.compile(
    r"</?(a|b|body|circle|div|figure|h[1-6]|html|img|li|line|p|path|rect|script|section|span|style|svg|table|tbody|td|"
    r"text|th|tr|ul)[ />]"
)
UNESCAPED = re.compile(r"\bMarkup\(|\|\s*safe\b|autoescape false")


def test_nobody_else_writes_markup() -> None:
    """Markup made by hand forgets to escape a name one day; templates do not."""
    package = Path(ukge.__file__).parent
    templates = package / "html" / "templates"
    by_hand = [
        f"{path.relative_to(package)}:{number}"
        for path in sorted([*package.rglob("*.py"), *(path for path in templates.rglob("*") if path.is_file())])
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if UNESCAPED.search(line) or (MARKUP.search(line) and templates not in path.parents)
    ]
    assert [place.partition(":")[0] for place in by_hand] == ["html/render.py"]
