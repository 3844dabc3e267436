"""Components by name: our own, and those that other packages offer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ukge
import ukge.registry
from ukge.errors import ConfigError
from ukge.graph.aggregate import AGGREGATIONS
from ukge.graph.formats import writers
from ukge.learning.tuning.search_spaces import spaces
from ukge.models.links import links
from ukge.models.scorers import scorers
from ukge.registry import Registry
from ukge.settings.config import Config

SOURCE = Path(ukge.__file__).parent
MODULE = """
from ukge.models.links import Identity
from ukge.models.scorers import scorers

link, space, other = Identity(), (lambda config, wide: {}), 7
scorer = scorers.get("distmult")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of installed packages, of which the registries know nothing yet."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "of_a_plugin.py").write_text(MODULE, encoding="utf-8")
    for registry in (scorers, links, spaces, AGGREGATIONS, writers):
        monkeypatch.setattr(registry, "_plugins", None)
        monkeypatch.setattr(registry, "_known", dict(registry._known))
    return tmp_path


def install(into: Path, package: str, **groups: str) -> None:
    place = into / f"{package}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    told = "".join(f"[ukge.{group}]\n{point}\n" for group, point in groups.items())
    (place / "entry_points.txt").write_text(told, encoding="utf-8")


def test_components_of_other_packages_are_found_by_name(installed: Path) -> None:
    points = {"scorers": "mine = of_a_plugin:scorer", "links": "mine = of_a_plugin:link"}
    install(installed, "plug", **points, search_spaces="mine = of_a_plugin:space")
    import of_a_plugin  # type: ignore[import-not-found]

    assert scorers.get("mine") is of_a_plugin.scorer
    assert links.get("mine") is of_a_plugin.link
    assert spaces.get("mine") is of_a_plugin.space
    assert "mine" in links.names()
    assert "mine" not in writers
    assert Config().replace(scorer="mine", link="mine").model.link == "mine"


def test_two_packages_with_one_name_are_both_named(installed: Path) -> None:
    install(installed, "plug", links="mine = of_a_plugin:link")
    install(installed, "socket", links="mine = of_a_plugin:other")
    for _ in range(2):  # asking again does not make it go away
        with pytest.raises(ConfigError, match=r"'mine' is offered twice, by (plug and by socket|socket and by plug) "):
            links.names()
    assert links.get("logistic") is not None


def test_a_package_cannot_take_a_name_of_ours(installed: Path) -> None:
    install(installed, "plug", links="logistic = of_a_plugin:link", scorers="distmult = of_a_plugin:scorer")
    with pytest.raises(ConfigError, match=r"link 'logistic' is offered twice, by ukge and by plug"):
        links.names()
    assert "distmult" in scorers.names()  # the very component that is known under the name


@pytest.mark.parametrize(
    ("point", "why"),
    [("of_a_plugin:nothing", "AttributeError"), ("no_such_module:link", "ModuleNotFoundError: .*no_such_module")],
)
def test_a_broken_package_is_named_where_it_is_asked_for(installed: Path, point: str, why: str) -> None:
    install(installed, "plug", links=f"broken = {point}\nmine = of_a_plugin:link")
    assert {"broken", "mine", "logistic"} <= set(links)
    assert links.get("mine") is not None
    with pytest.raises(ConfigError, match=f"link 'broken' of the package plug cannot be loaded: {why}"):
        links.get("broken")


def test_our_own_names_are_given_once() -> None:
    registry = Registry[int]("number", "ukge.numbers")
    registry.register("one")(1)
    with pytest.raises(ConfigError, match="number 'one' is registered twice"):
        registry.register("one")(1)
    with pytest.raises(ConfigError, match=r"unknown number 'on'\nWhat to do: Did you mean 'one'\? Known: one\."):
        registry.get("on")


def test_every_registry_has_a_kind_and_a_documented_group_of_its_own() -> None:
    made = re.compile(r"\bRegistry\(\s*\"([^\"]+)\",\s*\"([^\"]+)\"\s*(?:,\s*more=\"[^\"]+\"\s*)?\)")
    found = [pair for file in SOURCE.rglob("*.py") for pair in made.findall(file.read_text(encoding="utf-8"))]
    kinds, groups = zip(*found, strict=True)
    assert len(set(kinds)) == len(set(groups)) == len(found)
    assert all(re.fullmatch(r"ukge\.[a-z_]+", group) for group in groups)
    documented = re.findall(r"^\| `(.+?)`", ukge.registry.__doc__ or "", re.MULTILINE)
    assert documented == sorted(groups)
