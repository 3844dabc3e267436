"""One run as the service holds it: opened, checked, indexed. It never changes; a new run is a new snapshot, which is
opened and checked beside the one that is served, then takes its place between two requests.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ukge.asking.judges import negatives_like
from ukge.asking.predictor import Predictor
from ukge.asking.rank import ExactSearch, Searcher
from ukge.errors import DataError, UkgeError
from ukge.evaluation.confidence import calibration, reliability
from ukge.evidence.doubt import Judgement, judge
from ukge.evidence.holding import Holding
from ukge.graph.audit import Audit, audit
from ukge.graph.nodes import TYPES, Nodes
from ukge.graph.queries import Places, Side
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Ids
from ukge.runs.directory import Run
from ukge.runs.journal import FOLDER, JOURNAL
from ukge.runs.learnt import Learnt
from ukge.serve import schema
from ukge.serve.metrics import Metrics
from ukge.serve.names import NameIndex, category, label, shortened
from ukge.serve.rulebook import Rulebook
from ukge.serve.work import Lazy, one_after_another

KINDS_KEPT = 512
NEAR, LONGEST_NEAR = 5, 200


class Snapshot:
    """A run with its data set. What takes long to find is found in the background."""

    def __init__(self, run: Run, predictor: Predictor, *, indexed: bool = False) -> None:
        self.run, self.predictor = run, predictor
        self.dataset = dataset = predictor.dataset
        self.manifest = run.manifest()
        self.tau = run.config.sampling.tau
        self.entities, self.relations = predictor.names
        self.known = predictor.known
        self.exact = ExactSearch(predictor.model)
        self.index = Lazy("the index", self._index) if indexed else None
        self.rulebook = Lazy("the rules", lambda: Rulebook.mined(dataset.train, self.tau))
        self.reasons = Lazy("what the graph says of facts", predictor.features)
        self.audit: Lazy[Audit] = Lazy("the audit", lambda: audit(dataset))
        self.quality = Lazy("the reliability figures", self._quality)
        self.doubts: Lazy[Judgement] = Lazy("doubtful facts", lambda: judge(predictor.features()))
        self.holding: Lazy[Holding] = Lazy("the chances that facts hold", predictor.holding)

    @classmethod
    def open(
        cls,
        path: str | Path,
        data: str | Path | None = None,
        *,
        index_above: int | None = None,
        prior: float | None = None,
    ) -> Snapshot:
        """Open a finished run and its data; whatever is missing, damaged or does not fit is a `RunError`.

        All that answers need is in memory then, as it was checked: what happens to the files later changes nothing.
        With more than `index_above` entities, an approximate index is built and answers once it is there.
        """
        run = Run.open(path)
        predictor = Predictor.open(path, data, copied=True, prior=prior)
        if predictor.evidence is not None:
            Learnt.load(run)  # says if the run is not finished, or its weights do not fit
            predictor.evidence.check()
        large = index_above is not None and predictor.model.n_entities > index_above
        opened = cls(run, predictor, indexed=large and predictor.model.scorer.inner_product)
        Run.open(path)  # once more: what was read between the two is what the checksums say
        return opened

    @property
    def searcher(self) -> Searcher:
        """What finds the best answers: the index once it is built, the exact search until then and otherwise."""
        return self.exact if self.index is None or not self.index.ready else self.index.get()

    @property
    def name(self) -> str:
        """The name of the run directory."""
        return self.run.path.resolve().name

    @cached_property
    def entity_names(self) -> NameIndex:
        """The entities, to be searched."""
        return NameIndex(self.entities, self.known.degree, self.nodes)

    @property
    def nodes(self) -> Nodes:
        """What is known of the entities beside their facts."""
        return self.predictor.nodes

    @cached_property
    def labels(self) -> dict[str, str]:
        """What people call entities, where that is not their name."""
        names = self.nodes.ids.to_pylist()
        pairs = zip(names, self.nodes.labels(names), strict=True)
        return {name: called for name, called in pairs if called is not None}

    def label(self, name: str) -> str:
        """Return what people call an entity: as the node data says, else the last part of its name."""
        return shortened(self.labels[name]) if name in self.labels else label(name)

    def category(self, name: str) -> str:
        """Return what kind of entity it is: its first type, else what its name says, if anything."""
        return self.kinds[name] if name in self.kinds else category(name)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The first type of entities that have one, without what stands before a colon."""
        types = zip(self.nodes.ids.to_pylist(), self.nodes.table[TYPES].to_pylist(), strict=True)
        return {name: each[0].rpartition(":")[2] or each[0] for name, each in types if each}

    @cached_property
    def relation_names(self) -> NameIndex:
        """The relations, to be searched."""
        return NameIndex(self.relations, self.facts_by_relation)

    @cached_property
    def facts_by_relation(self) -> Places:
        """How many known facts each relation has."""
        return np.bincount(self.known.all().relation, minlength=len(self.relations))

    @lru_cache(maxsize=KINDS_KEPT)  # noqa: B019 — a snapshot lives as long as it is served
    def kind(self, relation: int, side: Side) -> Places:
        """Return, sorted, the entities known at one end of a relation."""
        return self.known.of_relation(relation, side).astype(np.int64)

    def warm(self, *, ahead: bool = True) -> None:
        """Build what the first request would otherwise wait for, and begin to find what takes long.

        Unless `ahead`, the latter waits until it is asked for: most who ask of a service of their own never do.
        """
        self._ready()
        one_after_another(self.lazy if ahead else [self.reasons])

    def _ready(self) -> None:
        self.entities.index  # noqa: B018 — built at first use
        _ = self.entity_names, self.relation_names, self.labels, self.kinds
        if len(self.known):
            # The first judgement loads libraries and compiles; no request shall wait for that.
            head, relation, tail, _ = self.known.all()
            self.predictor.judge(head[:1], relation[:1], tail[:1])

    @property
    def lazy(self) -> tuple[Lazy[Any], ...]:
        """What is found in the background, what is asked for most first."""
        every = (self.reasons, self.rulebook, self.index, self.quality, self.audit, self.doubts, self.holding)
        return tuple(each for each in every if each is not None)

    def prepare(self) -> None:
        """Warm up and wait until everything is found."""
        self.warm()
        for each in self.lazy:
            each.wait()

    def follow(self, before: Snapshot) -> None:
        """Prepare what answers need of the same run with other additions; what else was found before stays for now.

        That are the rules, the audit, doubtful facts and the reliability figures: names keep their ids.
        """
        self.rulebook, self.audit = before.rulebook, before.audit
        self.quality, self.doubts = before.quality, before.doubts
        self._ready()
        self.reasons.wait()

    def ids(self, facts: Sequence[tuple[str, str, str]]) -> tuple[Ids, Ids, Ids]:
        """Return the ids of facts; an unknown name is an `UnknownNameError`."""
        found = [(self.entity(head), self.relation(relation), self.entity(tail)) for head, relation, tail in facts]
        head, relation, tail = np.array(found, dtype=np.int32).reshape(-1, 3).T
        return head, relation, tail

    def sources(self, facts: Sequence[tuple[str, str, str]]) -> list[str | None]:
        """Return of each fact, by its names, where the graph has it from."""
        return [None] * len(facts) if self.known.graph.source is None else self.known.sources(*self.ids(facts))

    def entity(self, name: str) -> int:
        """Return the id of an entity, which may be given by a label that no other has."""
        found = self.entities.index.get(name)
        if found is None:
            called = self.nodes.called(name)
            if not called:
                raise UnknownNameError("entity", name)
            found = self.entities.index[self.predictor.naming.name(name)]  # an error if several are called so
        return found

    def relation(self, name: str) -> int:
        """Return the id of a relation."""
        found = self.relations.index.get(name)
        if found is None:
            raise UnknownNameError("relation", name)
        return found

    def type(self, name: str) -> None:
        """Refuse a type of the node data that no entity is of."""
        try:
            self.nodes.of_type(name)
        except DataError:
            raise UnknownNameError("type", name) from None

    def near(self, unknown: UnknownNameError) -> list[str]:
        """Return names that look like an unknown one; takes a moment among many names."""
        if unknown.kind == "type":
            types = list(self.nodes.types)
            return difflib.get_close_matches(unknown.name[:LONGEST_NEAR], types, NEAR) or types[:NEAR]
        index = self.entity_names if unknown.kind == "entity" else self.relation_names
        return [match.name for match in index.search(unknown.name[:LONGEST_NEAR], NEAR)]

    def example(self) -> tuple[str, str, str]:
        """Return a well-known, confident fact."""
        facts = self.known.all()
        if len(facts.head) == 0:
            return self.entities[0], self.relations[0], self.entities[0]
        degree = self.known.degree
        sure = facts.confidence >= np.quantile(facts.confidence, 0.5)
        row = int(np.argmax(np.minimum(degree[facts.head], degree[facts.tail]) * sure))
        return self.entities[facts.head[row]], self.relations[facts.relation[row]], self.entities[facts.tail[row]]

    def _index(self) -> Searcher:
        from ukge.serve.index import approximate  # noqa: PLC0415 — small graphs need no index

        return approximate(self.run.path, self.known, self.exact)

    def _quality(self) -> schema.ReliabilityResponse:
        part, facts = next(
            ((name, self.dataset.parts[name]) for name in ("test", "val") if len(self.dataset.parts[name])),
            ("train", self.dataset.train),
        )
        given = self.dataset.negatives if part == "test" else None
        negatives = negatives_like(self.dataset, facts) if given is None else given
        return schema.ReliabilityResponse(
            part=part,
            **dict(self._curve(facts, assume_holds=True)),
            with_negatives=self._curve(concat([facts, negatives])) if len(negatives) else None,
            negatives="drawn" if given is None else "given",
        )

    def _curve(self, facts: UncertainGraph, *, assume_holds: bool = False) -> schema.Curve:
        """Compare predictions with the confidences of facts."""
        judged = self.predictor.judge(facts.head, facts.relation, facts.tail, assume_holds=assume_holds)
        figures = calibration(judged.confidence, facts.confidence)
        curve = reliability(judged.confidence, facts.confidence)
        columns = (curve.predicted.tolist(), curve.observed.tolist(), curve.facts.tolist())
        bins = [schema.Bin(predicted=p, observed=o, facts=n) for p, o, n in zip(*columns, strict=True)]
        return schema.Curve(facts=figures.facts, ece=figures.ece, spearman=schema.finite(figures.spearman), bins=bins)


class UnknownNameError(DataError):
    """A name that the graph does not have; `Snapshot.near` finds names that look like it."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"unknown {kind} {name!r}", hint="Names are compared exactly, case included.")


log = logging.getLogger("ukge.serve")

Signature = tuple[tuple[str, int, int, int], ...]

WATCHED = ("manifest.json", "evidence/evidence.safetensors", f"{FOLDER}/{JOURNAL}")

SETTLED = 60.0
"""Seconds without another addition after which all that is found in the background is found anew."""


class Live:
    """Holds the current snapshot. Whoever answers a request takes it once and keeps it until the answer is out."""

    def __init__(self, path: Path, open_run: Callable[[Path], Snapshot], metrics: Metrics | None = None) -> None:
        self._path = path
        self._open = open_run
        self.metrics = metrics or Metrics()
        self._signature = signature(path)
        self.reloads = 0
        self._one_at_a_time = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        self._take(open_run(path))

    @property
    def path(self) -> Path:
        """Where the run is."""
        return self._path

    def _take(self, snapshot: Snapshot) -> None:
        self.current = snapshot
        self.loaded = datetime.now(UTC)
        self.metrics.facts.set(len(snapshot.known))
        self.metrics.entities.set(len(snapshot.entities))

    def renew_soon(self) -> None:
        """Serve what was added as soon as it is ready, while requests go on; when no more comes, find all anew."""
        if self._renewing is not None:
            self._renewing.cancel()
        self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        await asyncio.shield(asyncio.create_task(self.reload(whole=False)))
        await asyncio.sleep(SETTLED)
        self._renewing = None
        await self.reload()

    def close(self) -> None:
        """Renew nothing more."""
        if self._renewing is not None:
            self._renewing.cancel()

    async def reload(self, *, whole: bool = True) -> bool:
        """Open the run again and serve it once all of it is prepared; return whether it is served.

        If it is refused, the one that is served stays. If not `whole`, and nothing but additions changed, it is served
        as soon as questions can be answered.
        """
        async with self._one_at_a_time:
            before, self._signature = self._signature, await asyncio.to_thread(signature, self._path)
            if not whole and before == self._signature:
                return True
            try:
                fresh = await asyncio.to_thread(self._open, self._path)
                if not whole and _trained(before) == _trained(self._signature):
                    await asyncio.to_thread(fresh.follow, self.current)
                else:
                    await asyncio.to_thread(fresh.prepare)
            except (UkgeError, OSError, ValueError) as error:
                self.metrics.reloads.labels("refused").inc()
                log.warning("the new run is refused, the old one is still served: %s", error)
                return False
            self._take(fresh)
            self.reloads += 1
            self.metrics.reloads.labels("loaded").inc()
            log.info("now serving the new run in %s", self._path)
            return True

    async def watch(self, every: float) -> None:
        """Reload whenever the run directory changes, once it has stopped changing."""
        before = self._signature
        while True:
            await asyncio.sleep(every)
            now = await asyncio.to_thread(signature, self._path)
            if now == before and now != self._signature and now:
                if _trained(now) == _trained(self._signature):
                    self.renew_soon()
                else:
                    await self.reload()
            before = now


def _trained(told: Signature) -> Signature:
    """Return what tells one training from the next, whatever was added since."""
    return tuple(each for each in told if each[0] != WATCHED[-1])


def signature(path: Path) -> Signature:
    """Return what tells one run from the next at the same path: which files its manifests are, and when written."""
    told = []
    for name in WATCHED:
        try:
            found = (path.resolve() / name).stat()
        except OSError:
            continue
        told.append((name, found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(told)
