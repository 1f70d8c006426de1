"""`cocite corpus …`: list, download and ingest a release, choose queries."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.ground.options import (
    Buckets,
    Citations,
    MemoryMb,
    Omissions,
    Output,
    Papers,
    Queries,
    Seed,
    Settings,
    State,
    Threads,
)

app = typer.Typer(no_args_is_help=True)

Dataset = Annotated[str, typer.Argument(help="papers, abstracts or citations.")]
ManifestFile = Annotated[Path, typer.Option("--manifest", help="What `cocite corpus list` wrote.")]
Results = Annotated[Path, typer.Option(help="Folder of the results of the run.")]
Part = Annotated[int, typer.Option(help="Which part of the shards to work on, from 0.")]
Parts = Annotated[int, typer.Option(help="Number of parts; each takes every n-th shard.")]


@app.command()
def plan(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
) -> None:
    """Report what a corpus needs before any of it is fetched: shards, downloads, disk space, and what is there."""
    from cocite.config.configuration import read_configuration
    from cocite.corpus.release.plan import KEYS, plan_corpus
    from cocite.corpus.release.plan_in_words import describe

    typer.echo(describe(plan_corpus(read_configuration(configfile, KEYS)), configfile))


@app.command("list")
def list_shards(
    settings: Settings,
    release: Annotated[str, typer.Option(help="Id of the release, a date, or latest.")],
    results: Results,
    output: Output,
) -> None:
    """List the shards of a release, or of the diffs that lead to it. The source s2 needs the key in S2_API_KEY."""
    from cocite.config.corpus import Corpus
    from cocite.config.settings import parse_settings
    from cocite.corpus.release.manifest import write_manifest

    write_manifest(output, parse_settings(Corpus, settings).list_release(release, results))


@app.command()
def download(
    dataset: Dataset,
    settings: Settings,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    results: Results,
    state: State,
    output: Output,
) -> None:
    """Download the shards of a part of a dataset; a killed download resumes where it stopped."""
    from cocite.config.corpus import Corpus
    from cocite.config.settings import parse_settings
    from cocite.corpus.release.manifest import read_manifest, shards_of_part

    listed = read_manifest(manifest)
    shards = shards_of_part(listed, dataset, part=part, parts=parts)
    parse_settings(Corpus, settings).fetch(listed, dataset, shards, results=results, state=state, output=output)


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
    ids: Annotated[
        Literal["keep", "drop"], typer.Option(help="As for other sources; the citations of OpenAlex have no ids.")
    ] = "drop",
    authors: Annotated[bool, typer.Option("--authors", help="Keep the names of papers' authors.")] = False,
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
) -> None:
    """Write a bucket of papers, each once and with its abstract, or of citations, each once."""
    from cocite.corpus.ingest.merge import merge as merge_rows
    from cocite.corpus.ingest.newest import names_files

    datasets = ["papers", "abstracts"] if table == "papers" else ["citations"]
    if table == "citations" and names_files(ingested / "citations", "ingested_citations"):
        datasets.append("papers")
    sources = {f"ingested_{dataset}": ingested / dataset for dataset in datasets}
    merge_rows(table, sources, bucket, output=output, omissions=omissions, memory_mb=memory_mb, threads=threads)


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


@app.command()
def fetch_triplets(
    dataset: Annotated[str, typer.Option(help="Dataset of the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="Its commit.")],
    state: State,
    output: Output,
) -> None:
    """Fetch published triplets from the Hugging Face hub; a killed fetch resumes where it stopped."""
    from cocite.corpus.queries.published import fetch_triplets as fetch

    fetch(dataset, revision, state=state, output=output)


@app.command()
def read_triplets(
    folder: Annotated[Path, typer.Argument(help="Folder of the triplets: the fetched one, or a copy.")],
    output: Output,
    omissions: Omissions,
) -> None:
    """Read the queries of published triplets."""
    from cocite.corpus.queries.published import read_triplets as read

    read(folder, output=output, omissions=omissions)


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
    exclude: Annotated[
        list[Path] | None,
        typer.Argument(help="What to exclude: text files of ids, tables documents of benchmarks (.parquet)."),
    ] = None,
) -> None:
    """Choose the papers that anchor triplets, and the papers that are kept out of all that models learn from."""
    from cocite.config.queries import QuerySettings
    from cocite.config.settings import parse_settings
    from cocite.corpus.queries.selection import select as select_queries

    select_queries(
        papers,
        citations,
        parse_settings(QuerySettings, settings),
        seed,
        exclude=exclude or (),
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )


@app.command()
def leaks(
    results: Annotated[Path, typer.Option(help="Folder of the results.")],
    queries: Queries,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    tables: Annotated[
        list[Path] | None, typer.Argument(help="Files of tables, or folders of their buckets; all if none is named.")
    ] = None,
    oracles: Annotated[
        str,
        typer.Option(help="Sets that hold the answers of benchmarks, with the names of these benchmarks, as JSON."),
    ] = "{}",
) -> None:
    """Check that the finished tables hold no held-out or excluded paper."""
    import json

    from cocite.corpus.queries.leaks import check_leaks

    check_leaks(
        results,
        queries,
        tables or (),
        oracles=json.loads(oracles),
        output=output,
        memory_mb=memory_mb,
        threads=threads,
    )


@app.command()
def sample(
    results: Annotated[Path, typer.Option(help="Folder of the results of a run whose corpus is made.")],
    output: Annotated[Path, typer.Option(help="Folder to write, in the layout of a release; it must not exist.")],
    count: Annotated[int, typer.Option(min=1, help="Queries that the sample starts from.")] = 100,
    ids: Annotated[
        Path | None, typer.Option(help="Text file of the papers that it starts from instead, an id or a name a line.")
    ] = None,
    depth: Annotated[int, typer.Option(min=0, help="Steps along citations from there, in both directions.")] = 2,
    neighbours: Annotated[
        int, typer.Option(min=1, help="References, and as many citing papers, that are followed of each paper at most.")
    ] = 10,
    seed: Seed = 1,
    memory_mb: MemoryMb = 2000,
    threads: Threads = 2,
) -> None:
    """Cut a small corpus from that of a run, to try a configuration on: some queries and their neighbourhood."""
    from cocite.corpus.sample.release import SampleSettings, describe, write_sample

    settings = SampleSettings(count=count, listed=ids, depth=depth, neighbours=neighbours, seed=seed)
    written = write_sample(results, settings, output=output, memory_mb=memory_mb, threads=threads)
    typer.echo(describe(written, output))
