"""Whether confidences mean what they say, and what is wrong with the data."""

from __future__ import annotations

from nicegui import PageArguments, ui

from ukge.graph.audit import Audit
from ukge.serve import schema
from ukge.serve.explorer.drawing import histogram, reliability_curve
from ukge.serve.explorer.markup import card, table, text
from ukge.serve.names import label
from ukge.serve.service import Service

RELATIONS_SHOWN = 12


async def build(service: Service, _: PageArguments) -> None:
    """Build the page; the curve comes first, the audit when it is there."""
    ui.html(
        '<div class="head"><h1>Quality</h1><span class="soft">of the confidences, and of the data</span></div>',
        sanitize=False,
    )
    place = ui.html('<p class="wait">Counting…</p>', sanitize=False)
    reliability = await service.reliability()
    place.content = f'<div class="stack">{_curve(reliability)}</div>'
    found = await service.found(service.snapshot.audit)
    place.content = f'<div class="stack">{_curve(reliability)}{_audit(found)}</div>'


def _curve(told: schema.ReliabilityResponse) -> str:
    how = (
        "<p>Each point joins facts with about the same predicted confidence. On the dashed line, prediction and graph "
        "agree; above it the graph is surer than predicted, below it less.</p>"
    )
    plots = _plot(f"The {told.facts:,} facts of the {told.part} part, taken to be facts", told)
    if told.with_negatives is not None:
        links = told.with_negatives.facts - told.facts
        whose = "of the data set" if told.negatives == "given" else "that were drawn"
        plots += _plot(f"The same facts and {links:,} negative links {whose}", told.with_negatives)
    return card("Do confidences mean what they say?", f'{how}<div class="two curves">{plots}</div>')


def _plot(title: str, curve: schema.Curve) -> str:
    order = "none" if curve.spearman is None else f"{curve.spearman:.2f}".replace("-", "−")
    return (
        f"<div><h3>{text(title)}</h3>{reliability_curve(curve)}"
        f'<div class="tiles" style="margin-top:10px"><div class="tile"><b>{curve.ece:.3f}</b><span>calibration error: '
        f'the mean gap</span></div><div class="tile"><b>{order}</b><span>rank correlation with the stored confidences'
        "</span></div></div></div>"
    )


def _audit(found: Audit) -> str:
    lines = "".join(f"<li>{text(line)}</li>" for line in found.headlines())
    parts = "".join(
        f"<div><h3>{text(part.name)}: {part.rows:,} facts</h3>"
        f"{histogram(part.histogram, f'Confidences of {part.name}')}</div>"
        for part in (found.parts or (found.whole,))
    )
    cards = [
        card("What the audit found", f'<ul class="lines">{lines}</ul>'),
        card("Confidences of the parts", f'<div class="three">{parts}</div>'),
    ]
    if found.baselines:
        rows = (
            [text(each.name), text(each.fitted_on), f"{each.positives.mse:.4f}", f"{each.positives.mae:.4f}"]
            for each in found.baselines
        )
        head = [("prediction", False), ("fitted on", False), ("test MSE", True), ("test MAE", True)]
        cards.append(card("What needs no model", table(head, rows)))
    if found.symmetry:
        rows = (
            [
                f'<span title="{text(each.relation)}">{text(label(each.relation))}</span>',
                f"{each.facts:,}",
                f"{each.share:.0%}",
            ]
            for each in found.symmetry[:RELATIONS_SHOWN]
        )
        head = [("relation", False), ("facts", True), ("inverse is a fact too", True)]
        cards.append(card("Symmetry of the largest relations", table(head, rows)))
    return "".join(cards)
