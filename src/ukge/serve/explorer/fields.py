"""A field that offers entities while one types; each offer is a link."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

from nicegui import events, ui

from ukge.serve import schema
from ukge.serve.explorer.markup import text
from ukge.serve.service import Service

OFFERED = 8


class EntityField:
    """Type, and choose with the mouse, with Tab, or with Enter for the first. `address` says where a choice leads."""

    def __init__(
        self, service: Service, title: str, address: Callable[[str], str], value: str = "", *, compact: bool = False
    ) -> None:
        self._service = service
        self._address = address
        self._first: str | None = None
        with ui.element("div").classes("search-compact wide-only" if compact else "search") as self.box:
            self._input = (
                ui.input(placeholder=title, value=value, on_change=self._typed)
                .props(f'outlined dense debounce=130 autocomplete=off aria-label="{text(title)}"')
                .classes("field")
            )
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
        self._offers.content = "".join(self._offer(each) for each in found) or "<p>Nothing is called like that.</p>"
        self._offers.visible = True

    def _offer(self, each: schema.EntityMatch) -> str:
        kind = f" · {text(each.category)}" if each.category else ""
        return (
            f'<a href="{self._address(each.name)}" title="{text(each.name)}">'
            f'<span class="what">{text(each.label)}</span><small>'
            f"{each.facts:,} facts{kind}</small></a>"
        )

    def _close(self) -> None:
        self._offers.visible = False
        self._first = None

    def _take_first(self) -> None:
        if self._first is not None:
            address = unescape(self._first)
            self._close()
            ui.navigate.to(address)

    def _into_offers(self) -> None:
        ui.run_javascript(f'getHtmlElement({self._offers.id})?.querySelector("a")?.focus()')
