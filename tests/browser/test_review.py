"""Reviewing by keyboard and by touch: what is shown, what is kept, who may."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import PATIENCE, PHONE, WIDE, Watch, serving
from tests.serve.small_run import HOSTILE, make_judged_run

from ukge.runs.directory import LABELS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a name that wants to be markup among its best known."""
    return make_judged_run(tmp_path_factory.mktemp("review"))


@pytest.fixture(scope="module")
def desk(browser: Browser, run: Path) -> Iterator[str]:
    """The address of a service of it, ready to be reviewed."""
    assert browser.is_connected()
    with serving(run) as address:
        while httpx.get(f"{address}/v1/review", timeout=60).status_code == 503:
            pass
        yield address


@pytest.fixture(params=["light", "dark", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, desk: str) -> Iterator[Page]:
    kind = request.param
    context = browser.new_context(
        viewport=PHONE if kind == "phone" else WIDE,  # type: ignore[arg-type]
        color_scheme="dark" if kind == "dark" else "light",
        has_touch=kind == "phone",
        base_url=desk,
    )
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    watch = Watch(opened, desk)
    yield opened
    folder = Path(os.environ.get("UKGE_SCREENSHOTS", "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    name = request.node.name.partition("[")[0].removeprefix("test_")
    opened.screenshot(path=folder / f"{name}-{kind}.png", full_page=True)
    assert opened.locator("img[src=x]").count() == 0
    context.close()
    assert watch.wrong == []


def words(run: Path) -> list[dict[str, str]]:
    """Return what the run keeps, in order."""
    file = run / LABELS
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.is_file() else []


def sentence(page: Page) -> str:
    return page.locator(".review .sentence").inner_text()


def begin(page: Page, name: str) -> None:
    page.goto("/review")
    field = page.get_by_label("Your name")
    expect(field).to_be_visible()
    field.fill(name)
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"/review\?by="))
    expect(page.locator(".review .sentence")).to_be_visible()
    expect(page.get_by_role("button", name="Yes")).to_be_enabled()


def said_one_more(page: Page, run: Path, before: int) -> dict[str, str]:
    """Wait until one more word is on the disk, and return it."""
    for _ in range(600):
        found = words(run)
        if len(found) == before + 1:
            return found[-1]
        page.wait_for_timeout(50)
    raise AssertionError(f"{len(words(run))} words, not {before + 1}")


def test_review_by_keyboard_alone(page: Page, run: Path, request: pytest.FixtureRequest) -> None:
    name = f"Anna {request.node.name}"
    begin(page, name)
    expect(page.locator(".why-shown li").first).to_contain_text("leave it open")
    expect(page.locator(".reason, .card p.soft").first).to_be_visible()
    keys = [
        ("y", "yes"),
        ("n", "no"),
        ("u", "unsure"),
        ("ArrowRight", "yes"),
        ("ArrowLeft", "no"),
        ("ArrowDown", "unsure"),
    ]
    shown: list[str] = []
    for key, word in keys:
        before, fact = len(words(run)), sentence(page)
        page.keyboard.press(key)
        kept = said_one_more(page, run, before)
        assert (kept["word"], kept["by"]) == (word, name)
        expect(page.locator(".review .sentence")).not_to_have_text(fact)
        shown.append(fact)
    assert len(set(shown)) == len(shown)
    expect(page.get_by_role("status").filter(has_text="in this round")).to_contain_text("6 of 20")
    # j and k go on and back without a word; z takes the last word back and returns to its fact.
    before, here = len(words(run)), sentence(page)
    page.keyboard.press("j")
    expect(page.locator(".review .sentence")).not_to_have_text(here)
    page.keyboard.press("k")
    expect(page.locator(".review .sentence")).to_have_text(re.compile(re.escape(here.split("\n")[0])))
    assert len(words(run)) == before
    page.keyboard.press("z")
    assert said_one_more(page, run, before)["word"] == "withdrawn"
    expect(page.get_by_role("status").filter(has_text="in this round")).to_contain_text("5 of 20")
    assert sentence(page) == shown[-1]
    page.keyboard.press("Control+y")  # the browser's own keys are not words
    page.wait_for_timeout(200)
    assert len(words(run)) == before + 1
    # What was said is not asked again, on a page opened anew.
    page.reload()
    expect(page.locator(".review .sentence")).to_be_visible()
    assert sentence(page) not in shown[:-1]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_review_by_touch(page: Page, run: Path, request: pytest.FixtureRequest) -> None:
    begin(page, f"Ben {request.node.name}")
    for name, word in (("Yes", "yes"), ("No", "no"), ("Unsure", "unsure")):
        before, fact = len(words(run)), sentence(page)
        button = page.get_by_role("button", name=name, exact=True)
        button.tap() if "phone" in request.node.name else button.click()
        assert said_one_more(page, run, before)["word"] == word
        expect(page.locator(".review .sentence")).not_to_have_text(fact)
        size = button.bounding_box()
        assert size is not None
        assert size["height"] >= 44
    before = len(words(run))
    page.keyboard.press("y")  # after a touch the keys still work
    assert said_one_more(page, run, before)["word"] == "yes"
    page.get_by_role("button", name="Undo").click()
    assert said_one_more(page, run, before + 1)["word"] == "withdrawn"


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_typing_a_name_says_nothing(page: Page, run: Path) -> None:
    before = len(words(run))
    page.goto("/review")
    expect(page.locator(".review .sentence")).to_be_visible()
    page.get_by_label("Your name").type("yunny")
    page.locator(".review .sentence").click(position={"x": 1, "y": 1}, trial=True)
    expect(page.get_by_role("button", name="Yes")).to_be_disabled()
    assert len(words(run)) == before


def test_a_hostile_reviewer(page: Page, run: Path) -> None:
    begin(page, HOSTILE[0][0])
    before = len(words(run))
    page.keyboard.press("u")
    assert said_one_more(page, run, before)["by"] == HOSTILE[0][0]
    expect(page.get_by_role("status").filter(has_text="in this round")).to_contain_text("<img src=x")


@pytest.mark.parametrize("page", ["light", "phone"], indirect=True)
@pytest.mark.parametrize("kind", ["Too high", "Too low", "Likely false"])
def test_doubt_with_a_direction(page: Page, kind: str) -> None:
    page.goto("/doubtful")
    page.get_by_role("button", name=kind).click()
    expect(page).to_have_url(re.compile(r"kind="))
    expect(page.locator("tr.doubt").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
