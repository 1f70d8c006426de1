"""One interface to every sampler, which is asked for the triplets or examples of some queries at a time.

It takes the tables that a sampler draws from, the queries and the papers with a text, and writes the table `triplets`
or `sampled_examples`, and the omissions. A sampler is given a block of queries and reads its sources from front to
back; what is made of a query depends on the query and the seed alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from cocite.config.entries import as_json
from cocite.config.sampler import Sampler
from cocite.ground.errors import InputError
from cocite.ground.progress import report
from cocite.tables import splits
from cocite.tables.files import write_json, write_omissions, write_table
from cocite.triplets.combining import table_made_of
from cocite.triplets.sampled import WORDS, Block, read_papers

QUERIES_AT_ONCE = 250_000
"""Queries of a block: some hundred bytes of memory each, against one more reading of the sources a block."""


def sample(
    sampler: Sampler,
    sources: Sequence[Path],
    *,
    queries: Path,
    papers: Path,
    seed: int,
    threads: int,
    output: Path,
    omissions: Path,
    written_settings: Path,
) -> None:
    """Write the sampler's table, what was left out and the settings; `papers` is the folder of the table papers.

    Raises `InputError` where no query could be served.
    """
    table = table_made_of(sources) if sampler.parts else sampler.gives
    blocks = _blocks(sources, queries, papers, seed, threads)
    counts: Counter[str] = Counter()
    many, one = WORDS[table]
    written = write_table(
        output, table, _rows(sampler, blocks, counts, f"{output}: no query could be served with {one}")
    )
    report(f"{written:,} {many}; left out: {_in_words(counts)}")
    write_omissions(omissions, counts)
    read = list(dict.fromkeys(str(source.parent if source.stem.isdigit() else source) for source in sources))
    write_json(written_settings, {**as_json(sampler), "sources": read, "seed": seed})


def _blocks(sources: Sequence[Path], queries: Path, papers: Path, seed: int, threads: int) -> Iterator[Block]:
    asked = splits.read_queries(queries)
    listed = read_papers(papers, queries)
    for first in range(0, len(asked), QUERIES_AT_ONCE):
        some = asked.slice(first, QUERIES_AT_ONCE)
        yield Block(
            queries=some["corpusid"].to_numpy(),
            splits=some["split"],
            papers=listed,
            sources=sources,
            seed=seed,
            threads=threads,
            is_first=first == 0,
        )


def _rows(sampler: Sampler, blocks: Iterator[Block], counts: Counter[str], none: str) -> Iterator[pa.RecordBatch]:
    """The rows of the blocks one after the other; counts what was left out. `none` says that there are no rows."""
    written = 0
    for block in blocks:
        sampled = sampler.sample(block)
        counts.update(sampled.omissions)
        written += len(sampled.rows)
        yield from sampled.rows.to_batches()
        del sampled  # or the rows of this block would be held beside those of the next
    if written == 0:
        raise InputError(f"{none} ({_in_words(counts)}).")


def _in_words(counts: Counter[str]) -> str:
    return "; ".join(f"{reason}: {count:,}" for reason, count in counts.items() if count) or "nothing"
