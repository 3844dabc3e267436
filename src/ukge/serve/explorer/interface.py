"""The HTTP API, shown to people: its routes, and how to ask from a shell and from Python."""

from __future__ import annotations

from nicegui import PageArguments
from nicegui.context import context

from ukge.serve.examples import example_fact
from ukge.serve.explorer.markup import put
from ukge.serve.service import Service

ROUTES = [
    ("GET, POST", "/v1/confidence", "How likely is this fact? Many at once with POST."),
    ("GET", "/v1/rank", "Which tail, or head, fits best?"),
    ("GET", "/v1/explain", "Why is this fact likely or not?"),
    ("GET", "/v1/complete", "Which facts are missing?"),
    ("GET", "/v1/entities", "Find entities by name."),
    ("GET", "/v1/relations", "Find relations by name."),
    ("GET", "/v1/entity/{name}", "The facts of an entity."),
    ("GET", "/v1/rules", "The rules of the graph; /v1/rules/{number} for one with examples."),
    ("GET", "/v1/doubtful", "Observed facts that are contradicted."),
    ("GET", "/v1/reliability", "Do confidences mean what they say?"),
    ("GET", "/v1/audit", "What is wrong with the data?"),
    ("GET", "/v1/info", "What is served?"),
    ("GET", "/healthz", "Is the service well?"),
    ("GET", "/metrics", "Figures for Prometheus."),
]


async def build(service: Service, _: PageArguments) -> None:
    """Build the page."""
    head, relation, tail = await service.do(lambda _: example_fact(service.snapshot))
    request = context.client.request
    base = str(request.base_url).rstrip("/") if request is not None else "http://127.0.0.1:8000"
    shell = (
        f"curl -G {base}/v1/rank \\\n  --data-urlencode {_quoted('head=' + head)} \\\n"
        f"  --data-urlencode {_quoted('relation=' + relation)} -d k=3"
    )
    python = (
        f"from ukge.client import Client\n\ngraph = Client({base!r})\n"
        f"graph.rank({head!r}, {relation!r}, k=3).answers\ngraph.explain({head!r}, {relation!r}, {tail!r}).reasons"
    )
    put("api.html", shell=shell, python=python, routes=ROUTES)


def _quoted(argument: str) -> str:
    return "'" + argument.replace("'", "'\\''") + "'"
