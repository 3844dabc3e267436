"""The registry of formats that can be read."""

from __future__ import annotations

from pathlib import Path

from ukge.errors import ConfigError, DataError
from ukge.graph.formats import Format, format_of_path
from ukge.graph.readers.parsed import Parsed
from ukge.registry import Registry

readers: Registry[Format[Parsed]] = Registry("reader", "ukge.readers")


def format_of_file(path: Path, delimiter: str | None = None) -> str:
    """Return the name of the format of a file: as its extension says, else a table if a delimiter is given."""
    try:
        return format_of_path(path, readers)
    except DataError:
        if delimiter is None:
            raise
        return "csv"


def format_of_object(source: object) -> str:
    """Return the name of the format for an object in memory."""
    known = _formats_of_objects()
    for name, module in known.items():
        if is_from(source, module):
            return name
    if hasattr(source, "__arrow_c_stream__"):
        return "arrow"
    raise ConfigError(
        f"cannot read facts from an object of type {type(source).__name__}",
        hint=f"Give a path, or an object of one of: {', '.join(known)}.",
    )


def is_readable(source: object) -> bool:
    """Return whether an object in memory has a format."""
    known = _formats_of_objects().values()
    return hasattr(source, "__arrow_c_stream__") or any(is_from(source, module) for module in known)


def _formats_of_objects() -> dict[str, str]:
    modules = {name: readers.get(name).module for name in readers}
    return {name: module for name, module in modules.items() if module is not None}


def is_from(source: object, module: str) -> bool:
    """Return whether the class of an object comes from a module, which need not be loaded to know."""
    return any(cls.__module__.split(".")[0] == module for cls in type(source).__mro__)
