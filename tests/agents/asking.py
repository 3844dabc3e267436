"""The SDK's own client, speaking with a server in another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from tests.serve.small_run import SERVICE

COMMAND = ["-c", SERVICE, "mcp"]
LISTENING = re.compile(r"MCP at (http://127\.0\.0\.1:\d+/mcp)")


def environment() -> dict[str, str]:
    """Return the variables of a server's process: no key of whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if name != "UKGE_API_KEY"}


@asynccontextmanager
async def by_streams(run: Path, *options: str, mode: str = "auto") -> AsyncIterator[Client]:
    """Start a server and speak with it over its standard streams."""
    server = StdioServerParameters(command=sys.executable, args=[*COMMAND, str(run), *options], env=environment())
    async with Client(server, mode=mode) as client:
        yield client


@contextmanager
def listening(run: Path, *options: str, **variables: str) -> Iterator[str]:
    """Start a server that listens on a free port, and yield its address."""
    command = [sys.executable, *COMMAND, str(run), "--http", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment() | variables)
    try:
        assert process.stderr is not None
        told = ""
        while (found := LISTENING.search(told)) is None:
            line = process.stderr.readline()
            assert line, f"the server did not start: {told}"
            told += line
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[1]
    finally:
        process.kill()
        process.wait()


async def told(client: Client, tool: str, **arguments: Any) -> tuple[str, Any, bool]:
    """Return what a tool answers, in words and as data, and whether it refuses."""
    answer = await client.call_tool(tool, arguments)
    (text,) = answer.content
    return getattr(text, "text", ""), answer.structured_content, answer.is_error
