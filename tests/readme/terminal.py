"""A person's terminal: commands are typed one after another, and everything that is shown is kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pexpect
import pyte

COLUMNS = 100
PATIENCE = 900
SERVING = re.compile(r"serving .* on (http://\S+)")


class Terminal:
    """A pseudo-terminal with an environment of its own: a home, a working directory, and what was installed."""

    def __init__(self, programs: Path, directory: Path, home: Path) -> None:
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(("UKGE", "PYTHON", "VIRTUAL"))}
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**kept, "PATH": path, "HOME": str(home), "TERM": "xterm-256color"}
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)
        self.directory = directory
        self.screen: list[str] = []
        self.services: list[pexpect.spawn[str]] = []

    def run(self, command: str, *, expected: int = 0) -> str:
        """Type a command, wait for its end, and return what a person sees of it."""
        child = self._start(command)
        child.expect(pexpect.EOF)
        child.close()
        seen = self._keep(command, str(child.before))
        code = child.exitstatus if child.exitstatus is not None else -(child.signalstatus or 0)
        assert code == expected, f"$ {command}\nended with {code}, not {expected}:\n{seen}"
        assert "Traceback" not in seen, f"$ {command}\n{seen}"
        return seen

    def serve(self, command: str) -> str:
        """Type a command that goes on until it is stopped, and wait until it says where it serves."""
        child = self._start(command)
        child.expect(SERVING)
        self.services.append(child)
        return self._keep(command, str(child.before) + str(child.after))

    def stop(self) -> None:
        """Press Ctrl-C for what still serves."""
        for child in self.services:
            child.sendintr()
            child.expect(pexpect.EOF)
            child.close()
        self.services.clear()

    def _start(self, command: str) -> pexpect.spawn[str]:
        return pexpect.spawn(
            "bash",
            ["-c", command],
            cwd=str(self.directory),
            env=self.environment,
            dimensions=(60, COLUMNS),
            encoding="utf-8",
            timeout=PATIENCE,
        )

    def _keep(self, command: str, written: str) -> str:
        screen = pyte.Screen(COLUMNS, 4000)
        pyte.Stream(screen).feed(written)
        lines = [line.rstrip() for line in screen.display]
        while lines and not lines[-1]:
            lines.pop()
        self.screen += [f"$ {command}", *lines]
        return "\n".join(lines)
