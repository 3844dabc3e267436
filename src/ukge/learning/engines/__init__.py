"""Training engines: PyTorch for everything, a fused Numba engine for CPUs, and one by query for 1-vs-all.

Data and parameters in, epochs run, state out; all minimise the same objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ukge.errors import ConfigError
from ukge.learning.data import TrainingData
from ukge.models.tables import Parameters, State
from ukge.registry import Registry
from ukge.settings.config import Config

if TYPE_CHECKING:
    from ukge.models.model import Model


@dataclass(frozen=True)
class EpochResult:
    """What one epoch cost: the mean of each term of the objective over the epoch's batches."""

    facts: int
    losses: Mapping[str, float]
    pseudo: int = 0
    """pseudo facts that a student learnt from besides"""

    @property
    def loss(self) -> float:
        """The whole objective."""
        return float(sum(self.losses.values()))


class Engine(Protocol):
    """Runs epochs over the training data and updates `parameters` in place.

    An epoch is a function of the state, the seed and its number alone, so that a run resumed from a checkpoint goes on
    exactly as one that was never interrupted.
    """

    parameters: Parameters

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0); `on_facts` is told now and then how many more facts are done."""

    def sync(self) -> None:
        """Bring `parameters` up to date with the engine's own copy, if it has one (another device)."""

    def state(self) -> State:
        """Return everything besides the parameters that the next epoch depends on (the optimiser's moments)."""

    def load_state(self, state: State) -> None:
        """Take up a state that `state` gave."""


@runtime_checkable
class Teaching(Engine, Protocol):
    """An engine some of whose losses let a student learn from a teacher."""

    def has_taught(self, epochs: int, *, tired: bool) -> bool:
        """Return whether there is a teacher who learnt for so many epochs, or brings nothing more, and is done now."""

    def begin_student(self, teacher: Model) -> None:
        """Begin anew, with what the teacher finds likely besides the facts."""


engines: Registry[Callable[[Parameters, TrainingData, Config], Engine]] = Registry("engine", "ukge.engines")


@engines.register("torch")
def _torch(parameters: Parameters, data: TrainingData, config: Config) -> Engine:
    from ukge.learning.engines.torch_engine import TorchEngine  # noqa: PLC0415 — an engine is loaded when it is chosen
    from ukge.models.links import links  # noqa: PLC0415
    from ukge.models.scorers import scorers  # noqa: PLC0415

    scorer, link = scorers.get(config.model.scorer), links.get(config.model.link)
    if config.model.encodes:
        from ukge.learning.engines.encoding_engine import EncodingEngine  # noqa: PLC0415

        return EncodingEngine(parameters, data, config, scorer, link)
    return TorchEngine(parameters, data, config, scorer, link)


@engines.register("fused")
def _fused(parameters: Parameters, data: TrainingData, config: Config) -> Engine:
    from ukge.learning.engines.fused import FusedEngine, applies  # noqa: PLC0415

    _refuse_encoder("the fused engine", config)
    if not applies(config):
        raise ConfigError(
            "the fused engine does not know this combination of scorer, link, loss, sampler and optimiser",
            hint="Use ‹engine='torch'›, or ‹engine='auto'› to let ukge choose.",
        )
    return FusedEngine(parameters, data, config)


@engines.register("queries")
def _queries(parameters: Parameters, data: TrainingData, config: Config) -> Engine:
    from ukge.learning.engines.query_engine import QueryEngine, applies  # noqa: PLC0415
    from ukge.models.scorers import scorers  # noqa: PLC0415

    _refuse_encoder("the engine by query", config)
    if not applies(config):
        raise ConfigError(
            "the engine by query knows the softmax loss with the sampler 'exhaustive' alone, without rules and without "
            "tables that all facts share",
            hint="Use ‹engine='torch'›, or ‹engine='auto'› to let ukge choose.",
        )
    return QueryEngine(parameters, data, config, scorers.get(config.model.scorer))


def _refuse_encoder(engine: str, config: Config) -> None:
    if config.model.encodes:
        raise ConfigError(f"{engine} trains no encoder", hint="Use ‹engine='torch'›, or ‹engine='auto'›.")


@engines.register("auto")
def _auto(parameters: Parameters, data: TrainingData, config: Config) -> Engine:
    return engines.get(resolve(config))(parameters, data, config)


def resolve(config: Config) -> str:
    """Return the engine that `auto` means: by query for 1-vs-all, fused where that applies on a CPU, else PyTorch."""
    from ukge.learning.engines.fused import applies  # noqa: PLC0415
    from ukge.learning.engines.query_engine import applies as by_query  # noqa: PLC0415
    from ukge.models.tensors import resolve_device  # noqa: PLC0415

    if config.runtime.engine != "auto":
        return config.runtime.engine
    if by_query(config):
        return "queries"
    on_cpu = resolve_device(config.runtime.device).type == "cpu"
    return "fused" if on_cpu and applies(config) else "torch"
