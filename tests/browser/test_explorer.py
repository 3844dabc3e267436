"""What people do in the explorer, on a wide screen, in the dark, and on a phone."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def fact(address: str) -> dict[str, str]:
    """A confident fact of a well-known entity, from the API."""
    known = httpx.get(f"{address}/v1/entities", params={"limit": 1}, timeout=60).json()["entities"][0]["name"]
    facts = httpx.get(f"{address}/v1/entity/{known}", params={"side": "head", "limit": 1}, timeout=60).json()["facts"]
    return {name: str(facts[0][name]) for name in ("head", "relation", "tail")}


def only(*kinds: str) -> pytest.MarkDecorator:
    """Run a test on some kinds of screen, where the others would show nothing new."""
    return pytest.mark.parametrize("page", kinds, indirect=True)


def fits(page: Page) -> bool:
    """Return whether nothing sticks out of the page to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def contrast_is_dark(page: Page) -> bool:
    """Return whether the page has a dark background."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) < 3 * 64


def test_home(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("What does the graph believe?")
    expect(page.locator(".chip").first).to_be_visible()
    assert fits(page)


def test_search(page: Page, fact: dict[str, str]) -> None:
    page.goto("/")
    field = page.get_by_label("Search an entity")
    field.fill(fact["head"][:4])
    expect(page.locator(".search .found a").first).to_be_visible()
    field.fill(fact["head"])
    expect(page.locator(".search .found a").first).to_have_attribute("title", fact["head"])
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"/entity\?name="))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".row-fact").first).to_be_visible()
    expect(page.locator(".meter.guess").first).to_be_visible()
    expect(page.locator(".meter.guess .span").first).to_be_attached()
    assert fits(page)


@only("light")
def test_search_with_the_keyboard_alone(page: Page, fact: dict[str, str]) -> None:
    page.goto("/rules")
    expect(page.get_by_role("heading", level=1)).to_have_text("Rules")
    expect(page.locator(".rule-line").first).to_be_visible()
    page.locator("body").click(position={"x": 5, "y": 400})
    page.keyboard.press("/")
    page.keyboard.type(fact["head"], delay=15)
    expect(page.locator(".search-compact .found a").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/entity\?name="))


def test_ask_and_see_why(page: Page, fact: dict[str, str]) -> None:
    page.goto("/ask")
    page.get_by_label("Entity").fill(fact["head"])
    page.locator(".asker .found a").first.click()
    expect(page.get_by_role("heading", name="Which relation?")).to_be_visible()
    page.locator(".card .chip").first.click()
    expect(page.locator(".answer").first).to_be_visible()
    assert page.locator(".answer").count() >= 10
    assert fits(page)
    page.locator(".answer .why").first.locator(".meter").click()
    expect(page).to_have_url(re.compile(r"/why\?"))
    expect(page.get_by_role("heading", name="Why")).to_be_visible()
    assert fits(page)
    page.go_back()
    expect(page.locator(".answer").first).to_be_visible()


def test_why(page: Page, address: str, fact: dict[str, str]) -> None:
    page.goto(f"/why?{httpx.QueryParams(fact)}")
    expect(page.locator(".reason").first).to_be_attached()
    expect(page.locator(".tag.known")).to_be_visible()
    expect(page.locator(".meter.large .span")).to_be_attached()
    if httpx.get(f"{address}/v1/info", timeout=60).json()["opinion"] == "evidence":
        expect(page.locator(".reason .push").first).to_be_attached()
    else:
        expect(page.get_by_text("This run has no evidence")).to_be_visible()
    assert fits(page)


def test_graph(page: Page, fact: dict[str, str]) -> None:
    page.goto(f"/entity?{httpx.QueryParams({'name': fact['head']})}")
    picture = page.locator("svg.graph:visible")
    expect(picture).to_be_visible()
    lines = picture.locator("line.edge")
    widths = {float(line.get_attribute("stroke-width") or 0) for line in lines.all()}
    assert len(widths) > 1
    dashed = picture.locator("line.edge.guess").first
    assert dashed.evaluate("element => getComputedStyle(element).strokeDasharray") != "none"
    name = picture.locator("a:has(circle) title").first.text_content()
    picture.locator("a:has(circle) text").first.click()
    expect(page).to_have_url(re.compile(r"/entity\?name="))
    expect(page.locator(".head h1")).not_to_have_text(fact["head"])
    assert name


def test_rules(page: Page) -> None:
    page.goto("/rules")
    expect(page.locator("a.rule-line").first).to_be_visible()
    shown = page.locator("a.rule-line").count()
    word = (page.locator("a.rule-line b").first.text_content() or "").split()[0]
    page.get_by_label("Filter rules").fill(word)
    page.wait_for_function("n => document.querySelectorAll('a.rule-line').length < n || n < 2", arg=shown + 1)
    expect(page.locator("a.rule-line").first).to_contain_text(word)
    assert fits(page)


def test_rule(page: Page) -> None:
    page.goto("/rules")
    page.locator("a.rule-line").first.click()
    expect(page.get_by_role("heading", name="Examples")).to_be_visible()
    expect(page.locator(".reason").first).to_be_visible()
    assert fits(page)


def test_doubtful(page: Page) -> None:
    page.goto("/doubtful")
    expect(page.locator("tr.doubt").first).to_be_visible()
    assert fits(page)
    page.locator("tr.doubt a").first.click()
    expect(page.get_by_role("heading", name="Why")).to_be_visible()
    page.go_back()
    expect(page.locator("tr.doubt").first).to_be_visible()


def test_quality(page: Page) -> None:
    page.goto("/quality")
    expect(page.get_by_label("Reliability curve")).to_have_count(2)
    expect(page.get_by_role("heading", name="What the audit found")).to_be_visible()
    assert fits(page)


@only("light", "phone")
def test_api(page: Page) -> None:
    page.goto("/api")
    expect(page.get_by_text("/v1/complete")).to_be_visible()
    assert fits(page)


def test_colours(page: Page, request: pytest.FixtureRequest) -> None:
    page.goto("/")
    expect(page.locator(".chip").first).to_be_visible()
    assert contrast_is_dark(page) == ("dark" in request.node.name)
    page.locator("button.theme").click()
    expect(page.locator("body.body--dark")).to_be_visible()
    assert contrast_is_dark(page)
    page.locator("button.theme").click()
    expect(page.locator("body.body--light")).to_be_visible()
    assert not contrast_is_dark(page)


@only("dark", "phone")
def test_unknown(page: Page) -> None:
    page.goto("/entity?name=no-such-thing-at-all")
    expect(page.get_by_role("heading", level=2)).to_contain_text("The graph has no entity")
    assert fits(page)
