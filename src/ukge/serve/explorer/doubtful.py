"""Observed facts whose stored confidence is contradicted."""

from __future__ import annotations

from html import unescape

from nicegui import PageArguments, events, ui

from ukge.serve import schema
from ukge.serve.explorer.markup import meter, text, url, why_url
from ukge.serve.names import label
from ukge.serve.service import Service

SHOWN, MOST_RELATIONS = 60, 2_000


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    relation = args.query_parameters.get("relation") or None
    told = await service.doubtful(relation, limit=min(SHOWN, service.limits.k))
    relations = (await service.relations("", min(MOST_RELATIONS, service.limits.k))).relations
    said = {
        "evidence": "that the other facts contradict, the most surprising first",
        "model": "that the model contradicts, the widest gaps first",
    }
    ui.html(
        f'<div class="head"><h1>Doubtful facts</h1><span class="soft">stored with a confidence '
        f"{said[told.opinion]}</span></div>",
        sanitize=False,
    )
    options = {"": "All relations"} | {each.name: each.label for each in relations}
    if relation is not None:
        options.setdefault(relation, label(relation))

    def choose(event: events.ValueChangeEventArguments[str]) -> None:
        ui.navigate.to(unescape(url("/doubtful", relation=event.value or None)))

    with ui.element("section").classes("card"):
        ui.select(options, value=relation or "", on_change=choose).props(
            'outlined dense options-dense aria-label="Only facts of this relation"'
        ).classes("field rules-filter")
        ui.html(_table(told.facts), sanitize=False)


def _table(facts: list[schema.DoubtOut]) -> str:
    if not facts:
        return '<p class="soft" style="margin-top:14px">None.</p>'
    rows = "".join(_row(each) for each in facts)
    titles = '<th scope="col">fact</th><th scope="col">stored</th><th scope="col">expected</th>'
    return f'<table class="doubts"><thead><tr>{titles}<th scope="col" class="right">gap</th></tr></thead>{rows}</table>'


def _row(each: schema.DoubtOut) -> str:
    names = text(f"{each.head} — {each.relation} — {each.tail}")
    told = (
        f"<b>{text(label(each.head))}</b> <span class='soft'>— {text(label(each.relation))} —</span> "
        f"<b>{text(label(each.tail))}</b>"
    )
    gap = f"{each.predicted - each.stored:+.2f}".replace("-", "−")
    href = why_url(each.head, each.relation, each.tail)
    return (
        f'<tr class="doubt"><td><a href="{href}" title="{names}">{told}</a></td>'
        f"{_bar('stored', each.stored, guess=False)}{_bar('expected', each.predicted, guess=True)}"
        f'<td class="right num">{gap}</td></tr>'
    )


def _bar(what: str, value: float, *, guess: bool) -> str:
    return (
        f'<td data-title="{what}"><span class="bar">{meter(value, guess=guess)}<span class="value">{value:.2f}</span>'
        "</span></td>"
    )
