"""Observed facts whose stored confidence is contradicted."""

from __future__ import annotations

from nicegui import PageArguments, events, ui

from ukge.serve.explorer.markup import put, url
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
    put("title.html", title="Doubtful facts", about=f"stored with a confidence {said[told.opinion]}")
    options = {"": "All relations"} | {each.name: each.label for each in relations}
    if relation is not None:
        options.setdefault(relation, label(relation))

    def choose(event: events.ValueChangeEventArguments[str]) -> None:
        ui.navigate.to(url("/doubtful", relation=event.value or None))

    with ui.element("section").classes("card"):
        ui.select(options, value=relation or "", on_change=choose).props(
            'outlined dense options-dense aria-label="Only facts of this relation"'
        ).classes("field rules-filter")
        put("doubtful.html", facts=told.facts)
