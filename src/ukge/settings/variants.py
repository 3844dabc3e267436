"""The models of the paper's tables by name, one more for ranking, and the settings the paper gives for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ukge.errors import ConfigError
from ukge.registry import Registry
from ukge.settings.config import Config
from ukge.settings.knobs import SCORERS

Settings = Mapping[str, Any]
variants: Registry[Settings] = Registry("model", "ukge.models", more="ukge.models.published")
DETERMINISTIC: Settings = {
    "strong_only": True,
    "optimiser": "adagrad",
    "metric": "mrr",
    "link": "logistic",
    "lr": 0.05,
    "rule_weight": 0.0,
}

variants.register("ukge-rect")({"link": "rectifier"})
variants.register("ukge-logi")({"link": "logistic"})
variants.register("ukge-n")({"link": "rectifier", "sampler": "none", "rule_weight": 0.0})
variants.register("ukge-p")({"link": "rectifier", "rule_weight": 0.0})
variants.register("transe")({**DETERMINISTIC, "scorer": "transe-l1", "loss": "margin", "l2": 0.0, "lr": 0.01})
variants.register("distmult")({**DETERMINISTIC, "scorer": "distmult", "loss": "logistic", "dim": 256})
variants.register("complex")({**DETERMINISTIC, "scorer": "complex", "loss": "logistic", "dim": 256})
variants.register("complex-all")(
    {
        "scorer": "complex",
        "link": "logistic",
        "loss": "softmax",
        "sampler": "exhaustive",
        "filter_observed": True,
        "optimiser": "adagrad",
        "dim": 96,
        "init_scale": 0.1,
        "lr": 0.1,
        "batch_size": 1024,
        "l2": 0.01,
        "rule_weight": 0.0,
        "metric": "mrr",
        "epochs": 12,
        "every": 1,
    }
)
variants.register("urge")({"scorer": "dot", "link": "rectifier", "rule_weight": 0.0})

DESCRIPTIONS = {
    "ukge-rect": "UKGE with the bounded rectifier (eq. 4)",
    "ukge-logi": "UKGE with the logistic link (eq. 3)",
    "ukge-n": "UKGE n−: no negative sampling",
    "ukge-p": "UKGE p−: no rules",
    "transe": "TransE on strong facts, margin loss",
    "distmult": "DistMult on strong facts, logistic loss",
    "complex": "ComplEx on strong facts, logistic loss",
    "complex-all": "ComplEx against every entity (1-vs-all), for ranking",
    "urge": "URGE: matrix factorisation, relations ignored",
}


def published(name: str, description: str, **settings: Any) -> None:
    """Make the settings of a published model known by its name."""
    variants.register(name)(settings)
    DESCRIPTIONS[name] = description


# The paper, "Experimental Setup" and "Baselines". τ is 0.70 on PPI5k and 0.85 elsewhere.
_PAPER_UKGE: Settings = {"lr": 0.001, "dim": 128, "l2": 0.005, "every": 10, "beta1": 0.9, "beta2": 0.99}
_PAPER: dict[tuple[str, str], Settings] = {
    ("ukge-rect", ""): {**_PAPER_UKGE, "batch_size": 128},
    ("ukge-logi", ""): {**_PAPER_UKGE, "batch_size": 512},
    ("ukge-rect", "ppi5k"): {**_PAPER_UKGE, "batch_size": 256},
    ("ukge-logi", "ppi5k"): {**_PAPER_UKGE, "batch_size": 256},
    ("transe", ""): {"lr": 0.01, "dim": 128, "batch_size": 1024},
    ("distmult", ""): {"lr": 0.05, "dim": 256, "batch_size": 1024},
    ("complex", ""): {"lr": 0.05, "dim": 256, "batch_size": 1024},
    ("transe", "ppi5k"): {"lr": 0.1, "dim": 256, "batch_size": 1024},
    ("distmult", "ppi5k"): {"lr": 0.1, "dim": 128, "batch_size": 512},
    ("complex", "ppi5k"): {"lr": 0.1, "dim": 256, "batch_size": 1024},
}
_LIKE = {"ukge-n": "ukge-rect", "ukge-p": "ukge-rect", "urge": "ukge-rect"}
TAU = {"ppi5k": 0.70}


def variant(name: str, base: Config | None = None) -> Config:
    """Return the settings of the model called `name`."""
    return (base or Config()).replace(**variants.get(name))


def probed(config: Config, given: Collection[str]) -> Config:
    """Return settings under which a probe chooses those of ‹lr› and ‹l2› that were not given.

    It does where a model of the paper's kind learns confidences by Adam: the other models have rates of their own.
    """
    ours = config.model.scorer in SCORERS.own and not config.model.encodes and config.objective.loss == "squared"
    if "probe" in given or not ours or config.optimiser.optimiser != "adam":
        return config
    left = [name for name in ("lr", "l2") if name not in given]
    return config.replace(probe="both" if len(left) > 1 else left[0] if left else "none")


def paper_tau(dataset: str) -> float:
    """Return the paper's τ: facts of a data set with a higher confidence are strong."""
    return TAU.get(dataset, 0.85)


def paper_settings(name: str, dataset: str) -> Settings:
    """Return what the paper says of the settings of a model on a data set (its general ones for another graph)."""
    variants.get(name)
    like = _LIKE.get(name, name)
    found = _PAPER.get((like, dataset)) or _PAPER.get((like, ""))
    if found is None:
        raise ConfigError(f"the paper has no model {name!r}, and no settings for it", hint="Leave the preset out.")
    return {**found, "tau": paper_tau(dataset)}
