"""`ukge evaluate` and `ukge compare` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ukge.cli import app
from ukge.errors import ConfigError, DataError, RunError
from ukge.graph.readers import read
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.writers import write
from ukge.learning.estimator import UKGE
from ukge.runs.directory import Run

QUICK = ["--dim", "8", "--epochs", "2", "--every", "1", "--batch-size", "256", "--quiet"]
runner = CliRunner()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with facts and four runs: two on a random cut, one on a leak-safe one, one with another τ."""
    path = tmp_path_factory.mktemp("home")
    write(generate(n_entities=300, n_facts=3000, seed=1).graph, path / "world.tsv")
    for name, options in {
        "rect": [],
        "logi": ["--model", "ukge-logi"],
        "safe": ["--leak-safe"],
        "tau": ["--tau", "0.5"],
    }.items():
        arguments = ["train", str(path / "world.tsv"), "--out", str(path / name), *QUICK, *options]
        result = runner.invoke(app, arguments)
        assert result.exit_code == 0, result.output
    return path


@pytest.mark.parametrize(
    ("run", "protocol"),
    [("rect", "paper"), ("rect", "split"), ("rect", "positives"), ("safe", "clean"), ("rect", "uncertainty")],
)
def test_a_run_is_judged_by_every_protocol(run: str, protocol: str, home: Path) -> None:
    arguments = ["evaluate", str(home / run), "--protocol", protocol, "--json", "--replicates", "20", "--tau", "0.6"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["protocol"], told["data"]) == (protocol, "world")
    rows = {row["name"]: row for row in told["rows"]}
    constants = 3 if protocol in ("paper", "clean") else 2  # one more where negative links are asked for too
    assert [row["trivial"] for row in told["rows"]] == [True] * (constants + 4) + [False]
    assert run in rows
    for figures in rows[run]["figures"].values():
        for figure in figures.values():
            if figure["value"] is not None and (figure["low"] is not None or protocol != "uncertainty"):
                assert figure["low"] <= figure["value"] + 1e-9
                assert figure["value"] <= figure["high"] + 1e-9
    table = runner.invoke(app, [*arguments[:4], "--replicates", "0", "--tau", "0.6"])
    assert table.exit_code == 0
    for title in told["tables"].values():
        assert f"{protocol} · {title}" in table.stdout or "raw" in title


def test_the_figures_are_those_of_the_model(home: Path) -> None:
    result = runner.invoke(
        app, ["evaluate", str(home / "rect"), "--protocol", "positives", "--json", "--replicates", "0"]
    )
    told = json.loads(result.stdout)

    test = split(read(home / "world.tsv"), seed=0).test
    gap = UKGE.load(home / "rect").predict(test) - test.confidence
    found = told["rows"][-1]["figures"]["confidence"]["mse"]["value"]
    assert found == pytest.approx(float((gap**2).mean()), rel=1e-4)


def test_a_report_is_written(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    head, relation = next((fact.head, fact.relation) for fact in read(home / "world.tsv"))
    arguments = ["evaluate", str(home / "rect"), "--report", str(tmp_path / "report"), "--replicates", "10"]
    result = runner.invoke(app, [*arguments, "--tau", "0.6", "--query", f"{head},{relation}"])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("known tail") == 1
    assert (tmp_path / "report" / "training.png").is_file()


def test_runs_are_compared(home: Path) -> None:
    arguments = ["compare", str(home / "rect"), str(home / "logi"), str(home / "rect"), str(home / "safe")]
    result = runner.invoke(app, [*arguments, "--protocol", "positives", "--json"])
    assert result.exit_code == 0, result.output
    random, safe = json.loads(result.stdout)
    assert [row["name"] for row in random["rows"] if not row["trivial"]] == ["rect", "logi"]
    assert [row["name"] for row in safe["rows"] if not row["trivial"]] == ["safe"]
    shown = runner.invoke(app, [*arguments, "--protocol", "positives"]).stdout
    assert shown.count("Protocol positives on world") == 2
    lines = shown.splitlines()
    assert lines.index(next(line for line in lines if line.startswith("constant"))) < lines.index(
        next(line for line in lines if line.startswith("rect"))
    )


def test_runs_that_are_no_better_than_a_constant_are_told_so(home: Path) -> None:
    """Two epochs are worse than the mean; every run is told so in words, in JSON, and with the flag."""
    arguments = ["compare", str(home / "rect"), str(home / "logi"), "--protocol", "positives"]
    shown = " ".join(runner.invoke(app, arguments).stdout.split())
    for verdict in json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)[0]["verdicts"]:
        assert verdict["what"] in shown
        if verdict["table"] == "confidence":
            assert (verdict["name"], verdict["constant"]) == ("rect", True)
            assert "--epochs" in verdict["hint"]
            assert verdict["hint"] in shown
            break
    else:
        pytest.fail("nothing was said of rect's errors")


def test_a_run_that_learnt_an_order_is_told_of_its_errors(home: Path, tmp_path: Path) -> None:
    ranks = ["train", str(home / "world.tsv"), "--model", "complex-all", "--out", str(tmp_path / "ranks"), *QUICK]
    assert runner.invoke(app, ranks).exit_code == 0
    told = "ranks learnt an order, not confidences (softmax loss)"
    for command in ("evaluate", "compare"):
        arguments = [command, str(tmp_path / "ranks"), "--protocol", "positives", "--replicates", "0"]
        assert told in runner.invoke(app, arguments).stdout.replace("\n", " ")


def test_a_model_learnt_in_memory_keeps_its_facts(home: Path, tmp_path: Path) -> None:
    graph = read(home / "world.tsv")
    UKGE(dim=8, epochs=1, batch_size=256).fit(graph).save(tmp_path / "run")
    arguments = ["evidence", "fit", str(tmp_path / "run"), "--trees", "3"]
    assert runner.invoke(app, arguments, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["evaluate", "nowhere"], RunError, "nowhere is not a run directory"),
        (["evaluate", "rect", "--protocol", "papers"], ConfigError, "Did you mean 'paper'"),
        (["evaluate", "rect", "--protocol", "clean"], DataError, "--leak-safe"),
        (["evaluate", "rect", "--query", "a,b"], ConfigError, "report=DIR"),
        (
            ["evaluate", "rect", "--report", "r", "--query", "nobody,nothing", "--replicates", "0"],
            DataError,
            "unknown entity",
        ),
        (["compare", "rect", "tau"], ConfigError, "different τ: 0.5, 0.85"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], error: type[Exception], message: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    with pytest.raises(error) as caught:
        runner.invoke(app, arguments, catch_exceptions=False)
    assert message in str(caught.value)


def test_seeds_are_trained_once_and_compared_as_one_model(home: Path, tmp_path: Path) -> None:
    """The cut and what a probe chose are shared; given again, what is finished stays; other settings are refused."""
    words = ["train", str(home / "world.tsv"), "--out", str(tmp_path / "many"), *QUICK]
    first = runner.invoke(app, [*words, "--seeds", "1"])
    assert first.exit_code in (0, 3), first.output
    made = (tmp_path / "many-seed-0" / "weights.safetensors").stat().st_mtime_ns
    again = runner.invoke(app, [*words, "--seeds", "2"])
    assert again.exit_code in (0, 3), again.output
    assert "many-seed-0 is finished and stays" in again.output
    assert (tmp_path / "many-seed-0" / "weights.safetensors").stat().st_mtime_ns == made
    one, other = (Run.open(tmp_path / f"many-seed-{seed}") for seed in (0, 1))
    assert (one.config.replace(seed=1), one.data.train) == (other.config, other.data.train)
    assert (tmp_path / "many-seed-0" / "weights.safetensors").read_bytes() != (
        tmp_path / "many-seed-1" / "weights.safetensors"
    ).read_bytes()
    with pytest.raises(ConfigError, match="holds a run of other facts or settings"):
        runner.invoke(app, [*words, "--seeds", "2", "--l2", "0.5"], catch_exceptions=False)
    compared = ["compare", str(home / "logi"), *(str(tmp_path / f"many-seed-{seed}") for seed in (0, 1))]
    table = tmp_path / "table.md"
    result = runner.invoke(app, [*compared, "--replicates", "99", "--out", str(table), "--json"])
    assert result.exit_code == 0, result.output
    contrasts = json.loads(result.stdout)[0]["contrasts"]
    assert {(each["name"], each["against"]) for each in contrasts} == {("many × 2 seeds", "logi")}
    assert all(0 < each["p"] <= each["corrected"] <= 1 and each["low"] <= each["high"] for each in contrasts)
    assert "| many × 2 seeds | " in table.read_text(encoding="utf-8")
    shown = runner.invoke(app, [*compared, "--replicates", "99"]).stdout
    assert "difference from logi" in shown
    assert "mean ± deviation over seeds" in shown
