"""The model card of a run (README.md, as model hubs read it) and how to cite it (CITATION.cff).

Both are for people, who may write on in them: no manifest lists them, and nothing is read from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ukge.progress.safe_console import one_line
from ukge.settings.config import Config
from ukge.storage.files import write_atomically

CARD, CITATION = "README.md", "CITATION.cff"
REFERENCE = {
    "type": "conference-paper",
    "title": "Embedding Uncertain Knowledge Graphs",
    "year": 2019,
    "authors": [
        {"family-names": family, "given-names": given}
        for family, given in (
            ("Chen", "Xuelu"),
            ("Chen", "Muhao"),
            ("Shi", "Weijia"),
            ("Sun", "Yizhou"),
            ("Zaniolo", "Carlo"),
        )
    ],
    "collection-title": "Proceedings of the AAAI Conference on Artificial Intelligence",
}


@dataclass(frozen=True)
class Measured:
    """A figure on test facts, with the interval that it lies in."""

    metric: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Known:
    """What is known of a run: its name, its manifest and settings, what was measured, and what leaks."""

    name: str
    manifest: Mapping[str, Any]
    config: Config
    sizes: Mapping[str, int]
    measured: Sequence[Measured] = ()
    measured_on: str = ""
    leaks: Sequence[str] = ()
    judged_by: str = "model"


def write_card(place: Path, known: Known) -> list[Path]:
    """Write card and citation into a directory, and return where they are."""
    made = {place / CARD: card(known), place / CITATION: citation(known)}
    for path, text in made.items():
        write_atomically(path, text.encode())
    return list(made)


def card(known: Known) -> str:
    """Return the model card: a header that hubs read, then what people want to know."""
    data = str(known.manifest["data"]["name"])
    results = [
        {
            "type": each.metric,
            "value": round(each.value, 6),
            **({} if each.low is None else {"args": {"low": each.low, "high": each.high, "level": 0.95}}),
        }
        for each in known.measured
    ]
    header: dict[str, Any] = {
        "library_name": "ukge",
        "license": "other",
        "license_name": "that-of-the-data",
        "tags": ["knowledge-graph", "knowledge-graph-embedding", "uncertainty", "link-prediction", "ukge"],
        "datasets": [data],
        "metrics": [each.metric for each in known.measured],
    }
    if results:
        task = {"type": "link-prediction", "name": "confidence of unseen facts"}
        source = {"task": task, "dataset": {"name": data, "type": data}, "metrics": results}
        header["model-index"] = [{"name": known.name, "results": [source]}]
    parts = [
        f"---\n{_yaml(header)}---",
        f"# {_code(known.name)}",
        _summary(known, data),
        "## How to use\n\n```python\nfrom ukge import Predictor\n\n"
        "predictor = Predictor.open(RUN)  # this directory\n"
        "predictor.predict((head, relation, tail))\npredictor.rank(head, relation, k=10)\n```",
        _figures(known),
        _leaks(known),
        "## Limits\n\nIt knows the names that it was trained with and no others. A confidence is an estimate of what "
        "the data would say, with its errors and gaps; it is no probability that a statement is true of the world. "
        "Look at the bounds, and at the reasons, before you act on one.",
        "## Files\n\nWeights are safetensors, facts and names Parquet, settings TOML; nothing that is loaded can run "
        "code. `manifest.json` has versions, seed, fingerprints of the data, and checksums. The license of what was "
        "learnt is that of the data: say which above.",
    ]
    return "\n\n".join(parts) + "\n"


def citation(known: Known) -> str:
    """Return how to cite the run, in the Citation File Format."""
    return _yaml(
        {
            "cff-version": "1.2.0",
            "message": "If you use this model, cite it, the data that it learnt from, and the method.",
            "type": "dataset",
            "title": f"{known.name}: {known.manifest['model']} on {known.manifest['data']['name']}",
            "authors": [{"name": "the authors of this run"}],
            "references": [
                REFERENCE,
                {
                    "type": "software",
                    "title": "ukge",
                    "version": str(known.manifest["versions"].get("ukge", "")),
                    "authors": [{"name": "The ukge maintainers"}],
                },
            ],
        }
    )


def _summary(known: Known, data: str) -> str:
    sizes, model, result = known.sizes, known.config.model, known.manifest.get("result") or {}
    said = (
        f"A model {_code(str(known.manifest['model']))} (scorer {_code(model.scorer)}, link {_code(model.link)}, "
        f"dimension {model.dim}) of the knowledge graph {_code(data)}: "
        f"{sizes['facts']:,} facts with confidences between "
        f"{sizes['entities']:,} entities by {sizes['relations']:,} relations. Confidences are judged by its "
        f"{known.judged_by}."
    )
    if result.get("best") is not None:
        best = f"{result['metric']} {result['best']:.5f}"
        said += f" It was chosen by {best} on validation facts, in epoch {result['best_epoch']}."
    return said


def _figures(known: Known) -> str:
    if not known.measured:
        return "## Figures\n\nNone were measured for this card: `ukge evaluate RUN` tells them."
    rows = [
        f"| {each.metric} | {each.value:.4f} | {'' if each.low is None else f'{each.low:.4f} to {each.high:.4f}'} |"
        for each in known.measured
    ]
    lines = ["| | value | 95 % interval |", "|---|--:|--:|", *rows]
    return f"## Figures\n\n{known.measured_on}\n\n" + "\n".join(lines)


def _leaks(known: Known) -> str:
    told = "\n".join(f"- {one_line(each)}" for each in known.leaks) or "Nothing that is looked for was found."
    return f"## What leaks\n\nWhat the training facts give away of the held-out ones:\n\n{told}"


def _code(name: str) -> str:
    """Return a name as it stands in Markdown, where nothing in it is markup."""
    return f"`{one_line(name).replace('`', chr(0x2CB))}`"


def _yaml(values: Mapping[str, Any]) -> str:
    """Return values as YAML: a line each, in JSON, which is YAML too, so that no name can break it."""
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=True)}\n" for name, value in values.items())
