"""How a command ends, for the scripts that call it."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell is told."""

    OK = 0
    FAILED = 1
    MISTAKE = 2
    DEAD = 3
    INTERRUPTED = 130
    PIPE = 141


MEANING = {
    ExitCode.OK: "all is well",
    ExitCode.FAILED: "part of the work failed, or a fault of ukge's own",
    ExitCode.MISTAKE: "a mistake in the command, a file or a setting; the message says what to do",
    ExitCode.DEAD: "training ended, but the model learnt nothing",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
    ExitCode.PIPE: "whoever read the output stopped reading",
}

EPILOG = "Exit codes: " + "; ".join(f"{code.value} {meaning}" for code, meaning in MEANING.items()) + "."
