"""The queries of published triplets, from a folder in their layout and from a hub."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.made import left_out
from tests.hub import COMMIT, serve_hub
from tests.rows import write_rows

from cocite.config.queries import PublishedQueries
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus import published
from cocite.corpus.published import read_triplets


def write_triplets(path: Path, queries: list, name: str = "corpus_id", rows_in_group: int = 2) -> None:
    """A file of triplets with these ids of queries; the papers beside them are others, and never queries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = 10**6 if isinstance(next(iter(queries)), int) else str(10**6)

    def papers(ids: list) -> list:
        return [{"title": "A title", name: paper, "abstract": "An abstract"} for paper in ids]

    columns = {"query": papers(queries), "pos": papers([other] * len(queries)), "neg": papers([other] * len(queries))}
    pq.write_table(pa.table(columns), path, row_group_size=rows_in_group)


def read(folder: Path) -> tuple[list[int], dict[str, int]]:
    read_triplets(folder, output=folder / "out/queries", omissions=folder / "out/omissions")
    queries = read_table(folder / "out/queries", "published_queries")["corpusid"].to_pylist()
    omissions = left_out(folder / "out/omissions", zero=True)
    return queries, {reason.split(" ")[1]: count for reason, count in omissions.items()}


def test_each_query_of_the_training_triplets_comes_once(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "ROWS_IN_MEMORY", 3)
    write_triplets(tmp_path / "cite_prediction_new/train-00000-of-00002.parquet", [7, 7, 7, 5, 7, 5, 9])
    write_triplets(tmp_path / "cite_prediction_new/train-00001-of-00002.parquet", [5, 3, 3])
    write_triplets(tmp_path / "cite_prediction_new/validation-00000-of-00001.parquet", [11])
    assert read(tmp_path)[0] == [3, 5, 7, 9]


@pytest.mark.parametrize("name", ["corpus_id", "doc_id"])
def test_ids_may_be_strings_of_digits_and_what_is_no_number_is_counted(tmp_path, name):
    ids = ["12", None, "0a1b", "12", "", "-4", "9223372036854775807", "9223372036854775808", "99999999999999999999"]
    write_triplets(tmp_path / "cite_prediction_new/train-00000-of-00001.parquet", ids, name)
    write_triplets(tmp_path / "cite_prediction_new/validation-00000-of-00001.parquet", ["11"], name)
    assert read(tmp_path) == ([12, 2**63 - 1], {"triplets": 6, "training": 0})


def test_ids_may_be_integers_with_nulls_and_a_query_may_be_missing(tmp_path):
    ids = pa.array([{"corpus_id": 4}, {"corpus_id": None}, None, {"corpus_id": -1}])
    pq.write_table(pa.table({"query": ids}), tmp_path / "train.parquet")
    write_triplets(tmp_path / "validation.parquet", [11])
    assert read(tmp_path) == ([4], {"triplets": 3, "training": 0})


@pytest.mark.parametrize(("training", "validation"), [("train-0", "evaluation-0"), ("train/0", "validation/0")])
def test_a_query_of_the_validation_triplets_is_left_out_and_counted(tmp_path, training, validation):
    write_triplets(tmp_path / f"{training}.parquet", [1, 2, 3, 4])
    write_triplets(tmp_path / f"{validation}.parquet", [2, 4, 6])
    assert read(tmp_path) == ([1, 3], {"triplets": 0, "training": 2})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "contains no training triplets"),
        ({"train-0": "corpus_id", "val-0": "corpus_id"}, r"no validation triplets .*validation-\*\.parquet"),
        ({"train-0": None}, r"train-0\.parquet: not a readable Parquet file"),
        ({"train-0": "sha"}, r"train-0\.parquet: has no column query with a corpus_id or doc_id"),
    ],
)
def test_a_folder_or_file_without_triplets_is_refused(tmp_path, written, said):
    for name, key in written.items():
        path = tmp_path / f"{name}.parquet"
        write_triplets(path, [1], name=key) if key else path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=rf"{tmp_path}.*{said}"):
        read(tmp_path)


@pytest.fixture
def hub(tmp_path):
    """URL of a hub with one dataset, which also holds code and other triplets; and the paths it was asked for."""
    folder = tmp_path / "hub"
    write_triplets(folder / "cite_prediction_new/train-00000-of-00001.parquet", [1, 2, 3])
    write_triplets(folder / "cite_prediction_new/validation-00000-of-00001.parquet", [3])
    write_triplets(folder / "cite_prediction/train-00000-of-00001.parquet", [8])
    (folder / "scirepeval.py").write_text("raise RuntimeError")
    (folder / "cite_prediction_new/data.pkl").write_bytes(b"pickle")
    with serve_hub({"lab/papers": folder}) as served:
        yield served


def fetch(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    asked = {"from": "triplets", "count": 1, "dataset": "lab/papers", "revision": COMMIT}
    parts = json.dumps(PublishedQueries.model_validate(asked).fetched)
    options = {"parts": parts, "state": folder / "state", "output": folder / "fetched"}
    command = [str(Path(sys.executable).with_name("cocite")), "triplets", "fetch"]
    command += [f"--{name}={value}" for name, value in options.items()]
    environment = {"HF_ENDPOINT": url, "HF_HOME": str(folder / "home"), "PATH": os.defpath, "NO_PROXY": "*"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_hub_gives_the_triplets_at_their_commit_and_nothing_else(hub, tmp_path):
    url, asked = hub
    result = fetch(url, tmp_path)
    assert result.returncode == 0, result.stderr
    resolved = {path.partition("/resolve/")[2] for path in asked if "/resolve/" in path}
    files = (f"{side}-00000-of-00001.parquet" for side in ("train", "validation"))
    assert resolved == {f"{COMMIT}/cite_prediction_new/{file}" for file in files}
    assert not (tmp_path / "state").exists()
    assert sorted(path.name for path in (tmp_path / "fetched").iterdir()) == ["published"]
    assert read(tmp_path / "fetched/published")[0] == [1, 2]


def test_an_interrupted_fetch_resumes_with_the_files_that_it_lacks(hub, tmp_path):
    url, asked = hub
    file = tmp_path / "hub/cite_prediction_new/validation-00000-of-00001.parquet"
    file.rename(tmp_path / "away")
    assert fetch(url, tmp_path).returncode == 1
    assert not (tmp_path / "fetched").exists()
    there = {path.name for path in (tmp_path / "state").rglob("*.parquet")}  # files are fetched beside each other
    (tmp_path / "away").rename(file)
    asked.clear()
    assert fetch(url, tmp_path).returncode == 0
    assert {path.rpartition("/")[2] for path in asked if "/resolve/" in path} == {
        each.name for each in file.parent.glob("*.parquet") if each.name not in there
    }
    assert read(tmp_path / "fetched/published")[0] == [1, 2]


def test_published_queries_become_the_papers_that_they_are_matched_with(tmp_path):
    write_triplets(tmp_path / "cite_prediction_new/train-00000-of-00001.parquet", [7, 5, 9])
    write_triplets(tmp_path / "cite_prediction_new/validation-00000-of-00001.parquet", [9])
    rows = [(5, 9, "mag"), (60, 8, "mag"), (70, 7, "doi")]
    matches = write_rows(tmp_path / "matches.parquet", "matches", "corpusid s2_corpusid matched_by", rows)
    read_triplets(tmp_path, matches=matches, output=tmp_path / "queries", omissions=tmp_path / "omissions")
    assert read_table(tmp_path / "queries", "published_queries")["corpusid"].to_pylist() == [70]
    assert left_out(tmp_path / "omissions")[published.NOT_MATCHED] == 1
