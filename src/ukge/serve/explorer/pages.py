"""The pages that list: home, the reasons of a fact, rules, doubtful facts, quality, and the API shown to people."""

from __future__ import annotations

import shlex

import numpy as np
from nicegui import PageArguments, events, ui
from nicegui.context import context

from ukge.html.pictures import histogram, reliability
from ukge.logic.syntax import parse_rule
from ukge.serve import schema
from ukge.serve.api import listed
from ukge.serve.explorer.parts import EntityField, label, markup, put, url
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot

KNOWN, QUESTIONS, BINS = 14, 6, 20
SHOWN, SYMMETRIES = 60, 12
TELLING = 0.005
"""Contribution, for or against, below which a reason is folded away."""

KINDS = {
    "observed": "In the graph",
    "rule": "A rule",
    "pair": "The same two",
    "inverse": "The other way round",
    "analogue": "Alike",
    "repeat": "Known already",
    "neighbours": "Common neighbours",
    "query": "What the head has here",
    "inverse query": "What the tail has here",
    "head": "The head in general",
    "tail": "The tail in general",
    "relation": "The relation in general",
    "model": "The model",
    "other": "All else",
}
RULES = "found in the training facts; the hit ratio is the share of a rule's conclusions that the graph holds"
DRAWN = {"reliability": reliability, "histogram": histogram, "shown": SYMMETRIES}


async def home(service: Service, _: PageArguments) -> None:
    """Build the first page: search, numbers, and where to begin."""
    info = service.info()
    put("hero.html", info=info)
    EntityField(service, "Search an entity", lambda name: url("/entity", name=name)).focus()
    known = (await service.entities("", min(KNOWN, service.limits.k))).entities
    asked = await service.do(lambda _: questions(service.snapshot))
    counts = np.histogram(service.snapshot.known.all().confidence, bins=BINS, range=(0, 1))[0].tolist()
    drawn = histogram(counts, "Confidences of all facts", 440, 150)
    put("home.html", info=info, known=known, questions=asked, histogram=drawn)


def questions(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return questions of various relations whose head is well known and that have sure answers."""
    facts = snapshot.known.all()
    worth = facts.confidence**2 * np.log1p(snapshot.known.degree[facts.head])
    asked: dict[str, tuple[str, str]] = {}
    for relation in np.argsort(-snapshot.facts_by_relation, kind="stable").tolist():
        rows = np.flatnonzero(facts.relation == relation)
        if len(asked) == QUESTIONS or len(rows) < 5:  # further relations have still fewer
            break
        best = rows[np.argsort(-worth[rows], kind="stable")[:40]]
        heads = snapshot.entities.decode(facts.head[best]).to_pylist()
        name = next((each for each in heads if label(each) not in asked), None)
        if name is not None:
            asked[label(name)] = name, snapshot.relations[relation]
    return list(asked.values())


async def why(service: Service, args: PageArguments) -> None:
    """Build the reasons of one confidence."""
    head, relation, tail = (args.query_parameters.get(name, "") for name in ("head", "relation", "tail"))
    fact = await service.explain(head, relation, tail)
    telling = [each for each in fact.reasons if each.contribution is None or abs(each.contribution) >= TELLING]
    others = [each for each in fact.reasons if each not in telling]
    put("why.html", fact=fact, telling=telling, others=others, kinds=KINDS)


async def rules(service: Service, args: PageArguments) -> None:
    """Build the list of rules with their hit ratios."""
    search = args.query_parameters.get("search", "")[:200]
    put("title.html", title="Rules", about=RULES)
    with ui.element("section").classes("card"):
        field = (
            ui.input(placeholder="Only rules with this word", value=search)
            .props('outlined dense debounce=200 clearable aria-label="Filter rules"')
            .classes("field rules-filter")
        )
        waiting = ui.label("The rules are being mined…").classes("wait")
        shown = ui.html("", sanitize=False)

        async def show(wanted: str) -> None:
            told = await service.rules(search=wanted[:200], limit=min(SHOWN, service.limits.k))
            waiting.visible = False
            shown.content = markup("rules.html", rules=told.rules, total=told.total, parse_rule=parse_rule)

        async def typed(event: events.ValueChangeEventArguments[str | None]) -> None:
            await show(event.value or "")

        field.on_value_change(typed)
        await show(search)


async def rule(service: Service, args: PageArguments) -> None:
    """Build the page of one rule, with examples."""
    number = args.query_parameters.get("number", "")
    told = await service.rule(int(number) if number.isdecimal() and len(number) < 10 else -1)
    parsed, written = parse_rule(told.rule.rule), _written(told.rule.rule)
    put("rule.html", rule=parsed, written=written, figures=told.rule, examples=told.examples)


def _written(rule: str) -> str:
    """Return a rule as it is written in a file, its weight with as many digits as people read."""
    weight, colon, rest = rule.partition(":")
    try:
        return f"{float(weight):.2f}{colon}{rest}"
    except ValueError:
        return rule


async def quality(service: Service, _: PageArguments) -> None:
    """Build whether confidences mean what they say; the curve comes first, the audit when it is there."""
    put("title.html", title="Quality", about="of the confidences, and of the data")
    waiting = ui.label("Counting…").classes("wait")
    curves = _curves(await service.found(service.snapshot.quality))
    waiting.visible = False
    place = put("quality.html", curves=curves, found=None, **DRAWN)
    found = await service.found(service.snapshot.audit)
    place.content = markup("quality.html", curves=curves, found=found, **DRAWN)


def _curves(measured: schema.ReliabilityResponse) -> list[tuple[str, schema.Curve]]:
    """Return the curves of the facts, and of facts and negative links if there are any, with what they are."""
    curves: list[tuple[str, schema.Curve]] = [
        (f"The {measured.facts:,} facts of the {measured.part} part, taken to be facts", measured)
    ]
    if measured.with_negatives is not None:
        links = measured.with_negatives.facts - measured.facts
        whose = "of the data set" if measured.negatives == "given" else "that were drawn"
        curves.append((f"The same facts and {links:,} negative links {whose}", measured.with_negatives))
    return curves


async def api(service: Service, _: PageArguments) -> None:
    """Build the API, shown to people: its routes, and how to ask from a shell and from Python."""
    head, relation, tail = await service.do(lambda _: service.snapshot.example())
    request = context.client.request
    base = str(request.base_url).rstrip("/") if request is not None else "http://127.0.0.1:8000"
    shell = (
        f"curl -G {base}/v1/rank \\\n  --data-urlencode {shlex.quote('head=' + head)} \\\n"
        f"  --data-urlencode {shlex.quote('relation=' + relation)} -d k=3"
    )
    python = (
        f"from ukge.client import Client\n\ngraph = Client({base!r})\n"
        f"graph.rank({head!r}, {relation!r}, k=3).answers\ngraph.explain({head!r}, {relation!r}, {tail!r}).reasons"
    )
    put("api.html", shell=shell, python=python, routes=listed(service))
