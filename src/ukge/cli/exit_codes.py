"""How a command ends, for the scripts that call it."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell is told."""

    OK = 0
    MISTAKE = 2
    DEAD = 3
    INTERRUPTED = 130
    PIPE = 141
