"""Settings that one component alone has: fields of its dataclass, given behind its name, `boxes:temperature=0.01`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from ukge.errors import ConfigError, known_names
from ukge.settings.knobs import Section, knobs_of

WORDS = {"true": True, "false": False}


class Settable(Section):
    """A component whose fields are knobs: checked when it is made, and changed by what stands behind its name."""

    __slots__ = ()

    def with_settings(self, text: str) -> Self:
        """Return a copy with the settings of `NAME=VALUE,NAME=VALUE` changed."""
        kind: type = type(self)
        known = {each.name: each for each in knobs_of(kind)}
        changes: dict[str, Any] = {}
        for each in text.split(","):
            name, equals, value = each.partition("=")
            if not equals:
                raise ConfigError(f"'{each}' is no setting", hint="Say it as NAME=VALUE, with commas between several.")
            if name not in known:
                raise ConfigError(f"there is no setting '{name}' here", hint=known_names(name, known))
            changes[name] = known[name].checked(_read(value, known[name].type), name)
        changed: Self = replace(self, **changes)  # type: ignore[type-var]
        return changed


def _read(text: str, kind: type) -> Any:
    """Return a value as its type writes it; as it stands where it does not, which the check then refuses."""
    if kind is bool:
        return WORDS.get(text, text)
    try:
        return kind(text)
    except ValueError:
        return text
