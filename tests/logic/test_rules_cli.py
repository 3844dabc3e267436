"""`ukge rules` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from ukge.cli.rules import rules_app
from ukge.errors import ConfigError, RuleError, UkgeError
from ukge.graph.readers import read
from ukge.logic.exchange import read_rules_file

FAMILY = "".join(
    f"m{i}\tmotherOf\tc{i}\t1.0\nf{i}\tfatherOf\tc{i}\t0.9\n" + (f"m{i}\tmarriedTo\tf{i}\t0.8\n" if i % 4 else "")
    for i in range(60)
)
MARRIED = "1.0: motherOf(A, B) & fatherOf(C, B) -> marriedTo(A, C) ^2"


@pytest.fixture
def family(tmp_path: Path) -> Path:
    path = tmp_path / "family.tsv"
    path.write_text(FAMILY, encoding="utf-8")
    return path


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(rules_app, [str(argument) for argument in arguments])
    if isinstance(result.exception, UkgeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_mine_prints_a_table_and_writes_rules_that_ground(family: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.psl"
    printed = run("mine", family, "--out", rules)
    assert "motherOf(A, B) & fatherOf(C, B) -> marriedTo(A, C)" in printed.stdout
    assert "facts are strong" in printed.stderr
    (rule,) = [rule for rule in read_rules_file(rules) if rule.head.relation == "marriedTo"]
    assert 0.4 < rule.weight < 0.9
    told = json.loads(run("ground", family, rules, "--out", tmp_path / "ground.parquet", "--json").stdout)
    table = pq.read_table(tmp_path / "ground.parquet")
    assert table.num_rows == told["ground_rules"] > 5
    assert told["rules"][0]["pruned"] is None
    run("ground", family, rules, "--out", tmp_path / "ground.tsv")
    heads = read(tmp_path / "ground.tsv")
    assert len(heads) == table.num_rows
    assert sorted(heads.confidence) == pytest.approx(sorted(table["body"].to_pylist()))


@pytest.mark.parametrize(("form", "extension"), [("anyburl", ".txt"), ("json", ".json"), ("psl", ".rules")])
def test_every_format_can_be_scored_again(family: Path, tmp_path: Path, form: str, extension: str) -> None:
    rules = tmp_path / f"mined{extension}"
    told = json.loads(run("mine", family, "--out", rules, "--weights", "fixed", "--json").stdout)
    assert told["report"]["kept"] == len(told["rules"])
    assert {one["weight"] for one in told["rules"]} == {1.0}
    again = json.loads(run("score", family, rules, "--json", "--rules-format", form).stdout)
    assert [one["support"] for one in again] == [one["support"] for one in told["rules"]]


def test_a_rule_can_be_typed(family: Path) -> None:
    (told,) = json.loads(run("score", family, MARRIED, "--json").stdout)
    assert told["rule"] == MARRIED
    assert told["support"] < told["implied"]
    (whole,) = json.loads(run("score", family, MARRIED, "--whole", "--json").stdout)
    assert whole["support"] > told["support"]
    assert "marriedTo" in run("score", family, MARRIED).stdout


def test_show_names_the_facts_of_the_body(family: Path) -> None:
    (told,) = json.loads(run("show", family, MARRIED, "--examples", "2", "--json").stdout)
    assert len(told["examples"]) == 2 < told["ground_rules"]
    example = told["examples"][0]
    assert [confidence for _, confidence in example["body"]] == [1.0, 0.9]
    assert example["value"] == pytest.approx(0.9)
    assert "[at least 0.900]" in run("show", family, MARRIED).stdout


def test_mistakes_are_told(family: Path, tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="cannot read"):
        run("score", family, tmp_path / "none.psl")
    with pytest.raises(RuleError, match="expected"):
        run("score", family, "motherOf(A, B -> marriedTo(A, B)")
    with pytest.raises(ConfigError, match="unknown weights"):
        run("mine", family, "--weights", "heavy")
    with pytest.raises(ConfigError, match="unknown engine"):
        run("mine", family, "--engine", "postgres")
    with pytest.raises(RuleError, match="unknown format"):
        run("mine", family, "--out", tmp_path / "rules", "--rules-format", "prolog")


def test_help_imports_nothing_heavy() -> None:
    heavy = ("torch", "pyarrow", "pandas", "duckdb", "numba", "numpy", "rich.table", "ibis")
    code = f"import ukge.cli.rules, sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
