"""The papers of a graph embedding: their vectors, read from disk block by block, and the numbers that stand for them.

In comes the table `graph_embeddings`, of which all papers are searched or only those that have a text. Memory does not
grow with their number: row groups are the unit that a thread reads at once, and after which a killed search goes on.

Keys, whose upper half is the distance, have 32 bits for a paper. An id below 2³² is its own number. In a table with
larger ids, the number of a paper is its place among the papers of the table, which keeps their order; the set of their
ids is then held in memory, and leads from one to the other.
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
from cocite.ground.id_sets import Ids, IdSet, are_in, check_ids, id_set, members_at, places_of
from cocite.neighbours.distances import Block, Numbers, block_of, joined
from cocite.neighbours.pools import BLOCK, Workers
from cocite.tables.files import checked_files, open_table, scan_table, vectors_of

LARGEST_NORM = 1e30
"""Squared norm from which products in float32 may overflow."""
BUFFER = 1 << 20
"""Bytes that are read from a file at once."""
UNKNOWN = -1
"""Stands for the number of an id that the table does not hold."""


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """Which number stands for which paper of a table."""

    papers: IdSet | None = None
    """All papers of the table; None where ids are their own numbers."""

    @property
    def held_mb(self) -> float:
        """Memory that it takes."""
        return sum(part.nbytes for part in self.papers) / 1e6 if self.papers else 0.0

    def numbers_of(self, ids: Ids) -> Numbers:
        """The number of each id; `UNKNOWN` where the table does not hold it, or the id itself."""
        return ids if self.papers is None else places_of(self.papers, ids).astype(np.int64)

    def ids_of(self, numbers: Numbers) -> Ids:
        """The id of each number."""
        return numbers if self.papers is None else members_at(self.papers, numbers)


@dataclass(frozen=True, kw_only=True)
class VectorTable:
    """The papers of a table `graph_embeddings` that are searched."""

    path: Path
    numbering: Numbering
    texts: IdSet | None = None
    """The papers with a text, which alone are searched; some have no vector. None if all papers are searched."""

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
    with_text = (ids for bucket in papers for ids in _ids(bucket, "papers", pc.field("has_text")))
    texts = id_set(with_text) if papers else None
    return VectorTable(path=path, numbering=number_papers(path), texts=texts)


def number_papers(path: Path) -> Numbering:
    """Number the papers of a table `graph_embeddings`. Raises `InputError` where an id is negative."""
    return Numbering() if _largest_id(path) < 2**32 else Numbering(papers=id_set(_ids(path, "graph_embeddings")))


def _largest_id(path: Path) -> int:
    """The id of the last paper: they rise."""
    file = open_table(path, "graph_embeddings")
    filled = [group for group in range(file.num_row_groups) if file.metadata.row_group(group).num_rows]
    return int(file.read_row_group(filled[-1], ["corpusid"])["corpusid"][-1].as_py()) if filled else 0


def _ids(path: Path, table: str, chosen: pc.Expression | None = None) -> Iterator[Ids]:
    for batch in scan_table(path, table).to_batches(columns=["corpusid"], filter=chosen):
        ids = batch.column("corpusid").to_numpy()
        check_ids(ids, path)
        yield ids
