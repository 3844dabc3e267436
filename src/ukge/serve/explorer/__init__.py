"""The page at /: search, ask, see why, look around. Made with NiceGUI, which brings its own assets."""

from __future__ import annotations

import warnings

from fastapi import FastAPI
from nicegui import Client, core, ui

from ukge.errors import ConfigError
from ukge.serve.explorer.frame import FAVICON, PAGES, build_frame
from ukge.serve.service import Service

_served: list[Service] = []

ADDRESSES = frozenset({*PAGES, "/favicon.ico"})
"""What the explorer answers, beside what its library serves by itself."""

MOST_PAGES = 300
"""Pages that may be open, or asked for within the last minute, before further ones are turned away."""


def create_explorer(service: Service) -> FastAPI:
    """Return the explorer of a service. There is one per process: NiceGUI keeps its pages for the whole of it."""
    if _served:
        raise ConfigError("this process has an explorer already", hint="Serve the second run without one.")
    _served.append(service)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    core.sio.eio.cors_allowed_origins = None  # same origin only; NiceGUI would take any
    # NiceGUI looks at every object there is when it starts, and PyTorch warns about one of its own.
    warnings.filterwarnings("ignore", message=".*torch.distributed.reduce_op.*", category=FutureWarning)
    ui.run_with(
        app,
        root=lambda: build_frame(service),
        title="ukge",
        favicon=FAVICON,
        dark=None,
        tailwind=False,
        reconnect_timeout=20.0,
        show_welcome_message=False,
        binding_refresh_interval=None,
    )
    return app


def crowded() -> bool:
    """Return whether so many pages are held that another would cost too much memory."""
    return len(Client.instances) >= MOST_PAGES
