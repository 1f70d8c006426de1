"""A broken file is found wherever it is broken, named, and made anew once it is deleted."""

import json
import shlex

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from cocite.cli import app
from cocite.files import write_table

EDGES = "graph/cited/edges/{bucket}.parquet"


@pytest.fixture
def results(tmp_path):
    """A folder with two buckets of edges."""
    drawn = np.random.default_rng(1)
    for bucket in (0, 1):
        source = np.sort(drawn.choice(2**31, 20_000, replace=False))
        ends = {"source": source, "target": source + drawn.integers(1, 2**31, len(source))}
        rows = pa.table({**ends, "weight": drawn.random(len(source), np.float32)})
        write_table(tmp_path / EDGES.format(bucket=bucket), "edges", rows)
    return tmp_path


def check(results, *options):
    outcome = CliRunner().invoke(app, ["check", "--results", str(results), *options])
    return outcome.exit_code, outcome.output


def spoil(path, place):
    """Turn over the bits of a byte."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def test_whole_files_are_counted(results):
    assert check(results) == (0, "2 files, 0 of them broken.\n")


def test_a_folder_without_tables_is_an_error(tmp_path):
    outcome = CliRunner().invoke(app, ["check", "--results", str(tmp_path / "typo")])
    assert outcome.exit_code == 1
    assert "typo holds no tables" in str(outcome.exception)


def test_what_is_left_of_an_entry_that_is_gone_is_deleted_and_no_target(results):
    configuration = {"release": "2026-01-06", "corpus": {"source": "demo"}, "graphs": {"cited": {"signal": "citation"}}}
    configuration["pathvars"] = {"results": str(results)}
    before = {"graphs": {"cited": {}, "renamed": {}}}
    (results / "provenance.json").write_text(json.dumps({"configuration": before}))
    (results / "my run.yaml").write_text(yaml.safe_dump(configuration))
    gone = results / "graph/renamed/edges/0.parquet"
    gone.parent.mkdir(parents=True)
    gone.write_bytes(b"PAR1")
    spoil(results / EDGES.format(bucket=0), 2_000)
    outcome = CliRunner().invoke(app, ["check", "--configfile", str(results / "my run.yaml"), "--remove"])
    assert not gone.exists()
    target, *configured = shlex.split(outcome.output.splitlines()[-1])[3:]
    assert target == str(results / EDGES.format(bucket=0))
    assert configured == ["--configfile", str(results / "my run.yaml"), "--replace-workflow-config"]
    assert "1 of them the configuration does not have any more" in outcome.output


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.95])
def test_a_spoilt_byte_is_found_wherever_it_is(results, share):
    path = results / EDGES.format(bucket=1)
    spoil(path, int(path.stat().st_size * share))
    status, told = check(results)
    assert status == 1
    assert f"{path}: " in told
    assert str(results / EDGES.format(bucket=0)) not in told
    assert path.exists()


def test_a_file_that_was_cut_short_is_named(results):
    path = results / EDGES.format(bucket=0)
    path.write_bytes(path.read_bytes()[:200])
    assert f"{path}: not a readable Parquet file" in check(results)[1]


def test_a_broken_file_is_deleted_where_that_is_asked_for(results):
    path = results / EDGES.format(bucket=1)
    spoil(path, path.stat().st_size // 2)
    status, told = check(results, "--remove")
    assert (status, path.exists()) == (1, False)
    assert told.splitlines()[-1].split() == [".venv/bin/snakemake", "--cores", "2", str(path)]
    assert check(results)[0] == 0


def test_of_a_folder_that_one_job_makes_no_shard_is_deleted_alone(results):
    folder = (results / EDGES).parent
    (folder / ".snakemake_timestamp").touch()
    spoil(folder / "1.parquet", 2_000)
    status, told = check(results, "--remove")
    assert (status, folder.exists()) == (1, False)
    assert told.splitlines()[-1].split()[-1] == str(folder)
