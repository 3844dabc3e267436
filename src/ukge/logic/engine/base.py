"""What every relational engine does for the logic: hold tables, keep results, hand them over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path
from typing import Any, Self

import pyarrow as pa


class Engine(ABC):
    """Runs Ibis expressions. All relational work goes through this class, so every engine gives the same result."""

    name: str

    def __init__(self) -> None:
        self._numbers = count()

    @abstractmethod
    def load(self, table: pa.Table) -> Any:
        """Bring an Arrow table in and return it as an Ibis table."""

    @abstractmethod
    def keep(self, expression: Any) -> Any:
        """Compute an expression once, for later ones to use, and return it as an Ibis table."""

    @abstractmethod
    def drop(self, table: Any) -> None:
        """Let go of a table that `load` or `keep` returned."""

    @abstractmethod
    def collect(self, expression: Any) -> pa.Table:
        """Compute an expression and return it as an Arrow table."""

    @abstractmethod
    def write_parquet(self, expression: Any, path: Path) -> None:
        """Compute an expression straight into one Parquet file, without holding it in memory."""

    @abstractmethod
    def scan(self, path: str) -> Any:
        """Return the Parquet files below a directory or bucket as an Ibis table, read when an expression needs them.

        Directories `column=value` are columns of text.
        """

    @abstractmethod
    def write_parts(self, expression: Any, path: Path) -> None:
        """Compute an expression into a new directory of Parquet files, as many as the engine likes."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def rows(self, expression: Any) -> list[dict[str, Any]]:
        """Compute a small expression and return its rows."""
        rows: list[dict[str, Any]] = self.collect(expression).to_pylist()
        return rows

    def _name(self) -> str:
        return f"ukge_{next(self._numbers)}"
