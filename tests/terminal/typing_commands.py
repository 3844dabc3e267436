"""Run commands one after another in this process, as a shell would; started by a test under a pseudo-terminal.

Standard input gives a command per line, as JSON. Loading the libraries once instead of once per command keeps the
tests short; everything that a command shows goes through the same `main` and the same terminal.
"""

from __future__ import annotations

import json
import sys

from ukge.cli import main

DONE = "--- exit code"
"""How the end of a command is marked."""


def run(arguments: list[str]) -> int:
    """Return the exit code of a command."""
    sys.argv = ["ukge", *arguments]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    for command in json.loads(sys.argv[1]):
        code = run(command)
        sys.stderr.flush()
        sys.stdout.write(f"{DONE} {code}\n")
        sys.stdout.flush()
