"""Every page of the explorer, the evaluation's report and the audit, where nearly every name is hostile.

A page is well if it shows what it is for, and no dialog, no error on the console and no request to elsewhere follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import PATIENCE, WIDE, Watch, serving
from tests.evaluation.table_predictor import TablePredictor
from tests.serve.small_run import NASTY, make_nasty_run

from ukge.evaluation.case_study import Case, Tail
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.report import Picture
from ukge.evaluation.report import render as report_page
from ukge.graph.audit import audit
from ukge.graph.audit.rendering import as_page as audit_page
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph

Go = Callable[..., None]
PAUSE = 300
"""Milliseconds before each page: who opens many a second, and a quick machine does, is told to come back later."""


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert browser.is_connected()
    with serving(make_nasty_run(tmp_path_factory.mktemp("nasty"))) as address:
        # Until what takes long is found, pages would wait for it, each by itself.
        for path in ("/v1/rules", "/v1/doubtful", "/v1/audit", "/v1/reliability"):
            while httpx.get(f"{address}{path}", timeout=60).status_code == 503:
                pass
        yield address


@pytest.fixture
def page(browser: Browser, hostile: str) -> Iterator[Page]:
    context = browser.new_context(viewport=WIDE, base_url=hostile)  # type: ignore[arg-type]
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    watch = Watch(opened, hostile)
    yield opened
    assert opened.locator("img[src=x]").count() == 0
    context.close()
    assert watch.wrong == []


@pytest.fixture
def go(page: Page) -> Go:
    """Open an address of the explorer and wait until it shows something."""

    def opened(path: str, **query: str | int) -> None:
        page.wait_for_timeout(PAUSE)
        page.goto(f"{path}?{urlencode(query)}" if query else path)
        settled(page)

    return opened


def settled(page: Page) -> None:
    """Wait until a page shows what it is for, or why not."""
    expect(page.locator(".wait:visible")).to_have_count(0)
    expect(page.locator(".card").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def asked(address: str, path: str, **query: str | int) -> dict[str, list[dict[str, str]]]:
    response = httpx.get(f"{address}{path}", params=query, timeout=60)
    assert response.status_code == 200, response.text
    told: dict[str, list[dict[str, str]]] = response.json()
    return told


@pytest.mark.parametrize("name", NASTY, ids=range(len(NASTY)))
def test_an_entity_and_all_that_leads_on_from_it(page: Page, go: Go, name: str) -> None:
    go("/entity", name=name)
    expect(page.locator(".row-fact").first).to_be_visible()
    links = [urlsplit(each.get_attribute("href") or "") for each in page.locator("main a").all()]
    assert links
    assert all((each.scheme, each.netloc) == ("", "") and each.path.startswith("/") for each in links)
    quoted = [parse_qs(each.query)["name"][0] for each in links if each.path == "/entity"]
    assert all(each.startswith(tuple(NASTY)) for each in quoted)
    page.locator(".row-fact .why").first.click()  # the reasons
    page.wait_for_url("**/why?*")
    settled(page)
    page.get_by_text("Other answers to this question").click()
    page.wait_for_url("**/ask?*")
    settled(page)
    expect(page.locator(".answer").first).to_be_visible()


@pytest.mark.parametrize("name", NASTY, ids=range(len(NASTY)))
def test_a_question_about_it(page: Page, go: Go, name: str) -> None:
    go("/ask", **{"head" if NASTY.index(name) % 2 else "tail": name})
    expect(page.get_by_role("heading", name="Which relation?")).to_be_visible()
    page.locator(".card a.chip").first.click()
    expect(page.locator(".answer").first).to_be_visible()
    page.locator(".answer .why").first.click()
    page.wait_for_url("**/why?*")
    settled(page)


def test_search_and_choose_by_hand(page: Page, go: Go, hostile: str) -> None:
    go("/")
    field = page.get_by_label("Search an entity")
    for name in NASTY:
        typed = name.split("\n")[0][:60]
        field.fill(typed)
        expect(page.locator(".search .found").first).to_be_visible()
    field.fill(NASTY[0])
    expect(page.locator(".search .found a").first).to_be_visible()
    field.press("Enter")
    page.wait_for_url("**/entity?*")
    settled(page)
    go("/ask", head=NASTY[0])
    page.get_by_label("Relation").fill("<img")
    page.locator(".q-item", has_text=NASTY[0]).first.click()
    page.wait_for_url("**/ask?*relation=*")
    settled(page)
    assert parse_qs(urlsplit(page.url).query)["relation"][0].startswith(NASTY[0])
    page.get_by_role("button", name="Ask for the head").click()
    page.wait_for_url("**/ask?*tail=*")
    settled(page)
    page.get_by_role("button", name="Unseen").click()
    page.wait_for_url("**seen=exclude*")
    settled(page)


def test_rules(page: Page, go: Go, hostile: str) -> None:
    rules = asked(hostile, "/v1/rules", limit=60)["rules"]
    assert rules
    for name in NASTY:
        go("/rules", search=name[:200])
        go("/rules", relation=name)
    go("/rules")
    expect(page.locator("a.rule-line").first).to_be_visible()
    for rule in rules[:12]:
        go("/rule", number=rule["number"])
        expect(page.get_by_role("heading", name="Examples")).to_be_visible()


def test_doubtful_facts_quality_and_api(page: Page, go: Go, hostile: str) -> None:
    for relation in asked(hostile, "/v1/relations", limit=100)["relations"]:
        go("/doubtful", relation=relation["name"])
    go("/doubtful")
    page.locator("tr.doubt a").first.click()
    page.wait_for_url("**/why?*")
    settled(page)
    go("/quality")
    expect(page.get_by_role("heading", name="Symmetry of the largest relations")).to_be_visible()
    go("/api")
    expect(page.get_by_text("/v1/complete")).to_be_visible()


def test_names_that_are_unknown(page: Page, go: Go) -> None:
    for name in NASTY:
        go("/entity", name=f"{name} unknown")
        expect(page.get_by_role("heading", level=2)).to_contain_text("The graph has no entity")
        go("/ask", head=NASTY[0], relation=f"{name} unknown")
        go("/why", head=name, relation=f"{name} unknown", tail=name)
    go("/rule", number="<b>")
    go("/entity", name="x" * 20_000)


def test_names_in_addresses_of_the_api_come_back_as_they_are(hostile: str) -> None:
    for name in NASTY:
        told = httpx.get(f"{hostile}/v1/explain", params={"head": name, "relation": NASTY[0], "tail": name}, timeout=60)
        assert (told.status_code, told.json()["head"]) == (200, name)


def dataset() -> Dataset:
    turned = [*NASTY[1:], NASTY[0]]
    once = [(a, b, f"{a}{b}", 0.1 + 0.04 * at) for at, (a, b) in enumerate(zip(NASTY, turned, strict=True))]
    twice = [(head, relation, tail, 0.95) for head, relation, tail, _ in once[:4]]
    whole = UncertainGraph.from_facts([*once, *twice])
    return Dataset(NASTY[0], whole, whole[:2], whole[2:6], negatives=whole[6:9])


def report() -> str:
    data = dataset()
    size = len(data.entities)
    predictor = TablePredictor(np.full((len(data.relations), size, size), 0.5, dtype=np.float32))
    found = evaluate(prepare(data, "positives", Settings(tau=0.6)), {NASTY[1]: predictor}, bootstrap=Bootstrap(2))
    tails = tuple(Tail(name, 0.5, None if at else 0.4, ("train",)) for at, name in enumerate(NASTY))
    png = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    )
    return report_page(found, [Picture("a", NASTY[4], NASTY[5], png)], [Case(NASTY[2], NASTY[3], tails, tails, 1)], "m")


@pytest.mark.parametrize("made", [report, lambda: audit_page(audit(dataset()))], ids=["report", "audit"])
def test_pages_that_are_files(browser: Browser, tmp_path: Path, made: Callable[[], str]) -> None:
    file = tmp_path / "page.html"
    # A script that got in would not run either: the page itself says that it has none.
    file.write_text(str(made()).replace("</main>", "<script>alert(2)</script></main>"), encoding="utf-8")
    opened = browser.new_page()
    watch = Watch(opened, file.as_uri())
    opened.goto(file.as_uri())
    expect(opened.get_by_role("heading", level=1)).to_be_visible()
    assert opened.locator("img[src=x]").count() == 0
    opened.close()
    assert len(watch.wrong) == 1
    assert "Content Security Policy" in watch.wrong[0]
