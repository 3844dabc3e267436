"""Which settings a model is trained with on a graph: the files `settings/GRAPH.toml`, over what the variant fixes.

A table is named after a model and holds settings by name, without their section, and `found`: how they were found.
`[MODEL.ranking]`, where there is one, holds what changes for a second training that stands in the ranking table; so do
`[MODEL.absolute]` for the column of the MAE, and `[MODEL.strong]` for the table of strong facts.
`remarks` and `tried`, lists of sentences before the first table, are printed on the page.

The models of the field have a file each, `settings/field/MODEL.toml`: its `title`, the `model` that is trained,
settings for `[every]` graph and for some by name, each with `found`, `seconds` that an epoch takes on two cores, and
what was `tried`; `ranks = false` where to rank all entities takes hours. A benchmark that a file does not name is one
that the model was not published on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ukge.errors import ConfigError, as_written
from ukge.graph.catalogue import BENCHMARKS
from ukge.learning.data import MINED, OWN
from ukge.registry import Registry
from ukge.settings.config import Config
from ukge.settings.variants import paper_tau, variants

MAIN, RANKING, ABSOLUTE, STRONG = "main", "ranking", "absolute", "strong"
APART = {RANKING: "for ranking", ABSOLUTE: "for MAE", STRONG: "for strong facts"}
"""What a model may be trained for once more, stopping by the metric that is reported, and what the page calls it."""
FIELD, EVERY = "field", "every"
WORDS = ("remarks", "tried")
BESIDE = ("found", "ranks", "seconds", "tried", *APART)
"""What a table holds beside settings."""
PACKAGE = files("ukge.reproduction").joinpath("settings")
DEFAULTS = "the defaults of the package; nobody searched on this graph"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A row of our tables: a variant with the source of its rules, and whose settings it takes if it has no own."""

    title: str
    variant: str
    rules: str = OWN
    like: str | None = None


contestants: Registry[Contestant] = Registry("model of the comparison", "ukge.contestants")
contestants.register("transe")(Contestant("TransE", "transe"))
contestants.register("distmult")(Contestant("DistMult", "distmult"))
contestants.register("complex")(Contestant("ComplEx", "complex"))
contestants.register("complex-all")(Contestant("ComplEx, 1-vs-all", "complex-all"))
contestants.register("urge")(Contestant("URGE", "urge", like="ukge-rect"))
contestants.register("ukge-n")(Contestant("UKGE n−", "ukge-n", like="ukge-rect"))
contestants.register("ukge-p")(Contestant("UKGE p−", "ukge-p", like="ukge-rect"))
contestants.register("ukge-rect")(Contestant("UKGE rect", "ukge-rect"))
contestants.register("ukge-logi")(Contestant("UKGE logi", "ukge-logi"))
contestants.register("ukge-rect-mined")(Contestant("UKGE rect, mined rules", "ukge-rect", MINED, "ukge-rect"))


def field_files(place: Traversable) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the models of the field that have a file in a directory of settings, with what it says."""
    folder = place.joinpath(FIELD)
    for file in sorted(folder.iterdir(), key=lambda each: each.name) if folder.is_dir() else ():
        if file.name.endswith(".toml"):
            yield file.name.removesuffix(".toml"), _read(file)


def _read(file: Traversable) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from None


_field = {name: Contestant(data["title"], data["model"]) for name, data in field_files(PACKAGE)}
for _name, _entrant in _field.items():
    contestants.register(_name)(_entrant)

PAPER_MODELS = ("transe", "distmult", "complex", "urge", "ukge-n", "ukge-p", "ukge-rect", "ukge-logi")
FIELD_MODELS = (*sorted(_field, key=lambda name: _field[name].title.casefold()), "ukge-rect", "ukge-logi")
ABLATION = ("ukge-p", "ukge-rect", "ukge-rect-mined")


def registered(model: str) -> bool:
    """Return whether a contestant's model is there to be trained; those of the field may come with another package."""
    return contestants.get(model).variant in variants


@dataclass(frozen=True)
class Recipes:
    """The settings of one graph: a table per model, and sentences for the page."""

    graph: str
    tables: Mapping[str, Mapping[str, Any]]
    remarks: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()

    def apart(self, model: str) -> tuple[str, ...]:
        """Return what the model is trained for once more."""
        return tuple(task for task in APART if task in self._table(model))

    def found(self, model: str, task: str = MAIN) -> str:
        """Return how the settings were found."""
        table = self._table(model)
        own = table if task == MAIN else table.get(task, {})
        text = str(own.get("found") or table.get("found", ""))
        like = contestants.get(model).like
        return text or (f"as {like}" if like in self.tables else DEFAULTS)

    def enters(self, model: str) -> bool:
        """Return whether a model of the field is trained on the graph: on a benchmark, if its file names it."""
        return self.graph not in BENCHMARKS or model not in _field or model in self.tables

    def seconds(self, model: str, task: str = MAIN) -> float | None:
        """Return the seconds that the settings say an epoch takes; None where they say nothing."""
        table = self._table(model)
        found = {**table, **table.get(task, {})}.get("seconds")
        return None if found is None else float(found)

    def ranks(self, model: str) -> bool:
        """Return whether a model is asked to rank, which may take hours."""
        return bool(self._table(model).get("ranks", True))

    def tried_for(self, model: str) -> tuple[str, ...]:
        """Return what was tried for a model of the field."""
        return tuple(self._table(model).get("tried", ()))

    def config(self, model: str, task: str = MAIN, overrides: Mapping[str, Any] | None = None) -> Config:
        """Return the settings: the model's it is like, what its variant fixes, its own, the task's, `overrides`."""
        entrant = contestants.get(model)
        own = self._table(model)
        like = self.tables.get(entrant.like, {}) if entrant.like is not None else {}
        fixed = variants.get(entrant.variant)
        tau = {"tau": paper_tau(self.graph)}
        config = Config().replace(**tau)
        for settings in (_knobs(like), fixed, _knobs(own), _knobs(own.get(task, {})), overrides or {}):
            config = config.replace(**settings)
        return config

    def _table(self, model: str) -> Mapping[str, Any]:
        return self.tables.get(model, {})


def recipes_for(graph: str, directory: Path | None = None) -> Recipes:
    """Return the settings of a graph, from the package or from `directory`; a graph without a file has none."""
    place: Traversable = PACKAGE if directory is None else directory
    if directory is not None and not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory of settings", hint="It should hold files like ppi5k.toml.")
    file = place.joinpath(f"{graph}.toml")
    data = _read(file) if file.is_file() else {}
    for name, said in field_files(place):
        every, own = said.get(EVERY, {}), said.get(graph)
        if own is not None or graph not in BENCHMARKS:
            both = {task: {**every.get(task, {}), **(own or {}).get(task, {})} for task in APART}
            data[name] = {**every, **(own or {}), **{task: table for task, table in both.items() if table}}
    return _checked(graph, data, str(file))


def comparable(config: Config) -> dict[str, Any]:
    """Return the settings that decide what is learnt: all but where and how it runs, and the seed."""
    settings: dict[str, Any] = config.to_dict()
    settings["runtime"] = {"seed": config.runtime.seed}
    return settings


def settled(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return settings that were kept once, with the defaults of those that came later: what was learnt is the same."""
    return {part: {**values, **settings.get(part, {})} for part, values in comparable(Config()).items()}


def _checked(graph: str, data: dict[str, Any], where: str) -> Recipes:
    words = {name: _sentences(data.pop(name, []), f"{where}: {name}") for name in WORDS}
    for model, table in data.items():
        contestants.get(model)
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: '{model}' must be a table of settings, not {table!r}")
    found = Recipes(graph, data, **words)
    for model in filter(registered, data):
        for task in (MAIN, *APART):
            try:
                found.config(model, task)
            except ConfigError as error:
                what, hint = error.worded(as_written)
                place = where.replace(f"{graph}.toml", f"{FIELD}/{model}.toml") if model in _field else where
                raise ConfigError(f"{place}, [{model}]: {what}", hint=hint) from None
    return found


def _knobs(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in BESIDE}


def _sentences(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{where} must be a list of sentences, not {value!r}")
    return tuple(value)
