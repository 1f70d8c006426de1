"""The documents to search, their numbers, and their vectors, read from disk in blocks.

A document is a paper, of a graph embedding or with text, or a text that comes with a set of examples and has a negative
id. Its number is its rank among all documents by id. So a number has 32 bits, as keys of neighbours need
(`nearest.py`), ties are broken by id, and a document that must not be found has no number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, IdSet, are_in, check_ids, id_set, members_at, places_of, size
from cocite.core.tables.files import VECTOR_BUFFER, open_parquet, scan_table, vectors_of
from cocite.core.written_ids import Ids, look_up
from cocite.neighbours.nearest import BLOCK, Block, Numbers, Vectors, Workers, block_of

LARGEST_NORM = 1e30
"""Squared norm from which products in float32 may overflow."""
NOWHERE = -1
"""The number of what is not searched."""


@dataclass(frozen=True, kw_only=True)
class Documents:
    """The documents that are searched."""

    papers: IdSet
    texts: Ids = field(default_factory=lambda: NO_IDS)
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
        numbers = np.full(ids.shape, NOWHERE, dtype=np.int64)
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


Page = tuple[Ids, Block]
"""The ids of some vectors as they are read, and these; those that are not searched have the number `NOWHERE`."""


class VectorFiles:
    """The vectors of the documents, and of others, in several files, or held in memory."""

    def __init__(self, files: Sequence[Path], documents: Documents) -> None:
        self.files, self.documents = files, documents
        self.footers = {path: pq.read_metadata(path) for path in files}
        """Read once: with hundreds of row groups, a footer is too long to be read for each."""
        self.groups = [(path, at) for path, footer in self.footers.items() for at in range(footer.num_row_groups)]
        """The row groups: file, and number there."""
        self.row_groups = range(len(self.groups))
        self.sizes = [self.footers[path].row_group(number).num_rows for path, number in self.groups]
        """The number of vectors in each row group, including those of documents that are not searched."""
        self.held: list[list[Page]] = []
        """The pages of each row group; nothing if they stay on the disk."""

    @property
    def size_mb(self) -> float:
        """Memory that all vectors take."""
        return sum(self.sizes) * (4 * self.dimension + 24) / 1e6

    def hold(self, workers: Workers) -> None:
        """Read all vectors into memory."""
        self.held = list(workers.map(lambda group: list(self._read([group], BLOCK)), self.row_groups))

    @cached_property
    def dimension(self) -> int:
        """Numbers in a vector. Raises `InputError` if files differ."""
        schemas = {path: footer.schema.to_arrow_schema() for path, footer in self.footers.items()}
        sizes = {path: schema.field("vector").type.list_size for path, schema in schemas.items()}
        first, *others = self.files
        if other := next((path for path in others if sizes[path] != sizes[first]), None):
            found = f"has vectors of {sizes[other]} dimensions, and {first} of {sizes[first]}"
            raise InputError(f"{other}: {found}; both must be of one encoder.")
        return sizes[first]

    def blocks(self, row_groups: Sequence[int] | None = None, *, at_once: int = 0) -> Iterator[Block]:
        """The searched documents, at most `at_once` at a time. Raises `InputError` if a vector is not finite."""
        groups = self.row_groups if row_groups is None else row_groups
        held = chain.from_iterable(self.held[group] for group in groups) if self.held else None
        for ids, page in held or self._read(groups, at_once or BLOCK):
            is_searched = page.numbers != NOWHERE
            block = page if is_searched.all() else page.choose(is_searched)
            if len(block.numbers):
                self._check(ids[is_searched], block.norms)
                yield block

    def choose(self, wanted: Ids, workers: Workers) -> Block:
        """Those of some documents that are searched, by rising ids, with their vectors."""
        numbers = self.documents.numbers_of(wanted)

        def chosen_in(group: int) -> list[Block]:
            return [block.choose(np.isin(block.numbers, numbers)) for block in self.blocks([group])]

        found = [block for blocks in workers.map(chosen_in, self.row_groups) for block in blocks]
        nothing = block_of(NO_IDS, np.empty((0, self.dimension), dtype=np.float32))
        return Block(*(np.concatenate(parts) for parts in zip(nothing, *found, strict=True)))

    def find(self, wanted: Ids, workers: Workers) -> Vectors:
        """The vectors of some documents, searched or not, by rising ids. Raises `InputError` if one has none."""
        found = np.zeros(len(wanted), dtype=bool)
        vectors = np.zeros((len(wanted), self.dimension), dtype=np.float32)

        def find_in(group: int) -> None:
            for ids, page in self.held[group] if self.held else self._read([group], BLOCK):
                places, is_wanted = look_up(wanted, ids)
                self._check(ids[is_wanted], page.norms[is_wanted])
                vectors[places[is_wanted]] = page.vectors[is_wanted]
                found[places[is_wanted]] = True

        list(workers.map(find_in, self.row_groups))
        if len(missing := wanted[~found]):
            lacks = f"no vector of {len(missing):,} papers or texts of the examples, the first of them {missing[0]}"
            raise InputError(f"{self.files[0].parent}: {lacks}; all of them must be embedded.")
        return vectors

    def _read(self, groups: Sequence[int], at_once: int) -> Iterator[Page]:
        """The pages of some row groups, one after the other; a page may span the end of one and the start of the next,
        so that the row groups of a file do not determine the batches from which an index is built."""
        for path, of_file in groupby((self.groups[group] for group in groups), key=itemgetter(0)):
            footer = self.footers[path]
            key, numbers = footer.schema.names[0], [number for _, number in of_file]
            with open_parquet(path, footer=footer, buffer_size=VECTOR_BUFFER) as file:
                for batch in file.iter_batches(at_once, numbers, [key, "vector"], use_threads=False):
                    ids = batch.column(key).to_numpy()
                    yield ids, block_of(self.documents.numbers_of(ids), vectors_of(pa.table(batch)))

    def _check(self, ids: Ids, norms: NDArray[np.float64]) -> None:
        if len(wrong := ids[~(norms < LARGEST_NORM)]):
            is_wrong = f"is not finite or is too long (its squared norm must be below {LARGEST_NORM:g})"
            raise InputError(
                f"{self.files[0]}: the vector of the paper or text {wrong[0]} {is_wrong}; the graph embedding or the "
                "model that it is of has diverged: train it again, with a smaller lr."
            )


def open_vectors(path: Path, papers: Sequence[Path] = ()) -> VectorFiles:
    """The table `graph_embeddings`, of which only some papers are searched if any are given: those with text of buckets
    of the table papers, and all of a table of triplets. Raises `InputError` if an id is negative."""
    ids = ids_in(path, "graph_embeddings")
    if papers:
        searched = id_set(ids for file in papers for ids in _searched_in(file))
        ids = (batch[are_in(searched, batch)] for batch in ids)
    return VectorFiles([path], Documents(papers=id_set(ids)))


def ids_in(path: Path, table: str, chosen: pc.Expression | None = None) -> Iterator[Ids]:
    """The papers of a table, or of its selected rows, in batches. Raises `InputError` if an id is negative."""
    for batch in scan_table(path, table).to_batches(columns=["corpusid"], filter=chosen):
        ids = batch.column("corpusid").to_numpy()
        check_ids(ids, path)
        yield ids


def papers_with_text(path: Path) -> Iterator[Ids]:
    """The papers with text of a bucket or the whole of the table papers, in batches."""
    return ids_in(path, "papers", pc.field("has_text"))


def _searched_in(file: Path) -> Iterator[Ids]:
    columns = ["query", "positive", "negative"]
    if not set(columns) <= set(pq.read_schema(file).names):
        yield from papers_with_text(file)
        return
    for batch in scan_table(file, "triplets").to_batches(columns=columns):
        yield np.concatenate([column.to_numpy() for column in batch.columns])
