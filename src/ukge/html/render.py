"""Templates into markup: one environment, in which all values are escaped and a missing one is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NOTHING = "–"
"""What stands for a number that there is not."""

UNSEEN = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x061C, *range(0x200E, 0x2010), *range(0x2028, 0x202F)), 0xFFFD),
    **dict.fromkeys(range(0x2066, 0x206A), 0xFFFD),
}
"""Characters that nobody sees, and the signs that stand for them."""


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
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    made.filters |= {"form": form, "width": width}
    return made


def shown(value: object) -> object:
    """Return what stands for a value on a page: of text, signs in place of characters that nobody sees.

    Those are control characters, and marks that turn what follows them around, the page's own words included.
    """
    from markupsafe import Markup  # noqa: PLC0415

    return value.translate(UNSEEN) if isinstance(value, str) and not isinstance(value, Markup) else value


def form(number: float | None, how: str) -> str:
    """Return a number in a form of Python's `format`, or a dash if there is none."""
    return NOTHING if number is None else format(number, how)


def width(share: float) -> str:
    """Return a share of one as a part of a box, for styles."""
    return f"{100 * min(1.0, max(0.0, share)):.1f}%"
