"""`ukge serve`: a run over HTTP, and a page to explore it with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import note
from ukge.cli.flags import Prior, Run, RunData, real, whole
from ukge.errors import ConfigError

HOST, PORT = "127.0.0.1", 8000


def serve(
    run: Run,
    data: RunData = None,
    prior: Prior = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any other needs a key.")] = HOST,
    port: Annotated[int, whole("--port", help="Port; 0 takes a free one.", least=0, most=65535)] = PORT,
    api_key_file: Annotated[
        Path | None,
        typer.Option("--api-key-file", help="File that holds the API key; else UKGE_API_KEY is read.", metavar="FILE"),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="A name by which browsers and programs reach the service.", metavar="NAME"),
    ] = None,
    max_k: Annotated[int, whole("--max-k", help="Answers that one request may ask for.")] = 1_000,
    max_facts: Annotated[int, whole("--max-facts", help="Facts in one request.")] = 1_000,
    max_body: Annotated[int, whole("--max-body", help="Bytes of a request's body.")] = 1 << 20,
    time_limit: Annotated[float, real("--time-limit", help="Seconds for one request.", low=0.001, high=86_400)] = 10.0,
    index_above: Annotated[
        int, whole("--index-above", help="With more entities, an approximate index answers.", least=0)
    ] = 1_000_000,
    explorer: Annotated[bool, typer.Option("--explorer/--no-explorer", help="Whether / is a page for people.")] = True,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Whether to reload when a new run is there.")
    ] = True,
) -> None:
    """Serve a run: an HTTP API, and at / a page to explore the graph with.

    Stop with Ctrl-C; requests under way are finished. SIGHUP, or a new run at the same path, reloads.
    """
    from ukge.serve.settings import Limits, access

    limits = Limits(body_bytes=max_body, facts=max_facts, k=max_k, seconds=time_limit)
    allowed = access(host, api_key_file, tuple(allow_host or ()))
    try:
        from ukge.serve.server import WATCH_SECONDS, create_app, ending_on_signals, run_server
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"serving needs the package '{error.name}', which is not installed", hint="pip install 'ukge[serve]'"
        ) from None

    shown = f"[{host}]" if ":" in host else host
    with ending_on_signals():
        app, service = create_app(
            run,
            data=data,
            prior=prior,
            limits=limits,
            access=allowed,
            explorer=explorer,
            watch_seconds=WATCH_SECONDS if watch else None,
            index_above=index_above,
        )
        run_server(
            app,
            service,
            host=host,
            port=port,
            limits=limits,
            on_start=lambda actual: note(f"serving {run} on http://{shown}:{actual}/"),
        )
