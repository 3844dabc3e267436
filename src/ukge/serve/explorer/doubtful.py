"""Doubtful facts: stored too high, too low, or likely false; all, or those of a relation or a source."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import PageArguments, events, ui

from ukge.evidence.doubt_sources import UNNAMED, codes
from ukge.serve.explorer.parts import label, markup, put, relation_options, url
from ukge.serve.schema import Direction
from ukge.serve.service import Service

SHOWN, MOST_SOURCES = 60, 500
FALSE = "likely-false"
CHOICES = {"any": "Contradicted", "too-high": "Too high", "too-low": "Too low", FALSE: "Likely false"}
DIRECTIONS: dict[str, Direction] = {"any": "any", "too-high": "too-high", "too-low": "too-low"}
TOLD = {
    "any": "stored with a confidence that the other facts contradict, the most surprising first",
    "too-high": "stored with a higher confidence than the other facts say, the most surprising first",
    "too-low": "stored with a lower confidence than the other facts say, the most surprising first",
    FALSE: "by the chance that they do not hold at all, whatever confidence is stored with them",
}


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    relation, source = (args.query_parameters.get(name) or None for name in ("relation", "source"))
    given = args.query_parameters.get("kind") or "any"
    kind = given if given in CHOICES else "any"
    put("title.html", title="Doubtful facts", about=TOLD[kind])

    def leads(name: str) -> Callable[[events.ValueChangeEventArguments[str]], None]:
        """Return what leads to the page with another choice."""
        now = {"kind": None if kind == "any" else kind, "relation": relation, "source": source}

        def choose(event: events.ValueChangeEventArguments[str]) -> None:
            value = None if event.value in ("", "any") else event.value
            ui.navigate.to(url("/doubtful", **{**now, name: value}))

        return choose

    with ui.element("section").classes("card"):
        ui.toggle(CHOICES, value=kind, on_change=leads("kind")).props("no-caps dense unelevated").classes("seen")
        with ui.element("div").classes("filters"):
            relations = {"": "All relations"} | await relation_options(service, relation)
            _select(relations, relation, "Only facts of this relation", leads("relation"))
            sources = await service.do(lambda _: source_options(service, source))
            if len(sources) > 2:  # with one source alone there is nothing to choose
                _select(sources, source, "Only facts from this source", leads("source"))
        limit = min(SHOWN, service.limits.k)
        if kind == FALSE:
            told = await service.likely_false(relation, limit, source)
            put("likely_false.html", told=told)
        else:
            shown = await service.doubtful(relation, limit, DIRECTIONS[kind], source)
            put("doubtful.html", facts=shown.facts)
    if len(sources) > 2:
        waiting = ui.label("Counting by source…").classes("wait")
        place = ui.html("", sanitize=False)
        by_source = await service.doubt_by_source()
        if not waiting.is_deleted:
            waiting.delete()
            place.content = markup("doubt_by_source.html", sources=by_source.sources, unnamed=UNNAMED)


def source_options(service: Service, chosen: str | None) -> dict[str, str]:
    """Return the sources of the observed facts, and the one that is chosen, with their labels."""
    names, _ = codes(service.snapshot.dataset.train)
    options = {"": "All sources"} | {name: label(name) for name in names[:MOST_SOURCES] if name != UNNAMED}
    if chosen is not None:
        options.setdefault(chosen, label(chosen))
    return options


def _select(
    options: dict[str, str],
    chosen: str | None,
    what: str,
    choose: Callable[[events.ValueChangeEventArguments[str]], None],
) -> None:
    ui.select(options, value=chosen or "", on_change=choose).props(
        f'outlined dense options-dense aria-label="{what}"'
    ).classes("field rules-filter")
