"""The papers that triplets may hold: those with a title and an abstract that are not kept out.

In come the buckets of the corpus and the table `queries`, out goes the table `papers_with_text`. Every sampler asks for
them; so the abstracts, which are most of a corpus, are read once and not by each set of triplets.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cocite import splits
from cocite.errors import InputError
from cocite.files import open_table, write_omissions, write_table
from cocite.progress import progress
from cocite.triplets.ids import Ids, IdSet, difference, id_set, members_of, size

LARGEST_ID = 2**31 - 1
"""A bitmap up to here takes 270 MB; Semantic Scholar's ids are below 300 million."""
PAPERS_AT_ONCE = 2_000
"""Papers that each thread reads at once: their texts stay in the cache, which makes reading twice as fast."""


def list_papers(papers: Sequence[Path], queries: Path, *, threads: int, output: Path, omissions: Path) -> None:
    """Write the table `papers_with_text`, and how many papers are not in it and why."""
    counts = {"papers without title or abstract": 0}
    largest = max(_largest(path, "papers") for path in papers)
    kept_out = splits.read_kept_out(queries)["corpusid"].to_numpy()
    # Lists of papers to exclude may name any number; beyond the largest id there is no paper, and no need of a bit.
    kept_out = id_set([kept_out[kept_out <= largest]], largest)
    with_text = id_set(_read(papers, counts, threads), largest)
    listed = difference(with_text, kept_out)
    counts["papers that are kept out"] = size(with_text) - size(listed)
    write_table(output, "papers_with_text", (pa.record_batch({"corpusid": ids}) for ids in members_of(listed)))
    write_omissions(omissions, counts)


def read_papers(path: Path) -> IdSet:
    """The papers that triplets may hold. Raises `InputError` where there is none."""
    batches = open_table(path, "papers_with_text").iter_batches()
    listed = id_set((batch.column(0).to_numpy() for batch in batches), _largest(path, "papers_with_text"))
    if size(listed) == 0:
        raise InputError(f"{path}: no paper has a title and an abstract; triplets need some that do.")
    return listed


def _read(papers: Sequence[Path], counts: dict[str, int], threads: int) -> Iterator[Ids]:
    """The papers with a text, some at a time; counts those without."""
    pieces = [(path, group) for path in papers for group in range(pq.read_metadata(path).num_row_groups)]
    with ThreadPoolExecutor(threads) as workers:
        read = workers.map(_read_piece, pieces)
        for ids, without in progress(read, of="Papers with a text", unit="row group", total=len(pieces)):
            counts["papers without title or abstract"] += without
            yield ids


def _read_piece(piece: tuple[Path, int]) -> tuple[Ids, int]:
    """The papers of a row group with title and abstract, and how many are without."""
    path, group = piece
    found, rows = [], 0
    with pq.ParquetFile(path, pre_buffer=False) as file:
        columns = ["corpusid", "title", "abstract"]
        for batch in file.iter_batches(PAPERS_AT_ONCE, [group], columns=columns, use_threads=False):
            has_text = pc.and_(batch["title"].is_valid(), batch["abstract"].is_valid())
            found.append(batch["corpusid"].filter(has_text).to_numpy())
            rows += len(batch)
    ids = np.concatenate([np.empty(0, dtype=np.int64), *found])
    return ids, rows - len(ids)


def _largest(path: Path, table: str) -> int:
    """The largest id of a table, 0 where it is empty, from what its file says of itself."""
    file = open_table(path, table)
    column = file.schema_arrow.names.index("corpusid")
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    largest = max((group.column(column).statistics.max for group in groups if group.num_rows), default=0)
    if largest > LARGEST_ID:
        raise InputError(f"{path}: holds the corpus id {largest}; ids must not exceed {LARGEST_ID:,} here.")
    return int(largest)
