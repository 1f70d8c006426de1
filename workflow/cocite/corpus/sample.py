"""Write a sample of a corpus as a release in a folder, which `source: directory` reads like any other.

It has the starting papers, their references and citing papers, and so on to a depth, and every citation between two of
them. Of the neighbours of a paper, those of the smallest priorities (a seeded hash of both ids) are followed: more
neighbours, a larger depth or more papers to start from only add to the sample.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection
from duckdb.func import PythonUDFType
from duckdb.sqltypes import BIGINT, UBIGINT

from cocite.config.entries import as_json
from cocite.config.folders import FOLDERS
from cocite.config.release_folder import DATASETS
from cocite.core.atomic import atomic_path, write_text
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Seed, Threads
from cocite.core.progress import progress
from cocite.core.randomness import priorities, smallest
from cocite.core.tables.files import verified_files, write_table
from cocite.core.tables.papers import read_queries
from cocite.core.tables.places import as_text, path_of
from cocite.core.written_ids import Ids
from cocite.corpus.release.manifest import Manifest, read_manifest
from cocite.corpus.selection import ids_of_names, read_ids
from cocite.plan.recorded import configuration_of

NAME = "corpus sample"
NAMES_AT_ONCE = 100_000


def listed_to_start_from(connection: DuckDBPyConnection, path: Path, names: Path) -> Ids:
    """The papers in a text file of ids, or of names. Raises `InputError` if one is not a paper with a record."""
    ids, unnamed = ids_of_names(connection, path, names) if names.is_file() else (read_ids(path), [])
    connection.register("listed", pa.table({"corpusid": ids}))
    unrecorded = connection.sql("FROM listed ANTI JOIN papers USING (corpusid) ORDER BY corpusid").fetchall()
    unknown = [*unnamed, *(str(paper) for (paper,) in unrecorded)]
    if unknown:
        raise InputError(f"{path}: {len(unknown)} of its papers, the first {unknown[0]}, have no record; name others.")
    if not len(ids):
        raise InputError(f"{path}: contains no id; each line must have the id of a paper.")
    return ids


def gather_members(connection: DuckDBPyConnection, start: Ids, *, depth: int, neighbours: int, seed: int) -> None:
    """Make the table `members` (corpusid) of the papers of the sample, given the view `citations` (citing, cited)."""

    def priority(papers: pa.Array, others: pa.Array) -> pa.Array:
        return pa.array(priorities(seed, NAME, papers.to_numpy(), others.to_numpy()))

    connection.create_function("priority", priority, [BIGINT, BIGINT], UBIGINT, type=PythonUDFType.ARROW)
    connection.register("start", pa.table({"corpusid": start}))
    connection.execute("CREATE TEMP TABLE members AS SELECT DISTINCT corpusid FROM start")
    connection.execute("CREATE TEMP TABLE latest AS FROM members")
    for _ in progress(range(depth), of="neighbourhood", unit="steps"):
        connection.execute(f"""
            CREATE OR REPLACE TEMP TABLE latest AS
            WITH links AS (
                SELECT citing AS paper, cited AS other, true AS is_reference
                FROM citations WHERE citing IN (FROM latest)
                UNION ALL
                SELECT cited, citing, false FROM citations WHERE cited IN (FROM latest)
            ), ranked AS (
                SELECT other, row_number() OVER nearest AS place FROM links
                WINDOW nearest AS (PARTITION BY paper, is_reference ORDER BY priority(paper, other), other)
            )
            SELECT DISTINCT other AS corpusid FROM ranked
            WHERE place <= {neighbours} AND other NOT IN (FROM members)
        """)
        connection.execute("INSERT INTO members FROM latest")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How many papers with and without a record, abstracts and citations a sample has."""

    release: str
    papers: int
    abstracts: int
    unrecorded: int
    citations: int
    keys: dict[str, str]
    """Keys of `corpus` with which all of it is read as it was, but for the source and its path."""


def write_sample(
    *,
    results: Annotated[Path, typer.Option(help="Folder of the results of a run with a finished corpus.")],
    output: Annotated[Path, typer.Option(help="Folder to write, in the layout of a release; it must not exist.")],
    count: Annotated[int, typer.Option(min=1, help="Number of queries that the sample starts from.")] = 100,
    ids: Annotated[
        Path | None, typer.Option(help="Text file of papers to start from instead, one id or name per line.")
    ] = None,
    depth: Annotated[int, typer.Option(min=0, help="Steps along citations from there, in both directions.")] = 2,
    neighbours: Annotated[
        int, typer.Option(min=1, help="Largest number of references, and of citing papers, to follow per paper.")
    ] = 10,
    seed: Seed = 1,
    memory_mb: MemoryMb = 2000,
    threads: Threads = 2,
) -> Sample:
    """Cut a small corpus from that of a run, to try a configuration on: some queries and their neighbourhood.

    Prints its size, and the lines of a configuration that use it. Raises `InputError` if the corpus is incomplete, the
    folder exists, or the sample would lack a dataset.
    """
    if output.exists():
        raise InputError(f"{output} exists already; name a folder that is to be made.")
    manifest = read_manifest(results / "corpus/manifest.json")
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.execute("SET preserve_insertion_order = true")  # of the files, which are sorted
        for table in ("papers", "citations"):
            connection.read_parquet(verified_files(path_of(results, table), table)).create_view(table)
        if ids:
            start = listed_to_start_from(connection, ids, path_of(results, "names"))
        else:
            queries = read_queries(path_of(results, "queries"))["corpusid"].to_numpy()
            start = smallest(queries, count, seed, NAME)
        gather_members(connection, start, depth=depth, neighbours=neighbours, seed=seed)
        sample = _described(connection, results, f"{manifest.release}-sample")
        with atomic_path(output) as folder:
            _write_release(connection, results, sample, manifest, folder)
    beyond = f", and {sample.unrecorded:,} papers without a record" if sample.unrecorded else ""
    keys = "".join(f", {key}: {value}" for key, value in sample.keys.items())
    places = ", ".join(f"{name}: {name}/{output.name}" for name in FOLDERS)
    typer.echo(
        f"{output}: {sample.papers:,} papers, {sample.abstracts:,} of them with an abstract{beyond}; "
        f"{sample.citations:,} citations, all that the corpus has among them.\n"
        "A configuration uses it with\n"
        f'    release: "{sample.release}"\n'
        f"    corpus: {{source: directory, path: {output}{keys}}}\n"
        f"    pathvars: {{{places}}}"
    )
    return sample


def _described(connection: DuckDBPyConnection, results: Path, release: str) -> Sample:
    """The sample of the papers in `members`; makes the tables and views that its files are copied from."""
    between = "citing IN (FROM members) AND cited IN (FROM members)"
    connection.execute(f"CREATE TEMP TABLE kept AS FROM citations WHERE {between}")
    connection.execute("CREATE TEMP VIEW described AS FROM papers WHERE corpusid IN (FROM members)")
    keys = {"authors": "true"} if "authors" in connection.view("papers").columns else {}
    config = configuration_of(results)
    if config and config.corpus.whose_ids != "s2":
        keys["id_space"] = config.corpus.whose_ids
    if config and config.corpus.allow_missing_abstract:
        keys["allow_missing_abstract"] = "true"
    if config and config.corpus.twins == "exclude":
        keys["twins"] = "exclude"
    contexts = sorted(path_of(results, "contexts").glob("*.parquet"))
    if contexts:
        connection.read_parquet(verified_files(contexts, "contexts")).create_view("contexts")
        keys["contexts"] = json.dumps(as_json((config and config.corpus.contexts) or {}))
    papers = number(connection, "SELECT count(*) FROM described")
    sample = Sample(
        release=release,
        papers=papers,
        abstracts=number(connection, "SELECT count(abstract) FROM described"),
        unrecorded=number(connection, "SELECT count(*) FROM members") - papers,
        citations=number(connection, "SELECT count(*) FROM kept"),
        keys=keys,
    )
    for name in DATASETS:
        if getattr(sample, name) == 0:
            if name == "abstracts" and number(connection, "SELECT count(abstract) FROM papers") == 0:
                remedy = "and a release has one at least; cut your tables instead"
                raise InputError(f"The corpus has no abstracts, {remedy}.")
            further = "go further (--depth), or follow more of their neighbours (--neighbours)"
            raise InputError(f"The sample would have no {name}; let it start from more papers (--count), {further}.")
    return sample


def _write_release(
    connection: DuckDBPyConnection, results: Path, sample: Sample, manifest: Manifest, folder: Path
) -> None:
    authors = contexts = sentences = ""
    if "authors" in sample.keys:
        authors = ", list_transform(authors, lambda name: {'name': name}) AS authors"
    if "contexts" in sample.keys:
        contexts, each = ", contexts", "SELECT citing, unnest(cited) AS cited, context, sentence FROM contexts"
        sentences = f"""
            LEFT JOIN (
                SELECT citing, cited, list(sentence ORDER BY context) AS contexts
                FROM ({each} WHERE citing IN (FROM members)) GROUP BY citing, cited
            ) USING (citing, cited)
        """
    queries = {
        "papers": f"""
            SELECT corpusid, title, year, date::VARCHAR AS publicationdate, venue,
                list_transform(fields, lambda name: {{'category': name}}) AS s2fieldsofstudy,
                {{'DOI': doi}} AS externalids, citation_count AS citationcount, reference_count AS referencecount
                {authors}
            FROM described ORDER BY corpusid
        """,
        "abstracts": "SELECT corpusid, abstract FROM described WHERE abstract IS NOT NULL ORDER BY corpusid",
        "citations": f"""
            SELECT citing AS citingcorpusid, cited AS citedcorpusid, influential AS isinfluential,
                CASE WHEN len(intents) > 0 THEN [intents] END AS intents{contexts}
            FROM kept {sentences} ORDER BY citing, cited
        """,
    }
    for dataset, query in queries.items():
        (folder / dataset).mkdir(parents=True)
        shard = as_text(str(folder / dataset / "0.gz"))
        connection.execute(f"COPY ({query}) TO {shard} (FORMAT json, COMPRESSION gzip)")
        if readme := manifest.datasets[dataset].readme:
            write_text(folder / dataset / "README.txt", readme)
    if (names := path_of(results, "names")).is_file():  # The corpus has user-supplied text ids.
        connection.read_parquet(verified_files(names, "names")).create_view("names")
        chosen = connection.sql("FROM names WHERE corpusid IN (FROM members) ORDER BY corpusid")
        write_table(folder / "names.parquet", "names", chosen.to_arrow_reader(NAMES_AT_ONCE))
    stated = {"release_id": sample.release, **{name: getattr(sample, name) for name in DATASETS}}
    write_text(folder / "release.json", json.dumps(stated) + "\n")
