"""Templates into markup: one environment, in which all values are escaped and a missing one is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NOTHING = "–"
"""What stands for a number that there is not."""


def render(template: str, **values: object) -> Markup:
    """Return a template filled with values, all escaped but those that were rendered before."""
    from markupsafe import Markup  # noqa: PLC0415 — answers that show no page do not wait for templates

    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    made = Environment(
        loader=PackageLoader("ukge.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    made.filters |= {"form": form, "width": width}
    return made


def form(number: float | None, how: str) -> str:
    """Return a number in a form of Python's `format`, or a dash if there is none."""
    return NOTHING if number is None else format(number, how)


def width(share: float) -> str:
    """Return a share of one as a part of a box, for styles."""
    return f"{100 * min(1.0, max(0.0, share)):.1f}%"
