"""The rules of the graph with their hit ratios, and one rule with examples."""

from __future__ import annotations

from nicegui import PageArguments, events, ui

from ukge.logic.syntax import parse_rule
from ukge.serve.explorer.markup import markup, put
from ukge.serve.service import Service

SHOWN = 60
ABOUT = "found in the training facts; the hit ratio is the share of a rule's conclusions that the graph holds"


async def build(service: Service, args: PageArguments) -> None:
    """Build the list of rules."""
    search = args.query_parameters.get("search", "")[:200]
    put("title.html", title="Rules", about=ABOUT)
    with ui.element("section").classes("card"):
        field = (
            ui.input(placeholder="Only rules with this word", value=search)
            .props('outlined dense debounce=200 clearable aria-label="Filter rules"')
            .classes("field rules-filter")
        )
        waiting = ui.label("The rules are being mined…").classes("wait")
        shown = ui.html("", sanitize=False)

        async def show(wanted: str) -> None:
            told = await service.rules(search=wanted[:200], limit=min(SHOWN, service.limits.k))
            waiting.visible = False
            shown.content = markup("rules.html", rules=told.rules, total=told.total, parse_rule=parse_rule)

        async def typed(event: events.ValueChangeEventArguments[str | None]) -> None:
            await show(event.value or "")

        field.on_value_change(typed)
        await show(search)


async def build_one(service: Service, args: PageArguments) -> None:
    """Build the page of one rule."""
    number = args.query_parameters.get("number", "")
    told = await service.rule(int(number) if number.isdecimal() and len(number) < 10 else -1)
    rule, written = parse_rule(told.rule.rule), _written(told.rule.rule)
    put("rule.html", rule=rule, written=written, figures=told.rule, examples=told.examples)


def _written(rule: str) -> str:
    """Return a rule as it is written in a file, its weight with as many digits as people read."""
    weight, colon, rest = rule.partition(":")
    try:
        return f"{float(weight):.2f}{colon}{rest}"
    except ValueError:
        return rule
