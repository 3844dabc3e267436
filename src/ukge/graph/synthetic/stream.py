"""A synthetic world of any size → Parquet, chunk by chunk: memory grows with the entities, not with the facts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ukge.errors import ConfigError
from ukge.graph.synthetic.observe import Observed
from ukge.graph.synthetic.world import Blueprint
from ukge.storage.files import replacing_path, temporary_beside

_CHUNK = 500_000


def stream_parquet(
    path: str | os.PathLike[str],
    n_entities: int,
    n_facts: int,
    seed: int = 0,
    *,
    noise: float = 0.05,
    names: bool = True,
    partition_by: Literal["relation"] | None = None,
) -> Blueprint:
    """Write the facts of `generate(n_entities, n_facts, seed, noise)` to Parquet, in the same order.

    Columns are head, relation, tail and confidence; with `names=False` the first three are ids. With
    `partition_by="relation"`, `path` becomes a directory `relation=…/part-0.parquet` (Hive style: the relation is in
    the directory's name and not in the file). Nothing is left behind when writing fails.
    """
    if partition_by not in (None, "relation"):
        raise ConfigError(f"cannot partition by {partition_by!r}", hint="Known: relation.")
    blueprint = Blueprint.draw(n_entities, n_facts, seed, noise)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if partition_by is not None and target.exists():
        raise ConfigError(f"{target} exists already", hint="Name a directory that does not exist, or remove this one.")
    tables = (_table(blueprint, chunk, names) for chunk in _chunks(blueprint))
    if partition_by is None:
        with replacing_path(target) as file:
            _write_file(file, tables)
        return blueprint
    folder = temporary_beside(target)
    try:
        _write_partitions(folder, tables)
        os.replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return blueprint


def _chunks(blueprint: Blueprint) -> Iterator[Observed]:
    """Gather regions until there is enough for one row group."""
    gathered: list[Observed] = []
    for observed in blueprint.observed():
        gathered.append(observed)
        if sum(len(part.confidence) for part in gathered) >= _CHUNK:
            yield Observed(*map(np.concatenate, zip(*gathered, strict=True)))
            gathered = []
    if gathered:
        yield Observed(*map(np.concatenate, zip(*gathered, strict=True)))


def _table(blueprint: Blueprint, chunk: Observed, names: bool) -> pa.Table:
    columns = {"head": pa.array(chunk.head), "relation": pa.array(chunk.relation), "tail": pa.array(chunk.tail)}
    if names:
        columns = {
            "head": blueprint.entities.decode(chunk.head),
            "relation": blueprint.relations.decode(chunk.relation),
            "tail": blueprint.entities.decode(chunk.tail),
        }
    return pa.table({**columns, "confidence": pa.array(chunk.confidence)})


def _write_file(path: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _write_partitions(path: Path, tables: Iterator[pa.Table]) -> None:
    writers: dict[object, pq.ParquetWriter] = {}
    with ExitStack() as stack:
        for table in tables:
            rest = table.drop_columns(["relation"])
            for value in pc.unique(table["relation"]).to_pylist():
                mine = rest.filter(pc.equal(table["relation"], value))
                if value not in writers:
                    place = path / f"relation={value}"
                    place.mkdir(parents=True)
                    writer = pq.ParquetWriter(place / "part-0.parquet", mine.schema, compression="zstd")
                    writers[value] = stack.enter_context(writer)
                writers[value].write_table(mine)
