"""The hold-out benchmark: can a model distinguish the papers that a held-out paper is linked with from other ones?

Others are random papers or, since relevant papers are often cited, ones that are cited as often. Links are counted in
the whole release: held-out papers are excluded from graphs, indexes and triplets, not from the truth. Of papers that
are one work, one represents all, with the citations of all. Selection queries are in a table that no score reads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.benchmark import AspectSettings, HoldoutSettings, MadeOfHeldOut, TitleSearch
from cocite.config.benchmarks.holdout import MATCHED, OF_AN_AUTHOR, OF_KNOWN_AUTHORS, SEARCHED, TITLE_SEARCH
from cocite.config.graphs import INTENTS
from cocite.config.settings import GivenAsJson
from cocite.core.database import READ_BY_TRAINING, connect, count_mentions, view_citations_of_works
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS
from cocite.core.options import Citations, MemoryMb, Omissions, Papers, Queries, Seed, Threads
from cocite.core.randomness import fractions, generator, priorities, smallest
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.declarations.corpus import AUTHORS
from cocite.core.tables.files import verified_files, write_table
from cocite.core.tables.papers import (
    FROM_THE_CUT_ON,
    HASHED_AUTHORS,
    HELD_OUT,
    HELD_OUT_BY_TIME,
    read_kept_out,
    read_twins,
)
from cocite.core.written_ids import NOT_A_WORD, Ids, distinct, look_up
from cocite.evaluation.benchmark import Benchmark, Document, Judgements, Tables, judged, write_benchmark, write_rows

CLASSES_IN_A_UNIT = 3
LARGEST_POOL, LARGEST_CLASS = 1_000_000, 200_000
"""Papers that candidates are drawn from: of all, and of each class."""
ROWS_AT_ONCE = 100_000

LinkedBy = Mapping[int, Ids]
"""The papers that each query is linked with, ascending."""
REPEATED = f"task {TITLE_SEARCH.name}: title that its abstract repeats"
WORDLESS = f"task {TITLE_SEARCH.name}: title or abstract without a word"
SHARED = f"task {TITLE_SEARCH.name}: title or abstract of several held-out papers"
BEYOND = f"task {TITLE_SEARCH.name}: held-out paper beyond those asked for"
NO_SEARCHES = empty_schema(TABLES["searches"]).empty_table()

UNITED = {"intents": "flatten(list(intents))", "influential": "bool_or(influential)", "mentions": "sum(mentions)"}
CITED = """
    SELECT citing AS query, cited AS paper
    FROM citations_of_works
    JOIN queries ON citing = queries.corpusid
    JOIN with_text ON cited = with_text.corpusid
    WHERE {} AND cited <> citing
    ORDER BY query, paper
"""
LINKED = """
    WITH links AS (
        SELECT citing AS query, cited AS paper, intents
        FROM citations_of_works JOIN queries ON citing = queries.corpusid
        UNION ALL
        SELECT cited, citing, intents FROM citations_of_works JOIN queries ON cited = queries.corpusid
    )
    SELECT query, paper, flatten(list(intents)) AS aspects
    FROM links JOIN with_text ON paper = with_text.corpusid
    WHERE query <> paper
    GROUP BY query, paper
"""
COCITED = """
    WITH counted AS (
        SELECT of_query.cited AS query, of_paper.cited AS paper, count(*) AS citing
        FROM citations_of_works AS of_query
        JOIN queries ON of_query.cited = queries.corpusid
        JOIN citations_of_works AS of_paper ON of_paper.citing = of_query.citing AND of_paper.cited <> of_query.cited
        GROUP BY ALL
    )
    SELECT query, paper FROM counted JOIN with_text ON paper = with_text.corpusid
    WHERE citing >= $least
    ORDER BY query, paper
"""
POPULARITY = """
    SELECT corpusid, coalesce(citations, 0) AS citations
    FROM with_text LEFT JOIN (
        SELECT cited AS corpusid, count(*) AS citations FROM read_of_works WHERE citing <> cited GROUP BY cited
    ) USING (corpusid)
"""
"""How often each candidate is cited by papers that training reads; papers that are kept out are cited by none."""
SAME_AUTHORS = f"""
    WITH named AS (
        SELECT corpusid, {HASHED_AUTHORS} AS names
        FROM papers
        WHERE len(authors) > 0 AND corpusid IN (SELECT query FROM pairs UNION ALL SELECT paper FROM pairs)
    )
    SELECT task, count(*), count(*) FILTER (list_has_any(one.names, other.names))
    FROM pairs JOIN named AS one ON one.corpusid = query JOIN named AS other ON other.corpusid = paper
    GROUP BY task
"""


def prepare_holdout(
    *,
    papers: Papers,
    citations: Citations,
    queries: Queries,
    contexts: Annotated[Path | None, typer.Option(help="Folder of the table contexts, for grades by mentions.")] = None,
    settings: GivenAsJson[MadeOfHeldOut],
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Make a benchmark of held-out papers: the papers that they cite, are co-cited with, or are linked with by aspect.

    It spills into the folder of the tables. Raises `InputError` if no held-out paper has enough links.
    """
    benchmark, selection, omitted = Benchmark(), Benchmark(), dict[str, int]()
    of_holdout = settings if isinstance(settings, HoldoutSettings) else None
    with connect(memory_mb=memory_mb, threads=threads, spill_to=tables) as database:
        split = HELD_OUT_BY_TIME if of_holdout and of_holdout.by_time else HELD_OUT
        held_out, with_text = _open(database, papers, citations, contexts, queries, split)
        omitted["held-out paper without text"] = held_out - len(with_text)
        # Whether a paper is a selection query depends only on the seed, its id and this label, which is never edited.
        share = (of_holdout and of_holdout.selection) or 0
        is_set_apart = fractions(priorities(seed, "holdout choosing", with_text)) < share
        tested, set_apart = with_text[~is_set_apart], with_text[is_set_apart]
        database.execute(f"CREATE TABLE popularity AS {POPULARITY}")
        pool, pools = pools_of(database, seed, by_class=of_holdout is not None)
        marked: LinkedBy = {}
        if of_holdout and of_holdout.graded:
            marked = _links(database.sql(CITED.format(" AND ".join(of_holdout.graded.in_sql().values()))))
            if not marked:
                none = "no citation by a held-out paper has the marks of `graded`, so all grades would be 1"
                raise InputError(f"{citations}: {none}; leave it out of the benchmark.")
        searches = [NO_SEARCHES]
        for task, links in _links_of_tasks(database, settings):
            strong = marked if task == "cite" else {}
            choices: list[RandomChoice | MatchedChoice] = [RandomChoice(task, settings, seed, pool=pool)]
            if of_holdout:
                linked, classes = classes_of(database, links.relevant)
                choices.append(MatchedChoice(f"{task}{MATCHED}", of_holdout, seed, linked, classes, pools))
                if of_holdout.search:
                    searches.append(_searches(f"{task}{SEARCHED}", links.relevant, strong, set_apart))
            for choice in choices:
                benchmark.judgements[choice.name] = _graded(choice.judge(tested, links, omitted), strong)
                selection.judgements[choice.name] = _graded(choice.judge(set_apart, links, {}), strong)
        _check_judged(benchmark, held_out, settings, queries)
        omitted |= _same_authors(database, benchmark, pa.concat_tables(searches))
        popularity = database.sql("FROM popularity ORDER BY corpusid").to_arrow_reader(ROWS_AT_ONCE)
        write_table(tables / "popularity.parquet", "popularity", popularity)
        ranked = [candidates for of_task in benchmark.judgements.values() for candidates in of_task.items()]
        ids = sorted({int(document) for query, found in ranked for document in (query, *found)})
        documents = {str(paper): document for paper, document in _documents(database, ids).items()}
        short_queries = set[str]()
        if of_holdout and of_holdout.title_search:
            searched = _documents(database, tested)
            of_search, short_queries = add_title_search(benchmark, searched, of_holdout.title_search, seed, omitted)
            documents |= of_search
    write_table(tables / "searches.parquet", "searches", pa.concat_tables(searches))
    write_rows(tables / "selection.parquet", "selection", (row[:4] for row in judged(selection)))
    write_benchmark(benchmark, documents, omitted, short_queries=short_queries, tables=tables, omissions=omissions)


class Links(NamedTuple):
    """The papers that queries are linked with."""

    all: LinkedBy
    relevant: LinkedBy
    otherwise: LinkedBy | None = None
    """Those that are linked only by another aspect; None without aspects."""


@dataclass(frozen=True)
class Choice:
    """The choice of candidates in one task; that of a query depends only on the seed and the query."""

    name: str
    settings: MadeOfHeldOut
    seed: int

    def in_order(self, query: int, papers: Ids) -> Ids:
        """The papers by seeded priority, the same with random candidates and with matched ones."""
        label = f"holdout {self.name.removesuffix(MATCHED)}"
        rank = priorities(self.seed, label, np.full(len(papers), query), papers)
        return papers[np.argsort(rank, kind="stable")]


@dataclass(frozen=True)
class RandomChoice(Choice):
    """Relevant papers, some that are linked by another aspect, and random ones."""

    pool: Ids
    """Papers with text that random candidates are drawn from, ascending."""

    def judge(self, queries: Ids, links: Links, omitted: dict[str, int]) -> Judgements:
        """The candidates of each query that has enough, 1 for the relevant and 0 for the others; count the rest."""
        few_positives = f"task {self.name}: fewer than {self.settings.positives} positives"
        few_negatives = f"task {self.name}: fewer than {self.settings.negatives} papers to draw negatives from"
        no_others = f"task {self.name}: no paper that is linked by another aspect only"
        omitted |= {few_positives: 0, few_negatives: 0} | ({} if links.otherwise is None else {no_others: 0})
        judgements = {}
        for query in queries.tolist():
            linked, relevant, others = (of.get(query, NO_IDS) if of else NO_IDS for of in links)
            negatives = self.negatives(query, linked)
            if len(relevant) < self.settings.positives:
                omitted[few_positives] += 1
            elif links.otherwise is not None and len(others) == 0:
                omitted[no_others] += 1
            elif len(negatives) < self.settings.negatives:
                omitted[few_negatives] += 1
            else:
                positives = self.in_order(query, relevant)[: self.settings.positives].tolist()
                negatives = [*self.in_order(query, others)[: self.settings.linked].tolist(), *negatives]
                judgements[str(query)] = {str(p): 1 for p in positives} | {str(n): 0 for n in negatives}
        return judgements

    def negatives(self, query: int, linked: Ids) -> list[int]:
        """Random papers of the pool, none of which is linked with the query or the query itself."""
        draws = min(len(self.pool), self.settings.negatives + len(linked) + 1)
        draw = generator(self.seed, "holdout negatives", self.name, query)
        drawn = self.pool[draw.choice(len(self.pool), draws, replace=False)]
        return drawn[~np.isin(drawn, linked) & (drawn != query)][: self.settings.negatives].tolist()


@dataclass(frozen=True)
class MatchedChoice(Choice):
    """Relevant papers, each among the same number of others that are cited as often."""

    settings: HoldoutSettings
    papers: Ids
    """All papers that are relevant to a query, ascending."""
    classes: NDArray[np.int64]
    pools: Mapping[int, Ids]
    """The papers of each class that others are drawn from, ascending."""

    def judge(self, queries: Ids, links: Links, omitted: dict[str, int]) -> Judgements:
        """The candidates of each query that has enough, 1 for the relevant and 0 for the others; count the rest."""
        positives, each = self.settings.positives, max(1, self.settings.negatives // self.settings.positives)
        few = f"task {self.name}: fewer than {positives} positives with {each} other papers that are cited as often"
        judgements: Judgements = {}
        for query in queries.tolist():
            candidates = self._candidates(query, links.relevant.get(query, NO_IDS), each)
            if sum(candidates.values()) == positives:
                judgements[str(query)] = candidates
        omitted[few] = len(queries) - len(judgements)
        return judgements

    def _candidates(self, query: int, relevant: Ids, each: int) -> dict[str, int]:
        """Relevant papers in seeded order, each with others of its class, until there are enough."""
        draw = generator(self.seed, "holdout matched", self.name, query)
        taken, candidates = np.append(relevant, query), dict[str, int]()
        in_order = self.in_order(query, relevant)
        for paper, place in zip(in_order.tolist(), look_up(self.papers, in_order)[0].tolist(), strict=True):
            pool = self.pools[int(self.classes[place])]
            drawn = pool[draw.choice(len(pool), min(len(pool), each + len(taken)), replace=False)]
            others = drawn[~np.isin(drawn, taken)][:each]
            if len(others) == each:
                taken = np.append(taken, others)
                candidates |= {str(paper): 1} | dict.fromkeys(map(str, others.tolist()), 0)
            if sum(candidates.values()) == self.settings.positives:
                break
        return candidates


def citation_class(citations: NDArray[np.integer]) -> NDArray[np.int64]:
    """Classes of citations: a third of a unit of log(1 + citations); up to three citations, each number is a class."""
    return np.floor(CLASSES_IN_A_UNIT * np.log1p(citations)).astype(np.int64)


def pools_of(database: duckdb.DuckDBPyConnection, seed: int, *, by_class: bool) -> tuple[Ids, dict[int, Ids]]:
    """The papers of the table `popularity`, and those of each class if asked for, ascending; samples of many."""
    whole, pools = NO_IDS, dict[int, Ids]()
    for batch in database.sql("FROM popularity").to_arrow_reader(ROWS_AT_ONCE):
        ids, classes = batch["corpusid"].to_numpy(), citation_class(batch["citations"].to_numpy())
        whole = smallest(np.concatenate([whole, ids]), LARGEST_POOL, seed, "holdout pool")
        for each in np.unique(classes).tolist() if by_class else ():
            sample = np.concatenate([pools.get(each, NO_IDS), ids[classes == each]])
            pools[each] = smallest(sample, LARGEST_CLASS, seed, "holdout matched pool")
    return np.sort(whole), {each: np.sort(pool) for each, pool in pools.items()}


def classes_of(database: duckdb.DuckDBPyConnection, linked: LinkedBy) -> tuple[Ids, NDArray[np.int64]]:
    """All papers that queries are linked with, ascending, and their classes by the table `popularity`."""
    database.register("linked_papers", pa.table({"corpusid": distinct(NO_IDS, *linked.values())}))
    rows = database.sql("FROM popularity SEMI JOIN linked_papers USING (corpusid) ORDER BY corpusid").fetchnumpy()
    return rows["corpusid"], citation_class(rows["citations"])


def add_title_search(
    benchmark: Benchmark, papers: Mapping[int, Document], settings: TitleSearch, seed: int, omitted: dict[str, int]
) -> tuple[dict[str, Document], set[str]]:
    """Add the search of abstracts by titles to a benchmark; return its documents, and which of them are queries.
    `papers` are the held-out ones that it may be about. Raises `InputError` if none has a title to search for."""
    words = {paper: (_words(title), _words(abstract)) for paper, (title, abstract, *_) in papers.items()}
    times = Counter(text for both in words.values() for text in set(both))
    telling, counts = [], dict.fromkeys((REPEATED, WORDLESS, SHARED), 0)
    for paper, (title, abstract) in words.items():
        if not (title and abstract):  # as with `corpus.allow_missing_abstract`
            counts[WORDLESS] += 1
        elif f" {title} " in f" {abstract} ":
            counts[REPEATED] += 1
        elif times[title] > 1 or times[abstract] > 1:
            counts[SHARED] += 1
        else:
            telling.append(paper)
    omitted |= counts
    if not telling:
        lacking = f"None of the {len(papers)} held-out papers with a text has a unique title"
        remedy = "hold out more papers, or leave `title_search` out of the benchmark"
        raise InputError(f"{lacking} that its abstract does not repeat; {remedy}.")
    papers_told = np.array(sorted(telling), dtype=np.int64)
    chosen = smallest(papers_told, settings.documents, seed, f"holdout {TITLE_SEARCH.name}")
    omitted[BEYOND] = len(telling) - len(chosen)
    queries: dict[str, Document] = {}
    abstracts: dict[str, Document] = {}
    for paper in chosen.tolist():
        of_title, of_abstract, _, field = papers[paper]
        queries[f"title:{paper}"] = of_title, None, (), field
        abstracts[f"abstract:{paper}"] = None, of_abstract, (), field
    benchmark.judgements[TITLE_SEARCH.name] = {q: {a: 1} for q, a in zip(queries, abstracts, strict=True)}
    benchmark.collections[TITLE_SEARCH.name] = set(abstracts)
    return queries | abstracts, set(queries)


def _words(text: str | None) -> str:
    """A text without what is no letter or digit, so that spelling alike in two places counts as one."""
    return NOT_A_WORD.sub(" ", (text or "").casefold()).strip()


def _check_judged(benchmark: Benchmark, held_out: int, settings: MadeOfHeldOut, queries: Path) -> None:
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


def _open(
    database: duckdb.DuckDBPyConnection, papers: Path, citations: Path, contexts: Path | None, queries: Path, split: str
) -> tuple[int, Ids]:
    """Name the tables in the database; return the number of held-out papers and those with text, ascending."""
    read = ["corpusid", "has_text", "title", "abstract", "fields", AUTHORS]
    database.read_parquet(verified_files(papers, "papers", read)).create_view("papers")
    sentences = None if contexts is None else verified_files(contexts, "contexts", ["citing", "cited"])
    count_mentions(database, None if sentences is None else database.read_parquet(sentences))
    database.read_parquet(verified_files(citations, "citations")).create_view("unmarked")
    database.execute("CREATE VIEW citations AS FROM unmarked LEFT JOIN mentioned USING (citing, cited)")
    kept_out = read_kept_out(queries)
    held_out = kept_out.filter(pc.field("split") == split).select(["corpusid"])
    later = kept_out.filter(pc.field("split").isin(FROM_THE_CUT_ON)).select(["corpusid"])
    for name, table in {"kept_out": kept_out.select(["corpusid"]), "held_out": held_out, "later": later}.items():
        database.register(name, table)
    database.register("twins", read_twins(queries).as_table())
    view_citations_of_works(database, "citations", "citations_of_works", UNITED)
    database.execute(READ_BY_TRAINING)
    view_citations_of_works(database, "read_by_training", "read_of_works")
    with_text = "SELECT corpusid FROM papers WHERE has_text AND corpusid"
    without = "NOT IN (FROM later) AND corpusid NOT IN (SELECT corpusid FROM twins)"
    database.execute(f"CREATE VIEW with_text AS {with_text} {without}")
    database.execute(f"CREATE TABLE queries AS {with_text} IN (FROM held_out)")
    return len(held_out), database.sql("FROM queries ORDER BY corpusid").fetchnumpy()["corpusid"]


def _links_of_tasks(database: duckdb.DuckDBPyConnection, settings: MadeOfHeldOut) -> Iterator[tuple[str, Links]]:
    if isinstance(settings, HoldoutSettings):
        cocited = database.sql(COCITED, params={"least": settings.min_cocitations})
        for task, pairs in (("cite", database.sql(CITED.format("true"))), ("cocite", cocited)):
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


def _graded(judgements: Judgements, strong: LinkedBy) -> Judgements:
    """The judgements, with grade 2 for the candidates that are strongly linked."""
    for query, candidates in judgements.items():
        candidates |= {str(paper): 2 for paper in strong.get(int(query), NO_IDS).tolist() if str(paper) in candidates}
    return judgements


def _searches(task: str, linked: LinkedBy, strong: LinkedBy, set_apart: Ids) -> pa.Table:
    """The papers that each query has to find, with grade 2 for those that are strongly linked."""
    queries = np.repeat(np.array([*linked], np.int64), [len(papers) for papers in linked.values()])
    split = np.where(np.isin(queries, set_apart), "selection", "test")
    papers = np.concatenate([NO_IDS, *linked.values()])
    grades = np.concatenate([NO_IDS, *(1 + np.isin(of, strong.get(query, NO_IDS)) for query, of in linked.items())])
    columns = {"task": [task] * len(papers), "query": queries, "paper": papers, "relevance": grades, "split": split}
    return pa.table(columns, schema=NO_SEARCHES.schema)


def _same_authors(database: duckdb.DuckDBPyConnection, benchmark: Benchmark, searches: pa.Table) -> dict[str, int]:
    """How many relevant papers of each task have an author of the query; nothing if papers have no authors."""
    if AUTHORS not in database.table("papers").columns:
        return {}
    ranked = []
    for task, of_task in benchmark.judgements.items():
        for query, candidates in of_task.items():
            relevant = (int(paper) for paper, grade in candidates.items() if grade)
            ranked += [{"task": task, "query": int(query), "paper": paper} for paper in relevant]
    pairs = searches.filter(pc.field("split") == "test").select(["task", "query", "paper"])
    database.register("pairs", pa.concat_tables([pairs, pa.Table.from_pylist(ranked, pairs.schema)]))
    return {
        reason.format(task): count
        for task, *counts in database.sql(SAME_AUTHORS).fetchall()
        for reason, count in zip((OF_KNOWN_AUTHORS, OF_AN_AUTHOR), counts, strict=True)
    }


def _documents(database: duckdb.DuckDBPyConnection, papers: Sequence[int] | Ids) -> dict[int, Document]:
    database.register("wanted", pa.table({"corpusid": papers}))
    rows = database.sql("SELECT corpusid, title, abstract, fields[1] FROM papers SEMI JOIN wanted USING (corpusid)")
    return {corpusid: (title, abstract, (), field) for corpusid, title, abstract, field in rows.fetchall()}
