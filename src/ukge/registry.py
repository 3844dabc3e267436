"""One registry for every kind of component, and how other packages add theirs.

A package adds a component under a name by an entry point; the group says what it is:

    [project.entry-points."ukge.links"]
    probit = "my_package.links:probit"

A scorer, link, loss or model may also stand in a file that registers it when it is loaded: `ukge --plugin FILE …`, or
UKGE_PLUGIN in the environment, with the files separated as those of PATH are.

| group                | holds                                                            |
| -------------------- | ---------------------------------------------------------------- |
| `ukge.aggregations`  | how one confidence is made of those of a fact said several times |
| `ukge.contestants`   | models that `ukge reproduce` compares                            |
| `ukge.encoders`      | rows that a scorer compares, made by a graph network             |
| `ukge.engines`       | what trains: functions of parameters, data and settings          |
| `ukge.links`         | plausibility → confidence                                        |
| `ukge.losses`        | terms of the objective on observed and unseen facts              |
| `ukge.metrics`       | what early stopping watches                                      |
| `ukge.models`        | settings under the name of a published model                     |
| `ukge.negatives`     | how negative links of a test set are drawn                       |
| `ukge.optimisers`    | steps along the gradients                                        |
| `ukge.probes`        | which settings a probe before training may choose                |
| `ukge.protocols`     | what evaluation computes                                         |
| `ukge.pruners`       | what stops hopeless trials of a search                           |
| `ukge.readers`       | formats that are read                                            |
| `ukge.samplers`      | how unseen facts are drawn in training                           |
| `ukge.scales`        | scores → confidences                                             |
| `ukge.scorers`       | the plausibility of a fact                                       |
| `ukge.search_spaces` | settings that `ukge tune` tries                                  |
| `ukge.writers`       | formats that are written                                         |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ukge.errors import ConfigError, known_names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
Make = TypeVar("Make", bound=Callable[[str], Any])

PLUGIN = "UKGE_PLUGIN"
"""Where the environment names files that register components; processes that a command starts find them there too."""

_plugins: set[str] = set()
"""Files that were loaded, whatever they came to."""


def load_plugins() -> None:
    """Load the files that the environment names and that were not loaded yet; what is wrong with one names it."""
    for file in filter(None, os.environ.get(PLUGIN, "").split(os.pathsep)):
        path = str(Path(file).resolve())
        if path in _plugins:
            continue
        if not Path(path).is_file():
            raise ConfigError(f"there is no plugin {file}", hint="Give a file of Python that registers a component.")
        _plugins.add(path)
        name = f"ukge_plugin_{len(_plugins)}"
        try:
            spec = spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                raise ConfigError(f"the plugin {file} cannot be loaded", hint="Give a file that ends in .py.")
            sys.modules[name] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
        except ConfigError:
            raise
        except Exception as error:
            last = error.__traceback__
            while last is not None and last.tb_next is not None:
                last = last.tb_next
            at = f", line {last.tb_lineno}" if last is not None and last.tb_frame.f_code.co_filename == path else ""
            raise ConfigError(
                f"the plugin {file} cannot be loaded{at}: {type(error).__name__}: {error}",
                hint="Mend the file; docs/models.md has an example.",
            ) from error


class Registry(Generic[T]):
    """Named components of one `kind`, as errors call it; other packages offer theirs in the entry-point `group`.

    `more` is a package of ukge whose modules register further ones when they are loaded: at the first name that is not
    known yet. A component with settings of its own takes them behind its name: `boxes:temperature=0.01`; those of a
    family, which another library has, are named there: `pykeen:transd`.
    """

    def __init__(self, kind: str, group: str, more: str = "") -> None:
        self.kind = kind
        self.group = group
        self._more = more
        self._known: dict[str, T] = {}
        self._families: dict[str, tuple[Callable[[str], T], str]] = {}
        self._plugins: dict[str, EntryPoint] | None = None

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a component to make it known under `name`."""

        def add(component: T) -> T:
            if name in self._known:
                raise ConfigError(f"{self.kind} '{name}' is registered twice", hint="Give one of them another name.")
            self._known[name] = component
            return component

        return add

    def family(self, name: str, member: str) -> Callable[[Make], Make]:
        """Decorate a function that makes a component of what stands behind `name:`; `member` says what that is."""

        def add(make: Make) -> Make:
            self._families[name] = make, member
            return make

        return add

    def get(self, name: str) -> T:
        """Return the component called `name`, with the settings given behind a colon, or say which names exist."""
        called, colon, settings = name.partition(":")
        if called not in self:
            if called in self._families:
                make, member = self._families[called]
                if not settings:
                    raise ConfigError(f"'{called}' alone is no {self.kind}", hint=f"Say which: {called}:{member}.")
                return make(settings)
            families = (f"{each}:{member}" for each, (_, member) in self._families.items())
            hint = known_names(called, [*self.names(), *families])
            if self._more:
                hint += f" A file that registers one of your own is found by --plugin FILE, or in {PLUGIN}."
            raise ConfigError(f"unknown {self.kind} '{called}'", hint=hint)
        if called not in self._known:
            self._known[called] = self._loaded(self._offered()[called])
        found = self._known[called]
        if not colon:
            return found
        if not hasattr(found, "with_settings"):
            raise ConfigError(f"{self.kind} '{called}' has no settings of its own", hint=f"Say {called} alone.")
        changed: T = found.with_settings(settings)
        return changed

    def names(self) -> list[str]:
        """Return the known names, sorted."""
        self._load_more()
        return sorted({*self._known, *self._offered()})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        if name not in self._known:
            self._load_more()
        return name in self._known or name in self._offered()

    def _load_more(self) -> None:
        if self._more:
            import_module(self._more)
            load_plugins()

    def _offered(self) -> dict[str, EntryPoint]:
        """Return what other packages offer, unloaded; to look for it takes a while, so names of our own do without."""
        if self._plugins is None:
            from importlib.metadata import entry_points  # noqa: PLC0415

            found: dict[str, EntryPoint] = {}
            for point in entry_points(group=self.group):
                other = found.setdefault(point.name, point)
                if other.value != point.value:
                    raise self._twice(point, _package(other))
                if point.name in self._known and self._known[point.name] is not self._loaded(point):
                    raise self._twice(point, "ukge")
            self._plugins = found
        return self._plugins

    def _loaded(self, point: EntryPoint) -> T:
        try:
            component: T = point.load()
        except Exception as error:
            raise ConfigError(
                f"{self.kind} '{point.name}' of the package {_package(point)} cannot be loaded: "
                f"{type(error).__name__}: {error}",
                hint="Update the package, or uninstall it.",
            ) from error
        return component

    def _twice(self, point: EntryPoint, other: str) -> ConfigError:
        return ConfigError(
            f"{self.kind} '{point.name}' is offered twice, by {other} and by {_package(point)} ({point.value})",
            hint="Uninstall one of them, or ask its authors for another name.",
        )


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
