"""Fitting: from trained models and a data set to evidence with its heads and bounds.

Known facts are judged by each other out of fold. Leaving out only the fact itself would not do for facts that trees
learn from: a mean without one fact tells, beside the means without each of the others, what that fact's confidence was.
So the known facts are cut into parts, and those of a part are judged by the facts of all other parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.evaluation.distribution import FACT, NEUTRAL, Asked
from ukge.evidence.backbones import Backbone, Models, backbones_of
from ukge.evidence.binning import Binned
from ukge.evidence.bounds import Bounds
from ukge.evidence.cells import Cells
from ukge.evidence.false_links import fit_false_links, moved
from ukge.evidence.features import Features
from ukge.evidence.kernels import load_compiler
from ukge.evidence.kinds import KindErrors, errors_by_kind, kinds_left_out
from ukge.evidence.lookup import FactBatch
from ukge.evidence.paths import PathRules
from ukge.evidence.ranking import fit_answer_sets, fit_ranker
from ukge.evidence.regressor import ConfidenceRegressor, Examples, Reading, fit_regressor, joined
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.storage import Parts, StoredParts
from ukge.evidence.tables import Tables
from ukge.evidence.trees import Floats, Matrix, grow, side_by_side
from ukge.evidence.values import CellTrees, KnownValues, around, cell_fits
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.keys import contains
from ukge.graph.negatives import KINDS, Pool, Slots, negative_links
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.logic.engine import using
from ukge.logic.mining import MiningSettings, mine
from ukge.progress.steps import Steps, Tell

GATHERING = frozenset({"strong", "min_hit_ratio", "expectation_trees", "names"})
"""Settings that decide what evidence is gathered, not what trees make of it."""

FEWEST_FACTS = 50
"""Validation facts that trees need."""

MOST = 200_000
"""Known facts that an expectation learns from at most."""

PARTS = 10
"""Parts of the known facts that an expectation learns from."""

NOT_ASKED = -1
"""The part of known facts that are evidence about others alone."""

LEAVES, RATE = 63, 0.1
"""Trees of an expectation: there are many facts to learn from, so they may go far."""

VALUE_TREES = 0.6
"""Trees that learn the values of confidences, for each of the expectation: more of them say no more."""

GATHER, LEARN, HEAD, BOUNDS, RANKING = (
    "mining rules and gathering evidence",
    "learning from the known facts",
    "fitting the confidences",
    "fitting the bounds",
    "fitting the ranking",
)
STEPS = {GATHER: 7, LEARN: 33, HEAD: 32, BOUNDS: 6, RANKING: 22}
"""What fitting does, with the share of its time that each step took on the paper's graphs."""


def fit(
    models: Models,
    dataset: Dataset,
    settings: EvidenceSettings,
    engine: str = "duckdb",
    tell: Tell | None = None,
) -> Parts:
    """Gather evidence from the training facts and fit trees to the validation facts and to negative links."""
    load_compiler()
    steps = Steps(tell, STEPS)
    blind = _blind(dataset)
    backbones = backbones_of(models, blind)
    steps.begin(GATHER)
    features = gather(blind.train, backbones, settings, engine)
    steps.begin(LEARN)
    return _fitted(with_expectation(features, settings, steps.within), dataset, settings, steps)


def refit(parts: Parts | StoredParts, changes: Mapping[str, Any], tell: Tell | None = None) -> Parts:
    """Fit other trees over the same evidence, with some of their settings changed."""
    fixed = sorted(GATHERING & changes.keys())
    if fixed:
        raise ConfigError(f"{', '.join(fixed)} cannot be changed over the same evidence", hint="Use Evidence.fit.")
    steps = Steps(tell, {step: STEPS[step] for step in (HEAD, BOUNDS, RANKING)})
    return _fitted(parts.features, parts.dataset, replace(parts.settings, **changes), steps)


def examples_of(parts: Parts | StoredParts, dataset: Dataset) -> Examples:
    """Return what heads over some evidence learn from, given a data set with the same training facts."""
    return _examples(parts.features, _blind(dataset), parts.settings)[0]


def _fitted(features: Features, dataset: Dataset, settings: EvidenceSettings, steps: Steps) -> Parts:
    blind = _blind(dataset)
    val = blind.val
    steps.begin(HEAD)
    before = 0.0 if settings.error == "squared" else 0.5
    features = _for_error(features, settings, lambda share: steps.within(before * share))
    examples, by_kind, notes = _examples(features, blind, settings)
    negatives = concat(list(by_kind.values()))
    cells = None if features.values is None else features.values.found.cells
    regressor, unseen = fit_regressor(
        examples, features.rising, settings, lambda share: steps.within(before + (0.95 - before) * share), cells
    )
    sizes = {kind: len(links) for kind, links in by_kind.items()}
    false, apart = fit_false_links(_of_kinds(examples.negatives, sizes), settings)
    regressor = replace(regressor, false=false)
    steps.begin(BOUNDS)
    rows = np.random.default_rng(settings.seed).permutation(len(negatives))[: len(val)]
    every = np.concatenate([examples.facts, examples.negatives[rows]])
    at = np.concatenate([np.arange(len(val)), len(val) + rows])
    every_predicted = regressor.overall(joined(settings.error, unseen.holds, unseen.level))
    predicted = every_predicted[at]
    observed = np.concatenate([val.confidence, np.zeros(len(rows))])
    relation = np.concatenate([val.relation, negatives.relation[rows]])
    label = np.repeat(np.arange(len(sizes)), list(sizes.values()))[rows]
    kind = np.concatenate([np.full(len(val), FACT), label]).astype(np.int8)
    bounds = Bounds.fit(every, predicted, observed, relation, settings, kind)
    steps.within(0.6)
    if_held = regressor.if_held(unseen.level[: len(val)])
    held = Bounds.fit(examples.facts, if_held, val.confidence, np.asarray(val.relation), settings)
    steps.begin(RANKING)
    ranker = fit_ranker(features, val, settings, lambda share: steps.within(0.75 * share))  # then sets and kinds
    sets = None if ranker is None else fit_answer_sets(ranker, features, val, settings, if_held)
    steps.within(0.9)
    kinds = _kinds(features, blind, settings, regressor, every_predicted, sizes)
    if false is not None:
        kinds = _if_told(kinds, regressor, unseen, examples, apart, sizes)
    return Parts(features, regressor, bounds, held, ranker, settings, dataset, tuple(notes), kinds, sets)


def _kinds(
    features: Features,
    blind: Dataset,
    settings: EvidenceSettings,
    regressor: ConfidenceRegressor,
    predicted: Floats,
    sizes: Mapping[str, int],
) -> dict[str, KindErrors]:
    """Return the errors by kind of negative links, given what is predicted of the examples out of fold."""
    facts, *parts = np.split(predicted, np.cumsum([len(blind.val), *sizes.values()])[:-1])

    def predict(links: UncertainGraph) -> Floats:
        return regressor.predict(features.columns(links.head, links.relation, links.tail))

    links = dict(zip(sizes, parts, strict=True)) | kinds_left_out(blind, settings, predict)
    return errors_by_kind(facts, blind.val.confidence, dict(sorted(links.items())))


def _of_kinds(rows: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Cut what is said of negative links, which stand kind by kind, into the kinds."""
    return dict(zip(sizes, np.split(rows, np.cumsum(list(sizes.values()))[:-1]), strict=True))


def _if_told(
    kinds: Mapping[str, KindErrors],
    regressor: ConfidenceRegressor,
    unseen: Reading,
    examples: Examples,
    apart: Mapping[str, Floats],
    sizes: Mapping[str, int],
) -> dict[str, KindErrors]:
    """Return the errors by kind with those that are made where the kind is told, all out of fold."""
    false = regressor.false
    assert false is not None
    n = len(examples.facts)
    holds, levels = (_of_kinds(each[n:], sizes) for each in (unseen.holds, unseen.level))
    of_facts, found = false.chances(examples.facts), dict(kinds)
    for kind, chances in apart.items():
        asked = false.asked(NEUTRAL.prior, {kind: 1.0})

        def said(chance: Floats, level: Floats, kinds: Floats, asked: Asked = asked) -> Floats:
            return regressor.overall(joined(regressor.error, moved(chance, asked, kinds), level))

        links = said(holds[kind], levels[kind], chances)
        facts = said(unseen.holds[:n], unseen.level[:n], of_facts)
        told = errors_by_kind(facts, examples.confidence, {kind: links})[kind]
        found[kind] = replace(found[kind], told=told.mse)
    return found


def _examples(
    features: Features, blind: Dataset, settings: EvidenceSettings
) -> tuple[Examples, dict[str, UncertainGraph], list[str]]:
    """Return what heads learn from, the negative links among it by kind, and what is to be said of them."""
    by_kind, notes = negatives_by_kind(blind, settings)
    parts = blind.val, concat(list(by_kind.values()))
    columns = [features.columns(each.head, each.relation, each.tail) for each in parts]
    return Examples(columns[0], blind.val.confidence, columns[1]), by_kind, notes


def _blind(dataset: Dataset) -> Dataset:
    """Return a data set without its test part, checked for enough validation facts."""
    if len(dataset.val) < FEWEST_FACTS:
        raise DataError(
            f"data set {dataset.name!r} has {len(dataset.val)} validation facts, and evidence needs {FEWEST_FACTS}",
            hint="Split the graph with a larger validation part.",
        )
    return replace(dataset, test=dataset.test[:0], negatives=None, queries=None)


def gather(
    known: UncertainGraph,
    backbones: tuple[Backbone, ...] = (),
    settings: EvidenceSettings | None = None,
    engine: str = "duckdb",
) -> Features:
    """Mine rules from the known facts, sum them up and put them in the orders in which they are looked up."""
    chosen = settings or EvidenceSettings()
    strong = MiningSettings(strong=chosen.strong, min_hit_ratio=chosen.min_hit_ratio)
    mined = mine(known, strong, engine=engine)
    rules = PathRules.of(mined.scored, mined.prior, chosen.strong, known.relations, known.undirected)
    index = FactIndex(known)
    return Features.of(index, Tables.of(index, engine), rules, backbones)


def out_of_fold_columns(
    features: Features,
    part: npt.NDArray[np.int64],
    on_share: Callable[[float], None] = lambda _: None,
    more: Callable[[FactIndex, UncertainGraph], Matrix] | None = None,
) -> tuple[list[str], Matrix]:
    """Return the evidence of the other parts about every known fact, and the names of its columns.

    What models believe, and what was learnt from the known facts, is left out: they know the facts they would speak of.
    `more` gives further columns, without names, from the index of the other parts and the facts that are asked about.
    """
    graph = features.index.graph
    features = replace(features, expectation=None, values=None)
    names = [name for name in features.names if not name.startswith("model:")]
    asked = [features.names.index(name) for name in names]
    found: Matrix | None = None
    for held, blind in knowing_other_parts(features, part, on_share):
        own = graph[np.flatnonzero(held)]
        columns = blind.columns(own.head, own.relation, own.tail)[:, asked]
        if more is not None:
            columns = np.concatenate([columns, more(blind.index, own)], axis=1)
        if found is None:
            found = np.empty((len(graph), columns.shape[1]), dtype=np.float32)
        found[held] = columns
    return names, np.empty((0, len(names)), dtype=np.float32) if found is None else found


def knowing_other_parts(
    features: Features, part: npt.NDArray[np.int64], on_share: Callable[[float], None] = lambda _: None
) -> Iterator[tuple[npt.NDArray[np.bool_], Features]]:
    """Yield the rows of each part, and the evidence as it were if the graph had all others alone."""
    graph = features.index.graph
    parts = int(part.max(initial=0)) + 1
    with using("duckdb") as engine:
        for number in range(parts):
            held = part == number
            others = FactIndex(graph[np.flatnonzero(~held)])
            yield held, replace(features, index=others, tables=Tables.of(others, engine))
            on_share((number + 1) / parts)


def parts_of_facts(index: FactIndex, parts: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the part of each row, at random; rows of one fact are in one part, so that no repeat judges another."""
    part: npt.NDArray[np.int64] = rng.permutation(len(index.graph)) % parts
    return part[index.triples.first[index.fact[: len(index.graph)]]]


def _parts_to_learn_from(index: FactIndex, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the part of each row: of a large graph some parts are enough, and the rows of the others are not asked."""
    part = parts_of_facts(index, PARTS, rng)
    part[part >= -(-MOST * PARTS // len(index.graph))] = NOT_ASKED
    return part


def with_expectation(
    features: Features, settings: EvidenceSettings, on_share: Callable[[float], None] = lambda _: None
) -> Features:
    """Return evidence with one more column: the confidence that known facts with such evidence have.

    There are many more known facts than validation facts, so they show better what the graph's own evidence means.
    Models have no part in it.
    """
    graph = features.index.graph
    if settings.expectation_trees == 0 or len(graph) < PARTS:
        return features
    rng = np.random.default_rng(settings.seed)
    part = _parts_to_learn_from(features.index, rng)
    alone = replace(features, backbones=(), expectation=None)
    _, columns = out_of_fold_columns(alone, part, lambda share: on_share(share / 2))
    rows = np.sort(rng.permutation(np.flatnonzero(part != NOT_ASKED))[:MOST])
    trees = replace(settings, iterations=settings.expectation_trees, leaves=LEAVES, learning_rate=RATE)
    confidence = graph.confidence[rows]
    grown = grow("squared_error", columns[rows], confidence, trees, on_share=lambda share: on_share((1 + share) / 2))
    return replace(features, expectation=grown)


def _for_error(features: Features, settings: EvidenceSettings, on_share: Callable[[float], None]) -> Features:
    """Return evidence with what the error needs: only medians need the values that confidences take."""
    if settings.error == "squared":
        return features if features.values is None else replace(features, values=None)
    return features if features.values is not None else with_values(features, settings, on_share)


def with_values(
    features: Features, settings: EvidenceSettings, on_share: Callable[[float], None] = lambda _: None
) -> Features:
    """Return evidence with columns that say which values the confidences of known facts with such evidence take."""
    graph = features.index.graph
    cells = Cells.of(graph.confidence) if len(graph) else None
    if settings.expectation_trees == 0 or len(graph) < PARTS or cells is None or len(cells) < 2:
        return features
    rng = np.random.default_rng(settings.seed)
    part = _parts_to_learn_from(features.index, rng)
    alone = replace(features, backbones=(), expectation=None, values=None)
    beside = around(features.index, cells, names=settings.names)

    def more(index: FactIndex, facts: UncertainGraph) -> Matrix:
        return beside.knowing(index, cells).columns(FactBatch.of(facts.head, facts.relation, facts.tail))

    _, columns = out_of_fold_columns(alone, part, lambda share: on_share(share / 3), more)
    rows = np.sort(rng.permutation(np.flatnonzero(part != NOT_ASKED))[:MOST])
    iterations = max(1, round(VALUE_TREES * settings.expectation_trees))
    trees = replace(settings, iterations=iterations, leaves=LEAVES, learning_rate=RATE)
    fits = cell_fits(cells, Binned.of(columns[rows]), graph.confidence[rows], trees)
    grown = side_by_side(fits, lambda share: on_share((1 + 2 * share) / 3))
    return replace(features, values=KnownValues(CellTrees(cells, tuple(grown)), settings.names))


def mixed_negatives(dataset: Dataset, settings: EvidenceSettings) -> tuple[UncertainGraph, list[str]]:
    """Return the links of all kinds together, and what could not be had."""
    by_kind, notes = negatives_by_kind(dataset, settings)
    return concat(list(by_kind.values())), notes


def negatives_by_kind(dataset: Dataset, settings: EvidenceSettings) -> tuple[dict[str, UncertainGraph], list[str]]:
    """Return links like the validation facts that are no training or validation facts, and what could not be had.

    A kind that does not find enough links on a small or dense graph is left out; that none finds any is an error.
    """
    total = sum(settings.negatives.values())
    drawn: dict[str, UncertainGraph] = {}
    notes: list[str] = []
    taken = np.zeros(0, dtype=np.int64)
    for number, (kind, share) in enumerate(sorted(settings.negatives.items())):
        n = round(len(dataset.val) * settings.negatives_per_fact * share / total)
        if n == 0:
            continue
        try:
            draw = _blindly_drawn if settings.negatives_may_hold else negative_links
            links = draw(dataset, like=dataset.val, kind=kind, n=n, seed=settings.seed + 1000 * number)
        except DataError as error:
            notes.append(f"no negative links of kind {kind}: {error.what.splitlines()[0]}")
            continue
        links = links[~contains(taken, links.keys())]
        taken = np.sort(np.concatenate([taken, links.keys()]))
        drawn[kind] = links
    if not drawn:
        raise DataError("no negative links were found to learn from", hint="Is the graph complete?")
    return drawn, notes


def _blindly_drawn(dataset: Dataset, like: UncertainGraph, *, kind: str, n: int, seed: int) -> UncertainGraph:
    """Return links with confidence 0, whether or not they are facts; those of an entity with itself are left out."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(like), size=n)
    slots = Slots(like.head[rows], like.relation[rows], like.tail[rows])
    head, tail = KINDS.get(kind)(Pool(dataset.train), slots, rng)
    kept = (head >= 0) & (tail >= 0) & (head != tail)
    zero = np.zeros(int(kept.sum()))
    return dataset.train.with_facts(head[kept], slots.relation[kept], tail[kept], zero)
