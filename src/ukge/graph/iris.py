"""Names ⇄ IRIs, without loss: a name that is no web address or URN is percent-encoded under a base."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import quote, unquote

from ukge.errors import ConfigError

BASE = "https://w3id.org/ukge/"
CONFIDENCE = "https://w3id.org/ukge#confidence"
SOURCE = "https://w3id.org/ukge#source"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ADDRESS = re.compile(r"(https?://|urn:)[^\x00-\x20<>\"{}|^`\\]+")


def pyoxigraph() -> Any:
    """Return the RDF library, or say how to install it."""
    try:
        import pyoxigraph as library  # noqa: PLC0415  (an extra, loaded when RDF is asked for)
    except ImportError:
        raise ConfigError("RDF needs the library pyoxigraph", hint="Install it with: pip install 'ukge[rdf]'") from None
    return library


def holds_confidence(predicate: str, base: str) -> bool:
    """Return whether a predicate says a confidence: ours, and any other whose local name is `confidence`."""
    local = predicate.replace("#", "/").rsplit("/", 1)[-1]
    return predicate == CONFIDENCE or (local == "confidence" and not predicate.startswith(base))


def iri_of(name: str, kind: str, base: str, reserved: Collection[str] = ()) -> str:
    """Return the IRI of an entity or relation name.

    A name that is an address stands for itself, unless it is under the base, reserved, or means something to readers.
    """
    plain = _ADDRESS.fullmatch(name) and not name.startswith((base, RDF)) and name not in reserved
    if plain and not holds_confidence(name, base) and _is_iri(name):
        return name
    return f"{base}{kind}/{_encoded(name)}"


def name_of(iri: str, base: str) -> str:
    """Return the name that `iri_of` made this IRI of; any other IRI is its own name."""
    for kind in ("entity", "relation"):
        prefix = f"{base}{kind}/"
        if iri.startswith(prefix):
            name = unquote(iri[len(prefix) :], errors="replace")
            if _encoded(name) == iri[len(prefix) :]:
                return name
    return iri


def _encoded(name: str) -> str:
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def _is_iri(text: str) -> bool:
    try:
        pyoxigraph().NamedNode(text)
    except ValueError:
        return False
    return True
