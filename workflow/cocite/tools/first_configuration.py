"""What `cocite start` writes: a configuration for a question or for tables, sized for them and for this machine."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
import yaml

from cocite.config.configuration import configure, resolve
from cocite.config.source import OPENALEX_KEY
from cocite.config.started import program
from cocite.core.errors import InputError
from cocite.core.memory import total_memory
from cocite.core.progress import byte_size, report
from cocite.corpus.release.query import TEACHING
from cocite.tools.documentation import ROOT
from cocite.tools.machine import cost_of_papers
from cocite.tools.table_survey import LEARNING, MEASURING, REFERENCES, USUAL_NAMES, Ask, described, files_of, survey

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
    cores, memory_mb = machine()
    found = survey(of_papers, of_citations, spill_to=output.absolute().parent, cores=cores, memory_mb=memory_mb)
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
