"""A broken file is found wherever it is broken, named, and made again once it is deleted."""

import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.tools.builders import invoke, write_start

from cocite.config.started import Job
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table

FIRST, SECOND = "graph/cited/edges/0.parquet", "graph/cited/edges/1.parquet"


@pytest.fixture
def results(tmp_path):
    """A folder with two buckets of edges."""
    drawn = np.random.default_rng(1)
    for bucket in (FIRST, SECOND):
        source = np.sort(drawn.choice(2**31, 20_000, replace=False))
        ends = {"source": source, "target": source + drawn.integers(1, 2**31, len(source))}
        write_table(tmp_path / bucket, "edges", pa.table({**ends, "weight": drawn.random(len(source), np.float32)}))
    return tmp_path


def check(results, *options):
    outcome = invoke("check", "--results", results, *options)
    return outcome.exit_code, outcome.output


def spoil(path, place):
    """Turn over the bits of a byte."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def test_whole_files_are_counted_and_a_folder_without_tables_is_an_error(results):
    assert check(results) == (0, "2 files, 0 of them broken.\n")
    with pytest.raises(InputError, match="typo does not exist"):
        check(results / "typo")
    with pytest.raises(InputError, match="edges holds no tables"):
        check((results / FIRST).parent)


def test_what_is_left_of_an_entry_that_is_gone_is_deleted_and_no_target(results):
    configuration = {"release": "2026-01-06", "corpus": {"source": "demo"}, "graphs": {"cited": {"signal": "citation"}}}
    configuration["pathvars"] = {"results": str(results)}
    (results / "provenance.json").write_text('{"configuration": {"graphs": {"cited": {}, "renamed": {}}}}')
    (results / "my run.yaml").write_text(yaml.safe_dump(configuration))
    gone = results / "graph/renamed/edges/0.parquet"
    gone.parent.mkdir(parents=True)
    gone.write_bytes(b"PAR1")
    spoil(results / FIRST, 2_000)
    outcome = invoke("check", "--configfile", results / "my run.yaml", "--remove")
    assert not gone.exists()
    target, *configured = shlex.split(outcome.output.splitlines()[-1])[3:]
    assert target == str(results / FIRST)
    assert configured == ["--configfile", str(results / "my run.yaml"), "--replace-workflow-config"]
    assert "1 of them the configuration does not have any more" in outcome.output


def test_what_a_finished_step_had_made_and_is_gone_is_named_with_the_command_that_makes_it(results, monkeypatch):
    """In the working folder of a run whose results lie beside it."""
    monkeypatch.chdir(results.parent)
    made = [f"{results.name}/{bucket}" for bucket in (FIRST, SECOND)]
    job = {"rule": "edges", "stage": "graph", "of": "cited", "after": [], "threads": 1, "log": None, "benchmark": None}
    jobs = [Job(number=1, **job, is_needed=False, outputs=made)]
    jobs.append(Job(number=2, **job, is_needed=True, outputs=["results/not-yet"]))
    write_start(results, directory=str(results.parent), results=results.name, jobs=jobs)
    assert check(Path(results.name)) == (0, "2 files, 0 of them broken.\n")
    (results / SECOND).unlink()
    status, output = check(Path(results.name))
    assert status == 1
    assert output.splitlines()[:2] == [
        f"{made[1]}: gone, though the step that makes it was done.",
        "1 files, 0 of them broken; 1 more are gone.",
    ]
    assert shlex.split(output.splitlines()[-1])[1:4] == ["--cores", "2", made[1]]


def test_of_a_copy_it_says_that_nobody_knows_what_is_gone(results):
    write_start(results)
    assert check(results)[1].endswith(f"{results} is a copy: which files are gone from it is not known.\n")


def test_a_broken_file_that_may_not_be_deleted_is_named(results, monkeypatch):
    spoil(results / FIRST, 2_000)

    def refuse(path, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)  # root may delete anything
    with pytest.raises(InputError, match=r"edges/0\.parquet cannot be deleted \(Permission denied\)"):
        check(results, "--remove")


def test_pages_with_fewer_rows_than_the_footer_counts_and_a_file_that_was_cut_short_are_found(results):
    path, short = results / FIRST, results / SECOND
    content = bytearray(path.read_bytes())
    content[pq.read_metadata(path).row_group(0).column(0).data_page_offset + 1] ^= 2  # the type of the page
    path.write_bytes(content)
    short.write_bytes(short.read_bytes()[:200])
    rows, cut, *_ = check(results)[1].splitlines()
    assert rows == f"{path}: 0 rows are in the pages of column source, and 20,000 in the footer"
    assert cut.startswith(f"{short}: not a readable Parquet file")


def test_a_broken_file_is_named_and_deleted_where_that_is_asked_for(results):
    path = results / SECOND
    whole = path.read_bytes()
    for share in (0.1, 0.3, 0.7, 0.95, 0.5):
        path.write_bytes(whole)
        spoil(path, int(len(whole) * share))
        status, output = check(results)
        assert (status, f"{path}: " in output, str(results / FIRST) in output) == (1, True, False)
        assert path.exists()
    status, output = check(results, "--remove")
    assert (status, path.exists()) == (1, False)
    program, *words = output.splitlines()[-1].split()
    assert words == ["--cores", "2", str(path)]
    assert (Path(program).name, Path(program).is_file()) == ("snakemake", True)
    assert check(results)[0] == 0


def test_of_a_folder_that_one_job_makes_no_shard_is_deleted_alone(results):
    folder = (results / FIRST).parent
    (folder / ".snakemake_timestamp").touch()
    spoil(folder / "1.parquet", 2_000)
    status, output = check(results, "--remove")
    assert (status, folder.exists()) == (1, False)
    assert output.splitlines()[-1].split()[-1] == str(folder)
