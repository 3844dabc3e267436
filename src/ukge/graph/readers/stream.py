"""Large delimited files, block by block: names become ids while the next block is parsed.

Only one block of text is in memory at a time, which is also what makes it fast: fresh memory is dear.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.graph.checks import empty_names
from ukge.graph.encode import BlockEncoder, Ids
from ukge.graph.vocabulary import Vocabulary

_WAITING = 4  # blocks parsed ahead of the encoder


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


def encode_blocks(blocks: Iterator[pa.RecordBatch], expected: int) -> EncodedFacts:
    """Encode blocks of head, relation, tail, confidence and maybe source, `expected` rows or so in all.

    Raises `pa.ArrowInvalid` for what the parser cannot parse and for names that are no UTF-8.
    """
    weight = np.empty(max(expected, 1), np.float64)
    sources = []
    rows = 0
    with ThreadPoolExecutor(max_workers=1) as pool:
        encoders = pool.submit(lambda: (BlockEncoder([expected, expected]), BlockEncoder([expected])))
        waiting: deque[Future[None]] = deque()
        for block in blocks:
            waiting.append(pool.submit(_encode_block, encoders, block))
            end = rows + len(block)
            if end > len(weight):
                weight = np.concatenate([weight[:rows], np.empty(end, np.float64)])
            weight[rows:end] = block["confidence"].to_numpy()
            rows = end
            if "source" in block.schema.names:
                sources.append(block["source"])
            if len(waiting) > _WAITING:
                waiting.popleft().result()
        for done in waiting:
            done.result()
        entity_encoder, relation_encoder = encoders.result()
    (head, tail), entities = entity_encoder.finish()
    (relation,), relations = relation_encoder.finish()
    return EncodedFacts(
        head,
        relation,
        tail,
        weight[:rows],
        pa.chunked_array(sources) if sources else None,
        Vocabulary.trusted(entities, "entity"),
        Vocabulary.trusted(relations, "relation"),
    )


def _encode_block(encoders: Future[tuple[BlockEncoder, BlockEncoder]], block: pa.RecordBatch) -> None:
    entities, relations = encoders.result()
    entities.add(0, block["head"])
    entities.add(1, block["tail"])
    relations.add(0, block["relation"])
