"""`cocite corpus …`: list, download and ingest a release, choose queries."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.options import Citations, MemoryMb, Omissions, Output, Papers, Seed, Settings, State, Threads

app = typer.Typer(no_args_is_help=True)

Dataset = Annotated[str, typer.Argument(help="papers, abstracts or citations.")]
Origin = Annotated[str, typer.Option(help="Base URL of the Datasets API, or a folder in the layout of a release.")]
ManifestFile = Annotated[Path, typer.Option("--manifest", help="What `cocite corpus list` wrote.")]
Part = Annotated[int, typer.Option(help="Which part of the shards to work on, from 0.")]
Parts = Annotated[int, typer.Option(help="Number of parts; each takes every n-th shard.")]
Bucket = Annotated[int, typer.Option(help="Which bucket to merge, from 0.")]
Folders = Annotated[list[Path], typer.Argument(help="Folders that `cocite corpus ingest` wrote.")]


@app.command("list")
def list_shards(
    origin: Origin,
    release: Annotated[str, typer.Option(help="Id of the release, a date, or latest.")],
    output: Output,
) -> None:
    """List the shards of a release, with their sizes. An API needs the key in S2_API_KEY."""
    from cocite.corpus.listing import list_release
    from cocite.corpus.manifest import write_manifest

    write_manifest(output, list_release(origin, release))


@app.command()
def download(
    dataset: Dataset, origin: Origin, manifest: ManifestFile, part: Part, parts: Parts, state: State, output: Output
) -> None:
    """Download the shards of a part of a dataset; a killed download goes on where it stood."""
    from cocite.corpus.client import DatasetsApi, Storage
    from cocite.corpus.download import download_shards
    from cocite.corpus.manifest import read_manifest, shards_of_part
    from cocite.corpus.remote import RemoteDataset

    listed = read_manifest(manifest)
    shards = shards_of_part(listed, dataset, part=part, parts=parts)
    remote = RemoteDataset(DatasetsApi(origin), Storage(), listed.release, dataset)
    download_shards(remote, shards, state=state, output=output)


@app.command()
def ingest(
    dataset: Dataset,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder that holds the shards.")],
    part: Part,
    parts: Parts,
    buckets: Annotated[int, typer.Option(help="Number of buckets that big tables are sharded into.")],
    malformed: Annotated[float, typer.Option(help="Largest share of unusable lines.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Turn the gzipped shards of a part of a dataset into Parquet, one file a bucket."""
    from cocite.corpus.ingest import IngestSettings
    from cocite.corpus.ingest import ingest as ingest_shards
    from cocite.corpus.manifest import read_manifest, shards_of_part

    settings = IngestSettings(
        dataset=dataset, buckets=buckets, malformed=malformed, memory_mb=memory_mb, threads=threads
    )
    listed = shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts)
    ingest_shards(settings, shards, listed, output=output, omissions=omissions)


@app.command()
def merge_papers(
    papers: Annotated[Path, typer.Option(help="Folder of the ingested papers: a folder a part.")],
    abstracts: Annotated[Path, typer.Option(help="Folder of the ingested abstracts: a folder a part.")],
    parts: Parts,
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Join the papers of a bucket with their abstracts, each paper once."""
    from cocite.corpus.merge import merge

    files = {
        name: [folder / str(part) / f"{bucket}.parquet" for part in range(parts)]
        for name, folder in (("ingested_papers", papers), ("ingested_abstracts", abstracts))
    }
    merge("papers", files, output=output, omissions=omissions, memory_mb=memory_mb, threads=threads)


@app.command()
def merge_citations(
    citations: Folders, bucket: Bucket, memory_mb: MemoryMb, threads: Threads, output: Output, omissions: Omissions
) -> None:
    """Unite the copies of each citation of a bucket."""
    from cocite.corpus.merge import merge

    files = {"ingested_citations": [folder / f"{bucket}.parquet" for folder in citations]}
    merge("citations", files, output=output, omissions=omissions, memory_mb=memory_mb, threads=threads)


@app.command()
def select(
    papers: Papers,
    citations: Citations,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Choose the papers that anchor triplets, and those that are held out of everything."""
    from cocite.corpus.selection import QuerySettings
    from cocite.corpus.selection import select as select_queries
    from cocite.settings import parse_settings

    select_queries(
        papers,
        citations,
        parse_settings(QuerySettings, settings),
        seed,
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )
