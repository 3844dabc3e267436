"""The page of all settings, made from the config: `python -m ukge.settings.page > docs/settings.md`."""

from __future__ import annotations

import sys

from ukge.settings.config import SECTIONS, knobs
from ukge.settings.variants import DESCRIPTIONS, variants


def settings_page() -> str:
    """Return every setting with its type, default and help, and every named model, as Markdown."""
    lines = [
        "# Settings",
        "",
        "Each setting is a flag of `ukge train` (`--batch-size 512`), a key of a TOML file for `--config`, and an",
        "argument of `UKGE(...)`. Flags go before the file, the file before a preset, a preset before the model's own.",
    ]
    for section, kind in SECTIONS.items():
        lines += [
            "",
            f"## `[{section}]`",
            "",
            str(kind.__doc__),
            "",
            "| setting | type | default | range | meaning |",
            "|---|---|---|---|---|",
        ]
        for knob in knobs():
            if knob.section == section:
                form = knob.type.__name__
                lines.append(f"| `{knob.name}` | {form} | `{knob.default}` | {knob.bounds} | {knob.help} |")
    lines += ["", "## Models", "", "| `--model` | what it is | settings it changes |", "|---|---|---|"]
    for name in variants:
        changed = ", ".join(f"`{key}={value}`" for key, value in variants.get(name).items())
        lines.append(f"| `{name}` | {DESCRIPTIONS[name]} | {changed} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
