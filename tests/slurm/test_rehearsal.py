"""A part of a whole release, on a Slurm where everything goes wrong, has the tables of a run that nothing befell.

The node dies in jobs of five rules, a job is cancelled, one is pushed off, one takes too much memory and one too much
time, a fifth of the API's answers fail, and the disk is full until the run ends; it is then started again. The variable
COCITE_REHEARSAL says which part of a release it is, in the place of a thousandth.
"""

import os
import re
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from tests.benchmarks.made_release import write_release
from tests.benchmarks.rehearse import KEY, RELEASE, SHARDS, configuration
from tests.releases.faults import AT_RANDOM, Faults
from tests.releases.server import serve
from tests.slurm.conftest import ON_THIS_SLURM, command, configured, differing, ending, filled_in, start, tables
from tests.slurm.mishaps import cancel, fill, hold_up, jobs, lose_the_node, megabytes, preempt, running, small_disk

pytestmark = [pytest.mark.slurm, pytest.mark.long, pytest.mark.timeout(4 * 3600)]

SCALE = float(os.environ.get("COCITE_REHEARSAL", "0.001"))
LONGEST = 2 * 3600.0
LOST = ("download_shards", "count_pairs", "train_graph_embedding", "search_neighbours", "train_encoder")
FULL, CANCELLED, PUSHED_OFF = "merge_papers", "score_words", "embed_papers"
TOO_LARGE, TOO_SLOW = "link_papers", "rank_candidates"


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "release"
    write_release(folder, SCALE, RELEASE, SHARDS)
    return folder


def begin(folder, api, options, program="snakemake", environment=os.environ):
    """Start the rehearsal in `disk` below a folder, which its log is in."""
    config = {key: value for key, value in configuration(api).items() if key != "pathvars"}
    words = [*command(configured(folder / "disk", config), program), *options]
    return start(words, folder, {**environment, "S2_API_KEY": KEY})


@pytest.fixture(scope="module")
def undisturbed(release, tmp_path_factory):
    """The run on this machine, which has its turn while the other waits, and the folder that it works in."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "disk").mkdir()
    with serve(release, key=KEY) as api:
        run = begin(folder, api, ["--cores", "2", "--resources", "mem_mb=4000"])
        yield folder, run
        run.kill()
        run.wait()


@pytest.fixture(scope="module")
def disturbed(cluster, undisturbed, release, tmp_path_factory):
    """The run on which everything befalls its jobs: both of its ends, and the requests that its API has got."""
    folder, profile = tmp_path_factory.mktemp("disturbed"), filled_in(tmp_path_factory.mktemp("profile"))
    disk, arrivals = folder / "disk", []
    disk.mkdir()
    options = ["--profile", str(profile), *ON_THIS_SLURM, "--set-resources", f"{TOO_LARGE}:mem_mb=200 * attempt ** 3"]
    faults = Faults(share=0.2, seed=1, stall_seconds=10, retry_after="1")
    with small_disk(disk), serve(release, key=KEY, faults=faults, requests=arrivals) as api:
        cluster.kill_node()
        cluster.start_node()  # a space of processes has the file systems of its start
        again = partial(begin, folder, api, options, "tests.slurm.impatient", cluster.environment)
        first = again()
        left = {**befalling(cluster, disk), FULL: lambda _: fill(disk, first)}
        befall(cluster, left, first)
        full = ending(folder, first)
        second = again()
        befall(cluster, left, second)
        ended = replace(ending(folder, second), folder=disk)
        its_jobs = [job for job in jobs(cluster) if job["WorkDir"] == str(disk)]
        yield SimpleNamespace(full=full, ended=replace(ended, jobs=its_jobs), arrivals=arrivals)


def befalling(cluster, disk):
    """What befalls a job of each rule, once."""
    return {
        **dict.fromkeys(LOST, partial(lose_the_node, cluster)),
        CANCELLED: partial(cancel, cluster),
        PUSHED_OFF: partial(preempt, cluster),
        TOO_SLOW: lambda rule: hold_up(cluster, disk, rule, "retrieval", "rank"),
    }


def befall(cluster, left, run):
    """Until a run ends, let befall its rules what is left to, in the order in which their jobs run."""
    until = time.monotonic() + LONGEST
    while run.poll() is None and time.monotonic() < until:
        for rule in [rule for rule in left if running(cluster, rule)][:1]:
            left.pop(rule)(rule)
        time.sleep(0.2)


def test_it_has_the_tables_of_a_run_without_slurm_on_which_nothing_befell(disturbed, undisturbed):
    calm = ending(*undisturbed)
    assert calm.status == 0, calm.log[-5000:]
    assert disturbed.ended.status == 0, disturbed.ended.log[-5000:]
    assert "evaluation/later/scores/small/static-1.parquet" in tables(calm.folder / "disk")
    assert differing(disturbed.ended.folder, calm.folder / "disk") == []


def test_a_run_on_a_full_disk_ends_and_names_the_cause(disturbed):
    assert disturbed.full.status != 0
    assert re.search("No space left|The disk is full", disturbed.full.log)
    assert disturbed.ended.attempts(FULL)[-1]["JobState"] == "COMPLETED"


@pytest.mark.parametrize("rule", [*LOST, PUSHED_OFF])
def test_jobs_that_were_taken_off_the_node_are_queued_again(disturbed, rule):
    attempts = disturbed.ended.attempts(rule)
    assert any(int(job["Restarts"]) > 0 for job in attempts)


@pytest.mark.parametrize(
    ("rule", "states"), [(CANCELLED, {"CANCELLED"}), (TOO_SLOW, {"TIMEOUT"}), (TOO_LARGE, {"FAILED", "OUT_OF_MEMORY"})]
)
def test_a_job_that_was_ended_is_submitted_again_with_more(disturbed, rule, states):
    first, *_, last = disturbed.ended.attempts(rule)
    assert first["JobState"] in states
    assert last["JobState"] == "COMPLETED"
    assert megabytes(last) > megabytes(first)


def test_the_api_has_failed_in_many_ways(disturbed):
    ways = {arrival.fault for arrival in disturbed.arrivals if arrival.fault}
    assert len(ways) > len(AT_RANDOM["storage"]) / 2
