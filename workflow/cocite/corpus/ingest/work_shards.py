"""Turn files of works into the ingested tables of papers, abstracts and citations, in one stream.

A work is read once, and its rows leave by bucket in the three tables. Rows name their file, because a work that is in
two of them counts as the later one has it; so a work that is left out leaves a row with its id, which says that
earlier copies no longer count either (`cocite.corpus.ingest.merge`).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.release_folder import DATASETS, WORKS
from cocite.config.settings import GivenAsJson
from cocite.config.source import WorkFilters
from cocite.core.options import Buckets, MemoryMb, Threads
from cocite.core.progress import ahead, progress
from cocite.core.tables import ID, TABLES, empty_schema
from cocite.core.tables.declarations.corpus import AUTHORS, MAG, SHARD
from cocite.core.tables.files import table_writer, write_table
from cocite.corpus.ingest.accounting import ABSTRACTS_OF_WORKS, CITATIONS_OF_WORKS, KEPT, Tally, tallies_as_table
from cocite.corpus.ingest.citation_scanner import NO_CITED, SELF
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.merge import BUCKET_KEYS
from cocite.corpus.ingest.records import ABSTRACTS, NOT_BLANK, cut_by_bucket
from cocite.corpus.ingest.release_shards import (
    Authors,
    IngestedAbstracts,
    IngestedCitations,
    IngestedPapers,
    Report,
    check_filled,
    find_shard,
)
from cocite.corpus.ingest.unpacking import gather
from cocite.corpus.ingest.works import WorksSettings, read_works
from cocite.corpus.release.manifest import ManifestFile, Part, Parts, Shard, read_manifest, shards_of_part

(EMPTY,) = ABSTRACTS.omissions
DISTINCT = {"papers": ("title", "doi"), "abstracts": ("abstract",), "citations": ()}
"""Columns of each table in which hardly a value comes again."""

COMPRESSION = "lz4"
"""Of rows that are written once and read once: zstd takes two to three times as long for many small row groups."""
BYTES_TO_SYNC = 1 << 25
"""Bytes of rows after which the system starts flushing to the disk, to shorten the wait at the end."""
SHARE_IN_MEMORY = 0.12
"""Share of the memory that rows fill before they are cut by bucket; there are twice as many while others are read,
and sorting takes as much again."""


def ingest_works(
    settings: GivenAsJson[WorkFilters],
    *,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder of the files of works.")],
    part: Part,
    parts: Parts,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    papers: IngestedPapers,
    abstracts: IngestedAbstracts,
    citations: IngestedCitations,
    report: Report,
    authors: Authors = False,
    mag: Annotated[bool, typer.Option("--mag", help="Keep the papers' ids in the Microsoft Academic Graph.")] = False,
) -> None:
    """Convert the files of one part of OpenAlex's works to Parquet: papers, abstracts, citations, sorted by bucket."""
    cost = {"memory_mb": memory_mb, "threads": threads}
    how = WorksSettings(filters=settings, buckets=buckets, authors=authors, mag=mag, **cost)
    chosen = shards_of_part(read_manifest(manifest), WORKS, part=part, parts=parts)
    outputs = {"papers": papers, "abstracts": abstracts, "citations": citations}
    ingest_files(how, shards, chosen, outputs, report=report)


def ingest_files(
    settings: WorksSettings, folder: Path, shards: list[Shard], outputs: dict[str, Path], *, report: Path
) -> None:
    """Write the papers, abstracts and citations of some files of works, and the table `ingest_report` about them.

    Raises `InputError` for a file that is missing, of another size than listed, empty, not whole, or without a column
    that is needed. Malformed records are left to `account`.
    """
    paths = [find_shard(folder, shard) for shard in shards]
    tallies = [Tally(dataset=WORKS, shard=path.name) for path in paths]
    left_out = {name for name, is_kept in ((AUTHORS, settings.authors), (MAG, settings.mag)) if not is_kept}
    with ExitStack() as stack:
        writes = {}
        for name in DATASETS:
            table = f"ingested_{name}"
            schema = pa.schema([field for field in empty_schema(TABLES[table]) if field.name not in left_out])
            how: Any = {"sync_every": BYTES_TO_SYNC, "compression": COMPRESSION, "distinct": DISTINCT[name]}
            writes[name] = stack.enter_context(table_writer(outputs[name], table, schema, **how))
        for path, tally in zip(progress(paths, of="ingest works", unit="files"), tallies, strict=True):
            works = read_works(path, settings, tally, report.parent)
            gathered = gather(works, SHARE_IN_MEMORY * settings.memory_mb * 1e6)
            for batches in ahead(gathered) if settings.threads > 1 else gathered:
                for name, rows in _tables_of(pa.Table.from_batches(batches), tally):
                    shard = pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), pa.array([tally.shard]))
                    named = rows.append_column(SHARD, shard)
                    for batch in cut_by_bucket(BUCKET_KEYS[name], settings.buckets, named):
                        writes[name](batch)
            check_filled(path, tally)
    write_table(report, "ingest_report", tallies_as_table(tallies))


def _tables_of(works: pa.Table, tally: Tally) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each table; abstracts and citations are counted."""
    is_filled = pc.fill_null(pc.match_substring_regex(works["abstract"], NOT_BLANK), False)
    abstracts = works.select(["corpusid", "abstract"]).filter(is_filled)
    given = len(works) - works["abstract"].null_count
    tally.beside[ABSTRACTS_OF_WORKS].update({KEPT: len(abstracts), EMPTY: given - len(abstracts)})
    yield "abstracts", abstracts
    lists = works["references"].combine_chunks()
    citing, cited = works["corpusid"].take(pc.list_parent_indices(lists)), lists.flatten()
    is_own = pc.fill_null(pc.equal(cited, citing), False)
    citations = pa.table({"citing": citing, "cited": cited}).filter(pc.and_(cited.is_valid(), pc.invert(is_own)))
    own = pc.sum(is_own).as_py() or 0
    counts = {KEPT: len(citations), LEFT_OUT[NO_CITED]: cited.null_count, LEFT_OUT[SELF]: own}
    tally.beside[CITATIONS_OF_WORKS].update(counts)
    traits = pa.array(np.zeros(len(citations), dtype=np.uint8))
    yield (
        "citations",
        citations.append_column("citationid", pa.nulls(len(citations), ID)).append_column("traits", traits),
    )
    references = pc.if_else(works["left_out"], None, pc.list_value_length(works["references"]))
    yield "papers", works.drop_columns(["abstract", "references"]).append_column("reference_count", references)
