"""Whether rules help, said from figures made up by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.reproduction.made_up import outcome, results

from ukge.reproduction.beyond_paper import rules_section, sentence, verdict
from ukge.reproduction.cells import F1, MSE, Column, Summary
from ukge.reproduction.document import Bullets, Grid


@pytest.mark.parametrize(
    ("column", "ours", "without", "expected"),
    [
        (MSE, Summary(0.90, 0.03, 3), Summary(0.96, 0.04, 3), "better"),  # 0.06 against √(0.03² + 0.04²) = 0.05
        (MSE, Summary(0.92, 0.03, 3), Summary(0.96, 0.04, 3), "no different beyond chance"),
        (MSE, Summary(1.02, 0.03, 3), Summary(0.96, 0.04, 3), "worse"),
        (F1, Summary(95.0, 0.1, 3), Summary(94.0, 0.1, 3), "better"),
        (F1, Summary(93.0, 0.1, 3), Summary(94.0, 0.1, 3), "worse"),
        (F1, Summary(94.0, 0.0, 3), Summary(94.0, 0.0, 3), "no different beyond chance"),
        (F1, Summary(95.0, None, 1), Summary(94.0, 0.1, 3), "unknown"),
    ],
)
def test_a_difference_counts_against_both_deviations(
    column: Column, ours: Summary, without: Summary, expected: str
) -> None:
    assert verdict(column, ours, without) == expected


def test_sentences_are_plain() -> None:
    low, high = Summary(0.90, 0.01, 3), Summary(0.96, 0.01, 3)
    poor, good = Summary(94.0, 0.1, 3), Summary(95.0, 0.1, 3)
    said = {
        "help: better in MSE, F1.": [(MSE, low, high), (F1, good, poor)],
        "help in part: better in MSE; no different beyond chance in F1.": [(MSE, low, high), (F1, good, good)],
        "help in part and hurt in part: better in MSE; worse in F1.": [(MSE, low, high), (F1, poor, good)],
        "do not help: no different beyond chance in MSE, F1.": [(MSE, low, low), (F1, good, good)],
        "hurt: worse in MSE, F1.": [(MSE, high, low), (F1, poor, good)],
        "hurt in part and help nowhere: worse in F1; no different beyond chance in MSE.": [
            (MSE, low, low),
            (F1, poor, good),
        ],
    }
    for words, found in said.items():
        assert sentence("g", "mined rules", found) == f"On g, mined rules {words}"
    assert sentence("g", "mined rules", [(MSE, Summary(1, None, 1), low)]).startswith("On g, one seed cannot tell")


def test_the_section_tells_of_settings_that_differ() -> None:
    without = [outcome("ukge-p", seed, {"mse": 0.010 + seed * 1e-4}) for seed in range(3)]
    own = [outcome("ukge-rect", seed, {"mse": 0.005 + seed * 1e-4}) for seed in range(3)]
    found = rules_section([results(*without, *own)])
    assert found is not None
    table, said = found.blocks[1], found.blocks[2]
    assert isinstance(table, Grid)
    assert [row[0].text for row in table.rows] == [
        "ppi5k, no rules",
        "ppi5k, the authors' ground rules",
        "ppi5k, mined rules",
    ]
    assert [row[1].text for row in table.rows] == ["1.01 ± 0.01", "0.51 ± 0.01", "–"]
    assert said == Bullets(("On ppi5k, the authors' ground rules help: better in MSE.",))
    other = [replace(each, settings={**each.settings, "optimiser": {"lr": 0.5}}) for each in own]
    unlike = rules_section([results(*without, *other)])
    assert unlike is not None
    assert isinstance(unlike.blocks[2], Bullets)
    assert unlike.blocks[2].items[0].endswith("Their settings differ in more than rules: lr.")
    assert rules_section([results(*without)]) is None
