"""What `cocite start` writes for the tables of a user, run as it says: to the report, a search and a served search."""

import json
import re
import subprocess
import sys
import urllib.request

import duckdb
import pytest
from tests.terminal import answer
from tests.workflow.conftest import Run


@pytest.fixture
def tables(finished: Run, run: Run) -> Run:
    """A folder with two tables of generated papers, and nothing else."""
    (run.folder / "config.yaml").unlink()
    results = finished.folder / "results/corpus"
    columns = {"papers": "corpusid AS id, title, abstract, year", "citations": "citing, cited"}
    for name, selected in columns.items():
        duckdb.sql(f"COPY (SELECT {selected} FROM '{results}/{name}/*.parquet') TO '{run.folder}/{name}.csv' (HEADER)")
    return run


def cocite(run: Run, *arguments: str) -> str:
    command = [sys.executable, "-c", "from cocite.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=run.folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.timeout(3600)
def test_answers_in_a_terminal_lead_from_two_tables_to_a_report_and_a_served_search(tables, monkeypatch):
    monkeypatch.chdir(tables.folder)
    replies = [("files of your own?", "files"), ("Table of papers", "papers.csv"), ("Table of cit", "citations.csv")]
    lines = [line for line in answer("start", replies).splitlines() if line.startswith("    ")]
    plan, command, search = (line.partition("  #")[0].strip() for line in lines)
    for each in (plan, command):
        subprocess.run(["bash", "-c", each], cwd=tables.folder, check=True)
    assert (tables.folder / "results/my/report/index.html").is_file()
    query = """
        SELECT corpusid, concat(title, ' ', abstract) FROM papers JOIN citations ON cited = corpusid
        WHERE has_text GROUP BY ALL ORDER BY count(*) DESC, corpusid LIMIT 1
    """
    with duckdb.connect(tables.folder / "results/my/cocite.duckdb", read_only=True) as database:
        ((most_cited, text),) = database.sql(query).fetchall()
    results = search.partition('search "…" ')[2].split()
    found = json.loads(cocite(tables, "search", text, *results, "--format", "json"))
    assert most_cited in [row["corpusid"] for row in found]
    serve = [sys.executable, "-c", "from cocite.cli import main; main()", "serve", *results]
    with subprocess.Popen([*serve, "--port", "0"], cwd=tables.folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = next(match[0] for line in process.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+/", line)))
            with urllib.request.urlopen(f"{url}api/run", timeout=60) as page:  # noqa: S310
                assert json.load(page)["models"][0]["name"].startswith("found")
        finally:
            process.terminate()
