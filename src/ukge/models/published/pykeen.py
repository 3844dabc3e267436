"""PyKEEN's interactions as scorers: `pykeen:TransD`, `pykeen:mure`, `pykeen:transe,p=1`; an extra, `ukge[pykeen]`.

Ali, Berrendorf, Hoyt, Vermue, Sharifzadeh, Tresp, Lehmann: PyKEEN 1.0. JMLR 22, 2021.

Where PyKEEN has a model of the same name, rows start as that model's do and are held to its constraints (RotatE's
relations have modulus 1, TransE's entities length 1). PyKEEN corrects rows after every step; here they are corrected
where they are read. PyKEEN is loaded when such a scorer is asked for, and not before.

Weights beside those rows are tables that all facts share. Normalisation over a batch and dropout are left out: the
first makes a score depend on what else is asked, the second would have to be drawn in the same way by whoever goes on.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from ukge.errors import ConfigError, known_names
from ukge.models.scorers.base import scorers
from ukge.models.scorers.interaction import Interaction, Representation

FREE = "free"
"""The setting that leaves PyKEEN's constraints out."""

WORDS = {"true": True, "false": False, "none": None}

NORM = 1
"""LineaRE's p, of which PyKEEN has no model; its paper knows no other."""

FACTS, DIM = 32, 8
"""Random facts, and their dimension, by which it is found out what an interaction is like."""

SIZED_BY = ("embedding_dim", "input_dim", "head_dim")
"""What interactions with weights call the dimension."""

NORMALISED = "apply_batch_normalization"


@scorers.family("pykeen", "NAME")
@cache
def interaction(text: str) -> Interaction:
    """Return the interaction that `NAME` or `NAME,SETTING=VALUE,…` asks for, as a scorer."""
    name, *given = text.split(",")
    resolver = _pykeen("nn.modules").interaction_resolver
    key = resolver.normalize(name)
    if key not in resolver.lookup_dict:
        raise ConfigError(f"PyKEEN has no interaction '{name}'", hint=known_names(key, usable()))
    if key not in usable():
        raise ConfigError(
            f"PyKEEN's interaction '{key}' does not work here: it cannot do without normalisation over a batch",
            hint=f"Take another one: {', '.join(usable())}.",
        )
    return _made(key, dict(_setting(each) for each in given))


@cache
def usable() -> tuple[str, ...]:
    """Return the names of the interactions of PyKEEN that learn nothing but weights."""
    known: dict[str, Any] = _pykeen("nn.modules").interaction_resolver.lookup_dict
    return tuple(key for key in sorted(known) if not _keeps_statistics(_module(key, {})))


def _keeps_statistics(module: Any) -> bool:
    """Return whether it learns what no gradient tells: means and variances of batches."""
    return any(getattr(each, "running_mean", None) is not None for each in module.modules())


def _pykeen(module: str) -> Any:
    try:
        import_module("pykeen")
        return import_module(f"pykeen.{module}")
    except ImportError as error:
        if error.name == "pykeen":
            hint = "Run: pip install 'ukge[pykeen]'"
            raise ConfigError("a scorer 'pykeen:NAME' needs PyKEEN, which is not installed", hint=hint) from None
        raise ConfigError(f"PyKEEN cannot be loaded: {error}", hint="Install it again.") from error


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"'{text}' is no setting", hint="Say it as NAME=VALUE, with commas between several.")
    if value.lower() in WORDS:
        return name, WORDS[value.lower()]
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _made(key: str, settings: dict[str, Any]) -> Interaction:
    first = _module(key, {})
    sized, weighs = _sized_by(key), any(True for _ in first.parameters())
    takes = set(_takes(key)) - ({sized, NORMALISED} if weighs else set())
    letters = {letter for each in (*first.entity_shape, *first.relation_shape) for letter in each} - {"d"}
    letters = set() if weighs else letters
    for name in settings:
        if name not in takes | letters | {FREE}:
            raise ConfigError(
                f"PyKEEN's interaction '{key}' has no setting '{name}'",
                hint=known_names(name, sorted(takes | letters | {FREE})),
            )
    sizes = {letter: settings.pop(letter) for letter in letters if letter in settings}
    free = settings.pop(FREE, False)
    if not isinstance(free, bool):
        raise ConfigError(f"{FREE} must be true or false, not {free!r}")
    for letter, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ConfigError(f"{letter} must be a whole number above 0, not {size!r}")
    module = _module(key, settings)
    model = _model(key)
    rows = [
        _representations(
            shapes,
            tuple(sorted(sizes.items())),
            [] if model is None else list(getattr(model, f"{kind}_representations")),
            is_complex=bool(module.is_complex),
            free=free,
        )
        for kind, shapes in (("entity", module.entity_shape), ("relation", module.relation_shape))
    ]
    scorer = Interaction(key, module, rows[0], rows[1])
    if weighs:
        scorer = replace(scorer, module_at=cache(partial(_module_at, scorer, settings)))
    return _tried(scorer)


def _module_at(scorer: Interaction, settings: dict[str, Any], dim: int) -> Any:
    """Return the interaction of one dimension. Some find out only when they are asked that it does not suit them."""
    module = _module(scorer.name, {**settings, _sized_by(scorer.name): dim})
    at_once = replace(scorer, module_at=lambda _: module)
    try:
        _scores(at_once.bound({part.name: np.ones(part.shape, "float32") for part in at_once.shared_parts(dim)}), dim)
    except Exception as error:
        raise ConfigError(
            f"PyKEEN's interaction '{scorer.name}' does not work with ‹dim={dim}›: {_first_line(error)}",
            hint="Choose another ‹dim›; powers of two suit most.",
        ) from error
    return module


def _takes(key: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(_pykeen("nn.modules").interaction_resolver.lookup_dict[key]).parameters


def _sized_by(key: str) -> str:
    """Return what an interaction calls the dimension, if it has to know it."""
    return next((name for name in SIZED_BY if name in _takes(key)), "")


def _module(key: str, settings: dict[str, Any]) -> Any:
    """Return an interaction of PyKEEN, with the settings of its model where others are not given."""
    kind = _pykeen("nn.modules").interaction_resolver.lookup_dict[key]
    takes, model, sized = _takes(key), _model(key), _sized_by(key)
    own: dict[str, Any] = {"p": NORM} if "p" in takes and takes["p"].default is inspect.Parameter.empty else {}
    if sized:
        own |= {sized: DIM} | ({NORMALISED: False} if NORMALISED in takes else {})
    elif model is not None and type(model.interaction) is kind:
        if not settings:
            return model.interaction
        own = {name: getattr(model.interaction, name) for name in takes if hasattr(model.interaction, name)}
    try:
        with _quiet():
            return kind(**own | settings).eval()
    except Exception as error:
        raise _refused(key, error) from error


@cache
def _model(key: str) -> Any:
    """Return PyKEEN's model of the same name, of two entities; None if there is none."""
    kind = _pykeen("models").model_resolver.lookup_dict.get(key)
    if kind is None:
        return None
    import torch  # noqa: PLC0415 — loaded by now, by PyKEEN

    facts = _pykeen("triples").CoreTriplesFactory.create(
        mapped_triples=torch.tensor([[0, 0, 1]]), num_entities=2, num_relations=1
    )
    with _quiet(), torch.random.fork_rng(devices=[]):
        return kind(triples_factory=facts, embedding_dim=DIM).eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """Let PyKEEN and PyTorch say nothing of what is only looked at."""
    logger = logging.getLogger("pykeen")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _representations(
    shapes: Sequence[str], sizes: tuple[tuple[str, int], ...], theirs: Sequence[Any], *, is_complex: bool, free: bool
) -> tuple[Representation, ...]:
    """Return what rows hold: as PyKEEN's model has it, where that has as many embeddings."""
    if len(theirs) != len(shapes) or not all(hasattr(each, "initializer") for each in theirs):
        return tuple(Representation(letters, sizes, is_complex) for letters in shapes)
    found = []
    for letters, each in zip(shapes, theirs, strict=True):
        rules: list[Callable[[Any], Any] | None] = [] if free else [each.constrainer, each.normalizer]
        found.append(
            Representation(
                letters, sizes, each.is_complex, each.initializer, tuple(rule for rule in rules if rule is not None)
            )
        )
    return tuple(found)


def _tried(scorer: Interaction) -> Interaction:
    """Return a scorer that says whether it is a distance and whether it is symmetric, found out on random facts."""
    rng = np.random.default_rng(0)
    try:
        first = {part.name: part.start.draw(rng, part.shape) for part in scorer.shared_parts(DIM)}
        here, there = _scores(scorer.bound(first), DIM)
    except Exception as error:
        raise _refused(scorer.name, error) from error
    if not np.isfinite(here).all():
        raise _refused(scorer.name, ValueError("scores of random facts are no numbers"))
    says_something = bool((here != 0).any())  # PyKEEN's multilineartucker starts at 0
    distance = says_something and bool((here <= 0).all())
    symmetric = says_something and np.allclose(here, there, rtol=1e-12)
    return replace(scorer, distance=distance, symmetric=symmetric)


def _scores(scorer: Interaction, dim: int) -> tuple[Any, Any]:
    """Return what a scorer says of random facts, and of their mirrors."""
    draw = np.random.default_rng(0)
    widths = scorer.entity_width(dim), scorer.relation_width(dim), scorer.entity_width(dim)
    head, relation, tail = (draw.standard_normal((FACTS, width)) for width in widths)
    tables = {name: table.astype(np.float64) for name, table in scorer.weights.items()}
    asked = scorer.bound(tables)
    return asked.plausibility(head, relation, tail), asked.plausibility(tail, relation, head)


def _refused(key: str, error: Exception) -> ConfigError:
    return ConfigError(f"PyKEEN's interaction '{key}' does not work with these settings: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
