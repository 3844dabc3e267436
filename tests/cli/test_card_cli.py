"""`ukge card`: what a model hub reads of a run, and how to cite it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge.cli import run
from ukge.graph.dataset import Dataset
from ukge.learning.estimator import UKGE
from ukge.runs.card import Known, card, citation
from ukge.runs.directory import Run


def lines(text: str) -> dict[str, Any]:
    """Return what a header says: every line is a name and JSON, which YAML is too."""
    return {name: json.loads(value) for name, _, value in (line.partition(": ") for line in text.splitlines())}


def test_the_card_tells_figures_with_intervals_and_what_leaks(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    before = (home / "plain" / "manifest.json").read_bytes()
    assert run(["card", str(home / "plain"), "--out", str(tmp_path / "out"), "--replicates", "50"]) == 0
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    header = lines(text.split("---\n")[1])
    model = UKGE.load(home / "plain")
    error = np.square(np.array(model.predict(dataset.test)) - dataset.test.confidence).mean()
    told = {each["type"]: each for each in header["model-index"][0]["results"][0]["metrics"]}
    assert told["MSE"]["value"] == pytest.approx(error, abs=1e-6)
    assert told["MSE"]["args"]["low"] < error < told["MSE"]["args"]["high"]
    assert header["datasets"] == [Run.open(home / "plain").data.name]
    assert "link two entities that train links" in text
    cited = lines((tmp_path / "out" / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert (home / "plain" / "manifest.json").read_bytes() == before


def test_it_lies_in_the_run_which_stays_sound(home: Path) -> None:
    assert run(["card", str(home / "plain"), "--no-figures"]) == 0
    assert (home / "plain" / "CITATION.cff").is_file()
    assert "None were measured" in (home / "plain" / "README.md").read_text(encoding="utf-8")
    Run.open(home / "plain")


def test_no_name_breaks_header_or_markdown(home: Path) -> None:
    opened, name = Run.open(home / "plain"), "x`\n---\n<script>: [y"
    manifest = opened.manifest()
    manifest["data"]["name"] = name
    known = Known(name, manifest, opened.config, {"facts": 1, "entities": 1, "relations": 1}, leaks=(name,))
    text = card(known)
    assert lines(text.split("---\n")[1])["datasets"] == [name]
    assert "\n<script>" not in text
    assert lines(citation(known))["title"].startswith(name)
