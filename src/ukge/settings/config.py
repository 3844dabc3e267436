"""Every knob, once: frozen dataclasses that are also the TOML file, the flags of `ukge train` and the docs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ukge.errors import ConfigError, known_names
from ukge.settings.knobs import (
    ENCODERS,
    ENGINES,
    LINKS,
    LOSSES,
    METRICS,
    OPTIMISERS,
    PROBES,
    SAMPLERS,
    SCORERS,
    Knob,
    Section,
    knob,
    knobs_of,
)

LARGEST = 1e30
"""The largest weight or rate: single precision, in which weights are learnt, holds it with some room."""

MANY = 1_000_000_000
"""More epochs than anybody waits for."""


@dataclass(frozen=True, slots=True)
class ModelConfig(Section):
    """What is learnt: scorer × link, and an encoder below them."""

    scorer: str = knob("distmult", "plausibility function g", choices=SCORERS)
    link: str = knob("rectifier", "link φ from plausibility to confidence", choices=LINKS)
    dim: int = knob(128, "dimension k of the embeddings (complex scorers hold k complex numbers)", least=1, most=65_536)
    init_scale: float = knob(
        0.3, "deviation of the truncated normal that embeddings start from", above=0.0, most=LARGEST
    )
    encoder: str = knob(
        "none", "graph network that makes the rows which the scorer compares: none, attention", choices=ENCODERS
    )

    @property
    def encodes(self) -> bool:
        """Whether there is an encoder below the scorer."""
        return self.encoder != "none"


@dataclass(frozen=True, slots=True)
class ObjectiveConfig(Section):
    """What is minimised: the terms of the joint objective (eq. 15) and their weights."""

    loss: str = knob(
        "squared",
        "loss on facts: squared (the paper's), logistic or margin (deterministic baselines), "
        "softmax (over each fact's query, weighted by confidence)",
        choices=LOSSES,
    )
    negative_weight: float = knob(
        1.0, "weight of the prior ¬l on unseen facts (mean over them)", least=0.0, most=LARGEST
    )
    rule_weight: float = knob(
        0.2, "weight of the ground rules' squared distance to satisfaction", least=0.0, most=LARGEST
    )
    rule_prior: float = knob(0.0, "weight of the prior ¬l on the heads of ground rules", least=0.0, most=LARGEST)
    l2: float = knob(0.005, "λ of the L2 regulariser, on the embeddings of each batch's facts", least=0.0, most=LARGEST)
    margin: float = knob(1.0, "margin of the margin loss", above=0.0, most=LARGEST)

    @property
    def learns_confidence(self) -> bool:
        """Whether confidences are learnt; the other losses learn an order, which φ makes no confidence of."""
        if self.loss in LOSSES.own:
            return self.loss == "squared"
        return bool(getattr(LOSSES.get(self.loss), "learns_confidence", False))


@dataclass(frozen=True, slots=True)
class SamplingConfig(Section):
    """Which unseen facts and which ground rules a batch sees."""

    sampler: str = knob("independent", "how unseen facts are drawn", choices=SAMPLERS)
    negatives: int = knob(
        10, "corrupted heads and corrupted tails per fact (shared sampler: per batch)", least=1, most=1_000_000
    )
    filter_observed: bool = knob(False, "never take an observed training fact for an unseen one")
    in_range: bool = knob(False, "draw corruptions from the entities seen at that place of the relation")
    by_degree: float = knob(
        0.0,
        "share of the corruptions drawn by degree (an end of a random training fact); the rest is uniform",
        least=0.0,
        most=1.0,
    )
    rules_per_fact: float = knob(0.1, "ground rules drawn per observed fact", least=0.0, most=1000.0)
    strong_only: bool = knob(False, "learn from strong facts only, as if certain (deterministic baselines)")
    tau: float = knob(0.85, "confidence above which a fact is strong", least=0.0, most=1.0)

    def __post_init__(self) -> None:
        """Check every setting, and refuse ways to draw corruptions that exclude each other."""
        Section.__post_init__(self)
        if self.by_degree and (self.in_range or self.sampler == "exhaustive"):
            other = "‹in_range›" if self.in_range else "‹sampler='exhaustive'›"
            raise ConfigError(f"‹by_degree› has no meaning with {other}", hint="Leave out one of the two.")


@dataclass(frozen=True, slots=True)
class OptimiserConfig(Section):
    """How the objective is minimised."""

    optimiser: str = knob("adam", "adam (dense, the paper's), lazy-adam, adagrad, rowwise-adagrad", choices=OPTIMISERS)
    lr: float = knob(0.001, "learning rate", above=0.0, most=LARGEST)
    beta1: float = knob(0.9, "Adam's decay of the first moment", least=0.0, most=0.999999)
    beta2: float = knob(0.99, "Adam's decay of the second moment", least=0.0, most=0.999999)
    eps: float = knob(1e-8, "the optimiser's ε", least=1e-30, most=1.0)
    batch_size: int = knob(512, "observed facts per step", least=1, most=100_000_000)
    probe: str = knob(
        "none",
        "what a probe of seconds chooses before training, to suit the graph: none, lr, l2 or both; both where neither "
        "is given, for models that learn confidences",
        choices=PROBES,
    )


@dataclass(frozen=True, slots=True)
class StoppingConfig(Section):
    """When to stop and which epoch to keep."""

    epochs: int = knob(200, "epochs at most", least=1, most=MANY)
    metric: str = knob("mse", "validation metric that stops and chooses", choices=METRICS)
    every: int = knob(10, "epochs between validations", least=1, most=MANY)
    patience: int = knob(3, "validations without improvement before stopping", least=1, most=MANY)


@dataclass(frozen=True, slots=True)
class RuntimeConfig(Section):
    """Where and how it runs; none of it changes what is minimised."""

    engine: str = knob("auto", "auto, fused (CPU, Numba), torch, or queries (1-vs-all)", choices=ENGINES)
    device: str = knob("auto", "auto, cpu, cuda, cuda:1, mps …")
    threads: int = knob(0, "CPU threads; 0 takes all cores", least=0, most=1024)
    seed: int = knob(0, "seed of initialisation, order and negatives", least=0, most=2**63 - 1)
    checkpoint_seconds: float = knob(
        10.0, "seconds between checkpoints at least; 0 writes one per epoch", least=0.0, most=1e9
    )
    memory_map: bool = knob(False, "keep the entity table in a file of the run, mapped: it may be larger than memory")
    tensorboard: bool = knob(False, "also write TensorBoard events into the run directory")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a training run."""

    model: ModelConfig = ModelConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    sampling: SamplingConfig = SamplingConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    stopping: StoppingConfig = StoppingConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    def replace(self, **changes: Any) -> Config:
        """Return a copy with some knobs changed, named without their section: `config.replace(dim=64, lr=0.01)`."""
        values = self.to_dict()
        homes = {each.name: each.section for each in knobs()}
        for name, value in changes.items():
            if name not in homes:
                raise ConfigError(f"unknown setting '{name}'", hint=known_names(name, homes))
            values[homes[name]][name] = value
        return from_dict(values)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the settings by section, as plain values."""
        return dataclasses.asdict(self)


SECTIONS: dict[str, type] = {
    "model": ModelConfig,
    "objective": ObjectiveConfig,
    "sampling": SamplingConfig,
    "optimiser": OptimiserConfig,
    "stopping": StoppingConfig,
    "runtime": RuntimeConfig,
}


def knobs() -> Iterator[Knob]:
    """Yield every setting, in order."""
    for kind in SECTIONS.values():
        yield from knobs_of(kind)


def from_dict(settings: Mapping[str, Any], *, where: str = "") -> Config:
    """Build a checked Config from nested plain values; errors name the file they came from, if `where` does."""
    at = f"{where}: " if where else ""
    unknown = set(settings) - set(SECTIONS)
    if unknown:
        raise ConfigError(f"{at}unknown section '{min(unknown)}'", hint=known_names(min(unknown), SECTIONS))
    sections: dict[str, Any] = {}
    for section, kind in SECTIONS.items():
        given = settings.get(section, {})
        if not isinstance(given, Mapping):
            raise ConfigError(f"{at}'{section}' must be a table of settings, not {given!r}")
        known = {each.name: each for each in knobs_of(kind)}
        for name, value in given.items():
            if name not in known:
                raise ConfigError(f"{at}unknown setting '{section}.{name}'", hint=known_names(name, known))
            if where:
                known[name].checked(value, f"{at}{section}.{name}")
        sections[section] = kind(**given)
    return Config(**sections)


def read_config(path: str | Path) -> Config:
    """Read a TOML file of settings; what it does not name keeps its default."""
    return overlay(Config(), path)


def overlay(config: Config, path: str | Path) -> Config:
    """Return `config` with the settings that a TOML file names."""
    return config.replace(**settings_in(path))


def settings_in(path: str | Path) -> dict[str, Any]:
    """Return the settings that a TOML file names, without their sections."""
    import tomllib  # noqa: PLC0415 — most who know the settings read no file of them

    from ukge.storage.files import read_given  # noqa: PLC0415

    try:
        given = tomllib.loads(read_given(path).decode())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # what is no TOML, no UTF-8, or a number or nesting without end
        raise ConfigError(f"{path} is not TOML: {error}") from None
    from_dict(given, where=str(path))
    return {name: value for values in given.values() for name, value in values.items()}


def to_toml(config: Config) -> str:
    """Return the settings as TOML that `read_config` reads back to an equal Config."""
    import tomli_w  # noqa: PLC0415 — only writing needs it

    return tomli_w.dumps(config.to_dict())
