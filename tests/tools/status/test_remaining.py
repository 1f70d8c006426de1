"""The time that is left: all work over the cores, or the longest chain where that takes longer."""

import os
import time

import pytest
from tests.tools.status.conftest import STARTED, begun, event

from cocite.config.started import Job
from cocite.tools.run_progress import estimate, read_progress

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
