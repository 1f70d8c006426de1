"""What a plan states about a release; how sources are found, and the one that the how-to page adds."""

import json
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
import yaml
from tests.corpus.made import make_corpus
from tests.corpus.made_openalex import FOLDERS, work, write_copy
from tests.releases.server import Arrival, serve, serve_copy
from tests.workflow.conftest import ROOT
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import resolve
from cocite.config.release_folder import DATASETS
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.release.manifest import Dataset, Manifest, Shard, write_manifest
from cocite.corpus.release.plan import plan_corpus

RELEASE = "2026-01-06"
SIZES = {"papers": [1000, 2000], "abstracts": [500], "citations": [10_000, 20_000, 30_000]}


def named(dataset: str, number: int) -> str:
    return f"20260101_000000_0000{number}_{dataset}.gz"


MANIFEST = Manifest(
    release=RELEASE,
    datasets={
        name: Dataset(shards=tuple(Shard(name=named(name, at), bytes=size) for at, size in enumerate(sizes)), readme="")
        for name, sizes in SIZES.items()
    },
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_manifest(tmp_path / "results/corpus/manifest.json", MANIFEST)
    return tmp_path / "results"


def write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))


def plan(results: Path, **corpus):
    shards = {name: len(sizes) for name, sizes in SIZES.items()}
    corpus = {"source": "s2", "shards": shards, **corpus}
    return plan_corpus(resolve({"release": RELEASE, "corpus": corpus, "pathvars": {"results": str(results)}}))


def test_a_dataset_needs_all_its_shards_where_nothing_is_there(results):
    need = plan(results).needs["citations"]
    assert (need.shards, need.packed, need.downloaded, need.ingested, need.to_download) == (3, 60_000, 0, 0, 60_000)


def test_what_is_downloaded_in_whole_or_in_part_need_not_come_again(results):
    write(results / "corpus/raw/citations/0" / named("citations", 0), 10_000)
    write(results / ".state/corpus/citations-2/shards" / f"{named('citations', 2)}.part", 7_000)
    need = plan(results).needs["citations"]
    assert (need.downloaded, need.to_download) == (17_000, 43_000)


def test_a_job_that_has_ingested_every_second_shard_has_two_of_three(results):
    write(results / "corpus/ingest_report/citations/0.parquet", 1)
    need = plan(results, shards={"citations": 2}).needs["citations"]
    assert (need.ingested, need.to_download) == (2, 20_000)


def test_parquet_is_estimated_by_what_other_releases_took(results):
    assert [plan(results).needs[name].parquet for name in SIZES] == [900, 400, 12_000]


def test_at_the_end_the_tables_remain_and_what_is_to_be_kept(results):
    assert plan(results).at_end == 13_300
    assert plan(results, keep_raw=True).at_end == 13_300 + 63_500
    # The ids of citations take a tenth of 60,000 bytes.
    assert plan(results, keep_ingested=True).at_end == 2 * 13_300 + 6_000
    # The names of authors take a tenth of the 3,000 bytes of papers.
    assert plan(results, authors=True).at_end == 13_300 + 300


def test_the_peak_is_the_larger_of_fetching_and_merging(results):
    # Merged in one bucket, all citations may be spilled, ten times as large as in Parquet.
    assert plan(results, buckets=1).at_peak == 2 * 13_300 + 120_000
    # Of 100 buckets 8 are merged at once; and all six shards may be under way while they are fetched.
    assert plan(results, buckets=100).at_peak == max(2 * 13_300 + 9_600, 13_300 + 63_500)
    assert plan(results, buckets=100, keep_raw=True).at_peak == 2 * 13_300 + 9_600 + 63_500


def test_what_is_there_of_the_corpus_is_counted_once_and_nothing_else(results):
    before = plan(results).there
    write(results / "corpus/papers/0.parquet", 100)
    write(results / "corpus/citations/0.parquet", 1_000)
    write(results / "graph/edges/0.parquet", 10_000)
    assert plan(results).there - before == 1_100


@pytest.fixture
def say(tmp_path, monkeypatch):
    """Run the command in a folder of its own, with a configuration; return what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(corpus: dict, release: str = RELEASE, **others) -> str:
        Path("run.yaml").write_text(yaml.safe_dump({"release": release, "corpus": corpus, **others}))
        result = CliRunner().invoke(app, ["corpus", "plan", "--configfile", "run.yaml"], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    return run


def row(text: str, name: str) -> list[str]:
    return next(line.split()[1:] for line in text.splitlines() if line.startswith(name))


def test_an_api_is_asked_for_the_sizes_and_nothing_is_fetched(say, release, key, tmp_path):
    requests: list[Arrival] = []
    with serve(release, key=key, requests=requests) as origin:
        text = say({"source": "s2", "api": origin})
    size = sum(path.stat().st_size for path in (release / "papers").iterdir())
    kilobytes = [f"{size / 1000:.1f}", "kB"]
    assert row(text, "papers") == ["3", *kilobytes, "-", "0", *kilobytes, f"{0.3 * size / 1000:.1f}", "kB"]
    assert {request.body_sent for request in requests if "staging" in request.path} == {1}
    assert [path.name for path in (tmp_path / "results").rglob("*") if path.is_file()] == ["api-turns"]
    assert "corpus.shards: {papers: 3, abstracts: 3, citations: 3}" in text
    assert "--configfile run.yaml --replace-workflow-config corpus" in text
    assert "Signature" not in text


def test_the_manifest_of_the_release_is_believed_and_no_key_is_needed(say, results, monkeypatch):
    monkeypatch.delenv("S2_API_KEY")
    shards = {name: len(sizes) for name, sizes in SIZES.items()}
    for release in (RELEASE, "latest"):
        text = say({"source": "s2", "shards": shards}, release)
        assert f"Release {RELEASE}, listed in results/corpus/manifest.json" in text
        assert "each shard has its own job" in text
        assert "export S2_API_KEY=" in text


def test_a_release_that_is_reached_from_a_base_needs_the_diffs_and_what_the_base_has(results):
    base = results.parent / "base"
    write_manifest(base / "corpus/manifest.json", MANIFEST)
    for name in SIZES:
        write(base / f"corpus/ingested/{name}/0.parquet", 5_000)
    assert [plan(results, base=str(base)).needs[name].parquet for name in SIZES] == [5_900, 5_400, 17_000]


def test_a_manifest_of_another_release_is_not_believed(say, results, release, key):
    with serve(release, key=key) as origin, pytest.raises(InputError, match="Release 2025-01-07 does not exist"):
        say({"source": "s2", "api": origin}, "2025-01-07")


def test_a_folder_is_not_downloaded_and_the_demo_is_planned_before_it_is_generated(say, release):
    text = say({"source": "directory", "path": str(release)})
    assert row(text, "together")[-3] == "-"
    assert "Each of the 9 shards is ingested by a separate job." in text
    # What a corpus does not depend on is not checked.
    demo = {"source": "demo", "demo": {"papers": 1000, "shards": 4}}
    text = say(demo, queries={"from": "file", "path": "$NOT_SET/queries.txt"})
    assert row(text, "citations") == ["4", "500.0", "kB", "-", "0", "-", "100.0", "kB"]


def test_a_disk_that_is_too_small_is_reported_with_what_is_missing(say, results, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: namedtuple("Usage", "free")(100))
    there = (results / "corpus/manifest.json").stat().st_size
    text = say({"source": "s2", "buckets": 1})
    assert f"{(146_600 - 100 - there) / 1000:.1f} kB too little" in text


def test_the_estimate_for_a_real_release_is_a_little_more_than_it_takes(shared, tmp_path):
    corpus = {"source": "directory", "path": str(shared / "data/releases/synergy")}
    config = {"release": RELEASE, "corpus": corpus, "pathvars": {"results": str(tmp_path / "results")}}
    needs = plan_corpus(resolve(config)).needs
    make_corpus(tmp_path / "made", corpus, release=RELEASE)
    for dataset, need in needs.items():
        taken = sum(file.stat().st_size for file in (tmp_path / "made/corpus/ingested" / dataset).glob("*.parquet"))
        assert taken <= need.parquet <= 1.2 * taken


@pytest.mark.parametrize("format", FOLDERS)
def test_a_copy_of_openalex_is_planned_before_a_file_of_it_is_fetched(say, tmp_path, monkeypatch, format):
    monkeypatch.delenv("S2_API_KEY")
    write_copy(tmp_path / "bucket", format, [work(number, abstract="About it") for number in range(30)], per_file=10)
    size = sum(path.stat().st_size for path in (tmp_path / "bucket").glob("**/works/*/part*"))
    requests: list[Arrival] = []
    with serve_copy(tmp_path / "bucket", requests=requests) as origin:
        source = {"source": "openalex", "format": format, "url": f"{origin}/{FOLDERS[format]}", "jobs": 2}
        text = say(source, "2026-06-24")
    assert row(text, "works")[:3] == ["3", f"{size / 1000:.1f}", "kB"]
    assert "The 2 jobs of corpus.jobs have up to 2 files each" in text
    assert "The download takes 0 s at 10 MB/s" in text
    assert "S2_API_KEY" not in text
    assert all(request.path.endswith(("manifest.json", "manifest", ".parquet")) for request in requests)


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
    files = {"my-papers/papers.csv": PAPERS, "my-papers/citations.csv": CITATIONS, "added/spreadsheets.py": module}
    for name, text in files.items():
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
        **{"allow_missing_abstract": False, "twins": "keep"},
    }


def test_the_two_files_of_the_page_become_papers_abstracts_and_citations(added):
    shared = ["--settings", json.dumps(entry()["corpus"]), "--results", "results"]
    steps = [["corpus", "list", *shared, "--release", "2026-01-06", "--output", "manifest.json"]]
    for dataset in DATASETS:
        part = [dataset, "--manifest", "manifest.json", "--part", "0", "--parts", "1"]
        raw, report = f"raw/{dataset}", f"report-{dataset}.parquet"
        steps.append(["corpus", "download", *part, *shared, "--state", f"state/{dataset}", "--output", raw])
        bounds = ["--shards", raw, "--buckets", "1", "--ids", "drop", "--memory-mb", "500", "--threads", "1"]
        steps.append(["corpus", "ingest", *part, *bounds, "--output", f"{dataset}.parquet", "--report", report])
    run(added, RUN_ALL, json.dumps(steps))
    papers, abstracts, citations = (
        read_table(added / f"{name}.parquet", f"ingested_{name}").to_pylist() for name in DATASETS
    )
    found = [(row["corpusid"], row["title"], row["year"]) for row in papers]
    assert found == [(7, "One, two", 1999), (9, "Another", None)]
    assert [(row["corpusid"], row["abstract"]) for row in abstracts] == [(7, "An abstract.")]
    assert [(row["citing"], row["cited"]) for row in citations] == [(7, 9), (9, 12)]
