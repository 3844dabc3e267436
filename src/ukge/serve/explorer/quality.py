"""Whether confidences mean what they say, and what is wrong with the data."""

from __future__ import annotations

from nicegui import PageArguments, ui

from ukge.html.pictures import histogram
from ukge.serve import schema
from ukge.serve.explorer.drawing import reliability_curve
from ukge.serve.explorer.markup import markup, put
from ukge.serve.service import Service

RELATIONS_SHOWN = 12
DRAWN = {"reliability_curve": reliability_curve, "histogram": histogram, "shown": RELATIONS_SHOWN}


async def build(service: Service, _: PageArguments) -> None:
    """Build the page; the curve comes first, the audit when it is there."""
    put("title.html", title="Quality", about="of the confidences, and of the data")
    waiting = ui.label("Counting…").classes("wait")
    curves = _curves(await service.reliability())
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
