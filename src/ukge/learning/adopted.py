"""A model that PyKEEN trained, taken in: its rows and its interaction, and a link that makes confidences of its scores.

The model comes as an object in memory, never from a file of PyKEEN's: those are pickles, and a pickle can run code.
"""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError, KindError
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import negative_links
from ukge.graph.neighbours import needed
from ukge.graph.vocabulary import Vocabulary
from ukge.models.model import as_model
from ukge.models.scorers import scorers
from ukge.models.tables import Floats, Parameters
from ukge.runs.learnt import Learnt, Trained
from ukge.runs.manifest import DataNote
from ukge.settings.config import Config

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

SAFE = (
    "A file of PyKEEN's is a pickle, and can run whatever it likes. Load one that you trust yourself, with torch.load, "
    "or keep weights with safetensors (save_file(model.state_dict(), …)), and give the model."
)
COMPARED, STEPS = 64, 100
TOLERANCE = 1e-3


def from_pykeen(model: Any, factory: Any, dataset: Dataset, reference: str) -> Learnt:
    """Return a trained model of PyKEEN over the names of a data set, with confidences that fit its training facts.

    `factory` is the `TriplesFactory` that it was trained with: it says which row belongs to which name. Scores are
    compared with PyKEEN's own, so that a model whose formula is not known here is refused, not misread.
    """
    if isinstance(model, (str, os.PathLike)):
        raise ConfigError("a trained model of PyKEEN is taken as an object, not as a file", hint=SAFE)
    if not (hasattr(model, "entity_representations") and hasattr(model, "interaction")):
        raise KindError("from_pykeen", "a model of PyKEEN with an interaction (an ERModel)", model)
    model = model.eval().cpu()
    places = [
        _places(own, theirs)
        for own, theirs in ((dataset.entities, factory.entity_to_id), (dataset.relations, factory.relation_to_id))
    ]
    if getattr(factory, "create_inverse_triples", False):
        places[1] = 2 * places[1]  # each relation stands before its inverse, of which no use is made here
    scorer, dim = _scorer(model)
    parameters = Parameters(
        _rows(model.entity_representations, places[0]),
        _rows(model.relation_representations, places[1]),
        shared=_shared(model, scorer, dim),
    )
    config = Config().replace(scorer=scorer, dim=dim, link="logistic", epochs=1, seed=0)
    plain = as_model(parameters, config)
    _compare(model, plain, places, dataset.train)
    parameters.link[:] = _link(plain, dataset)
    trained = Trained(parameters, config, config.stopping.metric, None, -1, 0, 0.0)
    note = DataNote.of(dataset, reference)
    return Learnt(trained, dataset.entities, dataset.relations, note, [], dataset)


def _places(names: Vocabulary, theirs: dict[str, int]) -> npt.NDArray[np.int64]:
    unknown = [name for name in names if name not in theirs]
    if unknown:
        raise DataError(
            f"PyKEEN's model knows no {names.kind} {unknown[0]!r}, and {len(unknown) - 1:,} more of the data's names",
            hint="Give the TriplesFactory that it was trained with, and facts of the same names.",
        )
    return np.array([theirs[name] for name in names], dtype=np.int64)


def _scorer(model: Any) -> tuple[str, int]:
    """Return what the model's interaction is called here, and its dimension."""
    interaction = model.interaction
    resolver = needed("pykeen.nn.modules", "pykeen", "a model of PyKEEN").interaction_resolver
    key = resolver.normalize_cls(type(interaction))
    if key not in resolver.lookup_dict:
        raise ConfigError(f"PyKEEN's {type(interaction).__name__} is no interaction that it lists")
    sizes: dict[str, int] = {}
    pairs = (
        (interaction.entity_shape, model.entity_representations),
        (interaction.relation_shape, model.relation_representations),
    )
    for shapes, representations in pairs:
        for letters, each in zip(shapes, representations, strict=False):
            sizes |= dict(zip(letters, each.shape, strict=False))
    dim = sizes.pop("d", None) or next(iter(sizes.values()), 1)
    weighs = any(True for _ in interaction.parameters())
    settings = {} if weighs else {letter: str(size) for letter, size in sizes.items()}
    for name, parameter in inspect.signature(type(interaction)).parameters.items():
        value = getattr(interaction, name, parameter.default)
        if isinstance(value, (bool, int, float, str)) and value != parameter.default:
            settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
    settings["free"] = "true"  # rows are taken as the model's constraints leave them
    return f"pykeen:{','.join([key, *(f'{name}={value}' for name, value in settings.items())])}", dim


def _rows(representations: Any, places: npt.NDArray[np.int64]) -> Floats:
    import torch  # noqa: PLC0415 — loaded by PyKEEN

    tables = []
    with torch.no_grad():
        for each in representations:
            table = each(indices=torch.from_numpy(places))
            table = torch.view_as_real(table) if table.is_complex() else table
            tables.append(table.reshape(len(places), -1).to(torch.float32).numpy())
    return np.ascontiguousarray(np.concatenate(tables, axis=1)) if tables else np.zeros((len(places), 0), np.float32)


def _shared(model: Any, scorer: str, dim: int) -> dict[str, Floats]:
    """Return the interaction's own weights, in the order in which the scorer has them."""
    own = [each.detach().numpy() for each in model.interaction.parameters()]
    parts = scorers.get(scorer).shared_parts(dim)
    return {part.name: np.array(each, np.float32).reshape(part.shape) for part, each in zip(parts, own, strict=True)}


def _compare(model: Any, plain: Any, places: list[npt.NDArray[np.int64]], facts: UncertainGraph) -> None:
    import torch  # noqa: PLC0415

    rows = np.random.default_rng(0).integers(len(facts), size=COMPARED)
    ids = facts.head[rows], facts.relation[rows], facts.tail[rows]
    theirs = np.stack([places[0][ids[0]], places[1][ids[1]], places[0][ids[2]]], axis=1)
    with torch.no_grad():
        said = model.score_hrt(torch.from_numpy(theirs)).numpy().reshape(-1)
    own = plain.plausibility(*ids)
    if not np.allclose(said, own, rtol=TOLERANCE, atol=TOLERANCE):
        far = float(np.abs(said - own).max())
        raise ConfigError(
            f"this model of PyKEEN does not score as its interaction does by itself: scores differ by up to {far:.3g}",
            hint="A model that does more than its interaction (literals, weights by position) cannot be taken.",
        )


def _link(plain: Any, dataset: Dataset) -> npt.NDArray[np.float32]:
    """Return w and b by which the logistic link is nearest, in log loss, to the confidences, and to 0 for others."""
    facts = dataset.train
    links = negative_links(facts, kind="corruption", seed=0)
    score = np.concatenate([plain.plausibility(each.head, each.relation, each.tail) for each in (facts, links)]).astype(
        np.float64
    )
    truth = np.concatenate([facts.confidence, np.zeros(len(links))])
    middle, spread = score.mean(), score.std() or 1.0
    columns = np.stack([(score - middle) / spread, np.ones(len(score))], axis=1)
    found = np.zeros(2)
    for _ in range(STEPS):  # Newton's, of a convex loss with a little weight on small numbers
        said = 1 / (1 + np.exp(-columns @ found))
        slope = columns.T @ (said - truth) + found
        turn = (columns * (said * (1 - said))[:, None]).T @ columns + np.eye(2)
        step = np.linalg.solve(turn, slope)
        found -= step
        if np.abs(step).max() < 1e-10:
            break
    weight = found[0] / spread
    return np.array([weight, found[1] - weight * middle], dtype=np.float32)
