"""Large delimited files, block by block: names become ids while the next block is parsed.

Only a few blocks of text are in memory at a time, which is also what makes it fast: fresh memory is dear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.graph.checks import empty_names
from ukge.graph.encode import BlockEncoder, Ids, unwritten
from ukge.graph.vocabulary import Vocabulary

_HEAD, _TAIL = 0, 1


@dataclass(frozen=True, eq=False)
class EncodedFacts:
    """Facts by id, with the vocabularies of their names; weights are not checked yet."""

    head: Ids
    relation: Ids
    tail: Ids
    weight: npt.NDArray[np.float64]
    source: pa.ChunkedArray | None
    entities: Vocabulary
    relations: Vocabulary

    @property
    def has_empty_names(self) -> bool:
        """Whether any name is nothing but white space."""
        return bool(empty_names(self.entities.names).any() or empty_names(self.relations.names).any())


def encode_blocks(blocks: Iterator[pa.RecordBatch], expected: int, one_relation: str | None = None) -> EncodedFacts:
    """Encode blocks of head, relation, tail, confidence and maybe source, `expected` rows or so in all.

    Without a column of relations all facts have `one_relation`.

    Raises `pa.ArrowInvalid` for what the parser cannot parse and for names that are no UTF-8.
    """
    weight: npt.NDArray[np.float64] = unwritten(expected, np.float64)
    sources = []
    rows = 0
    with BlockEncoder([expected, expected]) as entities, BlockEncoder([expected], parts=1) as relations:
        for block in blocks:
            entities.add(_HEAD, block["head"])
            entities.add(_TAIL, block["tail"])
            if one_relation is None:
                relations.add(0, block["relation"])
            end = rows + len(block)
            if end > len(weight):
                weight = np.concatenate([weight[:rows], np.empty(end, np.float64)])
            weight[rows:end] = block["confidence"].to_numpy()
            rows = end
            if "source" in block.schema.names:
                sources.append(block["source"])
        (head, tail), entity_names = entities.finish()
        if one_relation is None:
            (relation,), relation_names = relations.finish()
        else:
            relation, relation_names = np.zeros(rows, np.int32), pa.array([one_relation], pa.large_string())
    return EncodedFacts(
        head,
        relation,
        tail,
        weight[:rows],
        pa.chunked_array(sources) if sources else None,
        Vocabulary.trusted(entity_names, "entity"),
        Vocabulary.trusted(relation_names, "relation"),
    )
