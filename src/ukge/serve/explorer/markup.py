"""HTML of the explorer's parts. Every name and number from outside goes through `text` or `url`, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import urlencode

from ukge.serve import schema
from ukge.serve.names import category, label

KINDS = {
    "observed": "In the graph",
    "rule": "A rule",
    "pair": "The same two",
    "inverse": "The other way round",
    "analogue": "Alike",
    "repeat": "Known already",
    "neighbours": "Common neighbours",
    "query": "What the head has here",
    "inverse query": "What the tail has here",
    "head": "The head in general",
    "tail": "The tail in general",
    "relation": "The relation in general",
    "expectation": "What is usual of head, relation and tail",
    "model": "The model",
    "other": "All else",
}


def text(value: object) -> str:
    """Return a value as text that HTML shows as it is."""
    return escape(str(value), quote=True)


def url(path: str, **query: str | int | None) -> str:
    """Return an address within the explorer, fit for an attribute."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return escape(f"{path}?{urlencode(given)}" if given else path, quote=True)


def entity_link(name: str) -> str:
    """Return an entity as people call it, linked to its page; its whole name is a tooltip."""
    return f'<a href="{url("/entity", name=name)}" title="{text(name)}">{text(label(name))}</a>{_kind(name)}'


def _kind(name: str) -> str:
    kind = category(name)
    return f' <span class="tag">{text(kind)}</span>' if kind else ""


def why_url(head: str, relation: str, tail: str) -> str:
    """Return the address of a fact's reasons."""
    return url("/why", head=head, relation=relation, tail=tail)


def percent(value: float) -> str:
    """Return a confidence as a width."""
    return f"{100 * min(1.0, max(0.0, value)):.1f}%"


def meter(
    value: float,
    *,
    guess: bool = False,
    bounds: schema.Interval | None = None,
    mark: float | None = None,
    large: bool = False,
) -> str:
    """Return a confidence as a bar: hatched if predicted, with its bounds, and a dot where the graph has it."""
    kind = f"meter{' guess' if guess else ''}{' large' if large else ''}"
    told = f"{'predicted' if guess else 'stored'} confidence {value:.2f}"
    inside = f'<span class="fill" style="width:{percent(value)}"></span>'
    if bounds is not None:
        width = percent(bounds.high - bounds.low)
        inside += f'<span class="span" style="left:{percent(bounds.low)};width:{width}"></span>'
        told += f", between {bounds.low:.2f} and {bounds.high:.2f}"
    if mark is not None:
        inside += f'<span class="mark" style="left:{percent(mark)}"></span>'
        told += f", stored {mark:.2f}"
    return f'<span class="{kind}" role="img" aria-label="{text(told)}" title="{text(told)}">{inside}</span>'


def fact_row(other: str, href: str, value: float, *, guess: bool = False, bounds: schema.Interval | None = None) -> str:
    """Return one fact of an entity: the other entity, the confidence, and a link to the reasons."""
    return (
        f'<div class="row-fact"><span class="who">{entity_link(other)}</span>'
        f'<a class="why" href="{href}" aria-label="Why {value:.2f}?">{meter(value, guess=guess, bounds=bounds)}'
        f'<span class="value">{value:.2f}</span></a></div>'
    )


def sentence(head: str | None, relation: str, tail: str | None) -> str:
    """Return a fact, or a question where an entity is None, as one line."""
    ends = [('<span class="soft">?</span>' if name is None else entity_link(name)) for name in (head, tail)]
    return (
        f'<div class="sentence">{ends[0]} <span class="relation" title="{text(relation)}">'
        f"— {text(label(relation))} —</span> {ends[1]}</div>"
    )


def question_chip(head: str, relation: str) -> str:
    """Return a question as a link that asks it."""
    return (
        f'<a class="chip" href="{url("/ask", head=head, relation=relation)}">{text(label(head))} '
        f'<i>— {text(label(relation))} —</i> <span class="q">?</span></a>'
    )


def fact_line(fact: schema.ObservedFact) -> str:
    """Return an observed fact with its confidence, as part of a reason or an example."""
    told = (
        f"{text(label(fact.head))} <span class='soft'>— {text(label(fact.relation))} —</span> {text(label(fact.tail))}"
    )
    href = why_url(fact.head, fact.relation, fact.tail)
    return (
        f'<div class="row-fact"><span class="who"><a href="{href}">{told}</a></span>'
        f'{meter(fact.confidence)}<span class="value">{fact.confidence:.2f}</span></div>'
    )


def reason(each: schema.ReasonOut) -> str:
    """Return a reason with the facts behind it."""
    tone, push = "", ""
    if each.contribution is not None:
        tone = " for" if each.contribution >= 0 else " against"
        push = f'<span class="push{tone}">{each.contribution:+.2f}</span> '
    kind = text(KINDS.get(each.kind, each.kind.replace("_", " ").capitalize()))
    lines = "".join(fact_line(fact) for fact in each.facts)
    rule = f'<p class="mono">{text(each.rule)}</p>' if each.rule else ""
    return (
        f'<div class="reason is-{text(each.kind)}{tone}"><span class="kind">{kind}</span>'
        f'<p class="sentence-text">{push}{text(each.sentence)}</p>{rule}<div class="rows">{lines}</div></div>'
    )


def table(head: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of cells that are HTML already; columns marked True stand on the right."""
    columns = list(head)
    titles = "".join(f"<th{_side(right)}>{text(title)}</th>" for title, right in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_side(column[1])}>{cell}</td>" for column, cell in zip(columns, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _side(right: bool) -> str:
    return ' class="right"' if right else ""


def card(title: str, inside: str) -> str:
    """Return a card."""
    return f'<section class="card"><h2>{text(title)}</h2>{inside}</section>'


LEGEND = (
    '<div class="legend"><span><span class="meter"><span class="fill" style="width:70%"></span></span>in the graph'
    '</span><span><span class="meter guess"><span class="fill" style="width:70%"></span></span>predicted</span></div>'
)
