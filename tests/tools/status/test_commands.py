"""`cocite status`, as people read it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_cli import HEAVY
from tests.tools.builders import invoke
from tests.tools.status.conftest import begun, event

from cocite.config import started
from cocite.core.errors import InputError

FINISHED = "".join(
    event(number, f"Finished jobid: {job} (Rule: {rule})")
    for number, (job, rule) in enumerate([(3, "ingest"), (2, "train"), (1, "score"), (5, "count")])
)
BUSY = (
    event(5, "Finished jobid: 3 (Rule: ingest)")
    + begun(6, 2, "train")
    + begun(6, 5, "count")
    + event(9, "Error in rule count:", "    jobid: 5")
)
HERE = {"host": socket.gethostname(), "process": os.getpid(), "process_started": started._start_of(os.getpid())}


def status(*arguments):
    """The lines that the command prints."""
    return invoke("status", *arguments).stdout.splitlines()


def test_a_run_at_work_is_described_by_its_stages_its_steps_and_the_time_left(start, took, logged, folder):
    start(BUSY, **HERE)
    logged("train", "Training: 50/134 steps, 7.43steps/s, 00:11 left\n")
    logged("count", "reading\nError: papers: nothing to count.\n")
    for rule, seconds in (("train", 7200), ("score", 0), ("count", 0)):
        took(rule, seconds)
    assert status() == [
        "results: running, 2 of 5 steps done",
        "  corpus      2 of 2",
        "  encoder     0 of 1",
        "  evaluation  0 of 2",
        "Running",
        "  train cocite 1, for 0 s",
        "      Training: 50/134 steps, 7.43steps/s, 00:11 left",
        "Failed",
        f"  count: {folder}/logs/count.log",
        "      reading",
        "      Error: papers: nothing to count.",
        "About 2.0 h left, by what earlier steps took.",
    ]


def test_what_a_killed_run_was_at_is_cut_off_and_no_time_is_left(start, logged):
    start(begun(6, 2, "train"), **{**HERE, "process_started": 0.0})
    logged("train", "Training: 50/134 steps\n")
    lines = status()
    assert lines[0] == "results: stopped before its end, 1 of 5 steps done"
    assert lines[-3:] == ["Cut off", "  train cocite 1", "      Training: 50/134 steps"]


@pytest.mark.parametrize(
    ("log", "fields", "line"),
    [
        (event(9, "Error in rule count:", "    jobid: 5"), {**HERE, "process_started": 0.0}, "ended with failures, 1"),
        (FINISHED, {}, "finished, 5"),  # wherever it was started
        (BUSY, {}, "started on elsewhere, and whether it still runs cannot be checked from here, 2"),
        (BUSY, HERE, "running, 2"),
    ],
)
def test_the_first_line_is_the_state_of_the_run(start, log, fields, line):
    start(log, **fields)
    assert status()[0].startswith(f"results: {line} of 5 steps done")
    if fields == HERE:
        unknown = "there is no earlier step of count, score, train."
        assert status()[-1] == f"At least 0 s left, by what earlier steps took; {unknown}"


def test_the_configuration_names_the_folder(start, folder, monkeypatch):
    start(FINISHED, results="out/mine")
    shutil.move("results", "out/mine")
    Path("my.yaml").write_text("pathvars: {results: out/mine}\n")
    assert status("--configfile", "my.yaml")[0].startswith("out/mine: finished, 5 of 5 steps done")
    monkeypatch.chdir("/")  # it can be asked from any folder
    assert status("--results", f"{folder}/out/mine")[0].startswith(f"{folder}/out/mine: finished, 5 of 5 steps done")


def test_what_ended_with_a_part_of_the_results_is_said_to_be_a_part(start, folder):
    start(FINISHED)
    [first, *_] = status()
    assert first.endswith("steps done for its targets, which are not all: a run without targets makes the report")
    jobs = json.loads((folder / "results" / started.FILE).read_text())
    jobs["jobs"][-1]["rule"] = "write_page"
    (folder / "results" / started.FILE).write_text(json.dumps(jobs))
    assert status()[0] == "results: finished, 5 of 5 steps done"
    assert status()[-1] == "The report: results/report/index.html; `cocite scores` prints its verdict."


def test_a_folder_without_a_run_is_refused_and_a_copy_shows_what_it_has(start, folder):
    with pytest.raises(InputError, match="results does not exist; start a run"):
        status()
    (folder / "results").mkdir()
    with pytest.raises(InputError, match="No run has been started in results"):
        status()
    start(FINISHED)
    shutil.copytree("results", "copy")
    Path("copy/graph").mkdir()
    assert status("--results", "copy") == [
        f"copy: a copy of {folder}/results, where its run was started on elsewhere",
        "  results of graph; `cocite show` lists the tables, `cocite check` reads them to their ends",
    ]


@pytest.mark.parametrize("content", ["{", "[]", '{"jobs": [{}]}', '{"jobs": 3}', "\xff"])
def test_a_broken_record_is_named(start, folder, content):
    start(FINISHED)
    (folder / "results/.state/run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=r"run\.json"):
        status()


def test_nothing_heavy_is_imported(start, folder):
    start(BUSY, **HERE)
    program = "import sys\nfrom cocite.cli import app\ntry:\n    app(['status'])\nexcept SystemExit:\n    pass\n"
    program += f"print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).endswith("[]\n")
