"""What became of jobs is read from Snakemake's log, retries, groups and quoted logs among it."""

from tests.people.status.conftest import STARTED, begun, event

from cocite.people.status.events import Event, read_events

FENCE = "=" * 80
FAILED = ("Error in rule train:", "    message: None", "    jobid: 2", "    log: logs/train.log (check log file(s))")


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


def test_a_log_that_is_quoted_as_empty_hides_nothing():
    quoted = ("Logfile logs/train.log: empty file",)
    assert states(event(5, *FAILED, *quoted), begun(6, 3, "ingest")) == {2: "failed", 3: "started"}


def test_the_jobs_of_a_group_that_fails_have_failed():
    rules = ("    jobs:", "        rule train:", "            jobid: 2", "        rule score:", "            jobid: 1")
    assert states(event(5, *rules), begun(6, 3, "ingest")) == {2: "failed", 1: "failed", 3: "started"}


def test_the_jobs_of_a_group_are_started_where_they_are_indented():
    group = "".join(f"    {line}\n" for line in begun(1, 2, "train").splitlines())
    assert states(event(0, "group job 1 (jobs in lexicogr. order):"), group) == {2: "started"}
