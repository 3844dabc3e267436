"""Settings: one place, checked, the same in Python, TOML and flags."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ukge.cli import app
from ukge.cli.console import as_flag
from ukge.errors import ConfigError, UkgeError
from ukge.models.links import links
from ukge.settings.config import SECTIONS, Config, from_dict, knobs, overlay, read_config, to_toml
from ukge.settings.knobs import Knob, ModelName
from ukge.settings.page import settings_page
from ukge.settings.variants import DESCRIPTIONS, paper_settings, variant, variants


def test_toml_round_trip(tmp_path: Path) -> None:
    config = Config().replace(dim=64, lr=0.01, filter_observed=True, metric="ndcg")
    (tmp_path / "c.toml").write_text(to_toml(config), encoding="utf-8")
    assert read_config(tmp_path / "c.toml") == config


def test_names_are_unique_over_sections() -> None:
    assert [name for name, n in Counter(knob.name for knob in knobs()).items() if n > 1] == []


def test_every_setting_has_help() -> None:
    assert [knob.name for knob in knobs() if len(knob.help) < 10] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimm": 3}, "unknown setting 'dimm'\nWhat to do: Did you mean 'dim'?"),
        ({"dim": 0}, "dim must be at least 1 and at most 65,536, not 0"),
        ({"dim": 1.5}, "dim must be a whole number, not 1.5"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"lr": float("nan")}, "lr must be above 0 and at most 1e+30, not nan"),
        (
            {"beta1": 1.0},
            "beta1 must be at least 0 and at most 0.999999, not 1.0",
        ),  # PyTorch's own refusal was a traceback
        ({"tau": 1.01}, "tau must be at least 0 and at most 1, not 1.01"),
        ({"by_degree": 1.5}, "by_degree must be at least 0 and at most 1, not 1.5"),
        (
            {"seed": 2**63},
            "seed must be at least 0 and at most 9,223,372,036,854,775,807, not 9223372036854775808",
        ),  # the source of an epoch's order counts in 64 bits
        ({"by_degree": 0.5, "in_range": True}, "by_degree has no meaning with in_range"),
        ({"filter_observed": 1}, "filter_observed must be true or false"),
        ({"threads": 10**5000}, "threads must be at least 0 and at most 1,024, not a number of 5,001 digits"),
        ({"lr": 10**400}, "lr must be above 0 and at most 1e+30, not a number of 401 digits"),
        ({"scorer": 3}, "scorer must be text"),
    ],
)
def test_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config().replace(**change)
    assert message in str(caught.value)


NUMBERS = [each for each in knobs() if each.type in (int, float)]
INTS, FLOATS = (st.sampled_from([each for each in NUMBERS if each.type is kind]) for kind in (int, float))


def test_every_number_has_bounds_on_both_sides() -> None:
    open_ended = [each.name for each in NUMBERS if each.bounds.most is None or not str(each.bounds).count("and")]
    assert open_ended == []


@settings(max_examples=300)
@given(
    st.tuples(INTS, st.integers() | st.integers(-(10**400), 10**400))
    | st.tuples(FLOATS, st.floats() | st.integers(-(10**400), 10**400))
)
def test_a_number_is_taken_if_it_lies_in_its_range_and_else_refused_by_name(drawn: tuple[Knob, Any]) -> None:
    knob, value = drawn
    if knob.bounds.hold(value):
        taken = getattr(getattr(Config().replace(**{knob.name: value}), knob.section), knob.name)
        assert (type(taken), taken) == (knob.type, knob.type(value))
        return
    with pytest.raises(ConfigError) as caught:
        Config().replace(**{knob.name: value})
    told = caught.value.worded(as_flag)[0]
    assert told.startswith(f"--{knob.name.replace('_', '-')} must be {knob.bounds}, not ")


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(NUMBERS),
    st.floats().map(repr) | st.integers().map(str) | st.integers(2**60).map(str) | st.sampled_from(["9" * 5000, "٣"]),
)
def test_any_number_after_a_flag_is_taken_or_exit_code_2(knob: Knob, text: str) -> None:
    done = CliRunner().invoke(app, ["train", "nowhere.tsv", f"--{knob.name.replace('_', '-')}={text}"])
    # What is in range comes as far as the file that is not there.
    assert done.exit_code == 2 or isinstance(done.exception, UkgeError), done.exception


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 100_000, "nan", "1e999", "'x'", "{}", "-1", "1979-05-27"])
def test_a_file_may_say_anything(text: str, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    for knob in NUMBERS:
        file.write_text(f"[{knob.section}]\n{knob.name} = {text}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"c\.toml"):
            read_config(file)


CHOICES = [each for each in knobs() if each.choices is not None]


def test_the_settings_with_names_are_these() -> None:
    names = {each.name for each in CHOICES}
    assert names == {"scorer", "link", "encoder", "loss", "sampler", "optimiser", "metric", "engine", "probe"}


@pytest.mark.parametrize("knob", CHOICES, ids=lambda knob: knob.name)
def test_the_names_an_editor_offers_are_those_of_the_registry(knob: Knob) -> None:
    assert knob.choices is not None
    module, _, name = knob.choices.registry.partition(":")
    assert set(knob.choices.own) <= set(getattr(import_module(module), name).names())


@pytest.mark.parametrize("knob", CHOICES, ids=lambda knob: knob.name)
def test_an_unknown_name_is_refused_when_the_settings_are_made(knob: Knob, tmp_path: Path) -> None:
    typo = f"{knob.default[:-1]}x"
    with pytest.raises(ConfigError, match=rf"unknown {knob.name} '{typo}'\n.*Did you mean '.*'\? Known: ") as caught:
        SECTIONS[knob.section](**{knob.name: typo})
    assert caught.value.what.startswith(f"{knob.name}: ")
    assert caught.value.worded(as_flag)[0].startswith(f"--{knob.name}: ")
    file = tmp_path / "c.toml"
    file.write_text(f'[{knob.section}]\n{knob.name} = "{typo}"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"c\.toml: {knob.section}\.{knob.name}: unknown {knob.name} '{typo}'"):
        read_config(file)


def test_a_name_that_a_plugin_registers_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(links._known, "step", links.get("identity"))
    assert Config().replace(link="step").model.link == "step"


def test_known_names_load_no_library() -> None:
    code = "import sys; from ukge import Config; Config().replace(link='logistic'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_numbers_of_numpy_are_taken_as_they_come_from_a_grid() -> None:
    config = Config().replace(dim=np.int64(8), lr=np.float32(0.5), in_range=np.True_)
    assert (config.model.dim, config.optimiser.lr, config.sampling.in_range) == (8, 0.5, True)
    assert [type(value) for value in (config.model.dim, config.optimiser.lr)] == [int, float]
    assert type(Config().replace(lr=1).optimiser.lr) is float


def test_unknown_sections_and_keys_of_a_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown section 'modell'"):
        from_dict({"modell": {}})
    file = tmp_path / "c.toml"
    file.write_text("[model]\ndepth = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"c\.toml: unknown setting 'model\.depth'"):
        read_config(file)
    file.write_text("[model\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not TOML"):
        read_config(file)


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[optimiser]\nlr = 0.5\n", encoding="utf-8")
    changed = overlay(variant("complex"), file)
    assert changed == variant("complex").replace(lr=0.5)


def test_every_model_has_a_description_and_those_of_the_paper_its_settings() -> None:
    assert set(DESCRIPTIONS) == set(variants.names())
    for name in set(get_args(ModelName)) - {"complex-all"}:
        for data in ("cn15k", "nl27k", "ppi5k", "other"):
            chosen = variant(name).replace(**paper_settings(name, data))
            assert chosen.sampling.tau == (0.70 if data == "ppi5k" else 0.85)


def test_a_model_that_is_not_of_the_paper_has_no_settings_of_it() -> None:
    with pytest.raises(ConfigError, match="the paper has no model 'complex-all'"):
        paper_settings("complex-all", "cn15k")


def test_the_paper_preset_is_the_papers() -> None:
    rect = variant("ukge-rect").replace(**paper_settings("ukge-rect", "cn15k"))
    assert (rect.optimiser.lr, rect.model.dim, rect.optimiser.batch_size, rect.objective.l2) == (0.001, 128, 128, 0.005)
    assert (rect.optimiser.beta1, rect.optimiser.beta2, rect.stopping.every) == (0.9, 0.99, 10)
    assert paper_settings("ukge-logi", "nl27k")["batch_size"] == 512
    assert paper_settings("ukge-p", "ppi5k")["batch_size"] == 256


def test_an_unknown_model_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'ukge-rect'\? Known: beurre, complex, complex-all, distmult"):
        variant("ukge-rec")


@pytest.mark.parametrize("name", ["transe", "distmult", "complex", "complex-all", "urge", "ukge-n", "ukge-p"])
def test_models_without_rules_learn_from_none(name: str) -> None:
    # A rule term would move the link of a model whose own loss does not see it, down to the wrong sign.
    assert variant(name).objective.rule_weight == 0.0
    assert variant(name).objective.rule_prior == 0.0


def test_the_settings_page_is_up_to_date() -> None:
    page = Path(__file__).parent.parent / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_page(), "python -m ukge.settings.page > docs/settings.md"
