"""The reasons of one confidence."""

from __future__ import annotations

from nicegui import PageArguments, ui

from ukge.serve import schema
from ukge.serve.explorer.markup import meter, reason, sentence, text, url
from ukge.serve.service import Service

TELLING = 0.005
"""Contribution, for or against, below which a reason is folded away."""

NO_EVIDENCE = (
    '<p class="small soft" style="margin-top:8px">This run has no evidence. Bounds are those of the model\'s errors on '
    "validation facts and negative links; reasons are what the graph holds that fits, not what moved the model. "
    '<span class="mono">ukge evidence fit RUN</span> finds what does.</p>'
)


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    head, relation, tail = (args.query_parameters.get(name, "") for name in ("head", "relation", "tail"))
    told = await service.explain(head, relation, tail)
    ui.html(f'<div class="stack">{_claim(told)}{_reasons(told)}</div>', sanitize=False)


def _claim(told: schema.ExplainResponse) -> str:
    bounds = ""
    if told.interval is not None:
        bounds = f" · nine of ten such facts lie between {told.interval.low:.2f} and {told.interval.high:.2f}"
    stored = (
        f'<span class="tag known">in the graph with {told.observed:.2f}</span>'
        if told.observed is not None
        else '<span class="tag guess">not in the graph</span>'
    )
    by = "evidence and model" if told.opinion == "evidence" else "the model"
    gauge = meter(told.confidence, guess=True, bounds=told.interval, mark=told.observed, large=True)
    ask = url("/ask", head=told.head, relation=told.relation)
    return (
        f'<section class="card">{sentence(told.head, told.relation, told.tail)}'
        f'<div style="margin:20px 0 12px;max-width:640px">{gauge}</div>'
        f'<p><b class="num">{told.confidence:.2f}</b> <span class="soft">predicted by {text(by)}{bounds}</span> '
        f"{stored}</p>"
        f'<p class="small" style="margin-top:8px"><a href="{ask}">Other answers to this question</a></p>'
        f"{NO_EVIDENCE if told.opinion == 'model' else ''}</section>"
    )


def _reasons(told: schema.ExplainResponse) -> str:
    if not told.reasons:
        inside = '<p class="soft">The graph holds nothing that speaks of this fact.</p>'
    else:
        base = ""
        if told.base is not None:
            base = (
                f'<p class="soft">Starting from {told.base:.2f}, what is usual, each reason moves the confidence.</p>'
            )
        telling = [each for each in told.reasons if each.contribution is None or abs(each.contribution) >= TELLING]
        inside = base + "".join(reason(each) for each in telling)
        others = [each for each in told.reasons if each not in telling]
        if others:
            rest = "".join(reason(each) for each in others)
            inside += f'<details class="more"><summary>{len(others)} that hardly move it</summary>{rest}</details>'
    return f'<section class="card"><h2>Why</h2>{inside}</section>'
