"""What an edit of the configuration runs again on top of a finished run, and what it leaves alone."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from tests.workflow.conftest import SMALL, Run, edited, planned

pytestmark = pytest.mark.end_to_end

AFTER_A_TRAINING = {
    "embed_own_documents",
    "score_model",
    "average_scores",
    "compare_models",
    "compare_over_tasks",
    "provenance",
    "draw_figures",
    "write_page",
}
"""The rules whose jobs depend on a trained model."""


def test_a_second_run_does_nothing_and_is_quick(finished):
    start = os.times()
    result = subprocess.run(finished.command("all"), capture_output=True, text=True, check=False)
    assert "Nothing to be done" in result.stdout + result.stderr
    assert os.times().children_user - start.children_user < 15  # whatever else the machine is doing


def test_another_loss_reruns_the_training_of_that_model_only(finished):
    jobs = planned(finished, edited(models__cocite__loss="cosent"))
    for rule, count in {"train_encoder": 1, "embed_own_documents": 1, "score_model": 2}.items():
        assert [job.wildcards["model"] for job in jobs.of(rule)] == ["cocite"] * count
    assert jobs.rules() == AFTER_A_TRAINING | {"train_encoder", "lay_out_map"}


def test_another_choice_of_queries_draws_them_again(finished):
    queries = {"count": 140, "holdout": 30, "validation": 0.2}
    changed = {f"queries__{key}": value for key, value in queries.items()}
    jobs = planned(finished, edited(benchmarks__holdout__positives=4, **changed))
    drawn = jobs.one("select_queries").command
    assert all(f'"{key}": {value}' in drawn for key, value in (queries | {"holdout_references": 4}).items())


def test_a_larger_share_of_malformed_lines_fetches_nothing_again(finished):
    jobs = planned(finished, edited(corpus__malformed=0.01))
    assert not jobs.rules() & {"download_shards", "ingest", "merge_papers", "merge_citations"}


def test_another_seed_adds_jobs_and_reruns_none(finished):
    jobs = planned(finished, edited(models__cocite__seeds=[1, 2]))
    for rule, count in {"train_encoder": 1, "embed_own_documents": 1, "score_model": 2}.items():
        assert [(job.wildcards["model"], job.wildcards["seed"]) for job in jobs.of(rule)] == [("cocite", "2")] * count
    assert jobs.rules() == AFTER_A_TRAINING | {"train_encoder"}


def test_another_evaluation_seed_embeds_nothing_and_scores_no_benchmark_of_rankings_again(finished):
    seeds = {"benchmarks__scirepeval__seeds": [1, 2], "benchmarks__holdout__seeds": [1, 2]}
    jobs = planned(finished, edited(**seeds))
    assert {job.wildcards["benchmark"] for job in jobs.of("score_model")} == {"scirepeval"}
    assert len(jobs.of("score_baseline")) == 1
    assert not {"prepare_folder", "embed_own_documents"} & jobs.rules()


def test_a_benchmark_that_others_made_adds_jobs_and_reruns_none(finished, tmp_path):
    run = Run(folder=shutil.copytree(finished.folder, tmp_path / "more"))
    texts, judgements = run.folder / "folder/metadata/relish", run.folder / "folder/test/relish"
    for folder, split in ((texts, "evaluation"), (judgements, "test")):
        folder.mkdir(parents=True)
        (folder / f"{split}.jsonl").write_text("{}\n")
    benchmark = {"kind": "scirepeval", "folder": "folder", "tasks": ["relish"]}
    jobs = planned(run, edited(benchmarks__relish=benchmark))
    assert {job.wildcards["benchmark"] for job in jobs.of("score_model") + jobs.of("embed_documents")} == {"relish"}
    assert not {"embed_own_documents", "train_encoder", "prepare_holdout"} & jobs.rules()


@pytest.mark.long
def test_of_the_scoring_jobs_only_the_one_that_was_killed_is_run_again(finished, tmp_path):
    run = Run(folder=shutil.copytree(finished.folder, tmp_path / "killed"))
    scores = "results/evaluation/scirepeval/scores/small/cocite-1.parquet"
    log = run.folder / "logs/evaluation/scirepeval/score-small-cocite-1.log"
    for file in (run.folder / scores, log):
        file.unlink()
    with subprocess.Popen(run.command("evaluation"), start_new_session=True, stderr=subprocess.DEVNULL) as process:
        while not log.exists():
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (run.folder / scores).exists()
    jobs = planned(run, SMALL, "evaluation")
    assert jobs.one("score_model").outputs[0] == scores
    assert not {"score_baseline", "score_words"} & jobs.rules()


def test_another_pair_of_ks_leaves_the_graph_and_the_other_set_alone(finished):
    jobs = planned(finished, edited(triplets__cocite__k_negative=90))
    assert not {"train_graph_embedding", "search_neighbours"} & jobs.rules()
    assert jobs.one("sample_triplets").wildcards == {"triplets": "cocite"}


def test_another_number_of_buckets_merges_all_papers_and_citations_again(finished):
    # A bucket of the old cut has the name of one of the new, and holds other papers.
    jobs = planned(finished, edited(corpus__buckets=3), "corpus")
    assert [len(jobs.of(rule)) for rule in ("ingest", "merge_papers", "merge_citations")] == [6, 3, 3]
