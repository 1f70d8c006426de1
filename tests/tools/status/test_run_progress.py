"""How far a run is, from Snakemake's log or the files of jobs, and the time that it still needs."""

import os
import time
from types import SimpleNamespace

import pytest
from tests.tools.status.conftest import STARTED, begun, event

from cocite.config.started import Job, stage_of
from cocite.tools.run_progress import Event, estimate, last_lines, read_events, read_progress, report_failures

FENCE = "=" * 80
FAILED = ("Error in rule train:", "    message: None", "    jobid: 2", "    log: logs/train.log (check log file(s))")


def rules(jobs):
    return [job.rule for job in jobs]


@pytest.fixture
def busy(start):
    """A run that has ingested, is training, and failed to count."""
    return read_progress(
        start(
            begun(0, 3, "ingest")
            + event(5, "Finished jobid: 3 (Rule: ingest)")
            + begun(6, 2, "train")
            + begun(6, 5, "count")
            + event(9, "Error in rule count:", "    jobid: 5")
        )
    )


def test_each_job_is_in_one_state_and_what_was_done_before_counts(busy):
    assert rules(busy.jobs("done")) == ["download", "ingest"]
    assert rules(busy.jobs("running")) == ["train"]
    assert rules(busy.jobs("failed")) == ["count"]
    assert rules(busy.left) == ["train", "score", "count"]
    assert busy.jobs("queued") == []


def test_on_a_cluster_a_job_waits_in_the_queue_until_it_writes_its_log(start, logged):
    submitted = start(begun(6, 2, "train") + begun(6, 5, "count"), cores=None)
    os.utime(logged("train", "x\n"), (STARTED + 8, STARTED + 8))
    os.utime(logged("count", "of an earlier attempt\n"), (STARTED + 5, STARTED + 5))
    progress = read_progress(submitted)
    assert rules(progress.jobs("running")) == ["train"]
    assert rules(progress.jobs("queued")) == ["count"]


def test_where_snakemake_says_nothing_logs_and_benchmarks_do(start, logged, took):
    started = start()
    for rule, seconds in (("ingest", 5), ("train", 9), ("count", -20)):
        os.utime(logged(rule, "x\n"), (STARTED + seconds, STARTED + seconds))
    took("ingest", 5)
    os.utime("benchmarks/ingest.jsonl", (STARTED + 6, STARTED + 6))
    progress = read_progress(started)
    assert rules(progress.jobs("done")) == ["download", "ingest"]
    assert rules(progress.jobs("running")) == ["train"]
    assert progress.seconds_of(*progress.jobs("running")) is None


def test_without_a_log_of_snakemake_or_of_a_job_nothing_is_known_of_it(start, folder):
    started = start()
    (folder / "snakemake.log").unlink()
    assert rules(read_progress(started).jobs("done")) == ["download"]
    assert list(last_lines(started, started.jobs[3])) == []


def test_the_last_lines_of_a_long_log_leave_out_empty_ones(start, logged):
    started = start()
    logged("train", "x" * 10_000 + "first\n\nsecond \n\nthird\n\n")
    assert list(last_lines(started, started.jobs[2], 2)) == ["second", "third"]


def states(*parts: str) -> dict[int, str]:
    return {job: found.state for job, found in read_events("".join(parts).splitlines(keepends=True)).items()}


def test_a_job_is_started_and_then_finished_at_the_times_that_stand_above():
    log = begun(10, 3, "ingest") + event(15, "Finished jobid: 3 (Rule: ingest)") + begun(20, 2, "train")
    assert read_events(log.splitlines()) == {
        3: Event(state="done", time=STARTED + 15),
        2: Event(state="started", time=STARTED + 20),
    }


def test_a_job_that_fails_is_failed_until_it_is_started_again():
    failed, again = event(5, *FAILED), "Trying to restart job 2.\n"
    assert states(begun(1, 2, "train"), failed) == {2: "failed"}
    assert states(begun(1, 2, "train"), failed, again) == {2: "waiting"}
    assert states(begun(1, 2, "train"), failed, again, begun(6, 2, "train")) == {2: "started"}


def test_what_stands_in_the_quoted_log_of_a_job_is_no_event():
    quoted = ("Logfile logs/train.log:", FENCE, *FAILED[:2], "    jobid: 7", "Finished jobid: 2 (Rule: train)", FENCE)
    assert states(begun(1, 2, "train"), event(5, *FAILED, *quoted), begun(6, 3, "ingest")) == {
        2: "failed",
        3: "started",
    }

    empty = "Logfile logs/train.log: empty file"
    assert states(event(5, *FAILED, empty), begun(6, 3, "ingest")) == {2: "failed", 3: "started"}


@pytest.mark.parametrize("file", ["rules/corpus.smk", "rules/corpus/queries.smk"])
def test_the_stage_of_a_job_is_that_of_the_file_of_its_rule_or_of_its_folder(file):
    assert stage_of(SimpleNamespace(rule=SimpleNamespace(snakefile=f"/clone/{file}"))) == "corpus"


def test_the_jobs_of_a_group_are_started_where_they_are_indented_and_fail_together():
    group = "".join(f"    {line}\n" for line in begun(1, 2, "train").splitlines())
    assert states(event(0, "group job 1 (jobs in lexicogr. order):"), group) == {2: "started"}
    rules = ("    jobs:", "        rule train:", "            jobid: 2", "        rule score:", "            jobid: 1")
    assert states(event(5, *rules), begun(6, 3, "ingest")) == {2: "failed", 1: "failed", 3: "started"}


INGESTED = begun(0, 3, "ingest") + event(5, "Finished jobid: 3 (Rule: ingest)")


@pytest.fixture
def left(start):
    """A function that estimates the time that is left of the run, some seconds after its start."""

    def run(log: str, *, at: float = 5, **others):
        progress = read_progress(start(log, **others))
        return estimate(type(progress)(**{**vars(progress), "now": STARTED + at}))

    return run


def test_a_chain_of_steps_takes_what_they_took_before_and_on_a_cluster_the_longest_chain_counts(left, took):
    for rule, seconds in (("train", 100), ("score", 10), ("count", 30)):
        took(rule, seconds)
    # Train has both cores, 200 s of work, score and count one each: 240 s over two cores. The chain is 110 s.
    assert left(INGESTED) == (120, [])
    took("count", 300)
    assert left(INGESTED, cores=None)[0] == 300


def test_a_running_step_has_that_much_less_left_and_never_less_than_nothing(left, took, logged):
    took("train", 100)
    took("score", 10)
    took("count", 0)
    log = INGESTED + begun(6, 2, "train")
    os.utime(logged("train", "x\n"), (STARTED + 7, STARTED + 7))
    assert left(log, at=46, cores=None)[0] == 60 + 10
    assert left(log, at=500, cores=None)[0] == 10


def test_steps_of_a_rule_are_taken_to_last_as_long_as_others_of_it(left, took):
    job = {"stage": "evaluation", "of": "", "is_needed": True, "after": [], "threads": 1, "outputs": [], "log": None}
    jobs = [Job(number=number, rule="score", benchmark=f"benchmarks/{number}.jsonl", **job) for number in range(5)]
    for number, seconds in ((0, 1), (1, 2), (2, 60)):
        took(number, seconds)
    done = "".join(event(1, f"Finished jobid: {number} (Rule: score)") for number in range(3))
    assert left(done, jobs=jobs, cores=1)[0] == 2 + 2


def test_rules_of_which_nothing_is_known_are_named(left, folder, took):
    took("count", 30)
    assert left(INGESTED) == (30, ["score", "train"])
    (folder / "benchmarks/count.jsonl").write_text('{"s": 3')  # half written
    assert "count" in left(INGESTED)[1]


def test_thousands_of_steps_are_estimated_in_no_time(left):
    job = {"stage": "evaluation", "of": "", "is_needed": True, "threads": 1, "outputs": [], "log": None}
    jobs = [
        Job(number=number, rule="score", benchmark=None, after=list(range(max(0, number - 20), number)), **job)
        for number in range(5_000)
    ]
    begun_at = time.process_time()
    left("", jobs=jobs)
    assert time.process_time() - begun_at < 10  # where each chain is gone along by itself, it takes for ever


def test_a_run_that_failed_on_a_full_disk_says_so_since_logs_are_on_it_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    report_failures(tmp_path / "results")
    assert f"The disk is full: {tmp_path} has 0.0 GB free" in capsys.readouterr().err
