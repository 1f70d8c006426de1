"""From the shards of a release to papers, citations and contexts: ingest, account, update, merge."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.corpus.commands.options import Dataset, ManifestFile, Part, Parts
from cocite.ground.options import Buckets, MemoryMb, Omissions, Output, Settings, Threads

app = typer.Typer()


@app.command()
def ingest(
    dataset: Dataset,
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
    report: Annotated[Path, typer.Option(help="Table ingest_report of these shards.")],
    contexts: Annotated[
        Path | None, typer.Option(help="Table ingested_contexts to write beside citations; without it, none is read.")
    ] = None,
    authors: Annotated[bool, typer.Option("--authors", help="Keep the names of papers' authors.")] = False,
) -> None:
    """Convert the shards of one part of a dataset, or what diffs change in it, to Parquet, sorted by bucket."""
    # No matrix is multiplied here, but BLAS would still start its threads, which wait in a busy loop.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from cocite.corpus.ingest.shards import IngestSettings
    from cocite.corpus.release.manifest import read_manifest, shards_of_part

    settings = IngestSettings(
        dataset=dataset,
        buckets=buckets,
        keep_ids=ids == "keep",
        memory_mb=memory_mb,
        threads=threads,
        authors=authors,
    )
    listed = read_manifest(manifest)
    chosen = shards_of_part(listed, dataset, part=part, parts=parts)
    if listed.since:
        from cocite.corpus.ingest.changes import ingest_changes

        ingest_changes(settings, shards, chosen, output=output, report=report)
    else:
        from cocite.corpus.ingest.shards import ingest as ingest_shards

        ingest_shards(settings, shards, chosen, output=output, report=report, contexts=contexts)


@app.command()
def account(
    reports: Annotated[Path, typer.Argument(help="Folder of the table ingest_report of a dataset.")],
    malformed: Annotated[float, typer.Option(help="Largest share of a dataset's lines that may be malformed.")],
    omissions: Omissions,
) -> None:
    """Account for every line of a dataset; stop where too many are malformed."""
    from cocite.corpus.ingest.accounting import account as account_for

    account_for(reports, malformed=malformed, omissions=omissions)


@app.command()
def update(
    dataset: Dataset,
    manifest: ManifestFile,
    base: Annotated[Path, typer.Option(help="Folder corpus of the results of an earlier release.")],
    changes: Annotated[Path, typer.Option(help="Folder of what the diffs since then change.")],
    bucket: Annotated[int, typer.Option(help="Which bucket to update, from 0.")],
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Move a bucket of ingested rows to a newer release: drop what diffs replaced or deleted, add what they brought."""
    from cocite.corpus.ingest.changes import check_base
    from cocite.corpus.ingest.changes import update as update_rows
    from cocite.corpus.release.manifest import read_manifest

    check_base(base, read_manifest(manifest))
    update_rows(
        dataset,
        base / "ingested" / dataset,
        changes,
        bucket=bucket,
        buckets=buckets,
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )


@app.command()
def merge(
    table: Annotated[Literal["papers", "citations"], typer.Argument(help="The table to write.")],
    ingested: Annotated[Path, typer.Option(help="Folder of what was ingested, with a folder for each dataset.")],
    bucket: Annotated[int, typer.Option(help="Which bucket to merge, from 0.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    titles_alone: Annotated[bool, typer.Option(help="A paper without an abstract has a text too.")] = False,
) -> None:
    """Write a bucket of papers, each once and with its abstract, or of citations, each once."""
    from cocite.corpus.ingest.merge import merge as merge_rows
    from cocite.corpus.ingest.newest import names_files

    datasets = ["papers", "abstracts"] if table == "papers" else ["citations"]
    if table == "citations" and names_files(ingested / "citations", "ingested_citations"):
        datasets.append("papers")
    sources = {f"ingested_{dataset}": ingested / dataset for dataset in datasets}
    merge_rows(
        table,
        sources,
        bucket,
        titles_alone=titles_alone,
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )


@app.command()
def merge_contexts(
    ingested: Annotated[Path, typer.Option(help="Folder of the table ingested_contexts.")],
    settings: Settings,
    bucket: Annotated[int, typer.Option(help="Which bucket to merge, from 0.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Write a bucket of contexts: the sentences of each citing paper, cleaned, each once, with what they cite."""
    from cocite.config.contexts import ContextSettings
    from cocite.config.settings import parse_settings
    from cocite.corpus.ingest.sentences import merge_contexts as merge_sentences

    merge_sentences(
        ingested,
        parse_settings(ContextSettings, settings),
        bucket,
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )
