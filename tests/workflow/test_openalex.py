"""A copy of OpenAlex becomes papers and citations, and documents with other ids are found among its works."""

import gzip
import json
import re
from pathlib import Path

import pytest
from tests.corpus.made_openalex import DATE, work, write_copy
from tests.releases.works_server import WorksCatalogue, serve_works
from tests.workflow.conftest import edited, planned

from cocite.core.tables.files import read_table

FAR = 5_000_000_000
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
def test_papers_of_openalex_are_matched_and_the_documents_of_a_benchmark_are_kept_out(run, tmp_path):
    # Every work cites some others; three of ten have Semantic Scholar's papers 0, 1, … beside them.
    by = {n: "mag" if n % 10 == 0 else "doi" for n in range(30) if n % 10 < 3}
    references = {n: [FAR + (n + m) % 30 for m in (1, 2, 3)] for n in range(30)}
    ids = {n: {"mag": str(n) if by.get(n) == "mag" else None, "doi": f"10.1/A{n}" if n in by else None} for n in by}
    made = [work(FAR + n, abstract=f"About {n}", references=references[n], **ids.get(n, {})) for n in range(30)]
    write_copy(tmp_path / "copy", "jsonl", made)
    (tmp_path / "papers").mkdir()
    theirs = [{"corpusid": n, "externalids": {"MAG": str(n), "DOI": f"10.1/a{n}"}} for n in range(30)]
    (tmp_path / "papers/0.gz").write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in theirs).encode()))
    # In MDCR's layout, a query cites the first of its candidates.
    (tmp_path / "mdcr").mkdir()
    judged = {"Art": {"10": {"true": ["21"], "bm25": ["5"]}}}
    (tmp_path / "mdcr/mdcr_test.json").write_text(json.dumps(judged))
    texts = [json.dumps({"paper_id": name, "title": f"Title {name}", "abstract": "A"}) for name in ("10", "21", "5")]
    (tmp_path / "mdcr/mdcr_test_data.jsonl").write_text("\n".join(texts))
    folders = {"path": str(tmp_path / "copy/data/jsonl"), "match": str(tmp_path / "papers")}
    config = {
        "release": DATE,
        "corpus": {"source": "openalex", "format": "jsonl", "jobs": 1, "buckets": 2, **folders},
        "queries": {"count": 10, "min_citations": 1, "min_references": 1},
        "benchmarks": {"mdcr": {"kind": "mdcr", "folder": str(tmp_path / "mdcr")}},
        "exclude": ["mdcr"],
    }
    run.make("corpus", "results/report/id_spaces.parquet", config=run.configure(config))
    corpus = run.folder / "results/corpus"
    rows = read_table(corpus / "matches.parquet", "matches").to_pylist()
    assert {row["corpusid"] - FAR: row["matched_by"] for row in rows} == by
    assert all(row["s2_corpusid"] == row["corpusid"] - FAR for row in rows)
    queries = read_table(corpus / "queries.parquet", "queries").to_pylist()
    excluded = [row["corpusid"] for row in queries if row["split"] == "excluded"]
    assert excluded == [FAR + 10, FAR + 21]  # 5 is matched with no work
    spaces = read_table(run.folder / "results/report/id_spaces.parquet", "id_spaces").to_pylist()
    known = {row["owner"]: (row["id_space"], row["known_by"]) for row in spaces}
    assert known == {"corpus": ("openalex", None), "mdcr": ("s2", "matches")}


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_query_gives_the_tables_of_a_copy_and_leaves_its_key_nowhere(run, tmp_path, monkeypatch):
    key = "a-key-that-must-stay-secret"
    monkeypatch.setenv("OPENALEX_API_KEY", key)
    made = [
        work(FAR + n, abstract=f"About {n}", references=[FAR + (n + m) % 240 for m in (1, 5)], year=2000 + n % 20)
        for n in range(240)
    ]
    write_copy(tmp_path / "copy", "jsonl", [each for each in made if 2004 < each["publication_year"] < 2015])
    tables = [f"corpus/{table}/{bucket}.parquet" for table in ("papers", "citations") for bucket in range(2)]
    copy = {"format": "jsonl", "path": str(tmp_path / "copy/data/jsonl"), "jobs": 1}
    with serve_works(WorksCatalogue(made), key=key) as api:
        # Angle brackets and braces mean something to Snakemake.
        query = {"filter": "publication_year:<2015,publication_year:>2004", "search": "about", "api": api}
        for results, corpus in {"copied": copy, "queried": query}.items():
            folders = {"results": results, "logs": f"logs/{results}", "benchmarks": "benchmarks"}
            config = {"release": DATE, "corpus": {"source": "openalex", "buckets": 2, **corpus}, "pathvars": folders}
            path = run.configure(config, f"{results}.yaml")
            run.make(*(f"{results}/{table}" for table in tables), config=path)
        assert "Nothing to be done" in run.make(*(f"{results}/{table}" for table in tables), config=path)
    for table in tables:
        assert (run.folder / "queried" / table).read_bytes() == (run.folder / "copied" / table).read_bytes()
    written = [file for file in run.folder.rglob("*") if file.is_file()]
    assert not [file for file in written if key.encode() in file.read_bytes()]
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
            rows = read_table(run.folder / "results/corpus/papers/0.parquet", "papers").to_pylist()
            assert {row["corpusid"] - FAR for row in rows} == {*map(int, listed)} | added
            rows = read_table(run.folder / "results/corpus/unresolved/works/0.parquet", "unresolved").to_pylist()
            assert [row["ids"] for row in rows] == [["doi:10.1000/none"]]
        assert "Nothing to be done" in run.make("results/corpus/papers/0.parquet", config=path)
