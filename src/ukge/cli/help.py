"""How commands describe themselves."""

from __future__ import annotations

import inspect

import typer


def reflow(*apps: typer.Typer) -> None:
    """Let the paragraphs of every command's help flow: line ends of the source are none on the screen."""
    for app in apps:
        for command in app.registered_commands:
            text = inspect.cleandoc(command.callback.__doc__ or "") if command.callback else ""
            command.help = "\n\n".join(" ".join(each.split()) for each in text.split("\n\n"))
