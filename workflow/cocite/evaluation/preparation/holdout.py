"""The hold-out benchmark: can a model tell the papers that a held-out paper is linked with from random ones?

Each held-out paper has some papers that it cites (task cite) or that are cited together with it (task cocite), among
random papers, or among papers that are cited as often (cite_matched, cocite_matched); or, for each aspect of
citations, some that it is linked with by that aspect, among some that it is linked with by another one and random
papers. Links are counted in the whole release: held-out papers are kept out of graphs, indexes and triplets, not out of
the truth. Some held-out papers may be set apart to choose between settings, in a table that no score reads.

With `search`, the table searches names all papers that a held-out paper is linked with, to be found in the whole
corpus. With `title_search`, titles have to find abstracts.

DuckDB joins within the job's memory. Random papers are drawn from a seeded pool of at most a million papers with text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocite.config.benchmark import AspectSettings, HoldoutSettings, MadeOfHeldOut
from cocite.config.benchmarks.holdout import MATCHED, SEARCHED
from cocite.config.graphs import INTENTS
from cocite.config.settings import GivenAsJson
from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, Ids
from cocite.core.options import Citations, MemoryMb, Omissions, Papers, Queries, Seed, Threads
from cocite.core.randomness import fractions, generator, priorities
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import verified_files, write_table
from cocite.core.tables.papers import FROM_THE_CUT_ON, HELD_OUT, HELD_OUT_BY_TIME, read_kept_out
from cocite.evaluation.benchmark import Benchmark, Document, Judgements, Tables, write_benchmark, write_selection
from cocite.evaluation.preparation.popularity import ROWS_AT_ONCE, MatchedChoice, Sample, write_popularity
from cocite.evaluation.preparation.title_search import add_title_search

LARGEST_POOL = 1_000_000
NO_SEARCHES = empty_schema(TABLES["searches"]).empty_table()

CITED = """
    SELECT citing AS query, cited AS paper
    FROM citations
    JOIN queries ON citing = queries.corpusid
    JOIN with_text ON cited = with_text.corpusid
    WHERE cited <> citing
    ORDER BY query, paper
"""
LINKED = """
    WITH links AS (
        SELECT citing AS query, cited AS paper, intents FROM citations JOIN queries ON citing = queries.corpusid
        UNION ALL
        SELECT cited, citing, intents FROM citations JOIN queries ON cited = queries.corpusid
    )
    SELECT query, paper, flatten(list(intents)) AS aspects
    FROM links
    JOIN with_text ON paper = with_text.corpusid
    WHERE query <> paper
    GROUP BY query, paper
"""
COCITED = """
    WITH counted AS (
        SELECT of_query.cited AS query, of_paper.cited AS paper, count(*) AS citing
        FROM citations AS of_query
        JOIN queries ON of_query.cited = queries.corpusid
        JOIN citations AS of_paper ON of_paper.citing = of_query.citing AND of_paper.cited <> of_query.cited
        GROUP BY ALL
    )
    SELECT query, paper
    FROM counted
    JOIN with_text ON paper = with_text.corpusid
    WHERE citing >= $least
    ORDER BY query, paper
"""


def prepare_holdout(
    *,
    papers: Papers,
    citations: Citations,
    queries: Queries,
    settings: GivenAsJson[MadeOfHeldOut],
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Make a benchmark of held-out papers: what they cite and are cited with, or by which aspect, among others.

    It spills into the folder of the tables. Raises `InputError` where no held-out paper has enough links.
    """
    benchmark, selection, omitted = Benchmark(), Benchmark(), dict[str, int]()
    share = (settings.choosing or 0) if isinstance(settings, HoldoutSettings) else 0
    with connect(memory_mb=memory_mb, threads=threads, spill_to=tables) as database:
        split = HELD_OUT_BY_TIME if isinstance(settings, HoldoutSettings) and settings.by_time else HELD_OUT
        held_out, with_text = _open(database, papers, citations, queries, split)
        omitted["held-out paper without text"] = held_out - len(with_text)
        # Whether a paper chooses between settings depends on the seed and its id alone.
        is_set_apart = fractions(priorities(seed, "holdout choosing", with_text)) < share
        pool = _pool(database, seed)
        write_popularity(tables / "popularity.parquet", database)
        searches: list[pa.Table] = []
        for task, links in _links_of_tasks(database, settings):
            choice = Choice(task=task, settings=settings, seed=seed, pool=pool)
            benchmark.judgements[task] = choice.judge(with_text[~is_set_apart], links, omitted)
            selection.judgements[task] = choice.judge(with_text[is_set_apart], links, {})
            if isinstance(settings, HoldoutSettings):
                name = f"{task}{MATCHED}"
                matched = MatchedChoice.of(database, name, links.relevant, settings, seed)
                benchmark.judgements[name] = matched.judge(with_text[~is_set_apart], links.relevant, omitted)
                selection.judgements[name] = matched.judge(with_text[is_set_apart], links.relevant, {})
                searches += [_searches(f"{task}{SEARCHED}", links.relevant, with_text[is_set_apart])] * settings.search
        write_table(tables / "searches.parquet", "searches", pa.concat_tables([NO_SEARCHES, *searches]))
        if not held_out:
            raise InputError(
                f"{queries}: no paper is held out. Either queries.holdout is 0, or no paper that fits the rule "
                f"cites {settings.positives} papers with a text; lower `positives` of the benchmark then."
            )
        if not any(benchmark.judgements.values()):
            linked = "is linked with by an aspect" if isinstance(settings, AspectSettings) else "cites or is cited with"
            lacking = f"{settings.positives} papers that it {linked}, and {settings.negatives} others"
            remedy = "hold out more papers, or lower `positives` and `negatives` of the benchmark"
            raise InputError(f"{queries}: none of the {held_out} held-out papers has {lacking}; {remedy}.")
        judged = [candidates for queries in benchmark.judgements.values() for candidates in queries.items()]
        ids = sorted({int(document) for query, found in judged for document in (query, *found)})
        documents = {str(paper): document for paper, document in _documents(database, ids).items()}
        short_queries = set[str]()
        if isinstance(settings, HoldoutSettings) and settings.title_search:
            searched = _documents(database, with_text[~is_set_apart])
            of_search, short_queries = add_title_search(benchmark, searched, settings.title_search, seed, omitted)
            documents |= of_search
    write_selection(selection, tables)
    write_benchmark(benchmark, documents, omitted, short_queries=short_queries, tables=tables, omissions=omissions)


LinkedBy = dict[int, Ids]
"""The papers that each query is linked with, ascending."""


class Links(NamedTuple):
    """The papers that queries are linked with."""

    all: LinkedBy
    relevant: LinkedBy
    otherwise: LinkedBy | None = None
    """Those that are linked by another aspect only; None where there are no aspects."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The choice of candidates in one task; each query's depends on the seed and the query alone."""

    task: str
    settings: MadeOfHeldOut
    seed: int
    pool: Ids
    """Papers with text that random candidates are drawn from, ascending."""

    def judge(self, queries: Ids, links: Links, omitted: dict[str, int]) -> Judgements:
        """The candidates of each query that has enough, 1 for the relevant and 0 for the others; count the rest."""
        few_positives = f"task {self.task}: fewer than {self.settings.positives} positives"
        few_negatives = f"task {self.task}: fewer than {self.settings.negatives} papers to draw negatives from"
        no_others = f"task {self.task}: no paper that is linked by another aspect only"
        omitted |= {few_positives: 0, few_negatives: 0} | ({} if links.otherwise is None else {no_others: 0})
        judgements = {}
        for query in queries.tolist():
            linked, relevant, others = (found.get(query, NO_IDS) if found else NO_IDS for found in links)
            negatives = self.negatives(query, linked)
            if len(relevant) < self.settings.positives:
                omitted[few_positives] += 1
            elif links.otherwise is not None and len(others) == 0:
                omitted[no_others] += 1
            elif len(negatives) < self.settings.negatives:
                omitted[few_negatives] += 1
            else:
                positives = self.first(query, relevant, self.settings.positives)
                negatives = [*self.first(query, others, self.settings.linked), *negatives]
                judgements[str(query)] = {str(p): 1 for p in positives} | {str(n): 0 for n in negatives}
        return judgements

    def first(self, query: int, papers: Ids, count: int) -> list[int]:
        """So many of the papers, those that come first by seeded priority."""
        rank = priorities(self.seed, f"holdout {self.task}", np.full(len(papers), query), papers)
        return papers[np.argsort(rank, kind="stable")[:count]].tolist()

    def negatives(self, query: int, linked: Ids) -> list[int]:
        """Random papers of the pool, none of which is linked with the query or the query itself."""
        draws = min(len(self.pool), self.settings.negatives + len(linked) + 1)
        draw = generator(self.seed, "holdout negatives", self.task, query)
        drawn = self.pool[draw.choice(len(self.pool), draws, replace=False)]
        unlinked = drawn[~np.isin(drawn, linked) & (drawn != query)]
        return unlinked[: self.settings.negatives].tolist()


def _open(
    database: duckdb.DuckDBPyConnection, papers: Path, citations: Path, queries: Path, split: str
) -> tuple[int, Ids]:
    """Name the tables in the database; return the number of held-out papers and those with text, ascending. Candidates
    are papers that existed before the cut, if there is one."""
    database.read_parquet(verified_files(papers, "papers", ["corpusid", "has_text"])).create_view("papers")
    database.read_parquet(verified_files(citations, "citations")).create_view("citations")
    kept_out = read_kept_out(queries)
    held_out = kept_out.filter(pc.field("split") == split).select(["corpusid"])
    later = kept_out.filter(pc.field("split").isin(FROM_THE_CUT_ON)).select(["corpusid"])
    for name, table in {"kept_out": kept_out.select(["corpusid"]), "held_out": held_out, "later": later}.items():
        database.register(name, table)
    database.execute(
        "CREATE VIEW with_text AS SELECT corpusid FROM papers WHERE has_text AND corpusid NOT IN (FROM later)"
    )
    database.execute(
        "CREATE TABLE queries AS SELECT corpusid FROM papers WHERE has_text AND corpusid IN (FROM held_out)"
    )
    with_text = database.sql("SELECT corpusid FROM queries ORDER BY corpusid")
    return len(held_out), with_text.fetchnumpy()["corpusid"]


def _pool(database: duckdb.DuckDBPyConnection, seed: int) -> Ids:
    """The papers with text, ascending; in a large corpus, those that come first by seeded priority."""
    pool = Sample(seed, "holdout pool", LARGEST_POOL)
    for batch in database.sql("FROM with_text").to_arrow_reader(ROWS_AT_ONCE):
        pool.add(batch.column("corpusid").to_numpy())
    return np.sort(pool.ids)


def _links_of_tasks(database: duckdb.DuckDBPyConnection, settings: MadeOfHeldOut) -> Iterator[tuple[str, Links]]:
    if isinstance(settings, HoldoutSettings):
        cocited = database.sql(COCITED, params={"least": settings.min_cocitations})
        for task, pairs in (("cite", database.sql(CITED)), ("cocite", cocited)):
            linked = _links(pairs)
            yield task, Links(linked, linked)
        return
    database.execute(f"CREATE TEMP TABLE linked AS {LINKED}")
    for aspect in INTENTS:
        of_aspect = f"list_contains(aspects, '{aspect}')"
        conditions = ("true", of_aspect, f"len(aspects) > 0 AND NOT {of_aspect}")
        linked_if = "SELECT query, paper FROM linked WHERE {} ORDER BY query, paper"
        yield aspect, Links(*(_links(database.sql(linked_if.format(condition))) for condition in conditions))


def _links(pairs: duckdb.DuckDBPyRelation) -> LinkedBy:
    columns = pairs.fetchnumpy()
    queries, starts = np.unique(columns["query"], return_index=True)
    return dict(zip(queries.tolist(), np.split(columns["paper"], starts[1:]), strict=True)) if len(queries) else {}


def _searches(task: str, linked: LinkedBy, set_apart: Ids) -> pa.Table:
    """The papers that each query has to find."""
    queries = np.repeat(np.array([*linked], np.int64), [len(papers) for papers in linked.values()])
    split = np.where(np.isin(queries, set_apart), "selection", "test")
    papers = np.concatenate([NO_IDS, *linked.values()])
    columns = {"task": [task] * len(papers), "query": queries, "paper": papers, "split": split}
    return pa.table(columns, schema=NO_SEARCHES.schema)


def _documents(database: duckdb.DuckDBPyConnection, papers: Sequence[int] | Ids) -> dict[int, Document]:
    """Title, abstract and first field of study of some papers."""
    database.register("wanted", pa.table({"corpusid": papers}))
    rows = database.sql("SELECT corpusid, title, abstract, fields[1] FROM papers SEMI JOIN wanted USING (corpusid)")
    return {corpusid: (title, abstract, (), field) for corpusid, title, abstract, field in rows.fetchall()}
