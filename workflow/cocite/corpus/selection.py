"""Select the queries, which anchor triplets, and the papers to exclude from every graph, index and triplet.

First held-out papers are sampled, then queries, unless these are published or in a file. Each draw takes the smallest
priorities (a seeded hash of the id), so it depends only on the papers. One paper represents all records of a work, the
first with a text, from before the cut if there is one: only it is sampled, citations of the others count for it, and a
reason to exclude one of them excludes all of them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from cocite.config.cuts import is_later, year_of_day
from cocite.config.queries import QuerySettings
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import write_text
from cocite.core.database import connect, number, view_citations_of_works
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.id_sets import NO_IDS
from cocite.core.options import Citations, MemoryMb, Omissions, Output, Papers, Seed, Threads
from cocite.core.randomness import smallest
from cocite.core.tables.files import count_rows, read_table, verified_files, write_omissions, write_table
from cocite.core.tables.papers import EXCLUDED, HELD_OUT, HELD_OUT_BY_TIME, LATER, TWIN, corpus_ids_of, with_papers
from cocite.core.written_ids import LARGEST_ID, Ids, distinct, is_id, look_up, without_decimals
from cocite.corpus.ingest.accounting import quoted
from cocite.corpus.ingest.merge import check_dates

IDS_IN_BATCH = 1_000_000
UNKNOWN_NAMES = "names of papers that the tables do not have"
MOST_OUTSIDE = 0.95
"""Share of the citations to unknown papers above which misread ids are the likeliest cause that no paper can be a
query. It is 0.57 in hci and 0.92 in synergy."""
ASKED_AND_EXCLUDED = "queries asked for that are excluded"
UNKNOWN = "queries asked for that are no paper with text"
NO_CORPUS_ID = "documents of excluded benchmarks without a corpus id"
READ = {"papers": ["corpusid", "has_text", "year", "date", "fields"], "citations": ["citing", "cited"]}
"""The columns that are read of each table."""
SHORT_OF_QUERIES = "queries asked for beyond the papers that fit"
SHORT_OF_HOLDOUT = "held-out papers asked for beyond the papers that fit the rule"
SHORT_OF_LATER = "papers asked for to be held out by time beyond those that fit"
UNDATED = "papers without a year, of which `queries.undated` says on which side of the cut they are"
WITHOUT_DAY = "papers of the year of queries.holdout_from without a date (kept out, as if from after it)"
WITH_TWINS = "twins that are kept out, with their papers or by corpus.twins"
_OTHERS = "SELECT corpusid FROM works WHERE corpusid <> work"


def select(
    exclude: Annotated[
        Sequence[Path],
        typer.Argument(
            help="Papers to exclude: text files of ids, tables documents of benchmarks (.parquet), and the tables "
            "document_papers of benchmarks whose ids alone do not identify papers."
        ),
    ] = (),
    *,
    papers: Papers,
    citations: Citations,
    twins: Annotated[Path, typer.Option(help="Table twins.")],
    settings: GivenAsJson[QuerySettings],
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Select the papers that anchor triplets, and the papers to exclude from training data.

    Raises `InputError` if no query is found, if a benchmark that is matched only by ids has no paper of the corpus, or
    if a file of ids cannot be read.
    """
    counts = dict.fromkeys((ASKED_AND_EXCLUDED, UNKNOWN, SHORT_OF_QUERIES, SHORT_OF_HOLDOUT, WITH_TWINS), 0)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        for name, folder in (("papers", papers), ("citations", citations)):
            connection.read_parquet(verified_files(folder, name, READ[name])).create_view(name)
        connection.register("groups", read_table(twins, "twins", ["corpusid", "group"]))
        listed = _read_excluded(connection, exclude, counts)
        _find_works(connection, settings)
        excluded = _with_twins(connection, listed)
        if settings.twins == "exclude":
            excluded = distinct(excluded, connection.sql(_OTHERS).fetchnumpy()["corpusid"])
        connection.register("excluded", pa.table({"corpusid": excluded}))
        _find_candidates(connection, settings)
        named, asked = _asked_for(connection, settings, excluded, counts)
        given = asked if settings.from_ == "file" else NO_IDS
        by_chance = settings.holdout if settings.holdout_by_chance else 0
        fitting = f'SELECT corpusid FROM candidates WHERE "references" >= {settings.holdout_references}'
        holdout = _draw(connection.sql(fitting), by_chance, seed, "holdout", without=given)
        counts[SHORT_OF_HOLDOUT] = by_chance - len(holdout)
        later = np.sort(connection.table("later").fetchnumpy()["corpusid"])
        by_time = _draw_later(connection, settings, seed, counts)
        queries = given
        if settings.from_ != "file":
            pool = connection.sql(f"SELECT corpusid FROM {'candidates' if settings.from_ == 'rule' else 'asked'}")
            queries = _draw(pool, settings.count or 0, seed, "queries", without=holdout)
            counts[SHORT_OF_QUERIES] = (settings.count or 0) - len(queries)
        if len(queries) == 0:
            raise InputError(_no_queries(connection, settings, named, len(holdout)))
        kept_out = distinct(excluded, _with_twins(connection, holdout))
        works = connection.table("twins").to_arrow_table()
    share = min(max(round(settings.validation * len(queries)), 1), len(queries) - 1)  # some of each, if there are two
    validating = smallest(queries, share, seed, "corpus select validation")
    splits = {"train": _minus(queries, validating), "validation": validating}
    splits |= {HELD_OUT: holdout, EXCLUDED: _minus(kept_out, holdout, later)}
    splits |= {HELD_OUT_BY_TIME: by_time, LATER: _minus(later, by_time)}
    splits[TWIN] = _minus(works["corpusid"].to_numpy(), kept_out, later)
    counts[WITH_TWINS] = len(kept_out) - len(distinct(listed, holdout))
    tables = [pa.table({"corpusid": ids, "split": pa.repeat(split, len(ids))}) for split, ids in splits.items()]
    rows = pa.concat_tables(tables).sort_by("corpusid")
    if len(works):
        places = pc.index_in(rows["corpusid"], works["corpusid"].combine_chunks())
        rows = rows.append_column("work", works["work"].take(places))
    write_table(output, "queries", rows)
    write_omissions(omissions, counts)


def _read_excluded(connection: DuckDBPyConnection, files: Sequence[Path], counts: dict[str, int]) -> Ids:
    """The ids in text files and in the tables of benchmarks by documents; the documents without any are counted. Raises
    `InputError` if no document of a benchmark that is matched only by ids is a paper of the corpus, a record of a work
    with others, or an end of a citation."""
    tables = [path for path in files if path.suffix == ".parquet"]
    ids = [NO_IDS, *(read_ids(path) for path in files if path not in tables)]
    counts[NO_CORPUS_ID] = 0
    ends = (("papers", "corpusid"), ("citations", "cited"), ("citations", "citing"), ("groups", "corpusid"))
    for documents, papers in with_papers(tables):
        of_benchmark, without = corpus_ids_of(documents, papers)
        connection.register("of_benchmark", pa.table({"corpusid": of_benchmark}))
        found = (f"SELECT 1 FROM {table} WHERE {end} IN (FROM of_benchmark) LIMIT 1" for table, end in ends)
        if papers is None and not any(connection.sql(query).fetchall() for query in found):
            raise InputError(
                f"exclude names the benchmark {documents.parent.name}, and none of its {count_rows(documents):,} "
                f"documents is a paper of the corpus ({without:,} have no corpus id). If its ids are of another "
                "origin, set the benchmark's id_space, so that documents are matched by text; otherwise remove it from "
                "exclude."
            )
        ids.append(of_benchmark)
        counts[NO_CORPUS_ID] += without
    return distinct(*ids)


def _find_works(connection: DuckDBPyConnection, settings: QuerySettings) -> None:
    """Make the tables `later`, `works` and `twins` (of the others of a work, and their representatives), and the
    citations of works. Raises `InputError` for a cut that has all papers on one side, or a day without dates."""
    cut = settings.holdout_from
    is_from = "false" if cut is None else is_later(cut, ">=")
    are_later = cut is not None and settings.undated != "earlier"
    connection.execute(f"""
        CREATE TABLE later AS
        SELECT corpusid FROM papers WHERE {is_from} OR (year IS NULL AND {are_later})
        UNION
        SELECT citing FROM citations ANTI JOIN papers ON citing = corpusid WHERE {are_later}
    """)
    if cut is not None:
        query = f"SELECT min(year), max(year), bool_or(NOT {is_from}), bool_or({is_from}) FROM papers WHERE has_text"
        ((first, last, has_earlier, has_later),) = connection.sql(query).fetchall()
        if not (has_earlier and has_later):
            of_texts = f"papers with a text are from {first} to {last}"
            years = "no paper with a text has a year" if first is None else of_texts
            needed = "papers on both sides are needed"
            raise InputError(f"Configuration key queries.holdout_from is {cut}, and {years}; {needed}.")
        check_dates(connection, "papers", "queries.holdout_from", cut, {})
    connection.execute("""
        CREATE TABLE works AS
        SELECT corpusid, "group", first(corpusid) OVER (
            PARTITION BY "group" ORDER BY has_text IS NULL, corpusid IN (FROM later), NOT has_text, corpusid
        ) AS work
        FROM groups LEFT JOIN papers USING (corpusid)
    """)
    # A later record of an earlier work is excluded by its year anyway.
    connection.execute("""
        CREATE TABLE twins AS
        SELECT corpusid, work FROM works
        WHERE corpusid <> work AND (work IN (FROM later) OR corpusid NOT IN (FROM later)) ORDER BY corpusid
    """)
    view_citations_of_works(connection, "citations", "citations_of_works")


def _find_candidates(connection: DuckDBPyConnection, settings: QuerySettings) -> None:
    """Make the tables `texts` and `candidates`. A candidate has a text, a year and a field as required, is cited often
    enough, and cites enough papers with text. Raises `InputError` for a field that no paper has."""
    query = "SELECT DISTINCT unnest(fields) AS field FROM papers ORDER BY field"
    known = [field for (field,) in connection.sql(query).fetchall()] if settings.fields else []
    for field in settings.fields:
        if field not in known:
            why = f"which no paper of the release has; they have {', '.join(known) or 'none'}."
            raise InputError(f"Configuration key queries.fields names {field!r}, {why}")
    texts = "SELECT corpusid FROM papers WHERE has_text AND corpusid NOT IN (FROM later)"
    connection.execute(f"CREATE TABLE texts AS {texts}")
    query = f"""
        CREATE TABLE candidates AS
        WITH cited AS (
            SELECT cited AS corpusid, count(*) AS citations FROM citations_of_works
            WHERE citing NOT IN (FROM later) GROUP BY cited
        ), citing AS (
            SELECT citing AS corpusid, count(*) AS "references" FROM citations_of_works
            WHERE cited IN (FROM texts) GROUP BY citing
        ), described AS (
            SELECT corpusid FROM papers
            WHERE ($min_year IS NULL OR year >= $min_year) AND ($max_year IS NULL OR year <= $max_year)
            AND (len($fields) = 0 OR list_has_any(fields, $fields))
        )
        SELECT corpusid, coalesce("references", 0) AS "references"
        FROM texts SEMI JOIN described USING (corpusid)
        LEFT JOIN cited USING (corpusid) LEFT JOIN citing USING (corpusid)
        WHERE coalesce(citations, 0) >= $min_citations AND coalesce("references", 0) >= $min_references
        AND corpusid NOT IN (FROM excluded) AND corpusid NOT IN ({_OTHERS})
    """
    required = {"min_citations", "min_references", "min_year", "max_year", "fields"}
    connection.execute(query, settings.model_dump(include=required))


def _draw_later(connection: DuckDBPyConnection, settings: QuerySettings, seed: int, counts: dict[str, int]) -> Ids:
    """Hold out papers from the cut on: those with a text, a required field and enough references from before it, but
    without an earlier record of the same work. New papers are hardly cited, so citations are not required."""
    query = f"""
        SELECT corpusid FROM papers SEMI JOIN later USING (corpusid)
        WHERE has_text AND year IS NOT NULL AND (len($fields) = 0 OR list_has_any(fields, $fields))
        AND corpusid NOT IN (FROM excluded) AND corpusid NOT IN ({_OTHERS})
        AND corpusid IN (SELECT citing FROM citations_of_works
            WHERE cited IN (FROM texts) GROUP BY citing HAVING count(*) >= $references)
    """
    required = {"fields": settings.fields, "references": settings.holdout_references}
    drawn = _draw(connection.sql(query, params=required), settings.holdout, seed, HELD_OUT_BY_TIME)
    if settings.holdout_from is not None:
        counts[SHORT_OF_LATER] = settings.holdout - len(drawn)
        counts[UNDATED] = number(connection, "SELECT count(*) FROM papers WHERE year IS NULL")
        if year := year_of_day(settings.holdout_from):
            without_day = f"SELECT count(*) FROM papers WHERE year = {year} AND date IS NULL"
            counts[WITHOUT_DAY] = number(connection, without_day)
    return drawn


def _draw(pool: DuckDBPyRelation, count: int, seed: int, split: str, *, without: Ids = NO_IDS) -> Ids:
    """A sample of the ids in a relation, which is read in batches."""
    drawn, rising = NO_IDS, distinct(without)
    for batch in pool.to_arrow_reader(IDS_IN_BATCH):
        ids = batch["corpusid"].to_numpy()
        others = ids[~look_up(rising, ids)[1]]
        drawn = smallest(np.concatenate([drawn, others]), count, seed, f"corpus select {split}")
    return drawn


def _asked_for(
    connection: DuckDBPyConnection, settings: QuerySettings, excluded: Ids, counts: dict[str, int]
) -> tuple[int, Ids]:
    """How many works are in a file or in published triplets, and those that are papers with text and not excluded. They
    are in the view `asked` too; the others are counted."""
    ids = NO_IDS
    if settings.from_ == "file":
        ids = read_ids(Path(settings.path))
    elif settings.from_ == "triplets":
        ids = read_table(Path(settings.path), "published_queries")["corpusid"].to_numpy()
    connection.register("these", pa.table({"corpusid": ids}))
    works = "SELECT DISTINCT coalesce(work, corpusid) AS work FROM these LEFT JOIN works USING (corpusid) ORDER BY work"
    named = connection.sql(works).fetchnumpy()["work"]
    allowed = np.setdiff1d(named, excluded, assume_unique=True)
    connection.register("allowed", pa.table({"corpusid": allowed}))
    asked = connection.sql("FROM allowed SEMI JOIN texts USING (corpusid)").to_arrow_table()
    connection.register("asked", asked)
    counts |= {ASKED_AND_EXCLUDED: len(named) - len(allowed), UNKNOWN: len(allowed) - len(asked)}
    return len(named), asked["corpusid"].to_numpy()


def _with_twins(connection: DuckDBPyConnection, papers: Ids) -> Ids:
    """Some papers and all other records of the same works, rising."""
    connection.register("these", pa.table({"corpusid": papers}))
    of_works = 'SELECT "group" FROM works SEMI JOIN these USING (corpusid)'
    query = f'FROM these UNION SELECT corpusid FROM works WHERE "group" IN ({of_works}) ORDER BY corpusid'
    found: Ids = connection.sql(query).fetchnumpy()["corpusid"]
    return found


def _minus(ids: Ids, *others: Ids) -> Ids:
    """The different ids that are in none of the others, rising."""
    rising = distinct(ids)
    return rising[~look_up(distinct(*others), rising)[1]]


def _no_queries(connection: DuckDBPyConnection, settings: QuerySettings, named: int, held_out: int) -> str:
    beside = f" in addition to the {held_out} held-out ones" if held_out else ""
    before = "" if settings.holdout_from is None else f" from before {settings.holdout_from} (queries.holdout_from)"
    usable = f"is a paper of the release with a text{before}, and not excluded"
    if settings.from_ == "file":
        return f"{settings.path}: none of its {named:,} ids {usable}."
    if settings.from_ == "triplets":
        return f"None of the {named:,} published queries can be one here{beside}: none {usable}."
    papers, texts, citations, outside = (
        number(connection, f"SELECT count(*) FROM {table}")
        for table in ("papers", "texts", "citations", "citations ANTI JOIN papers ON cited = corpusid")
    )
    share = f"{outside:,} of {citations:,} citations lead to ids that are no paper of the corpus"
    misread = f"{share}: compare how papers and citations write ids. In numbers: "
    cause = misread if outside > MOST_OUTSIDE * citations else ""
    return (
        f"No paper can be a query{beside}: {cause}the corpus has {papers:,} papers, {texts:,} with a text{before}, "
        f"and {citations:,} citations, {outside:,} of them to no paper, but no such paper has the required year and "
        f"field, is cited {settings.min_citations} times (queries.min_citations), cites {settings.min_references} "
        "papers with text (queries.min_references), and is not excluded; relax the rule, or see omissions/ for counts."
    )


def read_ids(path: Path) -> Ids:
    """The distinct ids of a text file, rising. Raises `InputError` for a line that is no id."""
    ids = set()
    # Editors that save "UTF-8 with BOM" put a mark before the first id; other bytes than digits are no id anyway.
    with explain_unreadable(path, "list of ids"), path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            if text and not is_id(text):
                remedy = f"a line has one whole number from 0 to {LARGEST_ID:,}."
                raise InputError(f"{path}, line {number}: {quoted(text)} is not a corpus id; {remedy}")
            if text:
                ids.add(int(text))
    return np.array(sorted(ids), dtype=np.int64)


def number_ids(
    file: Annotated[Path, typer.Argument(help="Text file with the name of one paper per line.")],
    *,
    names: Annotated[Path, typer.Option(help="Table names.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Replace the names of papers in a file by their corpus ids.

    Raises `InputError` if the file is not UTF-8.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        found, unknown = ids_of_names(connection, file, names)
    write_text(output, "".join(f"{corpusid}\n" for corpusid in found.tolist()))
    write_omissions(omissions, {UNKNOWN_NAMES: len(unknown)})


def ids_of_names(connection: DuckDBPyConnection, file: Path, names: Path) -> tuple[Ids, list[str]]:
    """The corpus ids of the papers that a text file names, rising, and the names that are not known."""
    with explain_unreadable(file, "list of names"):
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 at byte {error.start}; a line has the name of a paper.") from None
    asked = pa.array(sorted({without_decimals(name) for line in lines if (name := line.strip())}), pa.string())
    connection.register("asked", pa.table({"name": asked}))
    known = connection.read_parquet(verified_files(names, "names"))
    found = known.join(connection.table("asked"), "name", "semi").order("corpusid").to_arrow_table()
    names_found = {*found["name"].to_pylist()}
    return found["corpusid"].to_numpy(), [name for name in asked.to_pylist() if name not in names_found]
