"""Turn files of works into the ingested tables of papers, abstracts and citations, in one stream.

A work is read once, and its rows leave by bucket in the three tables. Rows name their file, because a work that stands
in two of them counts as the later one has it; so a work that is left out leaves a row with its id, which says that
earlier copies no longer count either (`cocite.corpus.ingest.merge`).
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from cocite.config.release_folder import DATASETS, WORKS
from cocite.config.settings import GivenAsJson
from cocite.config.source import WorkFilters
from cocite.core.options import Buckets, MemoryMb, Threads
from cocite.core.progress import progress
from cocite.core.tables.files import table_writer, write_table
from cocite.corpus.ingest.accounting import Tally, tallies_as_table
from cocite.corpus.ingest.release_shards import check_filled, find_shard
from cocite.corpus.ingest.unpacking import gather, unpack
from cocite.corpus.options import (
    Authors,
    IngestedAbstracts,
    IngestedCitations,
    IngestedPapers,
    ManifestFile,
    Part,
    Parts,
    Report,
)
from cocite.corpus.release.manifest import Shard, read_manifest, shards_of_part
from cocite.corpus.works.work_columns import Read, all_works
from cocite.corpus.works.work_tables import DISTINCT, Columns, is_taken, rows_of, schemas, tables_of

PARQUET = ".parquet"
BYTES_IN_BLOCK = 1 << 24
"""Of lines that are read at once: as many as make it cheap to call what reads them, column by column."""
BLOCKS_AHEAD = 4
"""Blocks of lines that are unpacked while others are read and written."""
BATCHES_AHEAD = 1
COMPRESSION = "lz4"
"""Of rows that are written once and read once: zstd takes two to three times as long for many small row groups."""
BYTES_TO_SYNC = 1 << 25
"""Of rows of a table after which the system begins to write to the disk; what is left until the end is waited for."""
SHARE_IN_MEMORY = 0.12
"""Share of the memory that rows fill before they are cut by bucket; there are twice as many while others are written,
and sorting takes as much again."""


@dataclass(frozen=True, kw_only=True)
class WorksSettings:
    """How files of works are ingested."""

    filters: WorkFilters
    buckets: int
    """Buckets that the rows are cut into, by id modulo this number."""
    memory_mb: int
    threads: int
    authors: bool = False
    mag: bool = False
    """Keep the ids in the Microsoft Academic Graph."""


def ingest_works(
    settings: GivenAsJson[WorkFilters],
    *,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder that holds the files of works.")],
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
    with _writing(settings, outputs) as write:
        for path, tally in zip(progress(paths, of="ingest works", unit="files"), tallies, strict=True):
            for rows in _gather(settings, path, tally):
                write(rows, tally)
    write_table(report, "ingest_report", tallies_as_table(tallies))


def _read(settings: WorksSettings, path: Path) -> Iterator[Read]:
    """The works of a file. Each reader needs a library that takes long to import."""
    ahead = settings.threads > 1
    if path.name.endswith(PARQUET):
        from cocite.corpus.works.parquet import read_rows

        pa.set_cpu_count(settings.threads)
        keep = {"authors": settings.authors, "mag": settings.mag}
        return read_rows(path, settings.filters, **keep, batches_ahead=BATCHES_AHEAD if ahead else 0)
    from cocite.corpus.works.json_lines import read_blocks

    blocks = unpack(path, blocks_ahead=BLOCKS_AHEAD if ahead else 0, bytes_in_block=BYTES_IN_BLOCK)
    return read_blocks(blocks, authors=settings.authors, mag=settings.mag)


def _gather(settings: WorksSettings, path: Path, tally: Tally) -> Iterator[Columns]:
    """The rows of a file, as much at a time as the memory takes. Raises `InputError` where the file has no record."""
    works = all_works(_read(settings, path), tally)
    batches = (rows_of(batch, is_taken(batch, settings.filters, tally)) for batch in works)
    for gathered in gather(batches, SHARE_IN_MEMORY * settings.memory_mb * 1e6):
        rows = pa.Table.from_batches(gathered)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        gathered.clear()  # who takes the columns frees them one by one
        del rows
        yield columns
        del columns
    check_filled(path, tally)


@contextmanager
def _writing(settings: WorksSettings, outputs: dict[str, Path]) -> Iterator[Callable[[Columns, Tally], None]]:
    """What writes rows to the three tables, by bucket; in threads, if there is a second processor."""
    with ExitStack() as stack:
        given = schemas(authors=settings.authors, mag=settings.mag)
        writes = {}
        for name in DATASETS:
            how: Any = {"sync_every": BYTES_TO_SYNC, "compression": COMPRESSION, "distinct": DISTINCT[name]}
            writer = table_writer(outputs[name], f"ingested_{name}", given[name], **how)
            writes[name] = stack.enter_context(writer)
        pool = stack.enter_context(ThreadPoolExecutor(1 + len(DATASETS))) if settings.threads > 1 else None
        writing: list[Future[None]] = []

        def write_tables(rows: Columns, tally: Tally) -> None:
            tables = tables_of(rows, settings.buckets, tally)
            if pool is None:
                for name, batch, cuts in tables:
                    writes[name](batch, cuts)
            else:
                for written in [pool.submit(writes[name], batch, cuts) for name, batch, cuts in tables]:
                    written.result()

        def write(rows: Columns, tally: Tally) -> None:
            while writing:
                writing.pop().result()
            if pool is None:
                write_tables(rows, tally)
            else:
                writing.append(pool.submit(write_tables, rows, tally))

        yield write
        while writing:
            writing.pop().result()
