"""The keywords of an estimator, kept as they were given, and what scikit-learn asks of one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Self

from ukge.errors import ConfigError, known_names
from ukge.settings.config import Config
from ukge.settings.knobs import (
    EncoderName,
    EngineName,
    LinkName,
    LossName,
    MetricName,
    ModelName,
    OptimiserName,
    ProbeName,
    SamplerName,
    ScorerName,
)
from ukge.settings.variants import probed, variant, variants


@dataclass(eq=False, repr=False)
class EstimatorSettings:
    """Every setting of `Config` as a keyword. None leaves it to `config`, and without one to the model.

    What a setting means and what it is by default stands in docs/settings.md. Names that plugins register are taken
    besides those that an editor offers.
    """

    model: ModelName | str = "ukge-rect"
    _: KW_ONLY
    config: Config | None = None

    scorer: ScorerName | str | None = None
    link: LinkName | str | None = None
    dim: int | None = None
    init_scale: float | None = None
    encoder: EncoderName | str | None = None

    loss: LossName | str | None = None
    negative_weight: float | None = None
    rule_weight: float | None = None
    rule_prior: float | None = None
    l2: float | None = None
    margin: float | None = None

    sampler: SamplerName | str | None = None
    negatives: int | None = None
    filter_observed: bool | None = None
    in_range: bool | None = None
    by_degree: float | None = None
    rules_per_fact: float | None = None
    strong_only: bool | None = None
    tau: float | None = None

    optimiser: OptimiserName | str | None = None
    lr: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    eps: float | None = None
    batch_size: int | None = None
    probe: ProbeName | str | None = None

    epochs: int | None = None
    metric: MetricName | str | None = None
    every: int | None = None
    patience: int | None = None

    engine: EngineName | str | None = None
    device: str | None = None
    threads: int | None = None
    seed: int | None = None
    checkpoint_seconds: float | None = None
    memory_map: bool | None = None
    tensorboard: bool | None = None

    def __post_init__(self) -> None:
        """Refuse settings that do not exist or do not fit, now rather than when they are used."""
        self.settings  # noqa: B018 — made to be checked

    @property
    def settings(self) -> Config:
        """All settings: the model's own, or those of `config`, with the given ones changed.

        Without a `config`, a probe chooses the rate and λ that were not given.
        """
        given = self.given()
        if self.config is not None:
            return self.config.replace(**given)
        return probed(variant(self.model).replace(**given), given)

    def given(self) -> dict[str, Any]:
        """Return the settings that were given by name."""
        own = {name: value for name, value in self.get_params().items() if value is not None}
        return {name: value for name, value in own.items() if name not in ("model", "config")}

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from the model's own; which engine `auto` came to is none, nor is a probe."""
        settings = self.settings
        own = variant(self.model) if self.model in variants else Config()
        own = own.replace(engine=settings.runtime.engine, probe=settings.optimiser.probe)
        return {
            name: value
            for section, values in settings.to_dict().items()
            for name, value in values.items()
            if value != own.to_dict()[section][name]
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 — scikit-learn passes it
        """Return the keywords as they were given; None stands for those that were not."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change keywords; a model that is trained stays so until it is fitted again."""
        before = self.get_params()
        for name in params:
            if name not in before:
                raise ConfigError(f"unknown setting '{name}'", hint=known_names(name, before))
        EstimatorSettings(**{**before, **params})  # checks them before any is changed
        vars(self).update(params)
        return self

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn what this is: a regressor of confidences that takes rows of names."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415 — half a second to load

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=False),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(string=True, allow_nan=False),
        )
