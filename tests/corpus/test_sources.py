"""The sources: how they are found, and the one that the how-to page adds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.workflow.conftest import ROOT

from cocite.core.tables.files import read_table

PAGE = (ROOT / "docs/how-to/new-source.md").read_text(encoding="utf-8")
ADDED = """
import cocite.corpus.sources

cocite.corpus.sources.__path__.append("added")
"""
"""Has a process find the sources of a folder beside those of the package, as if they lay there."""
RUN_ALL = """
import json, sys
from cocite.cli import app

for step in json.loads(sys.argv[1]):
    app(step, standalone_mode=False)
"""
PAPERS = 'id,title,year,abstract\n7,"One, two",1999,An abstract.\n9,Another,,\n'
CITATIONS = "citing,cited\n7,9\n9,12\n"


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the source of the page has been added, beside the two files that it reads."""
    (module,) = re.findall(r"sources/spreadsheets\.py`:\n\n```python\n(.*?)```", PAGE, flags=re.DOTALL)
    folder = tmp_path_factory.mktemp("project")
    for name, text in {
        "added/spreadsheets.py": module,
        "my-papers/papers.csv": PAPERS,
        "my-papers/citations.csv": CITATIONS,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", ADDED + code, *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def entry() -> dict[str, object]:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    written: dict[str, object] = yaml.safe_load(text)
    return written


def test_importing_the_sources_takes_no_client_of_an_api():
    code = "import sys; import cocite.config.configuration; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"requests", "pyarrow", "numpy", "http.server"} & set(ran.stdout.split())


def test_the_source_of_the_page_is_one_more_that_a_configuration_can_name(added):
    code = """
import json, sys
from cocite.config.configuration import resolve_or_explain
print(json.dumps(resolve_or_explain(json.loads(sys.argv[1]))))
"""
    config, faults = json.loads(run(added, code, json.dumps(entry())))
    assert not faults
    assert config["corpus"] == {
        **{"source": "spreadsheets", "path": "my-papers"},
        **{"buckets": 2, "malformed": 0.0, "keep_ingested": False, "keep_raw": False, "authors": False},
        "titles_alone": False,
    }


def test_the_two_files_of_the_page_become_papers_abstracts_and_citations(added):
    steps: list[list[str]] = []

    def step(name: str, *options: str) -> None:
        steps.append(["corpus", name, *options])

    shared = ["--settings", json.dumps(entry()["corpus"]), "--results", "results"]
    step("list", *shared, "--release", "2026-01-06", "--output", "manifest.json")
    for dataset in ("papers", "abstracts", "citations"):
        part = ["--manifest", "manifest.json", "--part", "0", "--parts", "1"]
        step("download", dataset, *shared, *part, "--state", f"state/{dataset}", "--output", f"raw/{dataset}")
        bounds = ["--buckets", "1", "--ids", "drop", "--memory-mb", "500", "--threads", "1"]
        written = ["--output", f"{dataset}.parquet", "--report", f"report-{dataset}.parquet"]
        step("ingest", dataset, *part, "--shards", f"raw/{dataset}", *bounds, *written)
    run(added, RUN_ALL, json.dumps(steps))
    rows = {
        name: read_table(added / f"{name}.parquet", f"ingested_{name}").to_pylist()
        for name in ("papers", "abstracts", "citations")
    }
    assert [(row["corpusid"], row["title"], row["year"]) for row in rows["papers"]] == [
        (7, "One, two", 1999),
        (9, "Another", None),
    ]
    assert [(row["corpusid"], row["abstract"]) for row in rows["abstracts"]] == [(7, "An abstract.")]
    assert [(row["citing"], row["cited"]) for row in rows["citations"]] == [(7, 9), (9, 12)]
