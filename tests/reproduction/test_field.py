"""`ukge reproduce --parts field`: its page from figures made up by hand, and the whole way on a small data set."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.reproduction.made_up import outcome, results
from typer.testing import CliRunner

from ukge.cli import app
from ukge.errors import ConfigError
from ukge.graph.catalogue import BENCHMARKS
from ukge.learning.train import EpochEvent
from ukge.reproduction.cells import POSITIVE_MSE, SUREST, WMR, published
from ukge.reproduction.jobs import EVIDENCE, Job, estimates, planned
from ukge.reproduction.page import page
from ukge.reproduction.recipes import FIELD_MODELS, RANKING, Contestant, contestants, recipes_for, registered
from ukge.reproduction.reproduce import Reproduction, Request, Watcher, reproduce
from ukge.settings.variants import variants

SETTINGS = {"dim": 8, "every": 1, "batch_size": 256, "threads": 1, "epochs": 3, "checkpoint_seconds": 0.0}
MODELS = ("focuse", "gtranse", "kg2e")
FIGURES = {
    "confidence": {"mse": 0.0100, "mae": 0.0400},
    "ranking": {"linear": 0.9, "exponential": 0.9},
    "split/confidence_apart": {"mse_positives": 0.0050, "mse_negatives": 0.0030},
    "split/links_filtered_tail": {"wmr": 34.6, "whits_20": 0.44},
    "split/ranking_held_out": {"linear": 0.445},
    "positives/confidence": {"mse": 0.0034, "mae": 0.0300},
    "positives/links_filtered_tail": {"wmrr": 0.7, "mrr": 0.7, "hits_1": 0.5},
}


def test_the_page_shows_published_beside_ours_by_three_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contestants._known, "absent", Contestant("Nobody's", "nobodys"))
    made = [replace(outcome(model, 0, {}), figures=FIGURES) for model in ("passleaf", "focuse")]
    over = replace(outcome(EVIDENCE, 0, {}), figures=FIGURES, settings={"over": "passleaf"})
    graph = results(*made, over, recipes=recipes_for("ppi5k"), trivial={"twin, else 0": FIGURES})
    asked = Request(("ppi5k",), ("passleaf", "focuse", "absent"), 1, ("field",))
    text = page(Reproduction(asked, (graph,), {}, ()))
    assert text.startswith("# The models of the field, reproduced\n")
    assert "## Graphs" not in text
    paper, split, positives = (text[text.index(f"## Protocol `{each}`") :] for each in ("paper", "split", "positives"))
    assert "| PASSLEAF DistMult | 1.00 | 4.00 | 0.900 | 0.900 |" in paper
    assert (
        "| PASSLEAF DistMult | **0.50**<br>0.51 (−0.01) | **0.30**<br>0.30 (±0.00) | **34.6**<br>34.9 (−0.3) | "
        "44.0<br>45.1 (−1.1) | **0.445**<br>0.445 (±0.000) |"
    ) in split
    assert "| PASSLEAF DistMult | **0.0034**<br>0.0034 (±0.0000) | 0.0300<br>0.0216 (+0.0084) |" in positives
    assert "| FocusE DistMult | – | – | 0.700<br>0.966 (−0.266) |" in positives  # it has no confidence
    rows = [line for line in positives.splitlines() if line.startswith("|")]
    assert rows[4:6] == [
        "| *twin, else 0* | *0.0034* | *0.0300* | *0.700* | *0.700* | *0.500* |",
        "| evidence over PASSLEAF DistMult | 0.0034 | 0.0300 | 0.700 | 0.700 | 0.500 |",
    ]
    assert "- PASSLEAF DistMult on ppi5k, WHits@20: 44.0 where 45.1 was published." in text
    assert "6 of 13 cells are reached" in text
    assert "- Nobody's: no model `nobodys` is registered." in text
    assert "| ppi5k | PASSLEAF DistMult |" in text
    assert "| 2 epochs of 0.5 s, 0.0 min; the best is 2 |" in text


def test_published_figures_of_the_other_protocols() -> None:
    known = published()
    assert known.value("nl27k", "passleaf-complex", WMR.metric, WMR.protocol) == 224
    assert known.value("ppi5k", "upgat", POSITIVE_MSE.metric, POSITIVE_MSE.protocol) == 0.0032
    assert known.value("nl27k", "focuse", SUREST.known_as, SUREST.protocol) == 0.82
    assert {*known.results["split"], *known.results["focus"], *known.results["positives"]} <= set(FIELD_MODELS)


@pytest.mark.parametrize("graph", BENCHMARKS)
def test_the_settings_of_the_field_are_whole(graph: str) -> None:
    recipes = recipes_for(graph)
    for model in FIELD_MODELS:
        known = any(published().value(graph, model, "mse", each) for each in ("paper", "positives"))
        assert recipes.enters(model) or not known, f"{model} has figures on {graph}, and no settings"
        if registered(model) and model in recipes.tables and not model.startswith("ukge"):
            config = recipes.config(model)
            assert (recipes.seconds(model) or 0) * config.stopping.epochs <= 3600, f"{model} takes hours"


def test_what_is_not_registered_is_left_out_and_what_may_take_long_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "field").mkdir()
    said = "title = 't'\nmodel = 'kg2e'\n[every]\nlr = 0.5\nseconds = 4\n[g]\nlr = 0.25\n[g.ranking]\nseconds = 60\n"
    (tmp_path / "field" / "kg2e.toml").write_text(said, encoding="utf-8")
    recipes = recipes_for("g", tmp_path)
    assert recipes.config("kg2e").optimiser.lr == 0.25
    assert recipes_for("h", tmp_path).config("kg2e").optimiser.lr == 0.5
    assert not recipes_for("nl27k", tmp_path).enters("kg2e")  # a benchmark that the file does not name
    monkeypatch.setitem(contestants._known, "absent", Contestant("Nobody's", "nobodys"))
    jobs = planned({"g": recipes}, ["kg2e", "absent"], range(1), ["field"])
    assert [job.label for job in jobs] == ["kg2e", "kg2e-ranking", EVIDENCE]
    found = estimates(jobs, {"g": recipes}, {"epochs": 10})
    assert found == {Job("g", "kg2e", 0): (10, 4.0), Job("g", "kg2e", 0, RANKING): (10, 60.0)}
    (tmp_path / "field" / "kg2e.toml").write_text("[every]\nrate = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="unknown setting 'rate'"):
        recipes_for("g", tmp_path)


class Stopper(Watcher):
    """Remembers what it hears; may stop after some epochs, as a user does."""

    def __init__(self, stop_after: int = -1) -> None:
        self.news: list[str] = []
        self.epochs, self.stop_after = 0, stop_after

    def on_epoch(self, event: EpochEvent) -> None:
        self.epochs += 1
        if self.epochs == self.stop_after:
            raise KeyboardInterrupt

    def on_news(self, text: str) -> None:
        self.news.append(text)


def test_a_stopped_call_goes_on_and_leaves_a_page(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(variants._known, "gtranse")
    out = tmp_path / "out"
    asked = Request((str(world),), MODELS, 1, ("field",), out, None, SETTINGS)
    stopped = Stopper(stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        reproduce(asked, stopped)
    assert stopped.news == ["GTransE is left out: no model 'gtranse' is registered"]
    watch = Stopper()
    found = reproduce(asked, watch)
    assert [(job.model, how) for job, how in found.done.items()] == [
        ("focuse", "kept"),
        ("kg2e", "resumed"),
        (EVIDENCE, "trained"),
    ]
    assert watch.epochs == 2  # its second epoch was stopped, and the third
    over = json.loads((out / "world-evidence-seed-0.json").read_text(encoding="utf-8"))
    assert over["settings"] == {"over": "kg2e"}  # FocusE has no confidence to rest upon
    assert over["figures"].keys() >= {"confidence", "split/confidence_apart", "positives/links_filtered_tail"}
    flags = ["--dim", "8", "--every", "1", "--batch-size", "256", "--threads", "1", "--epochs", "3", "--quiet"]
    more = ["--parts", "field", "--models", ",".join(MODELS), "--seeds", "1", "--out", str(out), "--no-train"]
    shown = CliRunner().invoke(app, ["reproduce", str(world), *more, *flags], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "evidence over KG2E" in shown.stdout
    text = (out / "field.md").read_text(encoding="utf-8")
    assert "ukge reproduce world --seeds 1 --models focuse,gtranse,kg2e --parts field" in text
    assert "- GTransE: no model `gtranse` is registered." in text
    assert "3 epochs of" in text
