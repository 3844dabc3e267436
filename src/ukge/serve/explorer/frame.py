"""What every page of the explorer shares: the bar on top, the search, light and dark, and where an address leads."""

# No postponed annotations here: NiceGUI looks at them to see that a page wants its arguments.

import asyncio
import html
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from nicegui import PageArguments, events, ui
from nicegui.context import context

from ukge.serve.deadlines import NotReadyError, TimeLimitError
from ukge.serve.explorer import ask, doubtful, entity, home, interface, quality, rules, why
from ukge.serve.explorer.fields import EntityField
from ukge.serve.explorer.markup import entity_link, text, url
from ukge.serve.explorer.theme import CSS
from ukge.serve.problems import Problem
from ukge.serve.service import Service
from ukge.serve.snapshot import UnknownNameError
from ukge.serve.work import OverloadedError

LOGO = (
    '<svg viewBox="0 0 24 24" aria-hidden="true"><g fill="none" stroke="{line}" stroke-linecap="round">'
    '<path d="M6 17 12 6" stroke-width="2.6"/><path d="M12 6l6.5 9" stroke-width="1.4"/>'
    '<path d="M6 17l12.5-2" stroke-width="1.6" stroke-dasharray="2.6 2.8"/></g>'
    '<circle cx="12" cy="5.5" r="3.2" fill="{line}"/><circle cx="5.5" cy="17.5" r="3.2" fill="{line}"/>'
    '<circle cx="18.5" cy="15" r="3.2" fill="{spot}"/></svg>'
)
FAVICON = LOGO.format(line="#1f5f99", spot="#b7791f").replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
NAVIGATION = {
    "/": "Explore",
    "/ask": "Ask",
    "/rules": "Rules",
    "/doubtful": "Doubtful",
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
    "/": home.build,
    "/entity": entity.build,
    "/ask": ask.build,
    "/why": why.build,
    "/rules": rules.build,
    "/rule": rules.build_one,
    "/doubtful": doubtful.build,
    "/quality": quality.build,
    "/api": interface.build,
}


def build_frame(service: Service) -> None:
    """Build what stays while pages change."""
    ui.add_css(CSS)
    ui.colors(primary="#1f5f99")
    dark = ui.dark_mode(None)
    with ui.header().classes("top"), ui.element("div").classes("bar-top"):
        logo = LOGO.format(line="var(--accent)", spot="var(--guess)")
        ui.html(f'<a class="brand" href="/" aria-label="ukge: start">{logo}ukge</a>', sanitize=False)
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
    return "".join(
        f'<a href="{path}"{" aria-current=page" if path == shown else ""}>{html.escape(name)}</a>'
        for path, name in NAVIGATION.items()
    )


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
        waiting = ui.html('<p class="wait" role="status">Looking…</p>', sanitize=False)
        place = ui.element("div")
        while not place.is_deleted:  # whoever asked may have gone to another page meanwhile
            try:
                with place:
                    await page(service, args)
            except NotReadyError as error:
                if place.is_deleted:
                    return
                place.clear()
                waiting.content = f'<p class="wait" role="status">{error.what.capitalize()} are being prepared…</p>'
                await asyncio.sleep(PAUSE)
                continue
            except UnknownNameError as error:
                near = "".join(f"<li>{_near(error.kind, name)}</li>" for name in await service.near(error))
                offered = f'<h3>Near names</h3><ul class="lines">{near}</ul>' if near else ""
                _say(f"The graph has no {error.kind} {error.name!r}.", offered)
            except TimeLimitError:
                _say("That took too long.", "<p class='soft'>Ask for less at once.</p>")
            except OverloadedError:
                _say("The service is busy.", "<p class='soft'>Try again in a moment.</p>")
            except Problem as error:
                _say(error.detail, "")
            break
        if not waiting.is_deleted:
            waiting.delete()

    return build


def _near(kind: str, name: str) -> str:
    return entity_link(name) if kind == "entity" else text(name)


def _say(what: str, more: str) -> None:
    ui.html(f'<section class="card"><h2>{text(what)}</h2>{more}</section>', sanitize=False)
