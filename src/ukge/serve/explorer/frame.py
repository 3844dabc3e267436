"""What every page of the explorer shares: the bar on top, the search, light and dark, and where an address leads."""

# No postponed annotations here: NiceGUI looks at them to see that a page wants its arguments.

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from nicegui import PageArguments, events, ui
from nicegui.context import context

from ukge.errors import UkgeError
from ukge.serve.explorer import ask, doubtful, entity, pages, review
from ukge.serve.explorer.parts import EntityField, markup, put, url
from ukge.serve.problems import NotReadyError, Problem, short
from ukge.serve.service import Service
from ukge.serve.snapshot import UnknownNameError

FAVICON = str(markup("logo.svg", line="#1f5f99", spot="#b7791f"))
NAVIGATION = {
    "/": "Explore",
    "/ask": "Ask",
    "/rules": "Rules",
    "/doubtful": "Doubtful",
    "/review": "Review",
    "/quality": "Quality",
    "/api": "API",
}
THEMES = {
    None: ("contrast", "as the system has it"),
    True: ("dark_mode", "dark"),
    False: ("light_mode", "light"),
}
NEXT_THEME = {None: True, True: False, False: None}
PAUSE = 1.0
"""Seconds before a page that is not ready is tried again."""

Page = Callable[[Service, PageArguments], Awaitable[None]]

PAGES: dict[str, Page] = {
    "/": pages.home,
    "/entity": entity.build,
    "/ask": ask.build,
    "/why": pages.why,
    "/rules": pages.rules,
    "/rule": pages.rule,
    "/doubtful": doubtful.build,
    "/review": review.build,
    "/quality": pages.quality,
    "/api": pages.api,
}


def build_frame(service: Service) -> None:
    """Build what stays while pages change."""
    ui.add_head_html(markup("head.html"))
    ui.colors(primary="#1f5f99")
    dark = ui.dark_mode(None)
    with ui.header().classes("top"), ui.element("div").classes("bar-top"):
        put("brand.html", logo=markup("logo.svg", line="var(--accent)", spot="var(--guess)"))
        ui.element("div").classes("gap")
        _navigation()
        field = EntityField(service, "Search", lambda name: url("/entity", name=name), compact=True)
        _theme_button(dark)
    ui.keyboard(on_key=lambda event: _shortcut(event, field))
    with ui.element("main").classes("page") as middle:
        ui.sub_pages({path: _told(service, page) for path, page in PAGES.items()})
    ui.skip_link(target=middle)


def _navigation() -> None:
    bar = ui.html(_links("/"), sanitize=False, tag="nav").classes("main").props('aria-label="Pages"')

    def moved(path: str) -> None:
        bar.content = _links(urlsplit(path).path)

    router = context.client.sub_pages_router
    moved(router.current_path)
    router.on_path_changed(moved)


def _links(current: str) -> str:
    shown = {"/entity": "/", "/why": "/ask", "/rule": "/rules"}.get(current, current)
    return markup("navigation.html", pages=NAVIGATION, current=shown)


def _theme_button(dark: ui.dark_mode) -> None:
    def switch() -> None:
        dark.value = NEXT_THEME[dark.value]
        show()

    button = ui.button(on_click=switch, color=None).props("flat round dense").classes("tool theme")

    def show() -> None:
        icon, told = THEMES[dark.value]
        button.props(f'icon={icon} aria-label="Colours: {told}" title="Colours: {told}"')

    show()


def _shortcut(event: events.KeyEventArguments, field: EntityField) -> None:
    if event.action.keydown and event.key == "/" and not event.modifiers.ctrl:
        field.focus()


def _told(service: Service, page: Page) -> Callable[[PageArguments], Awaitable[None]]:
    """Return a page that says what is wrong instead of breaking off."""

    async def build(args: PageArguments) -> None:
        waiting = ui.label("Looking…").classes("wait").props("role=status")
        place = ui.element("div")
        while not place.is_deleted:  # whoever asked may have gone to another page meanwhile
            try:
                with place:
                    await page(service, args)
            except NotReadyError as error:
                if place.is_deleted:
                    return
                place.clear()
                waiting.text = f"{error.what.capitalize()} are being prepared…"
                await asyncio.sleep(PAUSE)
                continue
            except UnknownNameError as error:
                near = await service.near(error)
                said = f"The graph has no {error.kind} {short(error.name)!r}."
                put("problem.html", what=said, near=near, kind=error.kind)
            except Problem as error:
                put("problem.html", what=error.detail, near=[], kind=error.kind)
            except UkgeError as error:
                put("problem.html", what=error.what, near=[], kind="refused")
            break
        if not waiting.is_deleted:
            waiting.delete()

    return build
