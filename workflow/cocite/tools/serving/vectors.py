"""The vectors of a model's papers, and which of them are nearest to a vector, within milliseconds.

The table of vectors is copied once into plain files. Up to `EXACT_UP_TO` papers, a search compares all of them. Of
more papers, FAISS sorts copies of 8 bits a number into lists by their nearest centroid (IVF with a scalar quantizer,
Jégou, Douze & Schmid 2011), and reads the lists whose centroids are nearest; the best papers are then compared by their
whole vectors, which are read from the disk. So every distance is exact, and only papers in other lists can be missed.

The lists are mapped into memory: a search needs the pages of those that it reads, and the system drops pages where
memory is short. The whole vectors are not, since one of them would bring many pages of others with it.

ids, vectors    corpus ids (int64) and vectors (float32) as plain bytes, in the order of the table
lists.faiss     the lists, where there are more than `EXACT_UP_TO` papers
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from cocite.core.id_sets import Ids
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import count_rows, open_table

TABLE = "paper_embeddings"
EXACT_UP_TO = 50_000
"""Papers that are all compared with each query."""
SAMPLE_OF_LIST = 64
"""Papers that the centroids are computed from, for each list."""
NPROBE = 32
"""Lists that are read for a query."""
SPARE = 90
"""Papers compared by their whole vectors beyond those asked for: numbers of 8 bits confuse near ties."""
ROWS_AT_ONCE = 16_384
SEED = 1
"""An index is no result, and needs no seed of a run."""

Vector = NDArray[np.float32]


def make_index(files: Sequence[Path], folder: Path) -> None:
    """Write the files of an index into an empty folder. Vectors that are not finite are left out and counted."""
    papers, dimension = _copy_vectors(files, folder)
    if papers > EXACT_UP_TO:
        faiss.write_index(_sorted_into_lists(folder / "vectors", papers, dimension), str(folder / "lists.faiss"))


def _copy_vectors(files: Sequence[Path], folder: Path) -> tuple[int, int]:
    """Write ids and vectors; return their number and dimension."""
    papers = 0
    with (
        (folder / "ids").open("wb") as ids,
        (folder / "vectors").open("wb") as vectors,
        progress_bar(of="copy vectors", unit="papers", total=count_rows(files)) as bar,
    ):
        for path in files:
            with open_table(path, TABLE) as file:
                dimension: int = file.schema_arrow.field("vector").type.list_size
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=["corpusid", "vector"]):
                    block = batch["vector"].flatten().to_numpy().reshape(-1, dimension)
                    is_finite = np.isfinite(block).all(axis=1)
                    ids.write(batch["corpusid"].to_numpy()[is_finite].tobytes())
                    vectors.write(block[is_finite].tobytes())
                    papers += int(is_finite.sum())
                    bar.update(len(block))
        if papers < bar.total:
            report(f"{bar.total - papers} papers have vectors that are not finite, and are never found.")
    return papers, dimension


def _sorted_into_lists(vectors: Path, papers: int, dimension: int) -> Any:
    nlist = round(papers**0.5)
    report(f"Computing the centroids of {nlist:,} lists.")
    index: Any = faiss.index_factory(dimension, f"IVF{nlist},SQ8", faiss.METRIC_L2)
    index.cp.seed = derive_seed(SEED, "centroids") % 2**31
    drawn = generator(SEED, "sample of centroids").choice(papers, min(papers, nlist * SAMPLE_OF_LIST), replace=False)
    is_drawn = np.zeros(papers, dtype=bool)
    is_drawn[drawn] = True
    blocks = _blocks(vectors, dimension)
    index.train(np.concatenate([block[is_drawn[start : start + len(block)]] for start, block in blocks]))
    with progress_bar(of="sort into lists", unit="papers", total=papers) as bar:
        for _, block in _blocks(vectors, dimension):
            index.add(block)
            bar.update(len(block))
    return index


def _blocks(vectors: Path, dimension: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The vectors in a file, and the row that each block begins with."""
    with vectors.open("rb") as file:
        start = 0
        while (block := np.fromfile(file, np.float32, ROWS_AT_ONCE * dimension)).size:
            yield start, block.reshape(-1, dimension)
            start += block.size // dimension


class VectorIndex:
    """The papers of an index that `make_index` has written."""

    def __init__(self, folder: Path) -> None:
        self.ids: Ids = np.fromfile(folder / "ids", np.int64)
        self._order = np.argsort(self.ids)
        lists = folder / "lists.faiss"
        flags = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
        self._lists: Any = faiss.read_index(str(lists), flags) if lists.exists() else None
        self._file = (folder / "vectors").open("rb")
        self._dimension = (folder / "vectors").stat().st_size // 4 // max(1, len(self.ids))
        self._all: NDArray[np.float32] | None = None
        if self._lists is None:
            self._all = np.fromfile(folder / "vectors", np.float32).reshape(-1, max(1, self._dimension))

    @property
    def lists(self) -> int:
        """How many lists the papers are sorted into; 0 where all of them are compared."""
        return 0 if self._lists is None else int(self._lists.nlist)

    def vector_of(self, paper: int) -> Vector | None:
        """The vector of a paper; None where it has none."""
        place = int(np.searchsorted(self.ids, paper, sorter=self._order))
        if place == len(self.ids) or self.ids[self._order[place]] != paper:
            return None
        vector: Vector = self._whole([self._order[place]])[0]
        return vector

    def nearest(self, vector: Vector, k: int, but: int | None = None) -> tuple[Ids, NDArray[np.float64]]:
        """The ids of the k papers nearest to a vector, without the paper `but`, and their Euclidean distances.

        Ties are broken by id.
        """
        rows = self._candidates(vector, min(k + SPARE, len(self.ids)))
        rows = rows[self.ids[rows] != but] if but is not None else rows
        distances = np.linalg.norm(self._whole(rows).astype(np.float64) - vector, axis=1)
        best = np.lexsort([self.ids[rows], distances])[:k]
        return self.ids[rows[best]], distances[best]

    def _candidates(self, vector: Vector, count: int) -> NDArray[np.int64]:
        """The rows of papers among which the nearest are."""
        if count == 0:
            return np.empty(0, np.int64)
        if self._all is not None:
            _, (rows,) = faiss.knn(vector[None], self._all, count)
        else:
            parameters: Any = faiss.SearchParametersIVF()
            parameters.nprobe = NPROBE
            _, (rows,) = self._lists.search(vector[None], count, params=parameters)
        found: NDArray[np.int64] = rows[rows >= 0]
        return found

    def _whole(self, rows: Iterable[int]) -> NDArray[np.float32]:
        """The vectors in some rows."""
        width = 4 * self._dimension
        read = b"".join(os.pread(self._file.fileno(), width, int(row) * width) for row in rows)
        return np.frombuffer(read, np.float32).reshape(-1, max(1, self._dimension))
