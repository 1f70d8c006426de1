"""A run on Slurm that loses jobs in every way ends complete, with the tables of a run that lost none."""

import pytest
from tests.slurm.cluster import PARTITION, WITH_GPUS
from tests.slurm.conftest import CONFIGURATION, TRAINED, differing, tables
from tests.slurm.mishaps import megabytes

pytestmark = [pytest.mark.slurm, pytest.mark.long, pytest.mark.timeout(1800)]


def minutes(job: dict[str, str]) -> int:
    """The time that a job was given."""
    hours, minutes, _ = job["TimeLimit"].rsplit("-")[-1].split(":")
    return 60 * int(hours) + int(minutes)


def test_it_ends_complete_with_the_tables_and_the_model_of_a_run_without_slurm(rough, calm):
    assert rough.status == 0, rough.log[-5000:]
    scores = "evaluation/holdout/scores/small/near-1.parquet"
    assert {f"{TRAINED}/training_curves.parquet", scores} <= tables(calm.folder)
    assert differing(rough.folder, calm.folder) == []
    weights = [run.folder / "results" / TRAINED / "model/model.safetensors" for run in (rough, calm)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert "<svg" in (rough.folder / "results/report/index.html").read_text()
    assert (rough.folder / "results/cocite.duckdb").stat().st_size > 0


def test_a_job_that_was_cancelled_is_submitted_again_with_more_memory_and_time(rough):
    cancelled, again = rough.attempts("count_pairs")
    assert [cancelled["JobState"], again["JobState"]] == ["CANCELLED", "COMPLETED"]
    assert megabytes(again) == 2 * megabytes(cancelled)
    assert minutes(again) == 2 * minutes(cancelled)


def test_a_job_on_a_node_that_was_lost_is_queued_again_by_slurm(rough):
    *earlier, ended = rough.attempts("train_graph_embedding")
    assert ended["JobState"] == "COMPLETED"
    # Where jobs outlive the node's daemon, the one that was running can fail before it is missed.
    assert int(ended["Restarts"]) > 0 or earlier


def test_a_job_that_makes_way_for_an_urgent_one_is_queued_again_by_slurm(rough):
    (job,) = rough.attempts("search_neighbours")
    assert job["JobState"] == "COMPLETED"
    assert int(job["Restarts"]) == 1


def test_a_training_that_takes_too_much_memory_has_twice_as_much_from_the_second_attempt_on(rough):
    attempts = rough.attempts("train_encoder")
    assert attempts[0]["JobState"] in {"FAILED", "OUT_OF_MEMORY"}
    asked = CONFIGURATION["models"]["near"]["memory_mb"]
    assert [megabytes(job) for job in attempts] == [asked, 2 * asked, 2 * asked]


def test_a_training_whose_time_is_up_is_saved_and_goes_on_in_the_next_job(rough):
    _, ended, last = rough.attempts("train_encoder")
    assert [ended["JobState"], last["JobState"]] == ["TIMEOUT", "COMPLETED"]
    assert "Going on after step " in (rough.folder / "logs" / TRAINED / "train.log").read_text()


def test_a_training_is_submitted_with_a_gpu_and_is_shown_that_one_alone(rough):
    assert {job["TresPerJob"] for job in rough.attempts("train_encoder")} == {"gres:gpu:1"}
    assert rough.within_training["CUDA_VISIBLE_DEVICES"] in {"0", "1"}


def test_an_embedding_asks_for_its_gpu_as_gres_where_the_profile_says_so(rough):
    embeddings = rough.attempts("embed_own_documents")
    assert len({job["Comment"] for job in embeddings}) == 2  # of the model, and of the encoder that it comes from
    assert {job["TresPerNode"] for job in embeddings} == {"gres:gpu:1"}
    assert not any("TresPerJob" in job for job in embeddings)


def test_what_needs_no_gpu_asks_for_none_and_stays_out_of_their_partition(rough):
    asking = {job["Comment"] for job in rough.jobs if "TresPerJob" in job or "TresPerNode" in job}
    assert {comment.split("_wildcards_")[0] for comment in asking} == {"rule_train_encoder", "rule_embed_own_documents"}
    for job in rough.jobs:
        if "Comment" in job:
            assert job["Partition"] == (WITH_GPUS if job["Comment"] in asking else PARTITION), job["Comment"]
