"""Split a graph into edges to train on and edges to measure on, without a leak.

In comes the table `edges`; out go two files of tab-separated lines, source and target, as PyTorch-BigGraph's importer
takes them. An undirected pair is written both ways. What is split are the unordered pairs of papers, and only then is
each side mirrored: were the mirrored edges split one by one, the mirror of nearly every held-out edge would be
trained on, which alone lifts a graph without any structure from an AUC of .5 to one of .97. For the same reason two
papers that cite each other stay on one side.

Whether a pair is held out hangs on a hash of the seed and the pair alone, so all embeddings of a graph are measured on
the same edges. The lines are sorted over all buckets: training goes through the edges in their order, and the number of
buckets must not change what it learns.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from cocite.database import connect
from cocite.errors import InputError
from cocite.files import atomic_path, scan_table
from cocite.progress import report
from cocite.randomness import priorities

BATCH_ROWS = 100_000
LINE = pa.schema([("source", pa.int64()), ("target", pa.int64())])

Papers = NDArray[np.int64]


def split_edges(
    edges: Sequence[Path],
    *,
    directed: bool,
    share: float,
    seed: int,
    memory_mb: int,
    threads: int,
    training: Path,
    holdout: Path,
) -> tuple[int, int]:
    """Write the two files; return their numbers of lines.

    `share` is the expected share of the pairs held out. Raises `InputError` if either file would be empty.
    """
    lines = np.zeros(2, dtype=np.int64)
    with ExitStack() as stack, connect(memory_mb=memory_mb, threads=threads, spill_to=training.parent) as db:
        writers = [stack.enter_context(_tsv_writer(stack, path)) for path in (training, holdout)]
        for source, target in _sorted(edges, db):
            chosen = held_out(source, target, share=share, seed=seed)
            for side, rows in enumerate((~chosen, chosen)):
                ends = (source[rows], target[rows]) if directed else mirrored(source[rows], target[rows])
                writers[side].write_batch(pa.record_batch(list(ends), schema=LINE))
                lines[side] += len(ends[0])
        _check(edges, share, *lines)
    report(f"{lines[0]:,} edges to train on, {lines[1]:,} held out")
    return int(lines[0]), int(lines[1])


def held_out(source: Papers, target: Papers, *, share: float, seed: int) -> NDArray[np.bool_]:
    """Whether each edge is held out; the same for both directions of a pair."""
    hashes = priorities(seed, "holdout", np.minimum(source, target), np.maximum(source, target))
    return hashes < np.uint64(share * 2**64)


def mirrored(source: Papers, target: Papers) -> tuple[Papers, Papers]:
    """Each edge followed by its mirror, so that the order of lines does not depend on the size of a batch."""
    return np.stack([source, target], axis=1).ravel(), np.stack([target, source], axis=1).ravel()


def _tsv_writer(stack: ExitStack, path: Path) -> csv.CSVWriter:
    temporary = stack.enter_context(atomic_path(path))
    return csv.CSVWriter(temporary, LINE, write_options=csv.WriteOptions(include_header=False, delimiter="\t"))


def _sorted(edges: Sequence[Path], db: DuckDBPyConnection) -> Iterator[tuple[Papers, Papers]]:
    """The edges of all buckets in one order, in batches of sources and targets."""
    db.register("edges", scan_table(edges, "edges"))
    rows = db.sql("SELECT source, target FROM edges ORDER BY source, target")
    for batch in rows.to_arrow_reader(BATCH_ROWS):
        yield batch.column("source").to_numpy(), batch.column("target").to_numpy()


def _check(edges: Sequence[Path], share: float, training: int, holdout: int) -> None:
    if training + holdout == 0:
        raise InputError(f"{edges[0].parent}: the graph has no edges; lower its min_count or choose more queries.")
    if 0 in (training, holdout):
        side = "train on" if training == 0 else "hold out"
        raise InputError(
            f"{edges[0].parent}: a graph of {training + holdout} edges leaves none to {side} with a holdout of "
            f"{share}; it takes a larger graph or another share."
        )
