"""Formats of facts: how each is read or written, by which extensions it is known, and which options it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ukge.errors import ConfigError, DataError
from ukge.graph.files import check_file, extension_of
from ukge.graph.opening import Opening
from ukge.registry import Registry

if TYPE_CHECKING:
    from ukge.graph.readers.parsed import Parsed

T = TypeVar("T")


@dataclass(frozen=True)
class Format(Generic[T]):
    """One way to read or to write facts, with keyword-only parameters as its options.

    Formats without extensions are asked for by name. A format with a `module` takes objects whose class comes from
    that module, not files. One that is not `by_id` holds names and nothing else, so vocabularies say nothing of it.
    `network` writes facts with more columns than a graph has, predictions with their bounds and reasons.
    `recognise` tells by how a file begins that it is of this format, whatever its extension says.
    """

    call: Callable[..., T]
    extensions: tuple[str, ...] = ()
    module: str | None = None
    by_id: bool = True
    network: Callable[..., None] | None = None
    recognise: Callable[[Opening], bool] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that it takes."""
        parameters = inspect.signature(self.call).parameters.values()
        return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


readers: Registry[Format[Parsed]] = Registry("reader", "ukge.readers")
writers: Registry[Format[None]] = Registry("writer", "ukge.writers")


def format_of_path(path: Path, formats: Registry[Format[T]]) -> str:
    """Return the name of the format that the path's extension stands for."""
    extension = extension_of(path)
    known = {name: formats.get(name).extensions for name in formats if formats.get(name).module is None}
    for name, extensions in known.items():
        if extension in extensions:
            return name
    listed = ", ".join(f"{name} ({' '.join(extensions) or 'by name'})" for name, extensions in known.items())
    raise DataError(
        f"the extension {extension!r} says no format" if extension else "no extension says the format",
        source=str(path),
        hint=f"Name it: ‹format=...›. Known: {listed}.",
    )


def format_of_file(path: Path, options: Mapping[str, Any]) -> str:
    """Return the name of the format that a file is read as.

    That is the one that its beginning shows, if it takes the options; else what its extension says, else a table if the
    options have a delimiter.
    """
    given = {name for name, value in options.items() if value is not None}
    found = recognised(path, given)
    if found is not None:
        return found
    if path.is_dir():
        check_file(path)
    try:
        return format_of_path(path, readers)
    except DataError:
        if options.get("delimiter") is None:
            raise
        return "csv"


def recognised(path: Path, options: Iterable[str] = ()) -> str | None:
    """Return the name of the format that a file or a directory shows by how it begins, if it takes such options."""
    opening = Opening(path)
    for name in readers:
        reader = readers.get(name)
        if reader.recognise is not None and set(options) <= set(reader.options) and reader.recognise(opening):
            return name
    return None


def is_from(source: object, module: str) -> bool:
    """Return whether the class of an object comes from a module, which need not be loaded to know."""
    return any(cls.__module__.split(".")[0] == module for cls in type(source).__mro__)


def check_options(name: str, options: Mapping[str, Any], formats: Registry[Format[T]]) -> None:
    """Raise `ConfigError` for options that the format does not take."""
    taken = formats.get(name).options
    for option in options:
        if option not in taken:
            hint = f"Its options: {', '.join(f'‹{each}›' for each in taken)}." if taken else "It takes no options."
            raise ConfigError(f"{formats.kind} '{name}' has no option ‹{option}›", hint=hint)
