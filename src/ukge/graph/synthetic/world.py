"""The synthetic world: a blueprint that knows the truth of every triple, and a graph of what was seen of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import Confidences
from ukge.graph.fact import FactArrays
from ukge.graph.synthetic.latent import TYPES, Latent, Layout, observe
from ukge.graph.synthetic.names import entity_names
from ukge.graph.synthetic.schema import IMPLIED, PLANTED, RELATIONS
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.settings.knobs import check_seed
from ukge.storage.files import replacing_directory, replacing_path
from ukge.storage.memory import free_memory

MOST_FACTS = 10**12
_CHUNK = 500_000
_BYTES_PER_FACT = 80
_SCHEMA = pa.schema(
    [*((name, pa.large_string()) for name in ("head", "relation", "tail")), ("confidence", pa.float64())]
)


@dataclass(frozen=True, eq=False)
class Blueprint:
    """Everything about a world but its observed facts, which it hands out region by region."""

    latent: Latent
    entities: Vocabulary
    relations: Vocabulary
    n_facts: int
    seed: int
    noise: float

    @classmethod
    def draw(cls, n_entities: int, n_facts: int, seed: int, noise: float) -> Blueprint:
        """Make a world of that size; the same numbers give the same world."""
        check_seed(seed)
        if not 1 <= n_facts <= MOST_FACTS:
            raise ConfigError(
                f"a world needs facts, 1 to {MOST_FACTS:,}, not {n_facts:,}",
                hint="About 20 facts per entity is a good number.",
            )
        if not 0.0 <= noise <= 1.0:
            raise ConfigError(f"noise {noise:g} is not a deviation between 0 and 1", hint="0.05 is a good value.")
        layout = Layout.plan(n_entities, n_facts)
        entities = Vocabulary.trusted(entity_names(layout, seed), "entity")
        relations = Vocabulary([relation.name for relation in RELATIONS], kind="relation")
        return cls(Latent.draw(layout, seed), entities, relations, n_facts, seed, noise)

    def true_confidence(self, head: npt.ArrayLike, relation: npt.ArrayLike, tail: npt.ArrayLike) -> Confidences:
        """Return the true confidence of any triples, given by ids; the arrays may broadcast."""
        heads, relations, tails = (np.asarray(ids) for ids in (head, relation, tail))
        for ids, names in ((heads, self.entities), (relations, self.relations), (tails, self.entities)):
            if ids.size and not (ids.min() >= 0 and ids.max() < len(names)):
                raise DataError(f"{names.kind} ids run from 0 to {len(names) - 1}, not {ids.min()} to {ids.max()}")
        return self.latent.confidences(heads, relations, tails)

    def observed(self) -> Iterator[FactArrays]:
        """Yield the observed facts of one region after another; `n_facts` in all."""
        n_regions = self.latent.layout.n_regions
        for region in range(n_regions):
            n_facts = self.n_facts * (region + 1) // n_regions - self.n_facts * region // n_regions
            yield observe(self.latent, region, n_facts, self.seed, self.noise)


@dataclass(frozen=True, eq=False)
class World:
    """A graph of observed facts together with the truth behind it."""

    blueprint: Blueprint
    graph: UncertainGraph

    def true_confidence(self, head: npt.ArrayLike, relation: npt.ArrayLike, tail: npt.ArrayLike) -> Confidences:
        """Return the true confidence of any triples, given by the ids of `graph`; the arrays may broadcast."""
        return self.blueprint.true_confidence(head, relation, tail)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The type of every entity, in the order of ids."""
        return tuple(TYPES[number] for number in self.blueprint.latent.layout.type_of.tolist())

    @property
    def planted_rules(self) -> tuple[str, ...]:
        """The rules that hold in the true confidences: the head is never less sure than the Łukasiewicz body (6).

        Distinct variables stand for distinct entities.
        """
        return PLANTED

    @property
    def implied_rules(self) -> tuple[str, ...]:
        """The rules of at most two body atoms that follow from the planted ones; they hold as well."""
        return IMPLIED

    def __repr__(self) -> str:
        return f"World({len(self.graph):,} facts, {self.graph.n_entities:,} entities, seed {self.blueprint.seed})"


def generate(n_entities: int = 1_000, n_facts: int = 20_000, seed: int = 0, noise: float = 0.05) -> World:
    """Return a synthetic world with exactly that many entities and observed facts.

    Observed confidences are true ones plus normal noise of deviation `noise`, clipped. From about 20 facts per entity
    on, nearly all sure facts are seen and every planted rule can be mined.
    """
    if _BYTES_PER_FACT * n_facts > free_memory().bytes:
        raise ConfigError(
            f"{n_facts:,} facts take about {_BYTES_PER_FACT * n_facts / 1e9:,.1f} GB of memory, which is not free",
            hint="Ask for fewer, or write them to a .parquet file as they are made.",
        )
    blueprint = Blueprint.draw(n_entities, n_facts, seed, noise)
    head, relation, tail, confidence = (np.concatenate(c) for c in zip(*blueprint.observed(), strict=True))
    entities, relations = blueprint.entities, blueprint.relations
    return World(blueprint, UncertainGraph.from_ids(head, relation, tail, confidence, entities, relations))


def stream_parquet(
    path: str | os.PathLike[str],
    n_entities: int,
    n_facts: int,
    seed: int = 0,
    *,
    noise: float = 0.05,
    partition_by: Literal["relation"] | None = None,
) -> Blueprint:
    """Write the facts of `generate(n_entities, n_facts, seed, noise)` to Parquet, in the same order, chunk by chunk.

    Memory grows with the entities, not with the facts. With `partition_by="relation"`, `path` becomes a directory
    `relation=…/part-0.parquet` (Hive style: the relation is in the directory's name and not in the file). Nothing is
    left behind when writing fails.
    """
    if partition_by not in (None, "relation"):
        raise ConfigError(f"cannot partition by {partition_by!r}", hint="Known: relation.")
    blueprint = Blueprint.draw(n_entities, n_facts, seed, noise)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if partition_by is not None and target.exists():
        raise ConfigError(f"{target} exists already", hint="Name a directory that does not exist, or remove this one.")
    tables = _tables(blueprint)
    if partition_by is None:
        with replacing_path(target) as file:
            _write_file(file, tables)
        return blueprint
    with replacing_directory(target) as folder:
        _write_partitions(folder, tables)
    return blueprint


def _tables(blueprint: Blueprint) -> Iterator[pa.Table]:
    """Yield the facts by name; regions are gathered until there is enough for one row group."""
    gathered: list[FactArrays] = []
    for region in blueprint.observed():
        gathered.append(region)
        if sum(len(part.confidence) for part in gathered) >= _CHUNK:
            yield _table(blueprint, gathered)
            gathered = []
    if gathered:
        yield _table(blueprint, gathered)


def _table(blueprint: Blueprint, regions: Sequence[FactArrays]) -> pa.Table:
    head, relation, tail, confidence = (np.concatenate(column) for column in zip(*regions, strict=True))
    names = blueprint.entities.decode(head), blueprint.relations.decode(relation), blueprint.entities.decode(tail)
    return pa.table([*names, pa.array(confidence)], schema=_SCHEMA)


def _write_file(path: Path, tables: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd", write_page_checksum=True) as writer:
        for table in tables:
            writer.write_table(table)


def _write_partitions(path: Path, tables: Iterator[pa.Table]) -> None:
    ds.write_dataset(
        (batch for table in tables for batch in table.to_batches()),
        path,
        schema=_SCHEMA,
        format="parquet",
        partitioning=["relation"],
        partitioning_flavor="hive",
        basename_template="part-{i}.parquet",
        file_options=ds.ParquetFileFormat().make_write_options(compression="zstd"),
        use_threads=False,  # facts keep their order
    )
