"""The rules of the graph with their hit ratios, and one rule with examples."""

from __future__ import annotations

from nicegui import PageArguments, events, ui

from ukge.logic.rules import Atom, Rule
from ukge.logic.syntax import parse_rule
from ukge.serve import schema
from ukge.serve.explorer.markup import fact_line, meter, text, url, why_url
from ukge.serve.names import label
from ukge.serve.service import Service

SHOWN = 60
TITLE = (
    '<div class="rule-line title"><span>rule</span><span>hit ratio</span><span></span>'
    '<span class="value count">support</span></div>'
)


async def build(service: Service, args: PageArguments) -> None:
    """Build the list of rules."""
    search = args.query_parameters.get("search", "")[:200]
    ui.html(
        '<div class="head"><h1>Rules</h1><span class="soft">found in the training facts; the hit ratio is the share of '
        "a rule's conclusions that the graph holds</span></div>",
        sanitize=False,
    )
    with ui.element("section").classes("card"):
        field = (
            ui.input(placeholder="Only rules with this word", value=search)
            .props('outlined dense debounce=200 clearable aria-label="Filter rules"')
            .classes("field rules-filter")
        )
        waiting = ui.html('<p class="wait">The rules are being mined…</p>', sanitize=False)
        shown = ui.html("", sanitize=False)

        async def show(wanted: str) -> None:
            told = await service.rules(search=wanted[:200], limit=min(SHOWN, service.limits.k))
            waiting.visible = False
            more = ""
            if told.total > len(told.rules):
                more = (
                    f'<p class="soft small" style="margin-top:10px">The best {len(told.rules)} of {told.total:,}.</p>'
                )
            lines = "".join(_line(each) for each in told.rules)
            shown.content = f"{TITLE}{lines}{more}" if lines else '<p class="soft">No rule has it.</p>'

        async def typed(event: events.ValueChangeEventArguments[str | None]) -> None:
            await show(event.value or "")

        field.on_value_change(typed)
        await show(search)


async def build_one(service: Service, args: PageArguments) -> None:
    """Build the page of one rule."""
    number = args.query_parameters.get("number", "")
    told = await service.rule(int(number) if number.isdecimal() and len(number) < 10 else -1)
    figures = told.rule
    tiles = [
        (f"{figures.hit_ratio:.0%}", "of its conclusions are in the graph"),
        (f"{figures.support:,} of {figures.implied:,}", "conclusions found"),
        (f"{figures.head_coverage:.0%}", "of the relation's facts follow from it"),
        (f"{figures.weight:.2f}", "weight, drawn towards the mean of all rules"),
    ]
    inside = "".join(f'<div class="tile"><b>{text(value)}</b><span>{text(what)}</span></div>' for value, what in tiles)
    examples = "".join(_example(each) for each in told.examples) or '<p class="soft">None.</p>'
    ui.html(
        f'<div class="stack"><section class="card"><div class="sentence">{formula(parse_rule(figures.rule))}</div>'
        f'<p class="mono soft" style="margin-top:8px">{text(_written(figures.rule))}</p></section>'
        f'<div class="tiles">{inside}</div><section class="card"><h2>Examples</h2>{examples}</section></div>',
        sanitize=False,
    )


def _written(rule: str) -> str:
    """Return a rule as it is written in a file, its weight with as many digits as people read."""
    weight, colon, rest = rule.partition(":")
    try:
        return f"{float(weight):.2f}{colon}{rest}"
    except ValueError:
        return rule


def formula(rule: Rule) -> str:
    """Return a rule as people read it: atoms as small sentences, and an arrow."""
    body = ' <span class="arrow">and</span> '.join(_atom(atom) for atom in rule.body)
    return f'<span class="formula">{body} <span class="arrow">⟹</span> {_atom(rule.head)}</span>'


def _atom(atom: Atom) -> str:
    return (
        f'<span><span class="var">{text(atom.subject)}</span> <b title="{text(atom.relation)}">'
        f'{text(label(atom.relation))}</b> <span class="var">{text(atom.object)}</span></span>'
    )


def _line(each: schema.RuleOut) -> str:
    return (
        f'<a class="rule-line" href="{url("/rule", number=each.number)}">{formula(parse_rule(each.rule))}'
        f'{meter(each.hit_ratio)}<span class="value">{each.hit_ratio:.0%}</span>'
        f'<span class="value count">{each.support:,}</span></a>'
    )


def _example(each: schema.RuleExample) -> str:
    body = "".join(fact_line(fact) for fact in each.body)
    head = each.head
    stored = head.observed is not None
    tag = '<span class="tag known">in the graph</span>' if stored else '<span class="tag guess">not in the graph</span>'
    value = head.observed if head.observed is not None else head.confidence
    told = (
        f"{text(label(head.head))} <span class='soft'>— {text(label(head.relation))} —</span> {text(label(head.tail))}"
    )
    href = why_url(head.head, head.relation, head.tail)
    return (
        f'<div class="reason is-rule"><div class="rows">{body}</div><div class="row-fact"><span class="who">⟹ '
        f'<a href="{href}">{told}</a> {tag}</span>{meter(value, guess=not stored)}'
        f'<span class="value">{value:.2f}</span>'
        "</div></div>"
    )
