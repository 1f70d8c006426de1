"""Corpora that are downloaded, queried, brought as tables or updated, and what is fetched from the hub, in runs.

A release that is downloaded, or reached through its diffs, has the tables of one in a folder; keys are left nowhere.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.made_openalex import DATE, work, write_copy
from tests.encoder.published import published
from tests.evaluation.folders import write_parquet
from tests.hub import COMMIT
from tests.releases.server import serve, serve_copy
from tests.releases.successor import generate_successor
from tests.releases.works_server import WorksCatalogue, serve_works
from tests.workflow.conftest import SMALL, Run, edited, planned

from cocite.core.tables.files import read_table
from cocite.demo.release import generate_release

OLDER, NEWER, LATER = "2026-01-06", "2026-01-13", "2026-07-24"
DATASETS = ("papers", "abstracts", "citations")
TABLES = [f"corpus/{table}/{bucket}" for table in ("papers", "citations") for bucket in range(2)]
KEY = "a-key-that-must-stay-secret"
FAR = 5_000_000_000
ENCODER = "fixed"
"""Folder of an encoder that embeds the papers of each corpus, if a test has written it."""


def make(run: Run, results: str, release: str, *tables: str, **corpus: Any) -> str:
    """Make tables of a corpus in a results folder of their own; return what Snakemake says."""
    folders = {"results": results, "logs": f"logs/{results}", "benchmarks": "benchmarks"}
    config = {"release": release, "pathvars": folders, "corpus": {"buckets": 2, **corpus}}
    if (run.folder / ENCODER).is_dir():
        config["encoders"] = {"fixed": {"model": ENCODER, "max_length": 32}}
        tables += tuple(f"encoder/untrained_fixed/seed-0/papers/{bucket}" for bucket in range(2))
    wanted = [f"{results}/{name}.parquet" for name in tables]
    return run.make(*wanted, config=run.configure(config, f"{results}.yaml"))


def rows_of(run: Run, name: str, results: str = "results") -> list[dict[str, Any]]:
    """The rows of a table of a corpus."""
    path = run.folder / results / "corpus" / name
    return read_table(path if path.is_dir() else path.with_suffix(".parquet"), name.split("/")[0]).to_pylist()


def files_with(words: str, folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and words.encode() in file.read_bytes()]


@pytest.mark.end_to_end
def test_a_downloaded_release_has_the_tables_of_a_folder_and_leaves_no_key(run, tmp_path, monkeypatch):
    release = tmp_path / "release"
    generate_release(release, release=OLDER, papers=60, topics=3, shards=1, seed=7)
    monkeypatch.setenv("S2_API_KEY", KEY)
    tables = ("corpus/papers/0", "corpus/citations/0")
    with serve(release, key=KEY) as api:
        make(run, "served", OLDER, *tables, source="s2", api=api, buckets=1, shards=dict.fromkeys(DATASETS, 1))
    make(run, "copied", OLDER, *tables, source="directory", path=str(release), buckets=1)
    for table in ("papers", "citations"):
        assert rows_of(run, table, "served") == rows_of(run, table, "copied")
    assert len(rows_of(run, "papers", "served")) == 60
    assert len([*run.folder.glob("logs/served/**/*.log")]) > 4
    assert not files_with(KEY, run.folder)
    assert not files_with("Signature=", run.folder)
    assert (run.folder / "served/.state/api-turns").stat().st_size == 0


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_run_with_a_base_ends_in_the_newer_release_and_needs_the_base_no_more(run, tmp_path, monkeypatch):
    older, newer = tmp_path / OLDER, tmp_path / NEWER
    generate_release(older, release=OLDER, papers=200, topics=6, shards=1, seed=7)
    generate_successor(older, newer, release=NEWER, share=0.02, seed=7)
    monkeypatch.setenv("S2_API_KEY", KEY)
    shards = [f"corpus/ingested/{dataset}/0" for dataset in DATASETS]
    make(run, "base", OLDER, *shards, source="directory", path=str(older), keep_ingested=True)
    with serve(newer, key=KEY) as api:
        corpus = {"source": "s2", "api": api, "base": "base", "shards": dict.fromkeys(DATASETS, 1)}
        make(run, "updated", NEWER, *TABLES, **corpus)
    (run.folder / "base").rename(run.folder / "gone")
    assert "Nothing to be done" in make(run, "updated", NEWER, *TABLES, **corpus)
    make(run, "fresh", NEWER, *TABLES, source="directory", path=str(newer))
    for table in ("papers", "citations"):
        assert rows_of(run, table, "updated") == rows_of(run, table, "fresh")
    for temporary in ("ingested", "changes"):
        assert not list((run.folder / "updated" / "corpus" / temporary).glob("*/*.parquet"))


def works(count: int) -> list[dict]:
    return [
        work(2**31 + number, abstract=f"About {number}", references=[2**31 + (3 * number) % count, 2**31], year=2000)
        | {"updated_date": f"2026-06-{1 + number % 4:02}"}
        for number in range(count)
    ]


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_later_copy_is_reached_from_an_earlier_run_which_is_then_needed_no_more(run, tmp_path, monkeypatch):
    published(run.folder / ENCODER)
    write_copy(tmp_path / "older", "parquet", works(40))
    monkeypatch.setattr("tests.corpus.made_openalex.DATE", LATER)
    added = work(2**31 + 50, references=[2**31 + 1]) | {"updated_date": "2026-07-01"}
    write_copy(tmp_path / "later", "parquet", [*works(40)[:38], added])
    with serve_copy(tmp_path / "older") as older, serve_copy(tmp_path / "later") as newer:
        copies = {"source": "openalex", "jobs": 3}
        make(run, "base", DATE, *TABLES, **copies, url=f"{older}/data/parquet", keep_ingested=True)
        copies["url"] = f"{newer}/data/parquet"
        make(run, "updated", LATER, *TABLES, **copies, base="base")
        make(run, "fresh", LATER, *TABLES, **copies)
        (run.folder / "base").rename(run.folder / "gone")
        assert "Nothing to be done" in make(run, "updated", LATER, *TABLES, **copies, base="base")
    for table in ("papers", "citations"):
        assert rows_of(run, table, "updated") == rows_of(run, table, "fresh")
    for bucket in range(2):
        name = f"encoder/untrained_fixed/seed-0/papers/{bucket}.parquet"
        assert (run.folder / "updated" / name).read_bytes() == (run.folder / "fresh" / name).read_bytes()
        log = (run.folder / f"logs/updated/encoder/untrained_fixed/seed-0/embed_papers-{bucket}.log").read_text()
        assert "papers have the text that they had in base" in log
    assert not list((run.folder / "updated/corpus/ingested").glob("*/*.parquet"))


OTHER_IDS = {
    "corpus": {"source": "openalex", "jobs": 2, "buckets": 2},
    "release": DATE,
    "baselines": {
        "fasttext": {"kind": "fasttext"},
        "sif": {"kind": "sif", "of": "fasttext"},
        "sgc": {"kind": "sgc", "of": "sif", "graph": "citation"},
    },
}
"""What the small configuration has on a corpus of OpenAlex."""


def with_benchmark(folder: Path, match: dict, **more) -> dict:
    """That configuration, with a benchmark whose documents have Semantic Scholar's ids."""
    (folder / "scidocs").mkdir()
    scidocs = {"kind": "scidocs", "folder": str(folder / "scidocs")}
    config = edited(**OTHER_IDS, benchmarks={"holdout": {"kind": "holdout"}, "scidocs": scidocs}, **more)
    return config | {"corpus": config["corpus"] | match}


def test_each_job_downloads_some_files_and_documents_of_other_ids_are_looked_for_through_matches(run, tmp_path):
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/0.jsonl").write_text('{"corpusid": 1, "externalids": {"MAG": "1"}}\n')
    jobs = planned(run, with_benchmark(tmp_path, {"match": str(tmp_path / "papers")}, exclude=["scidocs"]))
    assert sorted(jobs.outputs("download_shards")) == [f"results/corpus/raw/works/{part}" for part in range(2)]
    assert [len(jobs.of(rule)) for rule in ("ingest_works", "account", "match")] == [2, 1, 1]
    assert not {"ingest", "ingest_with_authors", "update", "reuse_works"} & jobs.rules()
    papers = "results/corpus/document_papers/scidocs.parquet"
    assert jobs.one("find_documents").outputs[0] == papers
    assert len(jobs.commands("corpus ingest-works --mag")) == 2
    documents = "results/evaluation/scidocs/documents.parquet"
    for told in (
        "--matches results/corpus/matches.parquet",
        f"cocite corpus select {documents} {papers} ",
        f"cocite triplets check {documents} {papers} ",
        f'"document_papers": "{papers}"',
        '{"id_space": "openalex", "kind": "openalex", "known_by": null, "owner": "corpus"}',
        '{"id_space": "s2", "kind": "scidocs", "known_by": "matches", "owner": "scidocs"}',
    ):
        assert any(told in job.command for job in jobs.jobs)


def test_without_a_match_no_mag_ids_are_kept_and_documents_of_other_ids_are_looked_for_by_text(run, tmp_path):
    jobs = planned(run, with_benchmark(tmp_path, {}, exclude=["scidocs"]))
    assert "match" not in jobs.rules()
    assert not [job for job in jobs.jobs if "--mag" in job.command]
    sought = jobs.one("find_documents").command
    assert re.match(r"cocite corpus find-documents \S+ --text-only --papers results/corpus/papers --memory-mb", sought)


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_query_with_what_means_something_to_snakemake_gives_its_works_and_leaves_its_key_nowhere(run, monkeypatch):
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    made = [
        work(FAR + n, abstract=f"About {n}", references=[FAR + (n + m) % 240 for m in (1, 5)], year=2000 + n % 20)
        for n in range(240)
    ]
    with serve_works(WorksCatalogue(made), key=KEY) as api:
        query = {"filter": "publication_year:<2015,publication_year:>2004", "search": "about", "api": api}
        make(run, "queried", DATE, *TABLES, source="openalex", **query)
        assert "Nothing to be done" in make(run, "queried", DATE, *TABLES, source="openalex", **query)
    wanted = {FAR + n for n in range(240) if 2004 < 2000 + n % 20 < 2015}
    assert {row["corpusid"] for row in rows_of(run, "papers", "queried")} == wanted
    assert not files_with(KEY, run.folder)
    log = (run.folder / "logs/queried/corpus/download-works-0.log").read_text()
    assert "120 works, with 168 citations among them; 3 calls of this run" in log


def test_a_list_of_papers_is_an_input_and_the_entries_without_a_work_are_tables(run, tmp_path):
    (tmp_path / "papers.txt").write_text("W1\n")
    listed = {"source": "openalex", "buckets": 2, "list": str(tmp_path / "papers.txt")}
    jobs = planned(run, {"release": DATE, "corpus": listed}, "corpus")
    assert jobs.one("list_shards").inputs == [str(tmp_path / "papers.txt")]
    download = jobs.one("download_shards")
    tables = ["corpus/unresolved/works/0.parquet", "corpus/omissions/download-works-0.parquet"]
    assert download.outputs == [f"results/{each}" for each in (*tables, "corpus/raw/works/0")]
    assert "--output results/corpus/raw/works/0 >>" in " ".join(download.command.split())


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_list_that_is_edited_is_requested_again(run, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENALEX_API_KEY", "a-key")
    works = [work(FAR + n, doi=f"10.1000/{n}", abstract="A", references=[FAR + 1, FAR + 2]) for n in range(9)]
    with serve_works(WorksCatalogue(works), key="a-key") as api:
        corpus = {"source": "openalex", "buckets": 1, "list": str(tmp_path / "papers.bib"), "expand": {}, "api": api}
        path = run.configure({"release": DATE, "corpus": corpus})
        for listed, added in (("3", {1, 2}), ("35", {1, 2}), ("312", set())):
            entries = [f"@misc{{a, doi={{https://doi.org/10.1000/{n}}}}}\n" for n in (*listed, "none")]
            (tmp_path / "papers.bib").write_text("".join(entries))
            run.make("results/corpus/papers/0.parquet", config=path)
            assert {row["corpusid"] - FAR for row in rows_of(run, "papers")} == {*map(int, listed)} | added
            assert [row["ids"] for row in rows_of(run, "unresolved/works/0")] == [["doi:10.1000/none"]]
        assert "Nothing to be done" in run.make("results/corpus/papers/0.parquet", config=path)


RULES = (
    *("list_names", "number_names", "ingest_tables"),
    *("ingest", "ingest_with_authors", "download_shards", "number_ids"),
)


@pytest.fixture
def tables(run: Run) -> dict[str, Any]:
    """Two files of papers and one of citations, in a ring; and the corpus of a configuration that reads them."""
    names = [f"10.1/{number:03}" for number in range(60)]
    for part in range(2):
        rows = "".join(f"{name},Title,Text,Ada;Bo\n" for name in names[part::2])
        (run.folder / f"papers-{part}.csv").write_text(f"doi,title,abstract,authors\n{rows}")
    ring = "".join(f"{names[place]},{names[place - step]}\n" for place in range(60) for step in (1, 2, 3))
    (run.folder / "citations.csv").write_text(f"from,to\n{ring}")
    columns = {"id": "doi", "title": "title", "abstract": "abstract"}
    columns |= {"authors": {"column": "authors", "separator": ";"}}
    return {
        **{"source": "table", "ids": "string", "authors": True},
        "papers": {"files": "papers-*.csv", "columns": columns},
        "citations": {"files": "citations.csv", "columns": {"citing": "from", "cited": "to"}},
    }


def jobs(run: Run, tables: dict[str, Any], **keys: Any) -> dict[str, int]:
    """How many jobs of the rules above a corpus would have."""
    config = {"release": "mine", "corpus": tables, **keys}
    counts = Counter(job.rule for job in planned(run, config, "corpus").jobs)
    return {rule: counts[rule] for rule in RULES if counts[rule]}


def test_each_file_is_listed_and_ingested_by_jobs_of_its_own_and_names_are_numbered_once(run, tables, monkeypatch):
    monkeypatch.chdir(run.folder)
    assert jobs(run, tables) == {"list_names": 3, "number_names": 1, "ingest_tables": 5}
    # What Snakemake takes for a wildcard or a folder elsewhere is a text here.
    whole = tables | {"ids": "integer", "papers": tables["papers"] | {"nulls": ["{na}", "<results>"]}}
    assert jobs(run, whole) == {"ingest_tables": 5}


@pytest.mark.long
def test_a_run_finds_queries_and_excluded_papers_by_their_names(run, tables, monkeypatch):
    monkeypatch.chdir(run.folder)
    Path("wanted.txt").write_text("10.1/007\n10.1/011\n10.1/013\nnobody\n")
    Path("out.txt").write_text("10.1/011\n10.1/059\n")
    keys = {"queries": {"from": "file", "path": "wanted.txt"}, "exclude": ["out.txt"]}
    run.make("corpus", config=run.configure({"release": "mine", "corpus": tables, **keys}))
    names = [row["name"] for row in rows_of(run, "names")]
    queries = {names[row["corpusid"]]: row["split"] for row in rows_of(run, "queries")}
    assert {name for name, split in queries.items() if split != "excluded"} == {"10.1/007", "10.1/013"}
    assert {name for name, split in queries.items() if split == "excluded"} == {"10.1/011", "10.1/059"}
    assert {tuple(row["authors"]) for row in rows_of(run, "papers")} == {("Ada", "Bo")}
    # What has run stays as it is, though what was listed is gone.
    assert jobs(run, tables, **keys) == {}


DOCUMENTS = "results/evaluation/fetched/documents.parquet"


@pytest.mark.long
def test_litsearch_is_fetched_once_without_the_corpus_of_full_texts(run, monkeypatch):
    litsearch = run.folder / "hub/litsearch"
    for number in (1, 2):
        paper = {"corpusid": number, "title": f"t{number}", "abstract": None, "full_paper": "A long text."}
        write_parquet(litsearch / f"corpus_clean/full-0000{number - 1}-of-00002.parquet", [paper])
    questions = [{"query": "what", "specificity": 1, "corpusids": [2]}]
    write_parquet(litsearch / "query/full-00000-of-00001.parquet", questions)
    (litsearch / "corpus_s2orc").mkdir()
    (litsearch / "corpus_s2orc/full-00000-of-00001.parquet").write_text("broken")
    hub = {"dataset": "lab/litsearch", "revision": COMMIT}
    fetched = {"kind": "litsearch", "hub": hub, "tasks": ["litsearch_specific"]}
    run.configure(SMALL | {"benchmarks": {"fetched": fetched}})
    run.fetch(monkeypatch, {"lab/litsearch": litsearch}, "fetch_benchmark", DOCUMENTS)
    assert read_table(run.folder / DOCUMENTS, "documents")["document"].to_pylist() == ["1", "2", "query-0"]
    folders = (run.folder / "results/evaluation/fetched/hub/data").iterdir()
    assert sorted(path.name for path in folders) == ["corpus_clean", "query"]


@pytest.mark.long
@pytest.mark.end_to_end
def test_pairs_are_fetched_once_and_learned_from_without_the_hub_after_that(finished, tmp_path, monkeypatch):
    run = finished.copy(tmp_path / "pairs")
    pairs = [{"query": f"words {n}", "positive": {"title": f"Document {n}", "text": "about them"}} for n in range(40)]
    (run.folder / "hub").mkdir()
    (run.folder / "hub/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    searches = {"sampler": "pairs", "layout": "rows", "dataset": "lab/searches", "revision": COMMIT}
    searches["group"] = "searches"
    joined = {"sampler": "union", "of": ["searches", "specter"], "group": "joined"}
    run.configure(edited(triplets=SMALL["triplets"] | {"searches": searches, "joined": joined}))
    targets = [f"results/triplets/{name}/documents" for name in ("joined", "validation_searches")]
    run.fetch(monkeypatch, {"lab/searches": run.folder / "hub"}, "fetch_pairs", *targets)
    joined, validating = (read_table(run.folder / each, "training_documents").to_pylist() for each in targets)
    queries = {row["title"] for row in joined if row["is_query"]}
    wanted = {row["query"] for row in pairs}
    assert 30 <= len(queries) <= 39
    assert all((row["corpusid"] < 0) == (row["title"].startswith(("words ", "Document "))) for row in joined)
    assert queries < wanted == queries | {row["title"] for row in validating if row["title"] in wanted}
