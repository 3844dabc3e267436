"""A process that has imported everything and runs each command in a fork of it; started by the harness."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from typing import Any

SECONDS = 900
"""What a command may take at most."""
LEFT_OUT = ("ukge.serve", "ukge.client", "ukge.reproduction")


def serve(library: Any) -> None:
    """Answer requests, a line each: the words of a command, the directory to watch, the operation, and what happens."""
    for line in sys.stdin:
        words, root, at, full = json.loads(line)
        with tempfile.TemporaryFile("w+") as said:
            receiver, sender = os.pipe()
            child = os.fork()
            if child == 0:
                for target in (1, 2):
                    os.dup2(said.fileno(), target)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                signal.alarm(SECONDS)
                before = set(sys.modules)
                library.kills_watch(root.encode(), ctypes.c_long(at), int(full))
                code = run(words)
                with open(sender, "w", encoding="utf-8") as report:
                    json.dump([library.kills_counted(), sorted(set(sys.modules) - before)], report)
                os._exit(code)
            os.close(sender)
            with open(receiver, encoding="utf-8") as report:
                operations, imported = json.loads(report.read() or "[0, []]")
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            sys.stdout.write(json.dumps([code, operations, said.read()]) + "\n")
            sys.stdout.flush()
            for name in imported:  # the next fork has them
                with suppress(Exception):
                    importlib.import_module(name)


def run(words: list[str]) -> int:
    """Run a command as a shell does, and return its exit code."""
    from ukge.cli import main

    sys.argv = ["ukge", *words]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


def warm_up() -> None:
    """Import what commands need, but run nothing: threads do not live on in a fork."""
    import ukge

    for module in pkgutil.walk_packages(ukge.__path__, "ukge."):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    importlib.import_module("torch").set_num_threads(1)


if __name__ == "__main__":
    loaded: Any = ctypes.CDLL(sys.argv[1])
    loaded.kills_counted.restype = ctypes.c_long
    warm_up()
    serve(loaded)
