"""`ukge mcp`: a run as tools for language models, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ukge.cli.console import note
from ukge.cli.flags import Prior, Run, RunData, real, whole
from ukge.errors import ConfigError

HOST, PORT = "127.0.0.1", 8000


def mcp(
    run: Run,
    data: RunData = None,
    prior: Prior = None,
    http: Annotated[
        bool, typer.Option("--http/--stdio", help="Listen at http://HOST:PORT/mcp, or speak over standard streams.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any other needs a key.")] = HOST,
    port: Annotated[int, whole("--port", help="Port; 0 takes a free one.", least=0, most=65535)] = PORT,
    api_key_file: Annotated[
        Path | None,
        typer.Option("--api-key-file", help="File that holds the API key; else UKGE_API_KEY is read.", metavar="FILE"),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="A name by which programs reach the service.", metavar="NAME"),
    ] = None,
    max_k: Annotated[int, whole("--max-k", help="Answers that one question may ask for.")] = 100,
    max_facts: Annotated[int, whole("--max-facts", help="Facts in one question.")] = 100,
    time_limit: Annotated[float, real("--time-limit", help="Seconds for one question.", low=0.001, high=86_400)] = 30.0,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Whether to reload when a new run is there.")
    ] = True,
) -> None:
    """Let a language model ask a run, by tools of the Model Context Protocol.

    A host such as Claude, an editor or an agent starts it itself and speaks with it over standard input and output:
    give it the command `ukge mcp RUN`. With --http it listens instead, beside the HTTP API, with its key and limits.
    """
    import asyncio

    from ukge.serve.settings import Limits, access

    limits = Limits(facts=max_facts, k=max_k, seconds=time_limit)
    allowed = access(host, api_key_file, tuple(allow_host or ())) if http else None
    try:
        from ukge.agents.transports import PATH, over_http, serve_streams
        from ukge.serve.server import WATCH_SECONDS, ending_on_signals, guarded, open_service, run_server
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"speaking MCP needs the package '{error.name}', which is not installed", hint="pip install 'ukge[mcp]'"
        ) from None

    every = WATCH_SECONDS if watch else None
    with ending_on_signals():
        service = open_service(run, data=data, prior=prior, limits=limits)
        if allowed is None:
            asyncio.run(serve_streams(service, every))
            return
        shown = f"[{host}]" if ":" in host else host
        run_server(
            guarded(service, allowed, [over_http(service, allowed)], every),
            service,
            host=host,
            port=port,
            limits=limits,
            on_start=lambda actual: note(f"{run} answers MCP at http://{shown}:{actual}{PATH}"),
        )
