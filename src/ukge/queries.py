"""What a query with a missing entity is, whoever answers it."""

from __future__ import annotations

from ukge.errors import ConfigError, DataError


def asked_relation(head: str | None, relation: str | None, tail: str | None, k: int) -> str:
    """Return the relation of a query with one missing entity and k answers, if it is one."""
    if relation is None or (head is None) == (tail is None):
        raise DataError("a query needs a relation and either a head or a tail")
    if k < 1:
        raise ConfigError(f"k is {k}: there is no such number of answers", hint="Give 1 or more.")
    return relation
