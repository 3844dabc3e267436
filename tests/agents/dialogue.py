"""The dialogue of docs/agents.md: what a client asks, and what it is told. Run as a module, it writes the page."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
DIALOGUE = re.compile(r"(<!-- dialogue -->\n```text\n)(.*?)(```\n)", re.DOTALL)
LIVES = {"head": "Felix Nukamont", "relation": "personResidesIn", "tail": "Sihand"}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("search", {"text": "felix nuka"}),
    ("search", {"text": "resides", "what": "relations"}),
    ("confidence", {"facts": [LIVES]}),
    ("explain", LIVES),
    ("ask", {"head": "Felix Nukamond", "relation": "personResidesIn"}),
    ("ask", {"head": "Felix Nukamont", "relation": "personResidesIn", "observed": "exclude", "k": 2}),
    ("rules", {"limit": 2}),
]


async def talk(run: Path) -> str:
    """Ask a server in another process and return the dialogue as the page shows it."""
    from tests.agents.asking import by_streams, told

    said = []
    async with by_streams(run) as client:
        for tool, arguments in ASKED:
            text, _, _ = await told(client, tool, **arguments)
            said.append(f"> {tool} {json.dumps(arguments)}\n{text}\n")
    return "\n".join(said)


def main() -> None:
    """Write the dialogue into the page."""
    from tests.agents.asked_run import make_asked_run

    with tempfile.TemporaryDirectory() as home:
        said = asyncio.run(talk(make_asked_run(Path(home))))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(DIALOGUE.sub(lambda found: found[1] + said + found[3], page), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
