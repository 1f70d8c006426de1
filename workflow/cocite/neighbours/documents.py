"""The documents that negatives are mined among, the numbers that stand for them, and their vectors.

A document is a paper with text that is not kept out, or a text that a set of examples brings, whose id is
negative. Its number is its place among all of them by id. So a number has 32 bits, as keys of neighbours need it
(`distances.py`), ties are broken by id, and a document that must not be found has no number.

Vectors lie in the tables `paper_embeddings` and `text_embeddings`, which may hold more documents than are searched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cocite.config.mining import Collection
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, Ids, IdSet, id_set, members_at, places_of, size
from cocite.core.tables.files import open_parquet, open_table, vectors_of
from cocite.core.tables.splits import read_kept_out
from cocite.core.written_ids import look_up
from cocite.neighbours.distances import Block, Numbers, Vectors, block_of
from cocite.neighbours.pools import BLOCK, Workers
from cocite.neighbours.vectors import BUFFER, LARGEST_NORM, papers_with_text

TABLES_OF_VECTORS = ("paper_embeddings", "text_embeddings")
"""The tables whose vectors are searched; the first column of each has the ids."""
NOWHERE = -1
"""The number of what is not searched."""


@dataclass(frozen=True, kw_only=True)
class Documents:
    """The documents that are searched."""

    papers: IdSet
    texts: Ids
    """Ids of the texts, rising; all are negative."""

    @property
    def size(self) -> int:
        """How many there are."""
        return size(self.papers) + len(self.texts)

    @property
    def held_mb(self) -> float:
        """Memory that they take."""
        return (sum(part.nbytes for part in self.papers) + self.texts.nbytes) / 1e6

    def numbers_of(self, ids: Ids) -> Numbers:
        """The number of each id; `NOWHERE` for those that are not searched."""
        numbers = np.full(len(ids), NOWHERE, dtype=np.int64)
        is_paper = ids >= 0
        places = places_of(self.papers, ids[is_paper]).astype(np.int64)
        numbers[is_paper] = np.where(places < 0, NOWHERE, places + len(self.texts))
        places, is_searched = look_up(self.texts, ids[~is_paper])
        numbers[~is_paper] = np.where(is_searched, places, NOWHERE)
        return numbers

    def ids_of(self, numbers: Numbers) -> Ids:
        """The id of each number."""
        ids = np.empty(len(numbers), dtype=np.int64)
        is_paper = numbers >= len(self.texts)
        ids[is_paper] = members_at(self.papers, numbers[is_paper] - len(self.texts))
        ids[~is_paper] = self.texts[numbers[~is_paper]]
        return ids


def read_documents(collection: Collection, papers: Path, queries: Path, texts: Sequence[Path]) -> Documents:
    """The documents of a collection; `papers` is the folder of the table papers, `texts` are tables `sampled_texts`.

    Raises `InputError` where there are none.
    """
    listed, brought = id_set(()), NO_IDS
    if collection != "texts":
        listed = id_set(papers_with_text(papers), without=read_kept_out(queries)["corpusid"].to_numpy())
    if collection != "papers":
        brought = np.unique(np.concatenate([NO_IDS, *map(_documents_in, texts)]))
    documents = Documents(papers=listed, texts=brought)
    if documents.size == 0:
        where = {"papers": f"{papers} has no paper with text", "texts": "the set brings no documents"}
        raise InputError(f"There is nothing to mine negatives among: {where.get(collection, where['papers'])}.")
    return documents


def _documents_in(path: Path) -> Ids:
    """The texts of a table that are no queries."""
    table = open_table(path, "sampled_texts").read(["text", "is_query"])
    ids: Ids = table["text"].filter(pc.invert(table["is_query"])).to_numpy()
    return ids


class Page(NamedTuple):
    """Some vectors as they are read."""

    ids: Ids
    block: Block
    """The same with their numbers; those that are not searched have `NOWHERE`."""


class VectorFiles:
    """The vectors of the documents, and of others, in several files, or held in memory."""

    def __init__(self, files: Sequence[Path], documents: Documents) -> None:
        self.files, self.documents = files, documents
        self.held: list[list[Page]] = []
        """The pages of each row group; nothing where they stay on the disk."""

    @property
    def size_mb(self) -> float:
        """Memory that all vectors take."""
        return sum(self.sizes) * (4 * self.dimension + 24) / 1e6

    def hold(self, workers: Workers) -> None:
        """Read all vectors into memory."""
        self.held = list(workers.map(lambda group: list(self._read(group)), range(len(self.groups))))

    @cached_property
    def footers(self) -> dict[Path, pq.FileMetaData]:
        """The footer of each file, read once: with hundreds of row groups, it is too long to be read for each."""
        return {path: pq.read_metadata(path) for path in self.files}

    @cached_property
    def groups(self) -> list[tuple[Path, int]]:
        """The row groups: file, and number there."""
        return [(path, number) for path, footer in self.footers.items() for number in range(footer.num_row_groups)]

    @property
    def sizes(self) -> list[int]:
        """How many vectors each row group holds."""
        return [self.footers[path].row_group(number).num_rows for path, number in self.groups]

    @cached_property
    def dimension(self) -> int:
        """Numbers in a vector. Raises `InputError` where files differ."""
        sizes = {path: pq.read_schema(path).field("vector").type.list_size for path in self.files}
        for path, found in sizes.items():
            if found != sizes[self.files[0]]:
                raise InputError(
                    f"{path}: has vectors of {found} dimensions, and {self.files[0]} of {sizes[self.files[0]]}; both "
                    "must be of one encoder."
                )
        return sizes[self.files[0]]

    def blocks(self, row_groups: Sequence[int] | None = None) -> Iterator[Block]:
        """The documents that are searched, with their vectors, in blocks of at most `BLOCK`.

        Raises `InputError` where a vector is not finite.
        """
        for group in range(len(self.groups)) if row_groups is None else row_groups:
            for page in self._pages(group):
                is_searched = page.block.numbers != NOWHERE
                block = page.block if is_searched.all() else page.block.choose(is_searched)
                if len(block.numbers):
                    yield block

    def find(self, wanted: Ids, workers: Workers) -> Vectors:
        """The vectors of some documents, searched or not, by rising ids.

        Raises `InputError` where one has none.
        """
        found = np.zeros(len(wanted), dtype=bool)
        vectors = np.zeros((len(wanted), self.dimension), dtype=np.float32)

        def find_in(group: int) -> None:
            for page in self._pages(group):
                places, is_wanted = look_up(wanted, page.ids)
                vectors[places[is_wanted]] = page.block.vectors[is_wanted]
                found[places[is_wanted]] = True

        list(workers.map(find_in, range(len(self.groups))))
        if not found.all():
            raise InputError(
                f"{self.files[0].parent}: no vector of {np.count_nonzero(~found):,} papers or texts of the examples, "
                f"the first of them {wanted[~found][0]}; all of them must be embedded."
            )
        return vectors

    def _pages(self, group: int) -> Iterator[Page]:
        return iter(self.held[group]) if self.held else self._read(group)

    def _read(self, group: int) -> Iterator[Page]:
        """The pages of a row group, one after the other; a whole group may take hundreds of megabytes."""
        path, number = self.groups[group]
        footer = self.footers[path]
        key = footer.schema.names[0]
        with open_parquet(path, footer=footer, buffer_size=BUFFER) as file:
            for batch in file.iter_batches(BLOCK, [number], [key, "vector"], use_threads=False):
                ids = batch.column(key).to_numpy()
                block = block_of(self.documents.numbers_of(ids), vectors_of(pa.table(batch)))
                wrong = ids[~(block.norms < LARGEST_NORM)]
                if len(wrong):
                    raise InputError(
                        f"{path}: the vector of {wrong[0]} is not finite or is too long (its squared norm must be "
                        f"below {LARGEST_NORM:g})."
                    )
                yield Page(ids, block)
