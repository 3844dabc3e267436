"""`ukge draw`: what is around an entity, as a picture."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import note
from ukge.cli.flags import Run, whole
from ukge.cli.results import open_predictor, tell_of_judge
from ukge.errors import ConfigError, DataError

if TYPE_CHECKING:
    from ukge.asking import Predictor
    from ukge.asking.drawing import Names
    from ukge.asking.neighbourhood import Neighbourhood


def draw(
    run: Run,
    name: Annotated[str, typer.Argument(help="The entity in the middle, by its name or label.", metavar="NAME")],
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The picture to write, .svg, .png or .pdf; an old one is replaced. NAME.svg if not said.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, whole("-k", help="How many neighbours at most; up to a third are predicted.", most=60)] = 12,
    hops: Annotated[int, whole("--hops", help="With 2, facts of the neighbours too.", most=2)] = 1,
) -> None:
    """Draw an entity amid its neighbours: facts of the graph, and predicted ones dashed.

    Lines are wider and darker the more confident the facts are. It needs matplotlib, which the extra report installs.
    """
    from ukge.asking.neighbourhood import neighbourhood
    from ukge.storage.files import write_atomically

    drawing = _drawing()
    with open_predictor(run) as predictor:
        entity = predictor.entities[predictor.naming.id(name)]
        names = _names(predictor, [entity])
        target = _target(out_file, names.labels.get(entity, entity))
        found = neighbourhood(predictor, entity, k, hops)
        if not found.edges:
            raise DataError(f"the graph holds no fact of {entity!r}, and nothing is predicted of it")
        judge = "the evidence" if predictor.evidence is not None else "the model"
        picture = drawing.draw(found, _names(predictor, found.names), judge, form=target.suffix.lower()[1:])
    write_atomically(target, picture)
    note(f"{_told(found)} were drawn to {target}")
    tell_of_judge(predictor, run)


def _told(found: Neighbourhood) -> str:
    guesses = sum(edge.guess for edge in found.edges)
    beyond = sum(map(len, found.further.values()))
    return f"{len(found.edges)} neighbours ({guesses} predicted{f', {beyond} of the next step' if beyond else ''})"


def _target(out_file: Path | None, label: str) -> Path:
    from ukge.asking.drawing import ENDINGS
    from ukge.graph.files import check_target

    if out_file is None:
        plain = "".join(char if char.isalnum() or char in "-_" else "-" for char in label).strip("-")[:60]
        return Path(f"{plain or 'neighbourhood'}.svg")
    if out_file.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{out_file}: no picture of this format is drawn", hint=f"Use {', '.join(ENDINGS)}.")
    check_target(out_file)
    return out_file


def _names(predictor: Predictor, entities: list[str]) -> Names:
    from ukge.asking.drawing import Names
    from ukge.graph.nodes import TYPES

    nodes = predictor.nodes
    labels = {name: label for name, label in zip(entities, nodes.labels(entities), strict=True) if label is not None}
    kinds = nodes.aligned(entities, TYPES).to_pylist() if len(nodes) else [None] * len(entities)
    types = {name: each[0].rpartition(":")[2] or each[0] for name, each in zip(entities, kinds, strict=True) if each}
    return Names(labels, types, frozenset(predictor.dataset.undirected))


def _drawing() -> ModuleType:
    """Return the module that draws; it needs matplotlib, and says so if that is missing."""
    try:
        return import_module("ukge.asking.drawing")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"pictures need {error.name}, which is not installed", hint="pip install 'ukge[report]'"
        ) from None
