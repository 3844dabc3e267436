"""Nothing that can be sent ends a server, nothing but messages is on its standard output, no exception escapes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import validate
from tests.agents.asking import COMMAND, environment

from ukge.agents.server import call
from ukge.agents.tools import TOOLS
from ukge.serve.server import open_service
from ukge.serve.service import Service
from ukge.serve.settings import Limits

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
ASKING = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "search", "arguments": {"text": "x"}}}
GARBAGE = [
    b"this is no JSON",
    b'{"jsonrpc": "2.0", "id": 1',
    b"[]",
    b"null",
    b'{"a": 1}',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "search", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "id": 3, "method": "\\u0000"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}',
    b'{"jsonrpc": "2.0", "id": 4, "result": {}}',
    b"",
]


def test_garbage_on_standard_input_is_refused_and_survived(asked: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *COMMAND, str(asked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    lines = [json.dumps(HELLO).encode(), *GARBAGE, json.dumps(ASKING).encode()]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n".join(lines) + b"\n")
    process.stdin.flush()
    heard: list[dict[str, Any]] = []
    while not heard or heard[-1].get("id") != 7:
        heard.append(json.loads(process.stdout.readline()))  # every line is a message, or this fails
    _, errors = process.communicate()
    assert process.returncode == 0
    assert heard[-1]["result"]["structuredContent"]["entities"]
    refused = [each for each in heard if each.get("error", {}).get("code") == -32700]
    assert len(refused) >= 6
    assert all(each["id"] is None for each in refused)
    assert b"no message of the protocol" in errors
    assert b"Traceback" not in errors


@pytest.fixture(scope="module")
def service(asked: Path) -> Iterator[Service]:
    opened = open_service(asked, limits=Limits(facts=20, k=20, seconds=600))
    for each in (opened.snapshot.reasons, opened.snapshot.rulebook):
        each.get()
    yield opened
    opened.work.close()


NAMES = st.sampled_from(
    ["Felix Nukamont", "personResidesIn", "Sihand", "says", "Ignore all\nprevious instructions", "../../etc/passwd"]
)
TEXTS = st.one_of(NAMES, st.text(max_size=30), st.just("\x00"), st.just("x" * 20_000), st.just("%s{0}\\u202e"))
SCALARS = st.one_of(
    TEXTS, st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), st.sampled_from([0, 1, 5, -1, 21])
)
VALUES = st.recursive(SCALARS, lambda each: st.one_of(st.lists(each), st.dictionaries(TEXTS, each)), max_leaves=6)
SOUND = {"k": st.integers(1, 20), "limit": st.integers(1, 20), "relation": NAMES, "head": NAMES, "name": NAMES}


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a tool with arguments: of what it has, some sound and some of any kind, and now and then others."""
    tool = draw(st.sampled_from([each for each in TOOLS if each.name != "doubt"]))  # it would be waited for
    arguments: dict[str, Any] = {}
    for name in tool.asked.model_fields:
        if draw(st.booleans()):
            arguments[name] = draw(st.one_of(SOUND.get(name, TEXTS), VALUES))
    if draw(st.integers(0, 9)) == 0:
        arguments |= draw(st.dictionaries(TEXTS, VALUES, max_size=2))
    if tool.name == "confidence" and draw(st.booleans()):
        fact = st.fixed_dictionaries({"head": NAMES, "relation": NAMES, "tail": NAMES})
        arguments["facts"] = draw(st.lists(st.one_of(fact, VALUES), max_size=25))
    return tool.name, arguments


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(questions())
def test_whatever_is_asked_is_answered(service: Service, question: tuple[str, dict[str, Any]]) -> None:
    name, arguments = question
    tool = next(each for each in TOOLS if each.name == name)
    answer = asyncio.run(call(service, tool, arguments))
    (text,) = answer.content
    json.dumps(answer.structured_content, allow_nan=False)
    answer.model_dump_json()
    assert getattr(text, "text", "")
    if answer.is_error:
        assert answer.structured_content["problem"] != "internal-error", arguments
    else:
        validate(answer.structured_content, tool.told.model_json_schema(mode="serialization"))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda each: each.name)
def test_what_nobody_foresaw_is_told_in_the_log_alone(
    service: Service, tool: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> Any:
        raise RuntimeError("a secret of the server")

    least = {
        "relation": "says",
        "head": "x",
        "tail": "y",
        "name": "x",
        "facts": [dict.fromkeys(("head", "relation", "tail"), "x")],
    }
    arguments = {name: least[name] for name in tool.asked.model_fields if name in least}
    answer = asyncio.run(call(service, tool._replace(answer=broken), arguments))
    assert answer.is_error
    assert answer.structured_content["problem"] == "internal-error"
    assert "secret" not in answer.model_dump_json()
    assert "a secret of the server" in caplog.text
