"""The page that asks a browser for the key."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from ukge.html import render

COOKIE = "ukge_pass"
LOGIN_PATH = "/login"


def login_page(status: int = 401, *, wrong: bool = False) -> HTMLResponse:
    """Return the form; `wrong` says that the key just given was not the right one."""
    return HTMLResponse(render("login.html", action=LOGIN_PATH, wrong=wrong), status)
