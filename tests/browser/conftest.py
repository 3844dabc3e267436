"""A real server and a real browser. Run by `make test-browser`; without UKGE_BROWSER nothing here is collected."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.serve.serving import serving as service
from tests.serve.small_run import make_judged_run

if not os.environ.get("UKGE_BROWSER"):
    collect_ignore_glob = ["test_*.py"]

WIDE, PHONE = {"width": 1240, "height": 860}, {"width": 390, "height": 844}
PATIENCE = 60_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def serving(run: Path) -> Iterator[str]:
    """Serve a run with its explorer and yield its address."""
    with service(run, explorer=True) as (_, port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service that runs; UKGE_BROWSER_RUN may name a run to show instead of a small one."""
    assert browser.is_connected()
    named = os.environ.get("UKGE_BROWSER_RUN")
    run = (
        Path(named)
        if named
        else make_judged_run(tmp_path_factory.mktemp("browser"), n_entities=300, n_facts=3_000, trees=40)
    )
    with serving(run) as told:
        yield told


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, as Debian packages it."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium; on Debian: apt-get install chromium")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


class Watch:
    """What a page should not do: complain, open a dialog, or ask another server for anything."""

    def __init__(self, page: Page, address: str) -> None:
        self.wrong: list[str] = []
        self._address = address
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("dialog", self._dialog)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.wrong.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        own = (self._address, self._address.replace("http", "ws", 1), "data:", "blob:")
        if not request.url.startswith(own):
            self.wrong.append(f"asked elsewhere: {request.url}")

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture(params=["light", "dark", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """A page on a wide light screen, a wide dark one, and a phone's."""
    kind = request.param
    context = browser.new_context(
        viewport=PHONE if kind == "phone" else WIDE,  # type: ignore[arg-type]
        color_scheme="dark" if kind == "dark" else "light",
        has_touch=kind == "phone",
        base_url=address,
    )
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    watch = Watch(opened, address)
    yield opened
    folder = Path(os.environ.get("UKGE_SCREENSHOTS", "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    name = request.node.name.partition("[")[0].removeprefix("test_")
    opened.screenshot(path=folder / f"{name}-{kind}.png", full_page=True)
    context.close()
    assert watch.wrong == []
