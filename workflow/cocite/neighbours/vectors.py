"""The papers of a graph embedding: their vectors, read from disk block by block, and the numbers that stand for them.

In comes the table `graph_embeddings`, of which all papers are searched, those that have a text, or those of triplets.
Memory does not grow with their number. A thread reads one row group at a time, and a killed search resumes after the
last whole one.

Keys, whose upper half is the distance, have 32 bits for a paper. An id below 2³² is its own number. In a table with
larger ids, the number of a paper is its place among the papers of the table, which keeps their order. The set of all
ids is then held in memory to translate between the two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cocite.core.errors import InputError
from cocite.core.id_sets import Ids, IdSet, are_in, check_ids, id_set, members_at, places_of
from cocite.core.tables.files import open_table, scan_table, vectors_of
from cocite.neighbours.distances import Block, Numbers, block_of
from cocite.neighbours.pools import BLOCK, Workers

LARGEST_NORM = 1e30
"""Squared norm from which products in float32 may overflow."""
TRIPLETS = {"query", "positive", "negative"}
"""The columns of papers of a table of triplets."""
BUFFER = 1 << 20
"""Bytes that are read from a file at once."""


@dataclass(frozen=True, kw_only=True)
class VectorTable:
    """The papers of a table `graph_embeddings` that are searched, and the numbers that stand for them."""

    path: Path
    numbered: IdSet | None = None
    """All papers of the table; None where ids are their own numbers."""
    searched: IdSet | None = None
    """The papers that are searched; some have no vector. None if all papers are searched."""

    @property
    def held_mb(self) -> float:
        """Memory that the set of its papers takes."""
        return sum(part.nbytes for part in self.numbered) / 1e6 if self.numbered else 0.0

    def numbers_of(self, ids: Ids) -> Numbers:
        """The number of each id; where ids are no numbers, −1 for one that the table does not hold."""
        return ids if self.numbered is None else places_of(self.numbered, ids).astype(np.int64)

    def ids_of(self, numbers: Numbers) -> Ids:
        """The id of each number."""
        return numbers if self.numbered is None else members_at(self.numbered, numbers)

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
        """How many papers each row group holds, including those that are not searched."""
        with self._open() as file:
            return [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]

    def ids(self) -> Iterator[Ids]:
        """The papers that are searched, in batches of rising ids. Raises `InputError` where an id is negative."""
        for ids in ids_in(self.path, "graph_embeddings"):
            yield ids if self.searched is None else ids[are_in(self.searched, ids)]

    def blocks(self, row_groups: Sequence[int] | None = None, *, size: int = 0) -> Iterator[Block]:
        """The papers that are searched, with their vectors, in blocks of at most `size`, or `BLOCK` where it is 0.

        Raises `InputError` where a vector is not finite, or an id is negative.
        """
        groups = self.row_groups if row_groups is None else row_groups
        with self._open() as file:
            for batch in file.iter_batches(size or BLOCK, list(groups), ["corpusid", "vector"], use_threads=False):
                ids, vectors = batch.column("corpusid").to_numpy(), vectors_of(pa.table(batch))
                check_ids(ids, self.path)
                if self.searched is not None:
                    is_searched = are_in(self.searched, ids)
                    ids, vectors = ids[is_searched], vectors[is_searched]
                if len(ids):
                    yield self._checked(block_of(self.numbers_of(ids), vectors))

    def find(self, wanted: Ids, workers: Workers) -> Block:
        """Those of the papers wanted, rising, that are searched, with their vectors."""
        numbers = self.numbers_of(wanted)

        def found_in(row_group: int) -> list[Block]:
            return [block.choose(np.isin(block.numbers, numbers)) for block in self.blocks([row_group])]

        found = [block for blocks in workers.map(found_in, self.row_groups) for block in blocks]
        nothing = block_of(np.empty(0, dtype=np.int64), np.empty((0, self.dimension), dtype=np.float32))
        return Block(*(np.concatenate(parts) for parts in zip(nothing, *found, strict=True)))

    def _open(self) -> pq.ParquetFile:
        """The file, to be read page by page; a whole row group of vectors may take hundreds of megabytes."""
        return open_table(self.path, "graph_embeddings", buffer_size=BUFFER)

    def _checked(self, block: Block) -> Block:
        wrong = block.numbers[~(block.norms < LARGEST_NORM)]
        if len(wrong):
            (paper,) = self.ids_of(wrong[:1])
            raise InputError(
                f"{self.path}: the vector of paper {paper} is not finite or is too long (its squared norm must be "
                f"below {LARGEST_NORM:g}); the graph embedding must be trained again, with a smaller lr."
            )
        return block


def open_vectors(path: Path, papers: Sequence[Path] = ()) -> VectorTable:
    """The table of vectors, of which only some papers are searched if any are given.

    With buckets of the table papers these are the ones with text, with a table of triplets all of its
    papers. Raises `InputError` where an id is negative.
    """
    searched = (ids for file in papers for ids in _searched_in(file))
    return VectorTable(
        path=path,
        numbered=None if _largest_id(path) < 2**32 else id_set(ids_in(path, "graph_embeddings")),
        searched=id_set(searched) if papers else None,
    )


def ids_in(path: Path, table: str, chosen: pc.Expression | None = None) -> Iterator[Ids]:
    """The papers of a table, or of its chosen rows, in batches. Raises `InputError` where an id is negative."""
    for batch in scan_table(path, table).to_batches(columns=["corpusid"], filter=chosen):
        ids = batch.column("corpusid").to_numpy()
        check_ids(ids, path)
        yield ids


def papers_with_text(path: Path) -> Iterator[Ids]:
    """The papers with text of a bucket or the whole of the table papers, in batches."""
    return ids_in(path, "papers", pc.field("has_text"))


def _searched_in(file: Path) -> Iterator[Ids]:
    if set(pq.read_schema(file).names) >= TRIPLETS:
        for batch in scan_table(file, "triplets").to_batches(columns=sorted(TRIPLETS)):
            yield np.concatenate([column.to_numpy() for column in batch.columns])
    else:
        yield from papers_with_text(file)


def _largest_id(path: Path) -> int:
    """The id of the last paper: they rise."""
    file = open_table(path, "graph_embeddings")
    filled = [group for group in range(file.num_row_groups) if file.metadata.row_group(group).num_rows]
    return int(file.read_row_group(filled[-1], ["corpusid"])["corpusid"][-1].as_py()) if filled else 0
