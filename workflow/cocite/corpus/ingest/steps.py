"""The steps that read shards. They import NumPy themselves, once BLAS is kept from starting threads.

No matrix is multiplied there, and the threads of BLAS would wait in a busy loop.
"""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.config.release_folder import WORKS
from cocite.config.settings import GivenAsJson
from cocite.config.works import WorkFilters
from cocite.core.options import Buckets, MemoryMb, Output, Threads
from cocite.corpus.options import (
    Dataset,
    IngestedAbstracts,
    IngestedCitations,
    IngestedPapers,
    ManifestFile,
    Part,
    Parts,
    Report,
)
from cocite.corpus.release.manifest import read_manifest, shards_of_part

Authors = Annotated[bool, typer.Option("--authors", help="Keep the names of papers' authors.")]


def ingest(
    dataset: Dataset,
    *,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder that holds the shards.")],
    part: Part,
    parts: Parts,
    buckets: Buckets,
    ids: Annotated[
        Literal["keep", "drop"], typer.Option(help="What becomes of the ids of citations; updates need them.")
    ],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    report: Report,
    contexts: Annotated[
        Path | None, typer.Option(help="Table ingested_contexts to write beside citations; without it, none is read.")
    ] = None,
    authors: Authors = False,
) -> None:
    """Convert the shards of one part of a dataset, or what diffs change in it, to Parquet, sorted by bucket."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from cocite.corpus.ingest.shards import IngestSettings, ingest_shards

    listed = read_manifest(manifest)
    chosen = shards_of_part(listed, dataset, part=part, parts=parts)
    cost = {"memory_mb": memory_mb, "threads": threads}
    settings = IngestSettings(dataset=dataset, buckets=buckets, keep_ids=ids == "keep", authors=authors, **cost)
    if listed.since:
        from cocite.corpus.ingest.changes import ingest_changes

        ingest_changes(settings, shards, chosen, output=output, report=report)
    else:
        ingest_shards(settings, shards, chosen, output=output, report=report, contexts=contexts)


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
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from cocite.corpus.works.shards import WorksSettings, ingest_files
    from cocite.corpus.works.tables import Outputs

    cost = {"memory_mb": memory_mb, "threads": threads}
    how = WorksSettings(filters=settings, buckets=buckets, authors=authors, mag=mag, **cost)
    chosen = shards_of_part(read_manifest(manifest), WORKS, part=part, parts=parts)
    outputs = Outputs(papers=papers, abstracts=abstracts, citations=citations)
    ingest_files(how, shards, chosen, outputs, report=report)
