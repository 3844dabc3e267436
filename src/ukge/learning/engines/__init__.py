"""Training engines: PyTorch for everything, a fused Numba engine for CPUs, and one by query for 1-vs-all."""

from __future__ import annotations

from collections.abc import Callable

from ukge.errors import ConfigError
from ukge.learning.engine import Engine, TrainingData
from ukge.models.tables import Parameters
from ukge.registry import Registry
from ukge.settings.config import Config

engines: Registry[Callable[[Parameters, TrainingData, Config], Engine]] = Registry("engine", "ukge.engines")


@engines.register("torch")
def _torch(parameters: Parameters, data: TrainingData, config: Config) -> Engine:
    from ukge.learning.engines.torch_engine import TorchEngine  # noqa: PLC0415 — an engine is loaded when it is chosen
    from ukge.models.links import links  # noqa: PLC0415
    from ukge.models.scorers import scorers  # noqa: PLC0415

    return TorchEngine(parameters, data, config, scorers.get(config.model.scorer), links.get(config.model.link))


@engines.register("fused")
def _fused(parameters: Parameters, data: TrainingData, config: Config) -> Engine:
    from ukge.learning.engines.fused import FusedEngine, applies  # noqa: PLC0415

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

    if not applies(config):
        raise ConfigError(
            "the engine by query knows the softmax loss with the sampler 'exhaustive' alone, without rules",
            hint="Use ‹engine='torch'›, or ‹engine='auto'› to let ukge choose.",
        )
    return QueryEngine(parameters, data, config, scorers.get(config.model.scorer))


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
