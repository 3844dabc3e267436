"""Fetching a benchmark from its authors' public repository into a directory, whole or not at all."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from ukge.errors import DataError
from ukge.storage.files import replacing

BASE_URLS = (
    "https://raw.githubusercontent.com/stasl0217/UKGE/master/data",
    "https://raw.githubusercontent.com/stasl0217/beurre/HEAD/data",  # the same authors' later copy, with names
)
NEEDED = ("train.tsv", "val.tsv", "test.tsv", "test_with_neg.tsv")
OPTIONAL = (
    ("softlogic.tsv",),
    ("ndcg_queries.tsv",),
    ("entities.tsv", "entity_id.csv", "concept_id.csv"),
    ("relations.tsv", "relation_id.csv"),
)
TIMEOUT = 30.0
CHUNK = 1 << 16

Advance = Callable[[str, int, int | None], None]


class NotFoundError(Exception):
    """The server answers, and does not have the file."""


def fetch(name: str, into: Path, *, base_urls: Sequence[str] = BASE_URLS, advance: Advance | None = None) -> None:
    """Fetch the files of benchmark `name` into the directory `into`.

    Every file arrives under another name and takes its own when it is complete, so a second attempt continues with the
    files that are still missing. `advance` is called with a file name, the bytes so far and the bytes in all, if known.
    """
    into.mkdir(parents=True, exist_ok=True)
    tell = advance or _silent
    for file in NEEDED:
        if not (into / file).is_file() and not _first(name, (file,), into, base_urls[:1], tell):
            raise DataError(
                f"{base_urls[0]}/{name}/{file} does not exist",
                source=name,
                hint=f"Put the file into {into} by hand, or name a directory that has it in UKGE_DATA.",
            )
    for alternatives in OPTIONAL:
        if not any((into / file).is_file() for file in alternatives):
            _first(name, alternatives, into, base_urls, tell)


def _first(name: str, alternatives: Sequence[str], into: Path, base_urls: Sequence[str], tell: Advance) -> bool:
    for base in base_urls:
        for file in alternatives:
            try:
                _download(f"{base}/{name}/{file}", into / file, tell)
            except NotFoundError:
                continue
            return True
    return False


def _download(url: str, target: Path, tell: Advance) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "ukge"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, replacing(target) as file:
            length = answer.headers.get("Content-Length")
            total = int(length) if length else None
            done = 0
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                tell(target.name, done, total)
            if total is not None and done != total:
                raise DataError(
                    f"only {done:,} of {total:,} bytes arrived", source=url, hint="Try again; what is complete is kept."
                )
    except urllib.error.HTTPError as error:
        if error.code == http.client.NOT_FOUND:
            raise NotFoundError from None
        raise DataError(
            f"the server answered {error.code} {error.reason}", source=url, hint="Try again later."
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"could not be fetched: {reason}", source=url, hint="Is this machine online? Try again."
        ) from None


def _silent(file: str, done: int, total: int | None) -> None:
    """Say nothing."""
