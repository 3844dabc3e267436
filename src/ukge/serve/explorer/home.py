"""The first page: search, numbers, and where to begin."""

from __future__ import annotations

import numpy as np
from nicegui import PageArguments

from ukge.html.pictures import histogram
from ukge.serve.explorer.fields import EntityField
from ukge.serve.explorer.markup import put, url
from ukge.serve.names import label
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot

KNOWN, QUESTIONS, BINS = 14, 6, 20


async def build(service: Service, _: PageArguments) -> None:
    """Build the page."""
    info = service.info()
    put("hero.html", info=info)
    field = EntityField(service, "Search an entity", lambda name: url("/entity", name=name))
    field.focus()
    known = (await service.entities("", KNOWN)).entities
    asked = await service.do(lambda _: questions(service.snapshot))
    counts = np.histogram(service.snapshot.known.all().confidence, bins=BINS, range=(0, 1))[0].tolist()
    drawn = histogram(counts, "Confidences of all facts", 440, 150)
    put("home.html", info=info, known=known, questions=asked, histogram=drawn)


def questions(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return questions of various relations whose head is well known and that have sure answers."""
    facts = snapshot.known.all()
    if len(facts.head) == 0:
        return []
    degree = snapshot.known.degree
    worth = facts.confidence**2 * np.log1p(degree[facts.head])
    asked: list[tuple[str, str]] = []
    heads: set[str] = set()
    for relation in np.argsort(-snapshot.facts_by_relation, kind="stable").tolist():
        rows = np.flatnonzero(facts.relation == relation)
        best = rows[np.argsort(-worth[rows], kind="stable")[:40]]
        name = next(
            (each for each in (snapshot.entities[int(facts.head[r])] for r in best) if label(each) not in heads), None
        )
        if name is not None and len(rows) >= 5:
            heads.add(label(name))
            asked.append((name, snapshot.relations[relation]))
        if len(asked) == QUESTIONS:
            break
    return asked
