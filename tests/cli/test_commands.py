"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner, Result

from ukge.cli import app, main
from ukge.cli.console import MEANING, ExitCode, as_flag
from ukge.cli.demo import TRAINING
from ukge.cli.flags import Model
from ukge.errors import UkgeError
from ukge.graph.catalogue import open_dataset
from ukge.graph.readers import read
from ukge.settings.variants import DESCRIPTIONS, variants

FACTS = "".join(f"e{i * i % 23}\tr{i % 3}\te{(i * 7 + i // 23) % 23}\t0.{i % 9 + 1}\n" for i in range(240))


def run(*arguments: str | Path) -> Result:
    """Run a command in this process; an error of ours is raised, as `main` would catch it."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, UkgeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def shell(*arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    command = [sys.executable, "-c", "from ukge.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}, encoding="utf-8"
    )


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS, encoding="utf-8")
    return path


def test_help_lists_the_commands() -> None:
    printed = run("--help").output
    for command in ("audit", "data", "demo"):
        assert command in printed
    for command in ("list", "get", "info", "convert", "split", "normalise", "generate"):
        assert command in run("data", "--help").output


def test_a_bad_file_is_exit_code_2_and_a_message(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text("a\tr\tb\t0.5\na\tr\tb\t1.5\n", encoding="utf-8")
    done = shell("audit", path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: ")
    for word in ("bad.tsv", "line 2", "1.5", "What to do: "):
        assert word in done.stderr


def test_every_model_of_ours_is_named() -> None:
    told = re.findall(r"[a-z0-9-]+", get_args(Model)[1].help)
    ours = {name for name in variants.names() if name in DESCRIPTIONS}
    assert len(ours) > 12
    assert ours <= set(told)


def test_the_exit_codes_are_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = " ".join(run("--help").output.split())
    for code in ExitCode:
        assert f"{code.value} {MEANING[code]}" in shown
    raised: list[tuple[BaseException, ExitCode]] = [
        (UkgeError("wrong"), ExitCode.MISTAKE),
        (OSError(28, "No space left"), ExitCode.MISTAKE),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (BrokenPipeError(), ExitCode.PIPE),
    ]
    for error, code in raised:

        def end(*_: object, error: BaseException = error, standalone_mode: bool) -> None:
            raise error

        monkeypatch.setattr("ukge.cli.app", end)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code


def test_a_place_that_cannot_be_written_is_exit_code_2_too(facts: Path) -> None:
    done = shell("audit", facts, "--html", facts / "page.html")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "nowhere"],
        ["audit", "empty.tsv"],
        ["data", "get", "cn15"],
        ["data", "info", "nowhere"],
        ["data", "convert", "facts.tsv", "facts.unknown"],
        ["data", "convert", "facts.tsv", "out.tsv", "--columns", "head"],
        ["data", "convert", "facts.tsv", "out.tsv", "--columns", "head=9"],
        ["data", "convert", "facts.tsv", "out.tsv", "--normalise", "no-such-scale"],
        ["data", "convert", "facts.tsv", "out.tsv", "--aggregate", "no-such-way"],
        ["data", "convert", "facts.tsv", "out.tsv", "--aggregate", "error"],
        ["data", "convert", "facts.tsv", "out.tsv", "--language", "en"],
        ["data", "convert", "facts.tsv", "out.tsv", "--format", "no-such-format"],
        ["data", "split", "facts.tsv", "--out", "cut", "--negatives", "no-such-kind"],
        ["data", "split", "facts.tsv", "--out", "cut", "--val", "0.9", "--test", "0.5"],
        ["data", "split", "facts.tsv", "--out", "facts.tsv"],
    ],
    ids=" ".join,
)
def test_a_users_mistake_is_an_error_of_ours_and_leaves_no_files(
    facts: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(facts.parent)
    (facts.parent / "empty.tsv").touch()
    with pytest.raises(UkgeError) as caught:
        run(*arguments)
    assert caught.value.hint
    assert {path.name for path in facts.parent.iterdir()} == {"facts.tsv", "empty.tsv"}


def test_a_warning_is_a_note_on_standard_error(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tsv"
    path.write_text("".join(f"a{i}\tr\tb{i}\t0.5\n" for i in range(50)), encoding="utf-8")
    done = shell("data", "split", path, "--out", tmp_path / "cut", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Note: asked for")
    assert json.loads(done.stdout)["train"] == 50


def test_audit_of_a_file_says_what_matters(facts: Path) -> None:
    printed = run("audit", facts).stdout
    assert "Audit of facts.tsv" in printed
    assert "triples occur more than once" in printed
    assert "█" in printed


def test_audit_as_json_and_as_a_page(facts: Path, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "audit.html"
    result = run("audit", facts, "--json", "--html", page)
    found = json.loads(result.stdout)
    assert found["whole"]["rows"] == 240
    assert found["headlines"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in page.parent.iterdir()] == ["audit.html"]


def test_convert_there_and_back(facts: Path, tmp_path: Path) -> None:
    run("data", "convert", facts, tmp_path / "facts.parquet")
    run("data", "convert", tmp_path / "facts.parquet", tmp_path / "again.csv")
    said = json.loads(run("data", "convert", tmp_path / "again.csv", tmp_path / "again.tsv", "--json").stdout)
    assert said["facts"] == 240
    assert read(tmp_path / "again.tsv") == read(facts)


def test_convert_with_columns_and_normalise(tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    path.write_text("weight,to,kind,from\n10,b,r,a\n30,c,r,a\n20,d,r,a\n", encoding="utf-8")
    columns = "head=from,relation=kind,tail=to,confidence=weight"
    run("data", "convert", path, tmp_path / "out.tsv", "--columns", columns, "--header", "--normalise", "minmax:0,1")
    assert [(fact.tail, fact.confidence) for fact in read(tmp_path / "out.tsv")] == [("b", 0.0), ("c", 1.0), ("d", 0.5)]


def test_the_flags_of_single_formats_arrive(tmp_path: Path) -> None:
    concepts = tmp_path / "assertions.csv"
    words = [("en", "dog", "en", "cat", 1.0), ("de", "hund", "de", "katze", 2.0), ("en", "dog", "de", "hund", 2.0)]
    lines = [f'/a/x\t/r/RelatedTo\t/c/{a}/{b}\t/c/{c}/{d}\t{{"weight": {w}}}\n' for a, b, c, d, w in words]
    concepts.write_text("".join(lines), encoding="utf-8")
    flags = ["--format", "conceptnet", "--normalise", "conceptnet", "--language"]
    result = run("data", "convert", concepts, tmp_path / "de.tsv", *flags, "de")
    assert [fact.head for fact in read(tmp_path / "de.tsv")] == ["hund"]
    assert "2 rows skipped" in result.stderr
    run("data", "convert", concepts, tmp_path / "all.tsv", *flags, "all")
    assert len(read(tmp_path / "all.tsv")) == 3

    links = tmp_path / "links.txt"
    links.write_text("protein1 protein2 database textmining combined_score\np q 900 0 900\np s 0 700 700\n")
    run("data", "convert", links, tmp_path / "links.tsv", "--format", "string", "--channels", "database")
    assert [fact.tail for fact in read(tmp_path / "links.tsv")] == ["q"]

    semicolons = tmp_path / "semicolons.csv"
    semicolons.write_text("a;r;b;0.5\n", encoding="utf-8")
    run("data", "convert", semicolons, tmp_path / "plain.tsv", "--delimiter", ";")
    assert read(tmp_path / "plain.tsv")[0] == ("a", "r", "b", 0.5, None)


def test_normalise_and_aggregate(tmp_path: Path) -> None:
    path = tmp_path / "weights.tsv"
    path.write_text("a\tr\tb\t2\na\tr\tb\t4\na\tr\tc\t0\n", encoding="utf-8")
    run("data", "normalise", path, tmp_path / "out.tsv", "--scale", "minmax:0,1")
    assert read(tmp_path / "out.tsv").confidence.tolist() == [0.5, 1.0, 0.0]
    result = run("data", "convert", tmp_path / "out.tsv", tmp_path / "one.tsv", "--aggregate", "mean")
    assert read(tmp_path / "one.tsv").confidence.tolist() == [0.75, 0.0]
    assert "1 repeated rows" in result.stderr


def test_split_makes_a_data_set(facts: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    said = json.loads(
        run("data", "split", facts, "--out", cut, "--seed", "4", "--negatives", "uniform", "--json").stdout
    )
    dataset = open_dataset(cut)
    assert sum(len(part) for part in dataset.parts.values()) == 240
    assert said["test"] == len(dataset.test) == 19
    assert dataset.negatives is not None
    with pytest.raises(UkgeError, match="holds files already") as caught:
        run("data", "split", facts, "--out", cut)
    assert "--force" in str(caught.value.worded(as_flag)[1])
    run("data", "split", facts, "--out", cut, "--force", "--leak-safe")
    assert open_dataset(cut).negatives is None
    assert "No test fact is in train" in run("audit", cut).stdout


def test_info_and_list(facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UKGE_DATA", str(tmp_path))
    (tmp_path / "ppi5k").mkdir()
    assert json.loads(run("data", "info", facts, "--json").stdout)["facts"] == 240
    assert "240" in run("data", "info", facts).stdout
    rows = {row["name"]: row for row in json.loads(run("data", "list", "--json").stdout)}
    assert set(rows) >= {"cn15k", "nl27k", "ppi5k"}
    assert rows["ppi5k"]["found_by"] == "UKGE_DATA"
    assert "ConceptNet" in run("data", "list").stdout


def test_generate_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("one.tsv", "1"), ("same.parquet", "1"), ("other.tsv", "2")):
        run("data", "generate", "--entities", "200", "--facts", "2000", "--seed", seed, "--out", tmp_path / name)
    assert read(tmp_path / "one.tsv") == read(tmp_path / "same.parquet")
    assert read(tmp_path / "one.tsv") != read(tmp_path / "other.tsv")


def test_the_demo_runs_twice_and_leaves_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for epochs in (1, TRAINING["epochs"]):
        monkeypatch.setitem(TRAINING, "epochs", epochs)
        printed = run("demo", "--out", tmp_path / "demo").stdout
        assert "rules were planted" in printed
        assert "15 of the 15 planted ones" in printed
        assert "nDCG linear" in printed
        assert "Error against the true confidence" in printed
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "world.tsv",
        "random",
        "leak-safe",
        "audit-random.html",
        "audit-leak-safe.html",
        "rules.psl",
        "run",
        "report",
    }
    assert (tmp_path / "demo" / "report" / "index.html").is_file()


def test_get_and_info_of_a_benchmark(benchmark_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UKGE_DATA", str(benchmark_data))
    assert "verified" in run("data", "get", "ppi5k").stdout
    assert json.loads(run("data", "info", "ppi5k", "--json").stdout)["negatives"] == 21_720
