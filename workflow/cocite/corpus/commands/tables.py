"""Tables as people have them: number ids that are texts, and ingest."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.corpus.commands.options import Dataset, ManifestFile, Part, Parts
from cocite.ground.options import Buckets, MemoryMb, Omissions, Output, Settings, Threads

app = typer.Typer()


@app.command()
def list_names(
    dataset: Dataset,
    manifest: ManifestFile,
    settings: Settings,
    part: Part,
    parts: Parts,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """List the distinct ids in one part of a table whose ids are texts."""
    from cocite.config.table_files import table_settings
    from cocite.corpus.ingest.tables.names import list_names as list_ids
    from cocite.corpus.release.manifest import read_manifest, shards_of_part

    chosen = shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts)
    list_ids(table_settings(dataset, settings), chosen, output=output, memory_mb=memory_mb, threads=threads)


@app.command()
def number_names(
    listed: Annotated[list[Path], typer.Argument(help="Files of the table listed_names, or their folders.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Give each id that is a text its number: its rank among all that were listed."""
    from cocite.corpus.ingest.tables.names import number_names as number

    number(listed, output=output, memory_mb=memory_mb, threads=threads)


@app.command()
def ingest_tables(
    dataset: Dataset,
    manifest: ManifestFile,
    settings: Settings,
    part: Part,
    parts: Parts,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    report: Annotated[Path, typer.Option(help="Table ingest_report of these files.")],
    listed: Annotated[str, typer.Option(help="Table listed_names of these files, where ids are texts.")] = "",
    names: Annotated[str, typer.Option(help="Table names, where ids are texts.")] = "",
) -> None:
    """Convert the files of one part of a table, whose columns the settings name, to Parquet, sorted by bucket."""
    from cocite.config.table_files import table_settings
    from cocite.corpus.ingest.shards import IngestSettings
    from cocite.corpus.ingest.tables.rows import ingest_tables as ingest_rows
    from cocite.corpus.release.manifest import read_manifest, shards_of_part

    ingest_rows(
        IngestSettings(dataset=dataset, buckets=buckets, keep_ids=False, memory_mb=memory_mb, threads=threads),
        table_settings(dataset, settings),
        shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts),
        numbering=(Path(listed), Path(names)) if listed and names else None,
        output=output,
        report=report,
    )


@app.command()
def count_cited(
    manifest: ManifestFile,
    papers: Annotated[Path, typer.Option(help="Folder of the table ingested_papers.")],
    citations: Annotated[Path, typer.Option(help="Folder of the table ingested_citations, a file for each of theirs.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    names: Annotated[str, typer.Option(help="Table names, where ids are texts.")] = "",
) -> None:
    """Count the cited ids in each file of citations that are papers."""
    from cocite.corpus.ingest.tables.outside import count_cited as count
    from cocite.corpus.release.manifest import read_manifest

    shards = read_manifest(manifest).datasets["citations"].shards
    cost = {"memory_mb": memory_mb, "threads": threads}
    count(papers, citations, shards, Path(names) if names else None, output=output, **cost)


@app.command()
def check_cited(
    file: Annotated[Path, typer.Argument(help="Table cited_ids.")],
    outside: Annotated[float, typer.Option(help="Largest share of citations of papers that may lead to no paper.")],
    omissions: Omissions,
) -> None:
    """Report the cited ids that are no paper; stop where a table must have been misread."""
    from cocite.corpus.ingest.tables.outside import check_cited as check

    check(file, outside, omissions=omissions)


@app.command()
def number_ids(
    file: Annotated[Path, typer.Argument(help="Text file with the name of a paper a line.")],
    names: Annotated[Path, typer.Option(help="Table names.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Replace the names of papers in a file by their corpus ids."""
    from cocite.corpus.queries.named import number_ids as number

    number(file, names, output=output, omissions=omissions, memory_mb=memory_mb, threads=threads)
