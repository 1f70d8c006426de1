"""Turn the table `edges` into the folder that engines train from, by sorted arrays.

PyTorch-BigGraph's own importer (see `tsv.py`) keeps every paper and looks at every edge as Python objects. Here the
papers are one sorted array, the rows of edges are looked up in it block by block, and what comes out is the same: the
same edges between the same papers, whose rows are drawn at random. Beyond that, edges are put into a random order:
PyTorch-BigGraph shuffles within a chunk of an epoch only, so that chunks of sorted edges would each hold some papers.

Each edge gets a random 64-bit key, and the order is that of the keys. Edges are dealt out to piles on disk by the first
bits of their keys, and each pile is then sorted in memory. So the order depends on the keys alone, neither on the order
that the edges came in nor on the number of piles. Where weights are kept, they go through the piles with their edges.

Memory depends on the number of papers (about 30 bytes each) and on the size of a block, not on the number of edges.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from cocite.config.edges import EdgeSettings
from cocite.config.settings import GivenAsJson
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Output, Seed, Threads
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import generator, priorities
from cocite.core.tables.files import atomic_path, count_rows
from cocite.embeddings.edges import (
    BLOCK_ROWS,
    HOLDOUT,
    TRAINING,
    EdgeBlock,
    ImportedBlock,
    Papers,
    Rows,
    Weights,
    blocks_of_edges,
    check_sides,
)
from cocite.embeddings.imported import partition_starts, write_edges, write_papers
from cocite.embeddings.weights import Mean, divide, relative, unit_of, with_positive_weights

MOST_PAPERS = 2**31 - 1
EDGES_IN_PILE = 4_000_000
MOST_PILES = 512
EDGE = np.dtype([("key", np.uint64), ("lhs", np.int32), ("rhs", np.int32)])
WEIGHTED_EDGE = np.dtype([*EDGE.descr, ("weight", np.float32)])
SHARE_IN_PILES = {TRAINING: 1.0, HOLDOUT: 0.5}


def import_graph(
    edges: Annotated[Sequence[Path], typer.Argument(help="Files of the table edges.")],
    settings: GivenAsJson[EdgeSettings],
    *,
    directed: Annotated[
        bool, typer.Option("--directed/--undirected", help="An undirected edge is trained on both ways.")
    ],
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Turn the edges of a graph into the folder that engines train from, as the settings say."""
    if settings.import_ == "tsv":
        from cocite.embeddings.engines.biggraph.tsv import import_as_published

        cost = {"memory_mb": memory_mb, "threads": threads}
        import_as_published(edges, settings, directed=directed, seed=seed, **cost, output=output)
    else:
        import_edges(edges, settings, directed=directed, seed=seed, output=output)


def import_edges(edges: Sequence[Path], settings: EdgeSettings, *, directed: bool, seed: int, output: Path) -> None:
    """Make the folder `output`. The same edges and seed give the same bytes, in whatever buckets the edges come.

    Raises `InputError` if there is nothing to train on or to hold out, for weights that are not positive, and for
    more papers than PyTorch-BigGraph can number or fewer than partitions.
    """
    papers = distinct_papers(edges)
    _check_papers(edges[0].parent, len(papers), settings.partitions)
    unit = unit_of(edges, settings.weight_unit, settings.max_repetitions) if settings.weights else 1.0
    rows = generator(seed, "biggraph", "rows").permutation(len(papers)).astype(np.int32)
    starts = partition_starts(len(papers), settings.partitions)
    with atomic_path(output) as folder, ExitStack() as opened:
        piles = _piles(edges, settings, folder, opened)
        counts, mean = dict.fromkeys(piles, 0), Mean()
        with progress_bar(of="import", unit="edges", total=count_rows(edges)) as bar:
            for block in _blocks(edges, settings):
                divided = divide(*block, settings, directed=directed, unit=unit, seed=seed)
                for side, chosen in zip(piles, divided, strict=True):
                    counts[side] += len(chosen)
                    keys = priorities(seed, "order of edges", chosen.source, chosen.target, chosen.copy)
                    lhs, rhs = (rows[rank(papers, end)] for end in (chosen.source, chosen.target))
                    piles[side].add(keys, lhs, rhs, chosen.weight)
                if divided[0].weight is not None:
                    mean.add(divided[0].weight)
                bar.update(len(block[0]))
        check_sides(edges[0].parent, settings.holdout, counts[TRAINING], counts[HOLDOUT])
        for side, shuffled in piles.items():
            blocks = relative(shuffled.in_order(), mean, settings.max_weight)
            write_edges(folder, side, starts, blocks, weighted=settings.weighted)
        shutil.rmtree(folder / "piles")
        by_row = np.empty_like(papers)
        by_row[rows] = papers
        write_papers(folder, by_row, starts)
    if settings.weighted:
        report(f"the mean weight of the edges to train on is {float(mean):g}")
    report(f"{len(papers):,} papers, {counts[TRAINING]:,} edges to train on, {counts[HOLDOUT]:,} held out")


def distinct_papers(edges: Sequence[Path]) -> Papers:
    """The papers that have an edge, rising."""
    found = np.empty(0, dtype=np.int64)
    for source, target, _ in blocks_of_edges(edges):
        new = _distinct(np.sort(np.concatenate([source, target])))
        # A stable sort takes two sorted runs for what they are, and merges them.
        found = _distinct(np.sort(np.concatenate([found, new]), kind="stable"))
    return found


def rank(papers: Papers, ids: Papers) -> Rows:
    """Where each id stands among the papers: looked up in rising order, which is many times faster than in any."""
    order = np.argsort(ids)
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[order] = np.searchsorted(papers, ids[order])
    return ranks


class Piles:
    """Edges on their way into order."""

    def __init__(self, folder: Path, opened: ExitStack, *, expected: int, weighted: bool) -> None:
        """Make piles in a folder for about so many edges; `opened` closes their files."""
        self.edge = WEIGHTED_EDGE if weighted else EDGE
        folder.mkdir(parents=True)
        self.bits = max(1, min(MOST_PILES.bit_length() - 1, (expected // EDGES_IN_PILE).bit_length()))
        self.paths = [folder / str(pile) for pile in range(2**self.bits)]
        self.files = [opened.enter_context(path.open("wb")) for path in self.paths]

    def add(
        self, keys: NDArray[np.uint64], lhs: NDArray[np.int32], rhs: NDArray[np.int32], weight: Weights | None
    ) -> None:
        """Add edges with their keys, and with their weights where the piles keep them."""
        edges = np.empty(len(keys), dtype=self.edge)
        edges["key"], edges["lhs"], edges["rhs"] = keys, lhs, rhs
        if weight is not None:
            edges["weight"] = weight
        pile = (keys >> np.uint64(64 - self.bits)).astype(np.uint16)
        ends = np.cumsum(np.bincount(pile, minlength=len(self.files)))
        dealt = np.split(edges[np.argsort(pile, kind="stable")], ends[:-1])
        for file, part in zip(self.files, dealt, strict=True):
            part.tofile(file)

    def in_order(self) -> Iterator[ImportedBlock]:
        """All edges in the order of their keys, in blocks; each pile is removed once it is read."""
        for path, file in zip(self.paths, self.files, strict=True):
            file.close()
            edges = np.fromfile(path, dtype=self.edge)
            path.unlink()
            order = np.argsort(np.ascontiguousarray(edges["key"]))
            weight = edges["weight"][order] if self.edge is WEIGHTED_EDGE else None
            yield edges["lhs"][order], edges["rhs"][order], weight


def _distinct(rising: Papers) -> Papers:
    return rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising


def _check_papers(graph: Path, papers: int, partitions: int) -> None:
    if papers == 0:
        check_sides(graph, 0, 0, 0)
    if papers > MOST_PAPERS:
        raise InputError(
            f"{graph}: has {papers:,} papers with an edge, but no more than {MOST_PAPERS:,} can be numbered; "
            "raise the graph's min_count."
        )
    if papers < partitions:
        raise InputError(f"{graph}: has {papers} papers with an edge, fewer than partitions ({partitions}).")


def _blocks(edges: Sequence[Path], settings: EdgeSettings) -> Iterator[EdgeBlock]:
    """The edges in blocks, so small that a block is not too large once its edges are repeated."""
    rows = BLOCK_ROWS // (settings.max_repetitions if settings.weights else 1)
    if settings.weighted:
        return with_positive_weights(edges, key="weighted", rows=rows)
    return blocks_of_edges(edges, rows)


def _piles(edges: Sequence[Path], settings: EdgeSettings, folder: Path, opened: ExitStack) -> dict[str, Piles]:
    most = 2 * count_rows(edges) * (settings.max_repetitions if settings.weights else 1)
    return {
        side: Piles(folder / "piles" / side, opened, expected=int(most * share), weighted=settings.weighted)
        for side, share in SHARE_IN_PILES.items()
    }
