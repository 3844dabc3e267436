"""The first page: search, numbers, and where to begin."""

from __future__ import annotations

import numpy as np
from nicegui import PageArguments, ui

from ukge.serve.explorer.drawing import histogram
from ukge.serve.explorer.fields import EntityField
from ukge.serve.explorer.markup import card, question_chip, text, url
from ukge.serve.names import label
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot

KNOWN, QUESTIONS, BINS = 14, 6, 20


async def build(service: Service, _: PageArguments) -> None:
    """Build the page."""
    info = service.info()
    ui.html(
        f'<div class="hero"><h1>What does the graph believe?</h1><p>{info.facts:,} facts between {info.entities:,} '
        f"entities, each with a confidence. Search one, or ask.</p></div>",
        sanitize=False,
    )
    field = EntityField(service, "Search an entity", lambda name: url("/entity", name=name))
    field.focus()
    known = (await service.entities("", KNOWN)).entities
    chips = "".join(
        f'<a class="chip" href="{url("/entity", name=each.name)}" title="{text(each.name)}">{text(each.label)} '
        f"<i>{each.facts:,}</i></a>"
        for each in known
    )
    asked = await service.do(lambda _: questions(service.snapshot))
    offered = "".join(question_chip(head, relation) for head, relation in asked)
    counts = np.histogram(service.snapshot.observed.all().confidence, bins=BINS, range=(0, 1))[0].tolist()
    ui.html(
        '<div class="stack" style="margin-top:34px">'
        + card("Ask", f'<div class="chips">{offered}</div>')
        + card("Well known here", f'<div class="chips">{chips}</div>')
        + f'<div class="two">{card("How confident the facts are", histogram(counts, "Confidences of all facts"))}'
        f"{_tiles(service)}</div></div>",
        sanitize=False,
    )


def _tiles(service: Service) -> str:
    info = service.info()
    by = "evidence and model" if info.opinion == "evidence" else info.model
    tiles = [
        ("/rules", f"{info.relations:,}", "relations"),
        ("/quality", text(by), "states the confidences"),
        ("/doubtful", f"{info.strong_above:g}", "and above: a strong fact"),
        ("/quality", text(info.data), "is what it learnt from"),
    ]
    inside = "".join(
        f'<a class="tile" href="{path}"><b>{number}</b><span>{told}</span></a>' for path, number, told in tiles
    )
    return f'<div class="tiles square">{inside}</div>'


def questions(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return questions of various relations whose head is well known and that have sure answers."""
    facts = snapshot.observed.all()
    if len(facts.head) == 0:
        return []
    degree = snapshot.observed.degree
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
