"""Turn shards into Parquet in one stream, straight from the file: unpacked, read, cut by bucket, written.

Copies of a record stay, because only `merge` sees them all. Every line of a shard is accounted for in the table
`ingest_report`.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import typer

from cocite.core.errors import InputError
from cocite.core.options import Buckets, MemoryMb, Output, Threads
from cocite.core.progress import progress
from cocite.core.tables import TABLES
from cocite.core.tables.declarations.corpus import AUTHORS
from cocite.core.tables.files import table_writer, write_table
from cocite.corpus.ingest.accounting import BLANK, Tally, tallies_as_table
from cocite.corpus.ingest.citations import GatheredContexts, gather_contexts, read_citations
from cocite.corpus.ingest.records import ABSTRACTS, PAPERS, PAPERS_WITH_AUTHORS, read_documents
from cocite.corpus.ingest.unpacking import unpack
from cocite.corpus.release.manifest import DatasetName, ManifestFile, Part, Parts, Shard, read_manifest, shards_of_part

Report = Annotated[Path, typer.Option(help="Table ingest_report of these files.")]
Authors = Annotated[bool, typer.Option("--authors", help="Keep the names of papers' authors.")]
BLOCKS_AHEAD = {"papers": 8, "abstracts": 8, "citations": 128}
"""Enough for citations to be unpacked while rows are cut and written; for the others, unpacking is the faster."""


@dataclass(frozen=True, kw_only=True)
class IngestSettings:
    """How shards of a dataset are ingested: into buckets by id, with or without the ids of citations."""

    dataset: str
    buckets: int
    keep_ids: bool
    memory_mb: int
    threads: int
    authors: bool = False


Read = Callable[[IngestSettings, Any, Path, Tally, Path], Iterator[pa.RecordBatch]]
"""A reader of one shard, given its entry and path: its rows, counted in the tally."""


def ingest(
    dataset: DatasetName,
    *,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder of the shards.")],
    part: Part,
    parts: Parts,
    buckets: Buckets,
    ids: Annotated[
        Literal["keep", "drop"], typer.Option(help="Whether to keep the ids of citations; updates need them.")
    ],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    report: Report,
    contexts: Annotated[
        Path | None, typer.Option(help="Table ingested_contexts, written with citations; without it, none is read.")
    ] = None,
    authors: Authors = False,
) -> None:
    """Convert the shards of one part of a dataset, or what diffs change in it, to Parquet, sorted by bucket."""
    listed = read_manifest(manifest)
    chosen = shards_of_part(listed, dataset, part=part, parts=parts)
    cost = {"memory_mb": memory_mb, "threads": threads}
    settings = IngestSettings(dataset=dataset, buckets=buckets, keep_ids=ids == "keep", authors=authors, **cost)
    if listed.since:
        from cocite.corpus.ingest.changes import read_diff  # which imports this module

        write_ingested(f"changed_{dataset}", read_diff, settings, shards, chosen, output=output, report=report)
    else:
        ingest_shards(settings, shards, chosen, output=output, report=report, contexts=contexts)


def ingest_shards(
    settings: IngestSettings,
    folder: Path,
    shards: list[Shard],
    *,
    output: Path,
    report: Path,
    contexts: Path | None = None,
) -> None:
    """Write the rows of some shards of a dataset, the table `ingest_report`, and to `contexts` those of citations.

    Raises `InputError` for a shard that is missing, of another size than listed, empty, or not a whole gzip file.
    Malformed lines are left to `account`, so that allowing more of them later does not mean reading all shards again.
    """
    with gather_contexts(contexts, settings.buckets) if contexts else nullcontext() as gathered:

        def read(how: IngestSettings, shard: Shard, path: Path, tally: Tally, spill: Path) -> Iterator[pa.RecordBatch]:
            yield from read_shard(how, path, tally, spill, gathered)
            check_filled(path, tally)

        write_ingested(f"ingested_{settings.dataset}", read, settings, folder, shards, output=output, report=report)


def write_ingested(
    table: str, read: Read, settings: IngestSettings, folder: Path, shards: list[Shard], *, output: Path, report: Path
) -> None:
    """Write the rows that `read` gives of each shard, and the table `ingest_report` about them."""
    paths = [find_shard(folder, shard) for shard in shards]
    tallies = [Tally(dataset=settings.dataset, shard=shard.name) for shard in shards]
    named = zip(shards, progress(paths, of=f"ingest {settings.dataset}", unit="shards"), tallies, strict=True)
    # Each job writes the requested optional columns, even without any row: all files are read together.
    names = [AUTHORS] if settings.authors and settings.dataset == "papers" else []
    optional = pa.schema([(name, TABLES[table].columns[name].type) for name in names])
    with table_writer(output, table, optional) as write:
        for shard, path, tally in named:
            for batch in read(settings, shard, path, tally, output.parent):
                write(batch)
    write_table(report, "ingest_report", tallies_as_table(tallies))


def find_shard(folder: Path, shard: Shard) -> Path:
    """The path of a shard, which is there and as long as it was listed. Raises `InputError` otherwise."""
    path = folder / shard.name
    if not path.is_file():
        raise InputError(f"{path} does not exist, but the manifest lists it; download it, or list the release again.")
    size = path.stat().st_size
    if size != shard.bytes and not shard.estimated:
        remedy = "delete the manifest and run again."
        raise InputError(f"{path} has {size} bytes, but {shard.bytes} in the manifest; {remedy}")
    if size == 0:
        raise InputError(f"{path} is empty; a shard has at least one record.")
    return path


def check_filled(path: Path, tally: Tally) -> None:
    """Raise `InputError` for a file of blank lines only: it may have been cut off."""
    if tally.lines == tally.outcomes[BLANK]:
        raise InputError(f"{path} is empty; a shard has at least one record.")


def read_shard(
    settings: IngestSettings, path: Path, tally: Tally, spill: Path, contexts: GatheredContexts | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a shard, a batch a bucket, some at a time; every line is counted. `contexts` gathers contexts."""
    blocks = unpack(path, blocks_ahead=BLOCKS_AHEAD[settings.dataset] if settings.threads > 1 else 0)
    if settings.dataset == "citations":
        buckets, keep_ids = settings.buckets, settings.keep_ids
        yield from read_citations(blocks, tally, buckets=buckets, keep_ids=keep_ids, contexts=contexts)
    else:
        records = ABSTRACTS if settings.dataset == "abstracts" else PAPERS_WITH_AUTHORS if settings.authors else PAPERS
        cost = {"buckets": settings.buckets, "memory_mb": settings.memory_mb, "threads": settings.threads}
        yield from read_documents(blocks, tally, records, **cost, spill=spill)
