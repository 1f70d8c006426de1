"""What an edit of the configuration runs again on top of a finished run, and what it leaves alone."""

import os
import subprocess

import pytest
from tests.workflow.conftest import edited, planned

pytestmark = pytest.mark.end_to_end

SCORED = {"embed_own_documents": 1, "score_model": 2}
AFTER_A_TRAINING = {
    *("embed_own_documents", "score_model", "average_scores", "compare_models", "compare_over_tasks", "provenance"),
    *("draw_figures", "write_page"),
}
"""The rules whose jobs depend on a trained model."""


def test_a_second_run_does_nothing_and_is_quick(finished):
    start = os.times()
    result = subprocess.run(finished.command("all"), capture_output=True, text=True, check=False)
    assert "Nothing to be done" in result.stdout + result.stderr
    assert os.times().children_user - start.children_user < 15  # whatever else the machine is doing


@pytest.mark.parametrize(
    ("edit", "seed", "also"), [({"loss": "cosent"}, "1", {"lay_out_map"}), ({"seeds": [1, 2]}, "2", set())]
)
def test_another_loss_or_seed_trains_and_scores_that_model_only(finished, edit, seed, also):
    jobs = planned(finished, edited(**{f"models__cocite__{key}": value for key, value in edit.items()}))
    for rule, count in {"train_encoder": 1, **SCORED}.items():
        name = "system" if rule == "score_model" else "model"
        assert [(job.wildcards[name], job.wildcards["seed"]) for job in jobs.of(rule)] == [("cocite", seed)] * count
    assert jobs.rules() == AFTER_A_TRAINING | {"train_encoder"} | also


@pytest.mark.parametrize(
    ("entries", "made", "left_alone"),
    [
        ({"corpus__malformed": 0.01}, {}, {"download_shards", "ingest", "merge_papers", "merge_citations"}),
        (
            {"benchmarks__scirepeval__seeds": [1, 2], "benchmarks__holdout__seeds": [1, 2]},
            {"score_model": 3, "score_baseline": 1},  # those of one benchmark: rankings have no seed
            {"prepare_folder", "embed_own_documents"},
        ),
        ({"triplets__cocite__k_negative": 90}, {"sample_triplets": 1}, {"train_graph_embedding", "search_neighbours"}),
        # A bucket of the old cut has the name of one of the new, and holds other papers.
        ({"corpus__buckets": 3}, {"ingest": 6, "merge_papers": 3, "merge_citations": 3}, set()),
    ],
)
def test_an_edit_runs_what_depends_on_it_again_and_leaves_the_rest_alone(finished, entries, made, left_alone):
    jobs = planned(finished, edited(**entries))
    assert {rule: len(jobs.of(rule)) for rule in made} == made
    assert not jobs.rules() & left_alone


def test_another_choice_of_queries_draws_them_again(finished):
    queries = {"count": 140, "holdout": 30, "validation": 0.2}
    changed = {f"queries__{key}": value for key, value in queries.items()}
    jobs = planned(finished, edited(benchmarks__holdout__positives=4, **changed))
    drawn = jobs.one("select_queries").command
    assert all(f'"{key}": {value}' in drawn for key, value in (queries | {"holdout_references": 4}).items())


def test_a_benchmark_that_others_made_adds_jobs_and_reruns_none(finished, tmp_path):
    for file in ("metadata/relish/evaluation.jsonl", "test/relish/test.jsonl"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("{}\n")
    benchmark = {"kind": "scirepeval", "folder": str(tmp_path), "tasks": ["relish"]}
    jobs = planned(finished, edited(benchmarks__relish=benchmark))
    assert {job.wildcards["benchmark"] for job in jobs.of("score_model") + jobs.of("embed_documents")} == {"relish"}
    assert not {"embed_own_documents", "train_encoder", "prepare_holdout"} & jobs.rules()
