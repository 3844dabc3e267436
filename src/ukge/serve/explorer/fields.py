"""A field that offers entities while one types; each offer is a link."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import events, ui

from ukge.serve.explorer.markup import markup
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
