"""One interface to every sampler, which makes the triplets or examples of some queries at a time.

A sampler may supply queries and documents that are not papers: their texts are written with its examples, and a set
that combines such sets has these queries in addition to those of the corpus.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.configuration import TripletSet
from cocite.config.entries import as_json
from cocite.config.sampler import QUERIES_AT_ONCE, Sampler
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.id_sets import members_at, size
from cocite.core.options import Omissions, Output, Papers, Queries, Seed, Threads, WrittenSettings
from cocite.core.progress import report
from cocite.core.tables.files import table_in, write_omissions, write_table
from cocite.core.tables.papers import read_kept_out, read_queries, read_twins
from cocite.core.written_ids import distinct, look_up
from cocite.triplets.sampled import TRAINING, VALIDATION, WORDS, Block, kept_out_titles, read_papers, table_made_of
from cocite.triplets.texts import USER_SUPPLIED_QUERIES, user_supplied_queries, write_texts


def sample(
    settings: GivenAsJson[TripletSet],
    sources: Annotated[Sequence[Path], typer.Argument(help="All files that the sampler draws from.")] = (),
    *,
    queries: Queries,
    papers: Papers,
    seed: Seed,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    written_settings: WrittenSettings,
    texts: Annotated[
        Path | None, typer.Option(help="Table sampled_texts to write, for a sampler that supplies texts.")
    ] = None,
) -> None:
    """Sample triplets, or examples; the settings are an entry of the configuration, which names the sampler.

    Raises `InputError` if no query gets a row.
    """
    table = table_made_of(sources) if settings.parts and settings.gives == "triplets" else settings.gives
    counts, brought, is_served = Counter[str](), list[Iterable[pa.RecordBatch]](), False
    many, one = WORDS[table]

    def in_words() -> str:
        return "; ".join(f"{reason}: {count:,}" for reason, count in counts.items() if count) or "nothing"

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal is_served
        for block in _blocks(settings, sources, queries, papers, seed, threads, output.parent):
            sampled = settings.sample(block)
            counts.update(sampled.omissions)
            if sampled.texts is not None:
                brought.append(sampled.texts.to_batches() if isinstance(sampled.texts, pa.Table) else sampled.texts)
            is_served |= len(sampled.rows) > 0
            yield from sampled.rows.to_batches()
            del sampled  # free the rows of this block before those of the next are made
        if not is_served:
            raise InputError(f"{output}: no query could be served with {one} ({in_words()}).")

    written = write_table(output, table, rows())
    if texts is not None:
        write_texts(texts, chain.from_iterable(brought))
    report(f"{written:,} {many}; left out: {in_words()}")
    write_omissions(omissions, counts)
    read = list(dict.fromkeys(str(source.parent if source.stem.isdigit() else source) for source in sources))
    write_json(written_settings, {**as_json(settings), "sources": read, "seed": seed})


def _blocks(
    sampler: Sampler, sources: Sequence[Path], queries: Path, papers: Path, seed: int, threads: int, spill_to: Path
) -> Iterator[Block]:
    asked, listed = read_queries(queries), read_papers(papers, queries)
    validation = distinct(asked["corpusid"].filter(pc.equal(asked["split"], VALIDATION)).to_numpy())
    if sampler.asks_all_papers:  # their splits are made for each block
        asked = pa.table({"corpusid": members_at(listed, np.arange(size(listed)))})
    if sampler.parts:
        sets = [path for path in sources if table_in(path) in WORDS]
        asked = pa.concat_tables([user_supplied_queries(sets), asked.cast(USER_SUPPLIED_QUERIES)])
    every = Block(
        queries=asked["corpusid"].to_numpy(),
        splits=pa.chunked_array([], pa.string()),
        papers=listed,
        validation=validation,
        kept_out=distinct(read_kept_out(queries)["corpusid"].to_numpy()),
        twins=read_twins(queries),
        sources=sources,
        seed=seed,
        threads=threads,
        titles_kept_out=partial(kept_out_titles, papers, queries),
        spill_to=spill_to,
    )
    number, at_once = (1, max(1, len(asked))) if sampler.brings_texts else (len(asked), QUERIES_AT_ONCE)
    if sampler.asks_all_papers:
        at_once = int(at_once / (getattr(sampler, "share", None) or 1))  # their links fill the memory
    for first in range(0, number, at_once):
        some = slice(first, first + at_once)
        ids = every.queries[some]
        if sampler.asks_all_papers:
            splits = pa.chunked_array([np.where(look_up(validation, ids)[1], VALIDATION, TRAINING)], pa.string())
        else:
            splits = asked["split"][some]
        yield replace(every, queries=ids, splits=splits, is_first=first == 0)
