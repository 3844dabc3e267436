"""Observed facts whose stored confidence is contradicted."""

from __future__ import annotations

from nicegui import PageArguments, ui

from ukge.serve import schema
from ukge.serve.explorer.markup import meter, text, why_url
from ukge.serve.names import label
from ukge.serve.service import Service

SHOWN = 60


async def build(service: Service, _: PageArguments) -> None:
    """Build the page."""
    told = await service.doubtful(limit=min(SHOWN, service.limits.k))
    by = "the evidence" if told.opinion == "evidence" else "the model"
    rows = "".join(_row(each) for each in told.facts) or '<p class="soft">None.</p>'
    ui.html(
        f'<div class="head"><h1>Doubtful facts</h1><span class="soft">stored with a confidence that {by} contradicts; '
        f'the widest gaps first</span></div><section class="card">{rows}</section>',
        sanitize=False,
    )


def _row(each: schema.DoubtOut) -> str:
    told = (
        f"<b>{text(label(each.head))}</b> <span class='soft'>— {text(label(each.relation))} —</span> "
        f"<b>{text(label(each.tail))}</b>"
    )
    names = text(f"{each.head} — {each.relation} — {each.tail}")
    return (
        f'<a class="doubt" href="{why_url(each.head, each.relation, each.tail)}" title="{names}"><span>{told}</span>'
        f'<span class="both"><span>stored</span>{meter(each.stored)}<span>{each.stored:.2f}</span>'
        f"<span>predicted</span>{meter(each.predicted, guess=True)}<span>{each.predicted:.2f}</span></span></a>"
    )
