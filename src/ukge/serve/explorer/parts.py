"""What the pages share: templates put on a page, addresses within the explorer, and fields to choose names in."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from markupsafe import Markup
from nicegui import events, ui

from ukge.html import render
from ukge.serve import names
from ukge.serve.service import Service

OFFERED, MOST_RELATIONS = 8, 2_000


def url(path: str, **query: str | int | None) -> str:
    """Return an address within the explorer."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


_speakers: list[Service] = []


def speak_for(service: Service) -> None:
    """Call entities as the run that this service serves does; there is one explorer in a process."""
    _speakers[:] = [service]


def label(name: str) -> str:
    """Return what people call an entity or a relation."""
    return _speakers[0].snapshot.label(name) if _speakers else names.label(name)


def category(name: str) -> str:
    """Return what kind of entity it is, if that is known."""
    return _speakers[0].snapshot.category(name) if _speakers else names.category(name)


def markup(template: str, **values: object) -> Markup:
    """Return a template of the explorer, filled."""
    return render(f"explorer/{template}", label=label, category=category, url=url, **values)


def put(template: str, **values: object) -> ui.html:
    """Put a template of the explorer on the page, filled; it has escaped what it was given."""
    return ui.html(markup(template, **values), sanitize=False)


async def relation_options(service: Service, chosen: str | None) -> dict[str, str]:
    """Return the relations with most facts, and the one that is chosen, with their labels."""
    found = (await service.relations("", min(MOST_RELATIONS, service.limits.k))).relations
    options = {each.name: each.label for each in found}
    if chosen is not None:
        options.setdefault(chosen, label(chosen))
    return options


class EntityField:
    """Offers entities while one types, each a link: choose with the mouse, with Tab, or with Enter for the first.

    `address` says where a choice leads.
    """

    def __init__(
        self, service: Service, title: str, address: Callable[[str], str], value: str = "", *, compact: bool = False
    ) -> None:
        self._service = service
        self._address = address
        self._first: str | None = None
        with ui.element("div").classes("search-compact wide-only" if compact else "search") as self.box:
            self._input = ui.input(placeholder=title, value=value, on_change=self._typed).classes("field")
            self._input.props("outlined dense debounce=130 autocomplete=off")
            self._input.props["aria-label"] = title  # as a value: a name may hold whatever ends a string of props
            self._offers = ui.html("", sanitize=False).classes("found")
            self._offers.visible = False
        self._input.on("keydown.enter", self._take_first)
        self._input.on("keydown.esc", self._close)
        self._input.on("keydown.down", self._into_offers)

    def focus(self) -> None:
        """Put the cursor into the field."""
        self._input.run_method("focus")

    async def _typed(self, event: events.ValueChangeEventArguments[str | None]) -> None:
        typed = (event.value or "").strip()
        if not typed:
            self._close()
            return
        found = (await self._service.entities(typed[:200], OFFERED)).entities
        if (self._input.value or "").strip() != typed:
            return  # typed on meanwhile; that search shows its own
        self._first = self._address(found[0].name) if found else None
        self._offers.content = markup("offers.html", found=found, address=self._address)
        self._offers.visible = True

    def _close(self) -> None:
        self._offers.visible = False
        self._first = None

    def _take_first(self) -> None:
        if self._first is not None:
            address = self._first
            self._close()
            ui.navigate.to(address)

    def _into_offers(self) -> None:
        ui.run_javascript(f'getHtmlElement({self._offers.id})?.querySelector("a")?.focus()')
