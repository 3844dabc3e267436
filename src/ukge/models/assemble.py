"""A model from its settings: weights joined with the scorer and the link that a config names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.models.links import links
from ukge.models.model import Model
from ukge.models.parameters import Parameters
from ukge.models.scorers import scorers
from ukge.settings.config import Config


def as_model(
    parameters: Parameters, config: Config, device: str = "cpu", undirected: npt.NDArray[np.bool_] | None = None
) -> Model:
    """Join weights with the scorer and the link of a config; `undirected` says which relations have no direction."""
    scorer, link = scorers.get(config.model.scorer), links.get(config.model.link)
    if device == "cpu":
        return Model(parameters, scorer, link, undirected)
    from ukge.models.devices import DeviceModel  # noqa: PLC0415 — PyTorch takes a second to load

    return DeviceModel(parameters, scorer, link, device, undirected)
