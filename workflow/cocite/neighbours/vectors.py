"""The vectors of a graph embedding, read from disk block by block, so that memory does not grow with their number.

In comes the table `graph_embeddings`, of which all papers are searched or only those that have a text. Row groups are
the unit of what is read at once by a thread, and of what a killed search goes on after.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids, IdSet, are_in, check_ids, id_set
from cocite.neighbours.distances import Block, block_of, joined
from cocite.neighbours.numbers import Numbering, number_papers
from cocite.neighbours.pools import BLOCK, Workers
from cocite.tables.files import checked_files, scan_table, vectors_of

LARGEST_NORM = 1e30
"""Squared norm from which products in float32 may overflow."""
BUFFER = 1 << 20
"""Bytes that are read from a file at once."""


@dataclass(frozen=True, kw_only=True)
class VectorTable:
    """The papers of a table `graph_embeddings` that are searched."""

    path: Path
    numbering: Numbering
    texts: IdSet | None = None
    """The papers that are searched, beside others that have no vector; None if all are."""

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
        """The papers that are searched, in batches of rising ids. Raises `InputError` where an id is negative."""
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
                    numbers = self.numbering.numbers_of(ids)
                    yield self._checked(block_of(numbers, vectors if len(ids) == len(vectors) else vectors[chosen]))

    def find(self, wanted: Ids, workers: Workers) -> Block:
        """Those of the papers wanted, rising, that are searched, with their vectors."""
        numbers = self.numbering.numbers_of(wanted)

        def found_in(row_group: int) -> list[Block]:
            return [block.choose(np.isin(block.numbers, numbers)) for block in self.blocks([row_group])]

        found = [block for blocks in workers.map(found_in, self.row_groups) for block in blocks]
        nothing = block_of(np.empty(0, dtype=np.int64), np.empty((0, self.dimension), dtype=np.float32))
        return joined([nothing, *found])

    def _open(self) -> pq.ParquetFile:
        """The file, to be read page by page; a whole row group of vectors may take hundreds of megabytes."""
        (path,) = checked_files(self.path, "graph_embeddings")
        return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)

    def _searched(self, ids: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        check_ids(ids, self.path)
        chosen = np.ones(len(ids), dtype=bool) if self.texts is None else are_in(self.texts, ids)
        return ids[chosen], chosen

    def _checked(self, block: Block) -> Block:
        wrong = block.numbers[~(block.norms < LARGEST_NORM)]
        if len(wrong):
            (paper,) = self.numbering.ids_of(wrong[:1])
            raise InputError(
                f"{self.path}: the vector of paper {paper} is not finite or is too long (its squared norm must be "
                f"below {LARGEST_NORM:g}); the graph embedding must be trained again, with a smaller lr."
            )
        return block


def open_vectors(path: Path, papers: Sequence[Path] = ()) -> VectorTable:
    """The table of vectors; with the buckets of the table papers, only those with title and abstract are searched."""
    texts = id_set(_ids_with_text(papers)) if papers else None
    return VectorTable(path=path, numbering=number_papers(path), texts=texts)


def _ids_with_text(papers: Sequence[Path]) -> Iterator[Ids]:
    for path in papers:
        for batch in scan_table(path, "papers").to_batches(columns=["corpusid"], filter=pc.field("has_text")):
            ids = batch.column("corpusid").to_numpy()
            check_ids(ids, path)
            yield ids
