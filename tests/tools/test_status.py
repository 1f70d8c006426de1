"""`cocite status`: how far a run is, by Snakemake's log or the files of jobs, and the time that it still needs."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.test_cli import HEAVY
from tests.tools.builders import invoke, write_start

from cocite.config import started
from cocite.config.started import Job, Start, stage_of
from cocite.core.errors import InputError
from cocite.tools.run_progress import Event, estimate, last_lines, read_events, read_progress, report_failures

FENCE = "=" * 80
FAILED = ("Error in rule train:", "    message: None", "    jobid: 2", "    log: logs/train.log (check log file(s))")
STARTED = 4_000_000_000.0
"""Later than the files that a test writes, unless it says when they were written."""


def job(number: int, rule: str, stage: str = "evaluation", after: tuple[int, ...] = (), **others) -> Job:
    fields = {"outputs": [f"results/{rule}"], "log": f"logs/{rule}.log", "benchmark": f"benchmarks/{rule}.jsonl"}
    fields |= {"of": "", "is_needed": True, "threads": 1, **others}
    return Job(number=number, rule=rule, stage=stage, after=[*after], **fields)


TRAIN = job(2, "train", "encoder", (3,), of="cocite 1", threads=2)
JOBS = [job(4, "download", "corpus", is_needed=False), job(3, "ingest", "corpus"), TRAIN]
JOBS += [job(1, "score", after=(2,)), job(5, "count", after=(3,))]


def event(seconds: float, *lines: str) -> str:
    """Lines of Snakemake's log, so many seconds after the start."""
    return "\n".join([f"[{time.asctime(time.localtime(STARTED + seconds))}]", *lines]) + "\n"


def begun(seconds: float, number: int, rule: str) -> str:
    """What Snakemake's log says of a job that it starts."""
    return event(seconds, f"localrule {rule}:", "    input: a", f"    log: logs/{rule}.log", f"    jobid: {number}")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(log: str = "", **others) -> Start:
    """Record the run, with such a log of Snakemake's."""
    folder = Path.cwd()
    (folder / "snakemake.log").write_text(log)
    fields = {"time": STARTED, "directory": str(folder), "results": "results", "log": str(folder / "snakemake.log")}
    fields |= {"snakefile": str(folder / "Snakefile"), "configfiles": ["config.yaml"], "process_started": 1.0}
    return write_start(folder / "results", **{**fields, "jobs": JOBS, **others})


def took(rule: str | int, seconds: float) -> None:
    """Write down what a step took, in seconds."""
    Path("benchmarks").mkdir(exist_ok=True)
    Path(f"benchmarks/{rule}.jsonl").write_text(json.dumps({"s": seconds, "cpu_time": 1.0}) + "\n")


def logged(rule: str, text: str) -> Path:
    """Write the log of a step."""
    Path("logs").mkdir(exist_ok=True)
    Path(f"logs/{rule}.log").write_text(text)
    return Path(f"logs/{rule}.log")


INGESTED = begun(0, 3, "ingest") + event(5, "Finished jobid: 3 (Rule: ingest)")
TRAINING = begun(1, 2, "train")
NOT_COUNTED = event(9, "Error in rule count:", "    jobid: 5")
BUSY = INGESTED + begun(6, 2, "train") + begun(6, 5, "count") + NOT_COUNTED


def rules(jobs):
    return [job.rule for job in jobs]


def test_each_job_is_in_one_state_and_what_was_done_before_counts():
    busy = read_progress(start(BUSY))
    assert rules(busy.jobs("done")) == ["download", "ingest"]
    assert rules(busy.jobs("running")) == ["train"]
    assert rules(busy.jobs("failed")) == ["count"]
    assert rules(busy.left) == ["train", "score", "count"]
    assert busy.jobs("queued") == []


def test_on_a_cluster_a_job_waits_in_the_queue_until_it_writes_its_log():
    submitted = start(begun(6, 2, "train") + begun(6, 5, "count"), cores=None)
    os.utime(logged("train", "x\n"), (STARTED + 8, STARTED + 8))
    os.utime(logged("count", "of an earlier attempt\n"), (STARTED + 5, STARTED + 5))
    progress = read_progress(submitted)
    assert rules(progress.jobs("running")) == ["train"]
    assert rules(progress.jobs("queued")) == ["count"]


def test_where_snakemake_says_nothing_logs_and_benchmarks_do():
    started = start()
    for rule, seconds in (("ingest", 5), ("train", 9), ("count", -20)):
        os.utime(logged(rule, "x\n"), (STARTED + seconds, STARTED + seconds))
    took("ingest", 5)
    os.utime("benchmarks/ingest.jsonl", (STARTED + 6, STARTED + 6))
    progress = read_progress(started)
    assert rules(progress.jobs("done")) == ["download", "ingest"]
    assert rules(progress.jobs("running")) == ["train"]
    assert progress.seconds_of(*progress.jobs("running")) is None


def test_without_a_log_of_snakemake_or_of_a_job_nothing_is_known_of_it(folder):
    started = start()
    (folder / "snakemake.log").unlink()
    assert rules(read_progress(started).jobs("done")) == ["download"]
    assert list(last_lines(started, started.jobs[3])) == []


def test_the_last_lines_of_a_long_log_leave_out_empty_ones():
    started = start()
    logged("train", "x" * 10_000 + "first\n\nsecond \n\nthird\n\n")
    assert list(last_lines(started, started.jobs[2], 2)) == ["second", "third"]


def test_a_job_is_started_and_then_finished_at_the_times_that_stand_above():
    done, begun_at = Event(state="done", time=STARTED + 5), Event(state="started", time=STARTED + 20)
    assert read_events((INGESTED + begun(20, 2, "train")).splitlines()) == {3: done, 2: begun_at}


QUOTED = ("Logfile logs/train.log:", FENCE, *FAILED[:2], "    jobid: 7", "Finished jobid: 2 (Rule: train)", FENCE)
GROUP = "".join(f"    {line}\n" for line in TRAINING.splitlines())
RULES = ("    jobs:", "        rule train:", "            jobid: 2", "        rule score:", "            jobid: 1")
RESTARTED = [TRAINING, event(5, *FAILED), "Trying to restart job 2.\n"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (RESTARTED[:2], {2: "failed"}),
        (RESTARTED, {2: "waiting"}),
        ([*RESTARTED, begun(6, 2, "train")], {2: "started"}),
        ([TRAINING, event(5, *FAILED, *QUOTED), begun(6, 3, "ingest")], {2: "failed", 3: "started"}),
        ([event(5, *FAILED, "Logfile logs/train.log: empty file"), begun(6, 3, "ingest")], {2: "failed", 3: "started"}),
        ([event(0, "group job 1 (jobs in lexicogr. order):"), GROUP], {2: "started"}),
        ([event(5, *RULES), begun(6, 3, "ingest")], {2: "failed", 1: "failed", 3: "started"}),
    ],
)
def test_a_job_is_in_the_state_that_the_log_says_last_by_itself_or_in_a_group_whatever_it_quotes(parts, expected):
    found = read_events("".join(parts).splitlines(keepends=True))
    assert {job: of.state for job, of in found.items()} == expected


def test_the_stage_of_a_job_is_that_of_the_file_of_its_rule_or_of_its_folder():
    for file in ("rules/corpus.smk", "rules/corpus/queries.smk"):
        assert stage_of(SimpleNamespace(rule=SimpleNamespace(snakefile=f"/clone/{file}"))) == "corpus"


def left(log: str, *, at: float = 5, **others):
    """The time that is left of the run, some seconds after its start, and rules of which nothing is known."""
    progress = read_progress(start(log, **others))
    return estimate(type(progress)(**{**vars(progress), "now": STARTED + at}))


def test_a_chain_of_steps_takes_what_they_took_before_and_on_a_cluster_the_longest_chain_counts():
    for rule, seconds in (("train", 100), ("score", 10), ("count", 30)):
        took(rule, seconds)
    # Train has both cores, 200 s of work, score and count one each: 240 s over two cores. The chain is 110 s.
    assert left(INGESTED) == (120, [])
    took("count", 300)
    assert left(INGESTED, cores=None)[0] == 300


def test_a_running_step_has_that_much_less_left_and_never_less_than_nothing():
    took("train", 100)
    took("score", 10)
    took("count", 0)
    log = INGESTED + begun(6, 2, "train")
    os.utime(logged("train", "x\n"), (STARTED + 7, STARTED + 7))
    assert left(log, at=46, cores=None)[0] == 60 + 10
    assert left(log, at=500, cores=None)[0] == 10


def test_steps_of_a_rule_are_taken_to_last_as_long_as_others_of_it():
    jobs = [job(number, "score", benchmark=f"benchmarks/{number}.jsonl") for number in range(5)]
    for number, seconds in ((0, 1), (1, 2), (2, 60)):
        took(number, seconds)
    done = "".join(event(1, f"Finished jobid: {number} (Rule: score)") for number in range(3))
    assert left(done, jobs=jobs, cores=1)[0] == 2 + 2


def test_rules_of_which_nothing_is_known_are_named(folder):
    took("count", 30)
    assert left(INGESTED) == (30, ["score", "train"])
    (folder / "benchmarks/count.jsonl").write_text('{"s": 3')  # half written
    assert "count" in left(INGESTED)[1]


def test_thousands_of_steps_are_estimated_in_no_time():
    jobs = [job(number, "score", after=tuple(range(max(0, number - 20), number))) for number in range(5_000)]
    begun_at = time.process_time()
    left("", jobs=jobs)
    assert time.process_time() - begun_at < 10  # where each chain is gone along by itself, it takes for ever


def test_a_run_that_failed_on_a_full_disk_says_so_since_logs_are_on_it_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    report_failures(tmp_path / "results")
    assert f"The disk is full: {tmp_path} has 0.0 GB free" in capsys.readouterr().err


ENDED = {3: "ingest", 2: "train", 1: "score", 5: "count"}
FINISHED = "".join(event(7, f"Finished jobid: {job} (Rule: {rule})") for job, rule in ENDED.items())
HERE = {"host": socket.gethostname(), "process": os.getpid(), "process_started": started._start_of(os.getpid())}


def status(*arguments):
    """The lines that the command prints."""
    return invoke("status", *arguments).stdout.splitlines()


def test_a_run_at_work_is_described_by_its_stages_its_steps_and_the_time_left(folder):
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


def test_what_a_killed_run_was_at_is_cut_off_and_no_time_is_left():
    start(begun(6, 2, "train"), **{**HERE, "process_started": 0.0})
    logged("train", "Training: 50/134 steps\n")
    lines = status()
    assert lines[0] == "results: stopped before its end, 1 of 5 steps done"
    assert lines[-3:] == ["Cut off", "  train cocite 1", "      Training: 50/134 steps"]


@pytest.mark.parametrize(
    ("log", "fields", "line"),
    [
        (NOT_COUNTED, {**HERE, "process_started": 0.0}, "ended with failures, 1"),
        (FINISHED, {}, "finished, 5"),  # wherever it was started
        (BUSY, {}, "started on elsewhere, and whether it still runs cannot be checked from here, 2"),
        (BUSY, HERE, "running, 2"),
    ],
)
def test_the_first_line_is_the_state_of_the_run(log, fields, line):
    start(log, **fields)
    assert status()[0].startswith(f"results: {line} of 5 steps done")
    if fields == HERE:
        unknown = "there is no earlier step of count, score, train."
        assert status()[-1] == f"At least 0 s left, by what earlier steps took; {unknown}"


def test_the_configuration_names_the_folder(folder, monkeypatch):
    start(FINISHED, results="out/mine")
    shutil.move("results", "out/mine")
    Path("my.yaml").write_text("pathvars: {results: out/mine}\n")
    assert status("--configfile", "my.yaml")[0].startswith("out/mine: finished, 5 of 5 steps done")
    monkeypatch.chdir("/")  # it can be asked from any folder
    assert status("--results", f"{folder}/out/mine")[0].startswith(f"{folder}/out/mine: finished, 5 of 5 steps done")


def test_what_ended_with_a_part_of_the_results_is_said_to_be_a_part(folder):
    start(FINISHED)
    [first, *_] = status()
    assert first.endswith("steps done for its targets, which are not all: a run without targets makes the report")
    record = folder / "results" / started.FILE
    record.write_text(record.read_text().replace('"rule": "count"', '"rule": "write_page"'))
    assert status()[0] == "results: finished, 5 of 5 steps done"
    assert status()[-1] == "The report: results/report/index.html; `cocite scores` prints its verdict."


def test_a_folder_without_a_run_is_refused_and_a_copy_shows_what_it_has(folder):
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
def test_a_broken_record_is_named(folder, content):
    start(FINISHED)
    (folder / "results/.state/run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=r"run\.json"):
        status()


def test_nothing_heavy_is_imported(folder):
    start(BUSY, **HERE)
    program = "import sys; from cocite.cli import app; app(['status'], standalone_mode=False)\n"
    program += f"print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).endswith("[]\n")
