"""The works of OpenAlex: ingest them, or take their rows from an earlier run."""

import os
from pathlib import Path
from typing import Annotated

import typer

from cocite.corpus.commands.options import ManifestFile, Part, Parts
from cocite.ground.options import Buckets, MemoryMb, Settings, Threads

app = typer.Typer()


@app.command()
def ingest_works(
    settings: Settings,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder that holds the files of works.")],
    part: Part,
    parts: Parts,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    papers: Annotated[Path, typer.Option(help="Table ingested_papers to write.")],
    abstracts: Annotated[Path, typer.Option(help="Table ingested_abstracts to write.")],
    citations: Annotated[Path, typer.Option(help="Table ingested_citations to write.")],
    report: Annotated[Path, typer.Option(help="Table ingest_report of these files.")],
    authors: Annotated[bool, typer.Option("--authors", help="Keep the names of papers' authors.")] = False,
    mag: Annotated[bool, typer.Option("--mag", help="Keep the papers' ids in the Microsoft Academic Graph.")] = False,
) -> None:
    """Convert the files of one part of OpenAlex's works to Parquet: papers, abstracts, citations, sorted by bucket."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from cocite.config.release_folder import WORKS
    from cocite.config.settings import parse_settings
    from cocite.config.works import WorkFilters
    from cocite.corpus.release.manifest import read_manifest, shards_of_part
    from cocite.corpus.works.shards import WorksSettings
    from cocite.corpus.works.shards import ingest_works as ingest
    from cocite.corpus.works.tables import Outputs

    how = WorksSettings(
        filters=parse_settings(WorkFilters, settings),
        buckets=buckets,
        memory_mb=memory_mb,
        threads=threads,
        authors=authors,
        mag=mag,
    )
    chosen = shards_of_part(read_manifest(manifest), WORKS, part=part, parts=parts)
    ingest(how, shards, chosen, Outputs(papers=papers, abstracts=abstracts, citations=citations), report=report)


@app.command()
def reuse_works(
    manifest: ManifestFile,
    base: Annotated[Path, typer.Option(help="Folder corpus of the results of an earlier copy.")],
    part: Part,
    parts: Parts,
    papers: Annotated[Path, typer.Option(help="Table ingested_papers to write.")],
    abstracts: Annotated[Path, typer.Option(help="Table ingested_abstracts to write.")],
    citations: Annotated[Path, typer.Option(help="Table ingested_citations to write.")],
    report: Annotated[Path, typer.Option(help="Table ingest_report of these files.")],
) -> None:
    """Take the rows of works from an earlier run, of files that a newer copy of OpenAlex still has."""
    from cocite.corpus.ingest.reuse import reuse_works as reuse
    from cocite.corpus.release.manifest import read_manifest, shards_of_part

    shards = shards_of_part(read_manifest(manifest), "works", part=part, parts=parts, in_base=True)
    outputs = {"papers": papers, "abstracts": abstracts, "citations": citations}
    reuse(base, [shard.name for shard in shards], outputs, report=report)
