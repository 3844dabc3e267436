"""One registry for every kind of component: scorers, links, samplers, readers and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ukge.errors import ConfigError, known_names

T = TypeVar("T")


class Registry(Generic[T]):
    """Named components of one kind. Third parties add theirs through the entry-point group `ukge.<kind>`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._known: dict[str, T] = {}
        self._plugins_loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a component to make it known under `name`."""

        def add(component: T) -> T:
            if name in self._known:
                raise ConfigError(f"{self.kind} '{name}' is registered twice", hint="Give one of them another name.")
            self._known[name] = component
            return component

        return add

    def get(self, name: str) -> T:
        """Return the component called `name`, or say which names exist."""
        if name not in self:
            raise ConfigError(f"unknown {self.kind} '{name}'", hint=known_names(name, sorted(self._known)))
        return self._known[name]

    def names(self) -> list[str]:
        """Return the known names, sorted."""
        self._load_plugins()
        return sorted(self._known)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        if name not in self._known:
            self._load_plugins()
        return name in self._known

    def _load_plugins(self) -> None:
        """Take in what other packages offer; to look for it takes a while, so names of our own do without."""
        if self._plugins_loaded:
            return
        from importlib.metadata import entry_points  # noqa: PLC0415

        self._plugins_loaded = True
        for point in entry_points(group=f"ukge.{self.kind}"):
            component: T = point.load()
            if self._known.get(point.name) is not component:
                self.register(point.name)(component)
