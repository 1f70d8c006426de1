"""Search of all papers in blocks: their vectors stream past those of queries, and the best answers of each are kept.

Ties are broken at random, reproducibly.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.randomness import priorities
from cocite.core.tables.files import open_table, table_in, vectors_of
from cocite.core.written_ids import Ids, look_up

PAPERS_AT_ONCE = 4096
PAIRS_AT_ONCE = PAPERS_AT_ONCE * 1500
"""Queries times papers that are compared at once; with more queries, blocks have fewer papers."""

Block = tuple[Ids, NDArray[np.float32]]
"""Papers, and the similarity of each query to each of them; more is nearer, and -inf is no answer."""


@dataclass
class Answers:
    """The nearest papers of each query among the blocks so far."""

    queries: Ids
    depth: int
    """How many of them are kept for each query."""
    rows: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """The place of the query of each answer."""
    papers: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    nearness: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    least: NDArray[np.float32] | None = None
    """What an answer of each query must reach."""

    def add(self, block: Block) -> None:
        """Add the answers of a block; keep a small multiple of the wanted number."""
        papers, nearness = block
        places, is_there = look_up(papers, self.queries)
        nearness[np.flatnonzero(is_there), places[is_there]] = -np.inf  # no paper finds itself
        least = -np.inf if self.least is None else self.least[:, None]
        rows, columns = np.nonzero((nearness >= least) & (nearness > -np.inf))
        self.rows = np.concatenate([self.rows, rows])
        self.papers = np.concatenate([self.papers, papers[columns]])
        self.nearness = np.concatenate([self.nearness, nearness[rows, columns]])
        if len(self.rows) > 3 * self.depth * len(self.queries):
            self.cut()

    def cut(self) -> None:
        """Put the answers in order, query by query, and drop those beyond the depth."""
        order = self._order()
        starts = np.searchsorted(self.rows[order], np.arange(len(self.queries) + 1))
        rank = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
        self.least = np.full(len(self.queries), -np.inf, np.float32)
        is_last = rank == self.depth - 1
        self.least[self.rows[order[is_last]]] = self.nearness[order[is_last]]
        kept = order[rank < self.depth]
        self.rows, self.papers, self.nearness = self.rows[kept], self.papers[kept], self.nearness[kept]

    def _order(self) -> Ids:
        """The places of the answers, query by query, the nearest first."""
        # One whole number for a query and a similarity is sorted several times as fast as both one after the other.
        bits = (self.nearness + np.float32(0)).view(np.uint32)
        falling = np.where(bits >> 31, bits, ~(bits | np.uint32(1 << 31)))
        keys = self.rows.astype(np.uint64) << np.uint64(32) | falling
        order = np.argsort(keys)
        is_same = keys[order[1:]] == keys[order[:-1]]
        equal = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
        of_equal = order[equal]
        ties = priorities(0, "equal answers", self.papers[of_equal])
        order[equal] = of_equal[np.lexsort((ties, keys[of_equal]))]
        return order

    def ranked(self) -> dict[int, Ids]:
        """The papers that each query finds, the nearest first."""
        self.cut()
        starts = np.searchsorted(self.rows, np.arange(1, len(self.queries)))
        return dict(zip(self.queries.tolist(), np.split(self.papers, starts), strict=True))


def block_size(queries: int) -> int:
    """How many papers a block has."""
    return max(1, min(PAPERS_AT_ONCE, PAIRS_AT_ONCE // max(queries, 1)))


def of_unit_length(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors of length 1; vectors of zeros stay what they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[Any] = vectors / np.where(lengths > 0, lengths, 1)
    return scaled


def vector_blocks(files: Iterable[Path], papers: Ids, size: int) -> Iterator[tuple[Ids, NDArray[np.float64]]]:
    """The places of papers, rising, among some papers that are ascending, and their vectors in double precision."""
    for path in files:
        with open_table(path, table_in(path)) as file:
            for batch in file.iter_batches(size, columns=["corpusid", "vector"]):
                matrix = vectors_of(pa.table(batch)).astype(np.float64)
                places, is_asked = look_up(papers, batch["corpusid"].to_numpy())
                yield places[is_asked], matrix[is_asked]
