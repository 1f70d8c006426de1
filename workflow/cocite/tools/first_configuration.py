"""What `cocite start` writes: a configuration for a question or for tables, sized for them and for this machine.

Tables of a user are read once: which columns are what, how much there is to learn from, and where to cut by time.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
import yaml

from cocite.config.configuration import configure, resolve
from cocite.config.settings import parse_settings, validated
from cocite.config.source import OPENALEX_KEY
from cocite.config.started import program
from cocite.config.table_files import ENDINGS, CitationTable, CsvFormat, PaperTable, TableFiles
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.memory import total_memory
from cocite.core.progress import byte_size, report
from cocite.core.tables.places import as_text
from cocite.corpus.ingest.cells import cells_of, cited_in, citing_in, paper_in, stripped
from cocite.corpus.ingest.outside import Cited, counted, explain, find_misread
from cocite.corpus.ingest.user_files import check_columns, columns_in, read_rows
from cocite.corpus.ingest.user_tables import YEAR
from cocite.corpus.release.query import TEACHING
from cocite.tools.documentation import ROOT
from cocite.tools.machine import cost_of_papers

QUERIES, HELD_OUT = 600, 1000
"""As many as there are, but no more; the measurements of docs/retrieval.md have as many."""
FEW_LINKS = 5_000
"""Citations below which batches are small and queries need fewer of them (docs/how-to/own-tables.md)."""
MANY_PAPERS, LITTLE_MEMORY = 1_000_000, 4000
"""Papers above which, and MB below which, vectors are smaller."""
APIS = ("openalex", "semantic-scholar")
TOPICS = 5
"""The most topics that are offered."""
WORDS = "words"
"""Chosen in place of a topic, to search for the words."""
LAST_YEAR = re.compile(r"publication_year:(?:<|\d{4}-|[\d|]*\|)?(\d{4})(?=,|$)|to_publication_date:(\d{4})")
FILTER = re.compile(r"[a-z0-9_.]+:[^\s,][^,]*(,[a-z0-9_.]+:[^\s,][^,]*)*")
"""Keys and values, such as publication_year:2026; words to search for are others."""
FILTER_EXAMPLE = "primary_topic.id:T10102,publication_year:2005-2026"
TEMPLATE = """\
# Written by `cocite start`; docs/config.md describes every key.
{remarks}
release: "{today:%Y-%m-%d}" # a name for this version of the corpus
{corpus}
{queries} # {test}
graphs:
  citation: {{signal: citation, directed: true}}
  cocitation: {{signal: cocitation}}
triplets:
  citations: {{sampler: links, graph: citation, group: citations}}
  cocitations: {{sampler: links, graph: cocitation, group: cocitations}}
encoders:
  static: {{kind: static, dimension: {dimension}}} # a table of word vectors, which a CPU trains in minutes
models:
  static:
    encoder: static
    objectives:
      - {{triplets: citations, loss: {{kind: mnrl, scale: 10}}}}
      - {{triplets: cocitations, loss: {{kind: mnrl, scale: 10}}}}
    batch_size: {batch_size}
    epochs: 2
    lr: 5.0e-3
{measured}pathvars: {{results: results/{name}, logs: logs/{name}, benchmarks: benchmarks/{name}}}
"""
MEASURED = """\
baselines: {{popularity: {{kind: popularity}}, bm25: {{kind: bm25}}}}
indexes:
  found: {{models: [static], graph: citation}} # searches text, words and citations, {weights}
{benchmarks}
"""
Ask = Callable[[str, Sequence[str], str | None], str]
"""Asks which of some columns is meant; with a default, if it is not needed."""
OF_PAPERS = {
    "id": "id paperid articleid corpusid openalexid omid pmid doi key",
    "title": "title papertitle articletitle displayname name",
    "abstract": "abstract abstracttext paperabstract summary",
    "year": "year publicationyear pubyear publicationdate pubdate published date",
}
OF_CITATIONS = {
    "citing": f"citing citingid citingpaperid citingcorpusid citingdoi citingpmid from source {OF_PAPERS['id']}",
    "cited": "cited citedid citedpaperid citedcorpusid citeddoi citedpmid referenced to target references cite "
    "referencedworks",
}
USUAL_NAMES = {"papers": OF_PAPERS, "citations": OF_CITATIONS}
"""Table → key of a column → its usual names, the likeliest first, without case, spaces and signs. A table of papers
with lists of references can be that of citations, too."""
NEEDED = ("id", "title", "citing", "cited")
REFERENCES = 5
"""Papers that a held-out paper must cite: as many as a benchmark ranks."""
LEARNING, MEASURING = 100, 30
"""Held-out papers from which a ranking can be learned, and by which it can be measured, at least."""
OUTSIDE = 0.999
"""As the default of corpus.outside."""
_FEW_ABSTRACTS = "2 * count_if(has_abstract) < count(*)"
_PAPERS = f"""
    CREATE TABLE records AS
    SELECT id, max({YEAR}) AS year,
        bool_or(has_title) IS TRUE AS has_title, bool_or(has_abstract) IS TRUE AS has_abstract
    FROM rows WHERE id IS NOT NULL GROUP BY id;
    CREATE VIEW papers AS SELECT id FROM records;
    CREATE VIEW texts AS SELECT id, year FROM records
    WHERE has_title AND (has_abstract OR (SELECT {_FEW_ABSTRACTS} FROM records));
"""
"""Papers, and those with a title and an abstract, or with a title if fewer than half have an abstract."""
_UNREAD_YEARS = f"SELECT count(*), min(year) FROM rows WHERE trim(year) <> '' AND {YEAR} IS NULL"
_LINKS = """
    DELETE FROM citations WHERE citing IS NULL OR cited IS NULL OR citing = cited;
    CREATE TABLE links AS SELECT DISTINCT citing, cited FROM citations
    SEMI JOIN papers AS one ON citing = one.id SEMI JOIN papers AS two ON cited = two.id;
"""
_CUTS = f"""
    WITH spans AS (
        SELECT list_sort(list(earlier.year))[{REFERENCES}] + 1 AS first, any_value(paper.year) AS last
        FROM links JOIN texts AS paper ON citing = paper.id JOIN texts AS earlier ON cited = earlier.id
        WHERE paper.year IS NOT NULL AND earlier.year IS NOT NULL
        GROUP BY paper.id HAVING count(*) >= {REFERENCES}
    ), cuts AS (
        SELECT year AS cut, sum(count(*)) OVER (ORDER BY year DESC) / sum(count(*)) OVER () AS later
        FROM records WHERE year IS NOT NULL GROUP BY year
    )
    SELECT cut, count(last) FROM cuts LEFT JOIN spans ON cut BETWEEN first AND last
    WHERE later BETWEEN 0.1 AND 0.3 GROUP BY cut ORDER BY cut DESC
"""
"""The years to cut at, the last first, and how many papers from then on cite enough papers from before."""
_BY_CHANCE = f"""
    SELECT count(*) FROM (
        SELECT citing FROM links SEMI JOIN texts AS one ON citing = one.id SEMI JOIN texts AS two ON cited = two.id
        WHERE citing IN (SELECT cited FROM links GROUP BY cited HAVING count(*) > 1)
        GROUP BY citing HAVING count(*) >= {REFERENCES})
"""
SEPARATORS = ";|, "
"""Signs that may separate the ids in a cell."""
_BETWEEN = f"""
    WITH known AS (SELECT lower(id) AS id FROM rows),
        cells AS (SELECT lower(cited) AS id FROM citations WHERE contains(cited, {{sign}})),
        items AS (SELECT {stripped("unnest(string_split(id, {sign}))")} AS id FROM cells)
    SELECT (SELECT count(*) FROM items SEMI JOIN known USING (id))
        - (SELECT count(*) FROM cells SEMI JOIN known USING (id))
"""
"""How many more papers are cited if cells are split at a sign."""
_SPLIT = f"""
    CREATE OR REPLACE TABLE citations AS
    SELECT shard, citing, nullif({stripped("unnest(string_split(cited, {sign}))")}, '') AS cited FROM citations
"""
_IN_TWO_CASES = r"""
    SELECT count(DISTINCT id) > count(DISTINCT lower(id))
    FROM (SELECT id FROM rows UNION ALL SELECT unnest([citing, cited]) FROM citations)
    WHERE regexp_matches(id, '(?i)^(doi:|https?://(dx\.)?doi\.org/)?10\.')
"""
_TO_LOWERCASE = """
    UPDATE rows SET id = lower(id);
    UPDATE citations SET citing = lower(citing), cited = lower(cited);
"""
_OTHER_IDS = """
    SELECT count(*) FROM (SELECT id FROM papers UNION ALL SELECT unnest([citing, cited]) FROM citations)
    WHERE (TRY_CAST(id AS BIGINT)::VARCHAR = id AND id NOT LIKE '-%') IS NOT TRUE
"""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The sections `corpus` and `queries` of a configuration, and sentences on what the corpus has and lacks."""

    settings: dict[str, Any]
    queries: dict[str, Any]
    remarks: list[str]
    papers: int = 0
    links: int = FEW_LINKS


def write_first(configfile: Path, question: Mapping[str, str | None], columns: Sequence[str]) -> Iterator[str]:
    """Write a configuration for a topic, a filter, a search, a list, or tables of papers and citations; the lines that
    say what to do with it. Raises `InputError` before anything is written."""
    if configfile.exists() or not configfile.absolute().parent.is_dir():
        reason = "exists already" if configfile.exists() else "is in a folder that does not exist"
        raise InputError(f"{configfile} {reason}; name another file, as in `cocite start other.yaml`.")
    named = dict(column.partition("=")[::2] for column in columns)
    keys = [key for names in USUAL_NAMES.values() for key in names]
    if wrong := next((key for key, name in named.items() if key not in keys or not name), None):
        raise InputError(f"--column {wrong}: write KEY=NAME, with one of the keys {', '.join(keys)}.")
    asks = not any(question.values()) and not columns and sys.stdin.isatty()
    given = {key: value for key, value in (ask_for_question() if asks else question).items() if value is not None}
    is_query = bool(given.keys() & {"topic", "filter", "search", "list"})
    if is_query == ("papers" in given) or (is_query and (columns or "citations" in given)):
        choices = "--topic, --filter or --search, or several of them; --list; or --papers with --citations"
        raise InputError(f"Name one corpus: {choices}.")
    ask = _ask_one_of if asks else None
    corpus = of_query(given, ask) if is_query else of_tables(given, named, configfile, ask)
    text = compose(corpus, configfile)
    config = configure(yaml.safe_load(text))
    cost = cost_of_papers(resolve(yaml.safe_load(text))) if is_query else []
    with configfile.open("x", encoding="utf-8") as file:
        file.write(text)
    cocite, name, key = program("cocite", Path.cwd()), shlex.quote(str(configfile)), config.corpus.api_key
    yield from (f"{configfile} is written.", *corpus.remarks, *cost, "")
    if key and not key.is_set:
        yield f"    export {key.variable}=…    # from {key.page}"
    yield f"    {cocite} corpus plan --configfile {name}    # what the corpus takes, in full"
    yield f"    {run_command(name)}    # runs it; interrupted, it resumes"
    results = shlex.quote(str(config.folders["results"]))
    yield f'    {cocite} search "…" --results {results}{"" if config.indexes else " --embed"}'


def ask_for_question() -> dict[str, str]:
    """What the options name, as the user answers."""
    choices = [*APIS, "files"]
    api = _ask_one_of("Papers of OpenAlex, of Semantic Scholar, or files of your own?", choices, "openalex")
    if api in APIS:
        more = f"a topic, a filter such as {FILTER_EXAMPLE}, " if api == "openalex" else ""
        answer = typer.prompt(f"Which papers? ({more}words to search for, or a list such as papers.bib)")
        if Path(answer).is_file():
            kind = "list"
        elif api == "openalex" and FILTER.fullmatch(answer):
            kind = "filter"
        else:
            kind = "topic" if api == "openalex" and OPENALEX_KEY.is_set else "search"
        return {"api": api, kind: answer}
    papers = typer.prompt("Table of papers", value_proc=_existing)
    citations = typer.prompt("Table of citations, or of papers with references", papers, value_proc=_existing)
    return {"papers": papers, "citations": citations}


def _existing(files: str) -> str:
    try:
        files_of(files)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return files


def _ask_one_of(question: str, choices: Sequence[str], default: str | None = None) -> str:
    def known(answer: str) -> str:
        if answer not in (*choices, default):
            raise typer.BadParameter(f"{answer!r} is none of {', '.join(choices)}.")
        return answer

    answer: str = typer.prompt(f"{question} ({', '.join(choices)})", default, value_proc=known)
    return answer


def of_query(question: Mapping[str, str], ask: Ask | None) -> Corpus:
    """A corpus from an API, cut two years before the last. Raises `InputError` for a wrong filter or topic."""
    given = {name: value for name, value in question.items() if name != "api"}
    is_openalex, remarks = question.get("api") != "semantic-scholar", list[str]()
    if not is_openalex and (wrong := next((name for name in ("topic", "filter") if name in given), None)):
        raise InputError(f"--{wrong} is for OpenAlex; search Semantic Scholar for words with --search.")
    if topic := given.pop("topic", None):
        number, name = _topic(topic, ask)
        if number == WORDS:
            given["search"] = topic
        else:
            given["filter"] = ",".join(filter(None, [f"primary_topic.id:{number}", given.get("filter")]))
            remarks.append(f"{number} is the topic {name}.")
    filters = given.get("filter", "")
    if filters and not FILTER.fullmatch(filters):
        raise InputError(f"--filter {filters!r} is no filter such as {FILTER_EXAMPLE}; words are for --search.")
    test = "The last three years test what earlier ones teach; if these have few papers, set queries.holdout_from to"
    remarks.append(f"Papers that match, and those that they cite. {test} an earlier year.")
    settings: dict[str, Any] = {"source": "openalex" if is_openalex else "semantic-scholar-api"}
    settings |= {"query" if name == "search" and not is_openalex else name: value for name, value in given.items()}
    years = [int(year) for pair in LAST_YEAR.findall(filters) for year in pair if year]
    cut = min([*years, datetime.now(UTC).year]) - 2
    queries = {"count": QUERIES, "validation": 0.1, "holdout": HELD_OUT, "holdout_from": cut}
    return Corpus(settings=settings | {"expand": {"references": 1}}, queries=queries, remarks=remarks)


def _topic(named: str, ask: Ask | None) -> tuple[str, str]:
    """Id and name of the topic of OpenAlex with this name, or of what the user chooses: a near one, or `WORDS`."""
    from cocite.corpus.release.works_query import WorksApi
    from cocite.corpus.sources.openalex import API

    sent = {"search": named, "select": "id,display_name,works_count", "per_page": str(TOPICS)}
    found = WorksApi(API, "topics").page(sent).works
    topics = {str(each["id"]).rpartition("/")[2]: each for each in found}
    listed = "; ".join(f"{key}: {each['display_name']}, {each['works_count']:,} works" for key, each in topics.items())
    same = [key for key, each in topics.items() if each["display_name"].casefold() == named.casefold()]
    if same:
        return same[0], topics[same[0]]["display_name"]
    if ask is None:
        nearest = f"the nearest are {listed}; name one of them" if listed else "name another one"
        raise InputError(f"No topic of OpenAlex is named {named!r}; {nearest}, or search for words with --search.")
    chosen = ask(f"Which topic, or words to search for? {listed}", [*topics, WORDS], next(iter(topics), WORDS))
    return chosen, topics.get(chosen, {}).get("display_name", "")


def of_tables(question: Mapping[str, str], columns: Mapping[str, str], output: Path, ask: Ask | None) -> Corpus:
    """A corpus of two tables. Raises `InputError` if a column is unknown, or there is nothing to learn from."""
    papers, of_papers = described("papers", question["papers"], columns, ask)
    files = question.get("citations", question["papers"])
    of_one = {"citing": of_papers.columns.id} if files == question["papers"] else {}
    citations, of_citations = described("citations", files, of_one | {**columns}, ask)
    size = byte_size(sum(Path(path).stat().st_size for path in {*of_papers.paths(), *of_citations.paths()}))
    report(f"Reading {size} of tables …")
    found = survey(of_papers, of_citations, output.absolute())
    texts = f"{found.texts:,} with {'a title' if found.are_titles_enough else 'title and abstract'}"
    links = f"{found.links:,} citations among them of {found.citations:,}"
    remarks = [f"{found.papers:,} papers, {texts}; {links} ({size})."]
    if not found.texts or not found.links:
        raise InputError(f"There is nothing to learn from: {remarks[0]} Papers with a text must cite each other.")
    if found.separator:
        citations["columns"]["cited"] = {"column": citations["columns"]["cited"], "separator": found.separator}
    if found.are_in_two_cases:
        papers["lowercase"] = citations["lowercase"] = True
    if found.unread_years:
        example = f"such as {found.unread_year!r}; write 2001 or 2001-03-15"
        remarks.append(f"{found.unread_years:,} years cannot be read, {example}.")
    queries: dict[str, Any] = {"count": min(QUERIES, max(MEASURING, found.texts // 10)), "validation": 0.1}
    if found.links < TEACHING:
        more = f"from {TEACHING} on, an encoder finds more than BM25. Add papers that these cite or that cite them."
        remarks.append(f"{found.links:,} citations teach little: {more}")
    if found.links < FEW_LINKS:
        queries |= {"min_citations": 1, "min_references": 0}
    if found.cut is None:
        lacks = f"no year has {MEASURING} papers from then on that cite {REFERENCES} earlier ones"
        remarks.append(f"No test by time: {lacks}.")
    possible = found.later if found.cut else found.by_chance // 3  # the others are needed to train
    few = f"{possible:,} papers can be held out: fewer than the"
    if possible < MEASURING:
        remarks.append(f"{few} {MEASURING} for a test and an index, so there is only an encoder.")
    else:
        queries |= {"holdout": min(HELD_OUT, possible)} | ({"holdout_from": found.cut} if found.cut else {})
        if possible < LEARNING:
            remarks.append(f"{few} {LEARNING} to learn a ranking, so the index has the weights that come with CoCite.")
    settings: dict[str, Any] = {"source": "table"} | ({"ids": "string"} if found.other_ids else {})
    settings |= {"papers": papers, "citations": citations}
    settings |= {"allow_missing_abstract": True} if found.are_titles_enough else {}
    return Corpus(settings=settings, queries=queries, remarks=remarks, papers=found.papers, links=found.links)


def compose(corpus: Corpus, configfile: Path) -> str:
    """A configuration as YAML."""
    cut, held_out = corpus.queries.get("holdout_from"), corpus.queries.get("holdout", 0)
    learns = held_out >= LEARNING
    benchmark = {"kind": "holdout", "search": True, "by_time": bool(cut), "selection": 0.3 if learns else None}
    benchmarks = _yaml({"benchmarks": {"later" if cut else "chance": {key: it for key, it in benchmark.items() if it}}})
    weights = f"with weights {'learned on 30% of the held-out papers' if learns else 'that come with CoCite'}"
    test = f"papers from {cut} on test what earlier ones teach" if cut else "held-out papers test what others teach"
    is_large = corpus.papers > MANY_PAPERS or total_memory() < LITTLE_MEMORY
    return TEMPLATE.format(
        remarks="\n".join(f"# {remark}" for remark in corpus.remarks),
        today=datetime.now(UTC),
        corpus=_yaml({"corpus": corpus.settings}),
        queries=_yaml({"queries": corpus.queries}),
        test=test if held_out else "no paper is held out",
        batch_size=64 if corpus.links < FEW_LINKS else 1024,
        dimension=256 if is_large else 1024,
        measured=MEASURED.format(weights=weights, benchmarks=benchmarks) if held_out else "",
        name=re.sub(r"[^a-z0-9]+", "-", configfile.stem.lower()).strip("-") or "mine",
    )


def _yaml(values: Mapping[str, Any]) -> str:
    dumped: str = yaml.safe_dump(values, default_flow_style=None, width=10**6, sort_keys=False, allow_unicode=True)
    return dumped.rstrip()


def machine() -> tuple[int, int]:
    """Cores of this machine, and the memory that jobs may take of it, MB."""
    return os.cpu_count() or 1, total_memory() * 3 // 4


def run_command(configfile: str) -> str:
    """The command that runs a configuration from the working folder, with the cores and the memory of this machine."""
    cores, memory_mb = machine()
    if Path.cwd() == ROOT:
        return f"make run CONFIG={configfile} CORES={cores} MEMORY_MB={memory_mb}"
    snakemake = f"{program('snakemake', Path.cwd())} --snakefile {shlex.quote(str(ROOT / 'Snakefile'))}"
    options = f"--cores {cores} --resources mem_mb={memory_mb} --configfile {configfile} --replace-workflow-config"
    return f"{snakemake} {options} all"


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Counts of what two tables have."""

    papers: int
    texts: int
    are_titles_enough: bool
    """Whether fewer than half of the papers have an abstract."""
    citations: int
    links: int
    """Distinct citations between two of the papers."""
    other_ids: int
    """Ids that are no whole numbers."""
    separator: str | None
    """The sign between the cited ids in a cell, if they are lists that were written as text."""
    are_in_two_cases: bool
    """Whether a DOI is written in uppercase and in lowercase letters."""
    unread_years: int
    unread_year: str
    """One of the years that cannot be read."""
    cut: int | None
    """First year of the later papers; none if time cannot be cut."""
    later: int
    """Papers from then on that can be held out."""
    by_chance: int
    """Papers that can be held out by chance."""


def files_of(files: str) -> TableFiles:
    """A table in some files. Raises `InputError` if they cannot be named so, or if there are none."""
    table = parse_settings(TableFiles, json.dumps({"files": files}), "A table")
    if not table.paths():
        raise InputError(f"There is no file {files}; name another, or a pattern of several, such as 'papers/*.csv'.")
    return table


def described(kind: str, files: str, given: Mapping[str, str], ask: Ask | None = None) -> tuple[dict[str, Any], Any]:
    """A table as a configuration describes it, with the columns that are given, have a usual name, or are asked for;
    and the entry that this becomes. Raises `InputError` if a column that is needed is unknown."""
    written: dict[str, Any] = {"files": files}
    table = files_of(files)
    paths = [Path(path) for path in table.paths()]
    if (form := table.format_of(str(paths[0]))) is None:
        endings = ", ".join(ENDINGS)
        raise InputError(f"{paths[0]}: the name of a table must end in {endings}, or in one of them and .gz.")
    if isinstance(form, CsvFormat):  # other delimiters show in a header that is read as one column
        header = columns_in(validated(TableFiles, written | {"format": {"kind": "csv", "quotes": False}}), paths[0])
        if len(header) == 1 and (sign := next((sign for sign in ";\t|" if sign in header[0]), None)):
            written["format"] = {"kind": "csv", "delimiter": sign}
    found = columns_in(validated(TableFiles, written), paths[0])
    plain = {re.sub(r"[\W_]", "", name).lower(): name for name in reversed(found)}
    columns: dict[str, str] = {}
    for key, usual in USUAL_NAMES[kind].items():
        name = given.get(key) or next((plain[each] for each in usual.split() if each in plain), None)
        if name is None and ask:
            name = ask(f"Which column of {files} is `{key}`?", found, None if key in NEEDED else "")
        elif name is None and key in NEEDED:
            lacks = f"{files} has no column that is clearly `{key}`; it has {', '.join(found)}"
            raise InputError(f"{lacks}. Name one with --column {key}=…, or another table.")
        columns |= {key: name} if name else {}
    if kind == "papers" and "doi" not in columns and (name := plain.get("doi")):
        columns["doi"] = name  # it may be the id as well
    written["columns"] = columns
    entry = validated(PaperTable if kind == "papers" else CitationTable, written)
    check_columns(entry, paths, key=f"corpus.{kind}")
    return written, entry


def survey(papers: PaperTable, citations: CitationTable, output: Path) -> Survey:
    """Count what two tables have, spilling beside the output. Raises `InputError` if they write ids differently."""
    cores, memory_mb = machine()
    with connect(memory_mb=memory_mb, threads=cores, spill_to=output.parent) as connection:
        connection.execute("CREATE TABLE rows (id VARCHAR, has_title BOOLEAN, has_abstract BOOLEAN, year VARCHAR)")
        named = [papers.columns.title, papers.columns.abstract, papers.columns.year]
        for path in map(Path, papers.paths()):
            cells = cells_of(papers, path)
            title, abstract, year = (cells.value(name) if name else "NULL" for name in named)
            query = f"SELECT {paper_in(papers, cells)}, trim({title}) <> '', trim({abstract}) <> '', {year} FROM given"
            read_rows(connection, papers, path, [papers.columns.id, *filter(None, named)], f"INSERT INTO rows {query}")
        connection.execute("CREATE TABLE citations (shard VARCHAR, citing VARCHAR, cited VARCHAR)")
        for path in map(Path, citations.paths()):
            cells, ends = cells_of(citations, path), [citations.columns.citing, citations.columns.cited.column]
            pairs = f"SELECT {citing_in(citations, cells)}, unnest({cited_in(citations, cells)}) FROM given"
            query = f"SELECT {as_text(str(path))}, * FROM ({pairs})"
            read_rows(connection, citations, path, ends, f"INSERT INTO citations {query}")
        between = {sign: number(connection, _BETWEEN.format(sign=as_text(sign))) for sign in SEPARATORS}
        separator = max(SEPARATORS, key=between.__getitem__)
        if is_split := between[separator] > 0:
            connection.execute(_SPLIT.format(sign=as_text(separator)))
        if are_in_two_cases := bool(number(connection, _IN_TWO_CASES)):
            connection.execute(_TO_LOWERCASE)
        connection.execute(_PAPERS + _LINKS)
        if misread := find_misread([Cited(**row) for row in counted(connection).to_pylist()], OUTSIDE):
            raise InputError(explain(misread, OUTSIDE))
        ((unread_years, unread_year),) = connection.execute(_UNREAD_YEARS).fetchall()
        cuts = connection.sql(_CUTS).fetchall()
        cut, later = next((each for least in (LEARNING, MEASURING) for each in cuts if each[1] >= least), (None, 0))
        counts = ("papers", "texts", "citations", "links")
        return Survey(
            **{name: number(connection, f"SELECT count(*) FROM {name}") for name in counts},
            are_titles_enough=bool(number(connection, f"SELECT {_FEW_ABSTRACTS} FROM records")),
            other_ids=number(connection, _OTHER_IDS),
            separator=separator if is_split else None,
            are_in_two_cases=are_in_two_cases,
            unread_years=unread_years,
            unread_year=unread_year,
            cut=cut,
            later=later,
            by_chance=number(connection, _BY_CHANCE),
        )
