"""The page at /: search, ask, see why, look around. Made with NiceGUI, which brings its own assets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import nicegui
from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader
from nicegui import Client, core, ui
from nicegui.client import templates
from starlette.routing import Match
from starlette.types import Scope

from ukge.errors import ConfigError
from ukge.serve.explorer.frame import FAVICON, PAGES, build_frame
from ukge.serve.explorer.parts import speak_for
from ukge.serve.guard import network
from ukge.serve.problems import OverloadedError, Problem, TooOftenError
from ukge.serve.service import Service
from ukge.serve.settings import Limits

__all__ = ["PAGES", "answers", "create_explorer", "crowded"]

ASSETS = "/_nicegui/"
"""Where NiceGUI has its scripts, styles and fonts."""

NONCE = ' nonce="{{ request.scope.nonce }}"'
"""What the guard allows scripts by, as an attribute in a template."""

_served: list[Service] = []


def create_explorer(service: Service) -> FastAPI:
    """Return the explorer of a service. There is one per process: NiceGUI keeps its pages for the whole of it."""
    if _served:
        raise ConfigError("this process has an explorer already", hint="Serve the second run without one.")
    _served.append(service)
    speak_for(service)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    core.sio.eio.cors_allowed_origins = None  # same origin only; NiceGUI would take any
    templates.env.loader = WithNonces(Path(nicegui.__file__).parent / "templates")
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
    core.app.config.socket_io_js_transports = ["websocket"]  # one connection per page, which can be counted
    return app


class WithNonces(FileSystemLoader):
    """NiceGUI's page with a nonce at each of its scripts: no others run, whatever the page is made to hold."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return a template, changed before anything is filled in."""
        source, name, fresh = super().get_source(environment, template)
        return source.replace("<script", f"<script{NONCE}"), name, fresh


def answers(scope: Scope) -> bool:
    """Return whether the explorer has something at an address; for any other it would make a page that says so."""
    path = scope["path"]
    if scope["type"] == "websocket" or path in PAGES or path == "/favicon.ico":
        return True
    own = [each for each in core.app.routes if getattr(each, "path", "").startswith(ASSETS)]
    return path.startswith(ASSETS) and any(each.matches({**scope, "root_path": ""})[0] is Match.FULL for each in own)


def crowded(scope: Scope, limits: Limits) -> Problem | None:
    """Return why another page would cost too much memory, if so; those nobody looks at go within a minute."""
    if len(Client.instances) >= limits.pages:
        return OverloadedError()
    own = network(scope)
    held = sum(network(each.request.scope) == own for each in Client.instances.values())
    return TooOftenError() if 3 * held >= limits.pages else None
