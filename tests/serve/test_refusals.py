"""What the service refuses, and how it says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ukge.asking.rank import Found
from ukge.errors import ConfigError, RunError
from ukge.serve.guard import Guard
from ukge.serve.metrics import Metrics
from ukge.serve.problems import OverloadedError, TimeLimitError
from ukge.serve.server import create_app
from ukge.serve.settings import Access, Limits, access
from ukge.serve.snapshot import Snapshot
from ukge.serve.work import Deadline
from ukge.storage.arrays import save_arrays

KEY = "correct-horse-battery-staple"


def test_an_unknown_entity_is_named_with_near_ones(client: TestClient) -> None:
    response = client.get("/v1/rank", params={"head": "concept:city:new_yrok", "relation": "likes"})
    told = response.json()
    assert response.status_code == told["status"] == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert told["type"] == "urn:ukge:problem:unknown-entity"
    assert told["value"] == "concept:city:new_yrok"
    assert "concept:city:new_york" in told["near"]


def test_an_unknown_relation_is_named_with_near_ones(client: TestClient) -> None:
    told = client.get("/v1/rank", params={"head": "a/b", "relation": "lieks"}).json()
    assert (told["type"], told["near"][0]) == ("urn:ukge:problem:unknown-relation", "likes")


@pytest.mark.parametrize(
    ("path", "params", "what"),
    [
        ("/v1/rank", {"relation": "likes"}, "either a head or a tail"),
        ("/v1/rank", {"relation": "likes", "head": "a/b", "tail": "a/b"}, "either a head or a tail"),
        ("/v1/rank", {"relation": "likes", "head": "a/b", "k": "51"}, "at most 50, not 51"),
        ("/v1/rank", {"relation": "likes", "head": "a/b", "k": "0"}, "greater than or equal to 1"),
        ("/v1/rank", {"relation": "likes", "head": "a/b", "k": "many"}, "valid integer"),
        ("/v1/rank", {"relation": "likes", "head": "a/b", "type": ""}, "query.type"),
        ("/v1/rank", {"relation": "likes", "head": "a/b", "min_confidence": "nan"}, "query.min_confidence"),
        ("/v1/confidence", {"head": "a/b", "relation": "likes"}, "Field required"),
        ("/v1/entity/a%2Fb", {"limit": "51"}, "at most 50"),
        ("/v1/rules/-1", {}, "greater than or equal to 0"),
    ],
)
def test_a_wrong_request_is_told_where(client: TestClient, path: str, params: dict[str, str], what: str) -> None:
    response = client.get(path, params=params)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert what in response.json()["detail"]


def test_too_many_facts_and_too_large_bodies_are_refused(client: TestClient) -> None:
    fact = {"head": "a/b", "relation": "likes", "tail": "a/b"}
    many = client.post("/v1/confidence", json={"facts": [fact] * 21})
    assert (many.status_code, "at most 20 facts" in many.json()["detail"]) == (422, True)
    large = client.post("/v1/confidence", content=b" " * 10_001, headers={"content-type": "application/json"})
    assert (large.status_code, large.json()["type"]) == (413, "urn:ukge:problem:body-too-large")

    def endless() -> Iterator[bytes]:
        for _ in range(1_000):
            yield b" " * 1_000

    chunked = client.post("/v1/confidence", content=endless(), headers={"content-type": "application/json"})
    assert chunked.status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b'{"facts": []}',
        b'{"facts": [{"head": "\\ud800"}]}',
        b'{"facts": [[[[[]]]]]}',
    ],
)
def test_a_malformed_body_is_a_problem_of_the_client(client: TestClient, body: bytes) -> None:
    response = client.post("/v1/confidence", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.headers["content-type"] == "application/problem+json"
    json.loads(response.content)


def test_unknown_paths_and_methods_are_problems(client: TestClient) -> None:
    assert client.get("/v1/nothing").json()["type"] == "urn:ukge:problem:unknown-path"
    refused = client.delete("/v1/info")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path", ["/v1/entity/../../../../etc/passwd", "/v1/entity/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/..%2f..%2fetc/passwd"]
)
def test_no_path_reaches_the_file_system(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code in (200, 404)  # the graph has an entity that is called ../../etc/passwd
    assert "root:" not in response.text


def test_cors_is_off_and_the_headers_are_strict(client: TestClient) -> None:
    headers = client.get("/healthz", headers={"origin": "http://elsewhere.example"}).headers
    assert not [name for name in headers if name.startswith("access-control-")]
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_another_host_name_is_refused(client: TestClient) -> None:
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/healthz", headers={"host": "127.0.0.1:8000"}).status_code == 200


def test_the_time_limit_ends_a_request(run: Path) -> None:
    app, service = create_app(run, explorer=False, limits=Limits(seconds=0.2))
    with TestClient(app) as asking:
        service.snapshot.rulebook.get()

        def slow(wanted: object, check: Callable[[], None] = lambda: None) -> list[Found]:
            while True:
                check()

        service.snapshot.exact.search = slow  # type: ignore[method-assign]
        response = asking.get("/v1/rank", params={"head": "a/b", "relation": "likes"})
        assert response.status_code == 503
        assert response.json()["type"] == "urn:ukge:problem:time-limit"
        assert asking.get("/healthz").status_code == 200
        with pytest.raises(TimeLimitError):
            Deadline(-1).check()


def test_a_slow_body_is_ended_by_the_time_limit() -> None:
    import asyncio

    async def never(*_: object) -> None:
        raise AssertionError("the application must not see a request that is not complete")

    async def waiting() -> dict[str, object]:
        await asyncio.sleep(60)
        raise AssertionError

    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        sent.append(message)  # type: ignore[arg-type]

    guard = Guard(never, Access(), Limits(seconds=0.05), Metrics())
    headers = [(b"host", b"localhost"), (b"content-length", b"5")]
    scope = {"type": "http", "method": "POST", "path": "/v1/confidence", "headers": headers}
    asyncio.run(guard(scope, waiting, send))
    assert sent[0]["status"] == 503


def test_too_many_pages_are_turned_away_and_the_api_is_not(run: Path) -> None:
    from fastapi import FastAPI

    from ukge.serve.server import Beside, front

    _, service = create_app(run, explorer=False)
    crowded = front(
        service,
        [Beside(FastAPI(), lambda scope: scope["path"] == "/", ["/"], lambda scope, limits: OverloadedError())],
        None,
    )
    with TestClient(Guard(crowded, Access(), Limits(), Metrics())) as asking:
        refused = asking.get("/")
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:ukge:problem:overloaded")
        assert asking.get("/healthz").status_code == 200
        nowhere = asking.get("/nowhere")
        assert (nowhere.status_code, nowhere.headers["content-type"]) == (404, "application/problem+json")


def test_too_many_waiting_requests_are_turned_away(run: Path) -> None:
    import asyncio
    import threading

    from ukge.serve.work import Work

    async def crowd() -> int:
        work, release = Work(waiting=4, threads=1), threading.Event()
        tasks = [asyncio.create_task(work.do(release.wait)) for _ in range(10)]
        await asyncio.sleep(0.05)
        release.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        work.close()
        return sum(isinstance(each, OverloadedError) for each in results)

    assert asyncio.run(crowd()) == 6


@pytest.fixture(scope="module")
def locked(run: Path) -> Iterator[TestClient]:
    """A client of a service with a key."""
    app, _ = create_app(run, explorer=False, access=Access(KEY))
    with TestClient(app, follow_redirects=False) as client:
        yield client


def test_without_the_key_only_health_is_told(locked: TestClient) -> None:
    refused = locked.get("/v1/info")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert locked.get("/metrics").status_code == 401
    assert locked.get("/openapi.json").status_code == 401
    assert locked.get("/healthz").status_code == 200


@pytest.mark.parametrize("headers", [{"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}])
def test_the_key_opens(locked: TestClient, headers: dict[str, str]) -> None:
    assert locked.get("/v1/info", headers=headers).status_code == 200


@pytest.mark.parametrize("key", ["", KEY[:-1], KEY + "x", KEY.upper(), "ü" * 20])
def test_another_key_does_not(locked: TestClient, key: str) -> None:
    header = f"Bearer {key}".encode()
    assert locked.get("/v1/info", headers=[(b"authorization", header)]).status_code == 401


def test_a_browser_shows_the_key_once_and_keeps_a_pass(locked: TestClient) -> None:
    form = locked.get("/")
    assert (form.status_code, 'name="key"' in form.text) == (401, True)
    assert locked.post("/login", data={"key": "wrong"}).status_code == 401
    opened = locked.post("/login", data={"key": KEY})
    cookie = opened.headers["set-cookie"]
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert KEY not in cookie
    assert locked.get("/v1/info").status_code == 200
    elsewhere = locked.get("/v1/info", headers={"origin": "http://elsewhere.example"})
    assert elsewhere.status_code == 401
    locked.cookies.clear()


def test_any_other_address_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UKGE_API_KEY", raising=False)
    for host in ("0.0.0.0", "192.168.0.1", "::", "example.org"):
        with pytest.raises(ConfigError, match="needs an API key"):
            access(host)
    for host in ("127.0.0.1", "localhost", "::1"):
        assert access(host).key is None
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n", encoding="utf-8")
    assert access("0.0.0.0", file).key == KEY
    file.write_text("short", encoding="utf-8")
    with pytest.raises(ConfigError, match="too short"):
        access("0.0.0.0", file)
    with pytest.raises(ConfigError, match="cannot read"):
        access("0.0.0.0", tmp_path / "nowhere")
    monkeypatch.setenv("UKGE_API_KEY", KEY)
    assert access("0.0.0.0").key == KEY
    assert KEY not in repr(access("0.0.0.0"))


def _remove(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def _edit(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        content = bytearray((run / name).read_bytes())
        content[len(content) // 2] ^= 1
        (run / name).write_bytes(bytes(content))

    return change


def _cut(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / name).write_bytes((run / name).read_bytes()[:-10])

    return change


def _other_shape(run: Path) -> None:
    """Weights of another shape, with checksums that are right."""
    import numpy as np

    from ukge.runs.directory import Run

    arrays = {name: np.zeros((3, 3), dtype=np.float32) for name in ("entity", "relation", "link")}
    save_arrays(run / "weights.safetensors", arrays)
    Run(run).update()


def _not_finite(run: Path) -> None:
    import numpy as np

    from ukge.runs.directory import Run
    from ukge.storage.arrays import load_arrays

    arrays, notes = load_arrays(run / "weights.safetensors")
    arrays["entity"][7, 3] = np.nan
    save_arrays(run / "weights.safetensors", arrays, notes)
    Run(run).update()


def _unfinished(run: Path) -> None:
    from ukge.runs.directory import Run

    Run(run).update(status="running")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_remove("manifest.json"), "manifest.json is missing"),
        (_remove("weights.safetensors"), "is missing"),
        (_edit("weights.safetensors"), "does not match its checksum"),
        (_edit("entities.parquet"), "does not match its checksum"),
        (_cut("weights.safetensors"), "does not match its checksum"),
        (_cut("manifest.json"), "is damaged"),
        (_other_shape, "has the shape"),
        (_not_finite, "not finite"),
        (_unfinished, "not finished"),
        (_edit("data/train.parquet"), "does not match its checksum"),
        (_remove("data/test.parquet"), "is missing"),
    ],
)
def test_a_malformed_run_is_refused_at_the_start(
    run: Path, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    import shutil

    shutil.copytree(run.parent, tmp_path / "home")
    copy = tmp_path / "home" / "run"
    assert len(Snapshot.open(copy).entities) > 0
    spoil(copy)
    with pytest.raises(RunError, match=message):
        create_app(copy, explorer=False)
