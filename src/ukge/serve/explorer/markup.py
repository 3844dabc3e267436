"""What the explorer's templates share, and the addresses within it."""

from __future__ import annotations

from urllib.parse import urlencode

from markupsafe import Markup
from nicegui import ui

from ukge.html import render
from ukge.serve.names import category, label


def url(path: str, **query: str | int | None) -> str:
    """Return an address within the explorer."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def markup(template: str, **values: object) -> Markup:
    """Return a template of the explorer, filled."""
    return render(f"explorer/{template}", label=label, category=category, url=url, **values)


def put(template: str, **values: object) -> ui.html:
    """Put a template of the explorer on the page, filled; it has escaped what it was given."""
    return ui.html(markup(template, **values), sanitize=False)
