"""A question with one entity missing, and its answers."""

from __future__ import annotations

from nicegui import PageArguments, events, ui

from ukge.asking.rank import Seen
from ukge.serve import schema
from ukge.serve.explorer.parts import EntityField, label, put, relation_options, url
from ukge.serve.service import Service

ANSWERS = 15
SEEN: dict[str, Seen] = {"include": "include", "exclude": "exclude", "only": "only"}
CHOICES = {"include": "All answers", "exclude": "Unseen", "only": "In the graph"}


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    given = {name: args.query_parameters.get(name) or None for name in ("head", "tail", "relation", "seen", "k")}
    head, tail, relation = given["head"], None if given["head"] else given["tail"], given["relation"]
    snapshot = service.snapshot
    for name in (head, tail):
        if name is not None:
            snapshot.entity(name)
    if relation is not None:
        snapshot.relation(relation)
    seen = SEEN.get(given["seen"] or "", "include")
    await _form(service, head, tail, relation, seen)
    if relation is not None and (head or tail):
        asked = given["k"] or ""
        count = min(int(asked) if asked.isdecimal() and len(asked) < 9 else ANSWERS, service.limits.k)
        told = await service.rank(
            schema.RankQuery(relation=relation, head=head, tail=tail, k=max(1, count), observed=seen)
        )
        told.answers = [each for each in told.answers if each.entity != (head or tail) or each.observed is not None]
        put("answers.html", found=told)
    elif head or tail:
        put("relations.html", head=head, tail=tail, relations=await _relations_of(service, head, tail))


async def _form(service: Service, head: str | None, tail: str | None, relation: str | None, seen: Seen) -> None:
    options = await relation_options(service, relation)
    at_tail = tail is None
    given = head or tail
    kept = {"relation": relation, "seen": None if seen == "include" else seen}

    def choose(event: events.ValueChangeEventArguments[str]) -> None:
        ui.navigate.to(_plain(head, tail, event.value, seen))

    def show(event: events.ValueChangeEventArguments[str]) -> None:
        ui.navigate.to(_plain(head, tail, relation, event.value))

    def turn() -> None:
        ui.navigate.to(_plain(tail, head, relation, seen))

    with ui.element("section").classes("card"):
        put("title.html", title="Ask the graph", about="")
        with ui.element("div").classes("asker"):
            with ui.element("div"):
                side = "head" if at_tail else "tail"
                title = "Entity" if given is None else label(given)
                EntityField(
                    service, title, lambda name: url("/ask", **{side: name}, **kept), label(given) if given else ""
                )
            with ui.element("div"):
                ui.select(options, value=relation, with_input=True, label=None, on_change=choose).props(
                    'outlined dense options-dense aria-label="Relation" placeholder="Relation"'
                    if relation is None
                    else 'outlined dense options-dense aria-label="Relation"'
                ).classes("field relation-field")
            with ui.element("div"):
                ui.button("Ask for the head" if at_tail else "Ask for the tail", on_click=turn, color=None).props(
                    "flat no-caps icon=swap_horiz"
                ).classes("turn")
        if given and relation:
            ui.toggle(CHOICES, value=seen, on_change=show).props("no-caps dense unelevated").classes("seen")


def _plain(head: str | None, tail: str | None, relation: str | None, seen: str) -> str:
    return url("/ask", head=head, tail=tail, relation=relation, seen=None if seen == "include" else seen)


async def _relations_of(service: Service, head: str | None, tail: str | None) -> list[str]:
    told = await service.entity(head or tail or "", min(500, service.limits.k), side="head" if head else "tail")
    return list(dict.fromkeys(fact.relation for fact in told.facts))
