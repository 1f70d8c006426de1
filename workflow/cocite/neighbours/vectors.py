"""The vectors of a graph embedding, read from disk block by block, so that memory does not grow with their number.

In comes the table `graph_embeddings`, of which all papers are searched or only those that have a text. Row groups are
the unit of what is read at once by a thread, and of what a killed search goes on after.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

from cocite.errors import InputError
from cocite.files import checked_files, scan_table, vectors_of
from cocite.neighbours.distances import Block, Ids, block_of, joined
from cocite.neighbours.pools import BLOCK, Workers
from cocite.tables import LARGEST_ID

LARGEST_NORM = 1e30
"""Squared norm from which products in float32 may overflow."""
BUFFER = 1 << 20
"""Bytes that are read from a file at once."""

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class VectorTable:
    """The papers of a table `graph_embeddings` that are searched."""

    path: Path
    texts: NDArray[np.uint8] | None = None
    """A bit for each corpus id that is searched; None if all are."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        with self._open() as file:
            size: int = file.schema_arrow.field("vector").type.list_size
        return size

    @property
    def row_groups(self) -> range:
        """The numbers of its row groups."""
        return range(len(self.sizes))

    @property
    def sizes(self) -> list[int]:
        """How many papers each row group holds, those that are not searched among them."""
        with self._open() as file:
            return [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]

    def ids(self) -> Iterator[Ids]:
        """The papers that are searched, in batches of rising ids. Raises `InputError` where an id does not fit."""
        for batch in scan_table(self.path, "graph_embeddings").to_batches(columns=["corpusid"]):
            yield self._searched(batch.column("corpusid").to_numpy())[0]

    def blocks(self, row_groups: Sequence[int] | None = None) -> Iterator[Block]:
        """The papers that are searched, with their vectors, in blocks. Raises `InputError` where one is not finite."""
        groups = self.row_groups if row_groups is None else row_groups
        with self._open() as file:
            for batch in file.iter_batches(BLOCK, list(groups), ["corpusid", "vector"], use_threads=False):
                ids, chosen = self._searched(batch.column("corpusid").to_numpy())
                if len(ids):
                    vectors = vectors_of(pa.table(batch))
                    yield self._checked(block_of(ids, vectors if len(ids) == len(vectors) else vectors[chosen]))

    def find(self, wanted: Ids, workers: Workers) -> Block:
        """Those of the papers wanted, rising, that are searched, with their vectors."""

        def found_in(row_group: int) -> list[Block]:
            return [block.choose(np.isin(block.ids, wanted)) for block in self.blocks([row_group])]

        found = [block for blocks in workers.map(found_in, self.row_groups) for block in blocks]
        nothing = block_of(np.empty(0, dtype=np.int64), np.empty((0, self.dimension), dtype=np.float32))
        return joined([nothing, *found])

    def _open(self) -> pq.ParquetFile:
        """The file, to be read page by page; a whole row group of vectors may take hundreds of megabytes."""
        (path,) = checked_files(self.path, "graph_embeddings")
        return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)

    def _searched(self, ids: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        if len(ids) and (ids[0] < 0 or ids[-1] > LARGEST_ID):
            wrong = ids[0] if ids[0] < 0 else ids[-1]
            raise InputError(f"{self.path}: holds the corpus id {wrong}; ids must lie between 0 and {LARGEST_ID:,}.")
        chosen = np.ones(len(ids), dtype=bool) if self.texts is None else _are_in(self.texts, ids)
        return ids[chosen], chosen

    def _checked(self, block: Block) -> Block:
        wrong = block.ids[~(block.norms < LARGEST_NORM)]
        if len(wrong):
            raise InputError(
                f"{self.path}: the vector of paper {wrong[0]} is not finite or is too long (its squared norm must be "
                f"below {LARGEST_NORM:g}); the graph embedding must be trained again, with a smaller lr."
            )
        return block


def open_vectors(path: Path, papers: Sequence[Path] = ()) -> VectorTable:
    """The table of vectors; with the buckets of the table papers, only those with title and abstract are searched."""
    return VectorTable(path=path, texts=papers_with_text(papers) if papers else None)


def papers_with_text(papers: Sequence[Path]) -> NDArray[np.uint8]:
    """A bit for each corpus id with title and abstract; memory is taken only as far as ids reach.

    Papers whose ids are too large to have a vector are left out.
    """
    bits = np.zeros(LARGEST_ID // 8 + 1, dtype=np.uint8)
    for batch in scan_table(papers, "papers").to_batches(columns=["corpusid"], filter=pc.field("has_text")):
        ids = batch.column("corpusid").to_numpy()
        _mark(bits, ids[(ids >= 0) & (ids <= LARGEST_ID)])
    return bits


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, each next one made by a thread of its own meanwhile."""
    source = iter(items)
    with ThreadPoolExecutor(1) as reader:
        upcoming = reader.submit(next, source, None)
        while (item := upcoming.result()) is not None:
            upcoming = reader.submit(next, source, None)
            yield item


@njit(nogil=True, cache=True)
def _mark(bits, ids):  # type: ignore[no-untyped-def]
    for paper in ids:
        bits[paper >> 3] |= np.uint8(1 << (paper & 7))


@njit(nogil=True, cache=True)
def _are_in(bits, ids):  # type: ignore[no-untyped-def]
    found = np.empty(len(ids), dtype=np.bool_)
    for place in range(len(ids)):
        found[place] = bits[ids[place] >> 3] >> (ids[place] & 7) & 1
    return found
