"""The registry of formats that can be read."""

from __future__ import annotations

from pathlib import Path

from ukge.errors import ConfigError, DataError
from ukge.graph.formats import Format, format_of_path
from ukge.graph.readers.parsed import Parsed
from ukge.registry import Registry

readers: Registry[Format[Parsed]] = Registry("reader")


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
    known = {name: readers.get(name).module for name in readers}
    for name, module in known.items():
        if module is not None and _is_from(source, module):
            return name
    if hasattr(source, "__arrow_c_stream__"):
        return "arrow"
    raise ConfigError(
        f"cannot read facts from an object of type {type(source).__name__}",
        hint=f"Give a path, or an object of one of: {', '.join(name for name, module in known.items() if module)}.",
    )


def _is_from(source: object, module: str) -> bool:
    return any(cls.__module__.split(".")[0] == module for cls in type(source).__mro__)
