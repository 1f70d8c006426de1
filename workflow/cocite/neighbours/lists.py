"""The inverted-file index (IVF): papers in lists by their nearest centroid, of which a search reads only some.

The lists lie on disk one after the other, as `clusters.py` has put them there, and a search lets each of them go past
those queries whose nearest centroids its own is among (Sivic & Zisserman 2003; Jégou, Douze & Schmid 2011, section IV).
So it needs no more memory than the exact search, and what it finds has exact distances; only papers in lists that were
not read are missed.

centroids.npy    one row a list
starts.npy       where each list starts among the papers, and the end of the last
ids, vectors     the papers' corpus ids (int64) and vectors (float32) as plain bytes, list after list, by id in each
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.ground.ahead import ahead
from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.progress import progress_bar
from cocite.neighbours.checkpoints import Checkpoint
from cocite.neighbours.distances import FARTHEST, Block, Keys, Metric, Numbers, Vectors, block_of, numbers_in
from cocite.neighbours.numbers import Numbering
from cocite.neighbours.pools import BLOCK, Pools, Workers

IDS_AT_ONCE = 1 << 16
"""Ids that are looked through at once for those of queries."""
PAPERS_AT_ONCE = 1 << 14
"""Papers that are read at once: most lists are too small to keep threads busy."""
GROUPS_HELD = 3
"""As many of those are held at once, at most: one at work, one ahead, and what a last block brings too many."""
NO_PAPER = -1


class ListSearch:
    """Search in the lists of the centroids that are nearest to a query."""

    def __init__(self, folder: Path, numbering: Numbering, metric: Metric, probes: int) -> None:
        self.folder, self.numbering, self.metric, self.probes = folder, numbering, metric, probes
        self.centroids: Vectors = np.load(folder / "centroids.npy")
        self.starts: NDArray[np.int64] = np.load(folder / "starts.npy")
        self.held_mb = GROUPS_HELD * 4 * PAPERS_AT_ONCE * self.centroids.shape[1] / 1e6

    def find(self, ids: Ids, workers: Workers) -> Block:
        """Those of the papers that are in the index, by id, with their vectors."""
        del workers  # few rows are read, wherever they lie
        found = [np.empty((0, 2), dtype=np.int64)]
        with (self.folder / "ids").open("rb") as file:
            for start in range(0, int(self.starts[-1]), IDS_AT_ONCE):
                indexed = np.fromfile(file, np.int64, IDS_AT_ONCE)
                places = np.flatnonzero(np.isin(indexed, ids))
                found.append(np.column_stack([indexed[places], start + places]))
        papers, places = np.concatenate(found).T
        order = np.argsort(papers)
        papers, places = papers[order], places[order]
        with (self.folder / "vectors").open("rb") as file:
            rows = [self._read(file, place, place + 1) for place in places.tolist()]
        nothing = np.empty((0, self.centroids.shape[1]), dtype=np.float32)
        return block_of(self._numbers_of(papers), np.concatenate([nothing, *rows]))

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The keys of the k nearest papers of each query in the lists that are read, in rising order, queries × k.

        Where the lists hold too few, a query is asked again with twice as many. It takes no checkpoint.
        """
        del checkpoint
        keys = np.full((len(queries.numbers), k), FARTHEST, dtype=np.uint64)
        short, probes = np.arange(len(queries.numbers)), min(self.probes, len(self.centroids))
        while len(short):
            asked = queries.choose(short)
            keys[short] = self._probe(asked, k, probes, workers)
            short = short[keys[short, -1] == FARTHEST] if probes < len(self.centroids) else short[:0]
            probes = min(2 * probes, len(self.centroids))
        return keys

    def _probe(self, queries: Block, k: int, probes: int, workers: Workers) -> Keys:
        chosen = self._nearest_lists(queries, probes, workers)
        order = np.argsort(chosen.ravel(), kind="stable")
        by_list = np.split(order // probes, np.searchsorted(chosen.ravel()[order], np.arange(1, len(self.centroids))))
        pools = Pools(queries, self.metric, k)
        asked = [number for number, places in enumerate(by_list) if len(places)]
        total = int(np.diff(self.starts)[asked].sum())
        with progress_bar(of=f"{len(queries.numbers):,} queries", unit="vectors", total=total) as bar:
            for blocks in ahead(self._blocks(asked)):
                pools.offer_each([(block, by_list[number]) for number, block in blocks], workers)
                bar.update(sum(len(block.numbers) for _, block in blocks))
        return pools.nearest(workers)

    def _nearest_lists(self, queries: Block, probes: int, workers: Workers) -> NDArray[np.int64]:
        """The lists of each query's nearest centroids, queries × probes."""
        nameless = queries._replace(numbers=np.full(len(queries.numbers), NO_PAPER))
        pools = Pools(nameless, self.metric, probes)
        for start in range(0, len(self.centroids), BLOCK):
            part = self.centroids[start : start + BLOCK]
            pools.offer(block_of(np.arange(start, start + len(part)), part), workers)
        return numbers_in(pools.nearest(workers))

    def _blocks(self, lists: list[int]) -> Iterator[list[tuple[int, Block]]]:
        """The papers of these lists, in blocks, with the number of the list, and many blocks at once."""
        blocks: list[tuple[int, Block]] = []
        papers = 0
        with (self.folder / "ids").open("rb") as ids, (self.folder / "vectors").open("rb") as vectors:
            for number in lists:
                for start in range(self.starts[number], self.starts[number + 1], BLOCK):
                    end = min(start + BLOCK, int(self.starts[number + 1]))
                    ids.seek(start * 8)
                    numbers = self._numbers_of(np.fromfile(ids, np.int64, end - start))
                    blocks.append((number, block_of(numbers, self._read(vectors, start, end))))
                    papers += end - start
                    if papers >= PAPERS_AT_ONCE:
                        yield blocks
                        blocks, papers = [], 0
        yield blocks

    def _numbers_of(self, ids: Ids) -> Numbers:
        numbers = self.numbering.numbers_of(ids)
        if (numbers < 0).any():
            raise InputError(
                f"{self.folder}: holds the paper {ids[numbers < 0][0]}, which has no vector in the table; "
                "`cocite neighbours index` builds the index again."
            )
        return numbers

    def _read(self, file: BinaryIO, start: int, end: int) -> Vectors:
        dimension = self.centroids.shape[1]
        file.seek(start * dimension * 4)
        return np.fromfile(file, np.float32, (end - start) * dimension).reshape(-1, dimension)
