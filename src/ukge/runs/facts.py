"""The facts that a run was made from, kept in it: what it is judged by, explained with and served from, wherever it is.

data/train.parquet  val.parquet  test.parquet     head, relation, tail (ids), confidence, and the source if one is known
data/negatives.parquet                            negative links of the test set, if the data came with some
data/queries.parquet                              head, relation of the ranking task, if the data came with some
data/claims.parquet                               who claimed the facts, how sure, when and where, by name, if known
data/nodes.parquet                                what is known of entities beside their facts, if anything is

Runs beside each other that were made from the same facts share the files (hard links). Facts that came prepared for
several machines are too large to be kept twice: the run refers to them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ukge.errors import DataError, RunError, UkgeError
from ukge.graph.arrow import to_numpy
from ukge.graph.dataset import Dataset
from ukge.graph.nodes import Nodes
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.storage.arrays import Arrays, Expected, checked
from ukge.storage.files import DAMAGED, sha256, temporary_beside

if TYPE_CHECKING:
    from ukge.graph.claims import Claims

FOLDER = "data"
PARTS = ("train", "val", "test", "negatives")
QUERIES = "queries"
IDS = ("int32", "int64")
TRAIN = f"{FOLDER}/train.parquet"
NODES = "nodes"
CLAIMS = "claims"
FILES = tuple(f"{FOLDER}/{name}.parquet" for name in (*PARTS, QUERIES, NODES, CLAIMS))


def keep_facts(run: Path, dataset: Dataset) -> None:
    """Write the facts of a data set into a run directory, or link those of a run beside it that has the same."""
    from pyarrow.parquet import write_table  # noqa: PLC0415 — who asks a run need not write

    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    graphs = {**dataset.parts, "negatives": dataset.negatives}
    tables = {name: graph.facts(names=False) for name, graph in graphs.items() if graph is not None}
    if dataset.queries is not None:
        tables[QUERIES] = pa.table({"head": dataset.queries[:, 0], "relation": dataset.queries[:, 1]})
    if dataset.claims is not None:
        from ukge.graph.writers.claims import claims_table  # noqa: PLC0415 — few have any

        tables[CLAIMS] = claims_table(dataset.claims)
    for name, table in tables.items():
        write_table(table, folder / f"{name}.parquet", compression="zstd", write_page_checksum=True)
    if len(dataset.nodes):
        dataset.nodes.to_parquet(folder / f"{NODES}.parquet")
    _share(run)


def _share(run: Path) -> None:
    """Put links in the place of files that a run beside this one has too."""
    own = {name: sha256(run / name) for name in FILES if (run / name).is_file()}
    for other in run.resolve().parent.glob("*/manifest.json"):
        try:
            listed = json.loads(other.read_text(encoding="utf-8"))["files"]
            same = [name for name, digest in own.items() if listed.get(name) == digest]
            for name in same:
                _replace_by_link(other.parent / name, run / name, own.pop(name))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if not own:
            return


def _replace_by_link(source: Path, target: Path, digest: str) -> None:
    if sha256(source) != digest:
        return
    temporary = temporary_beside(target)
    os.link(source, temporary)
    os.replace(temporary, target)


class KeptFacts:
    """The facts in a run directory; a part is read when it is asked for. `Run.open` has checked the files."""

    def __init__(
        self,
        run: Path,
        entities: Vocabulary,
        relations: Vocabulary,
        undirected: tuple[str, ...] = (),
        inverses: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._folder = run / FOLDER
        self._names = entities, relations
        self._undirected, self._inverses = undirected, inverses

    def part(self, name: str) -> UncertainGraph | None:
        """Return the facts of a part, None where the run keeps none."""
        table = self._read(name)
        if table is None:
            return None
        columns = ("head", "relation", "tail", "confidence")
        numbers = self._numbers(name, table, columns)
        head, relation, tail, confidence = (numbers[each] for each in columns)
        source = table["source"] if "source" in table.column_names else None
        graph = UncertainGraph.from_ids(head, relation, tail, confidence, *self._names, source=source)
        graph = graph.taken_as_undirected(self._undirected) if self._undirected else graph
        return graph.with_nodes(self.nodes) if len(self.nodes) else graph

    @cached_property
    def nodes(self) -> Nodes:
        """What is known of entities beside their facts."""
        file = self._folder / f"{NODES}.parquet"
        if not file.is_file():
            return Nodes.none()
        try:
            return Nodes.of_parquet(file).within(self._names[0])
        except (pa.ArrowException, OSError, DataError) as error:
            raise RunError(f"{file} cannot be used: {error}", hint=DAMAGED) from None

    def needed(self, name: str) -> UncertainGraph:
        """Return the facts of a part that every run keeps."""
        found = self.part(name)
        if found is None:
            raise RunError(f"{self._folder / name}.parquet is missing", hint=DAMAGED)
        return found

    def dataset(self, name: str) -> Dataset:
        """Return all parts as a data set."""
        train, val, test = (self.needed(part) for part in ("train", "val", "test"))
        queries = self._read(QUERIES)
        pairs = None
        if queries is not None:
            numbers = self._numbers(QUERIES, queries, ("head", "relation"))
            pairs = np.stack([numbers["head"], numbers["relation"]], axis=1).astype(np.int32)
        negatives = self.part("negatives")
        return Dataset(name, train, val, test, negatives=negatives, queries=pairs, inverses=self._inverses)

    def claims(self) -> Claims | None:
        """Return the claims that the facts were made of, None where the run keeps none."""
        from ukge.graph.claims import Claims  # noqa: PLC0415 — answers need none

        table = self._read(CLAIMS)
        if table is None:
            return None
        try:
            return Claims.from_columns(**{name: table[name] for name in table.column_names})
        except (UkgeError, TypeError, pa.ArrowException) as error:
            raise RunError(f"{self._folder / CLAIMS}.parquet cannot be used: {error}", hint=DAMAGED) from None

    def _read(self, name: str) -> pa.Table | None:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 — a model alone can be asked without facts

        file = self._folder / f"{name}.parquet"
        if not file.is_file():
            return None
        try:
            return ParquetFile(file, page_checksum_verification=True).read()
        except (pa.ArrowException, OSError) as error:
            raise RunError(f"{file} is damaged: {error}", hint=DAMAGED) from None

    def _numbers(self, name: str, table: pa.Table, columns: Sequence[str]) -> Arrays:
        """Return columns of a part: ids that have names, and confidences that are some."""
        file = self._folder / f"{name}.parquet"
        entities, relations = map(len, self._names)
        expected = {
            "head": Expected(IDS, ("facts",), low=0, high=entities - 1),
            "relation": Expected(IDS, ("facts",), low=0, high=relations - 1),
            "tail": Expected(IDS, ("facts",), low=0, high=entities - 1),
            "confidence": Expected("float64", ("facts",), low=0.0, high=1.0),
        }
        try:
            found = {each: to_numpy(table[each].combine_chunks()) for each in columns}
        except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
            raise RunError(f"{file} cannot be used: {error}", hint=DAMAGED) from None
        return checked(file, found, {each: expected[each] for each in columns})
