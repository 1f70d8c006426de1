"""The experiments at paper scale can be planned: every job of every published model is there."""

import copy

import pytest
from tests.published_sizes import experiments as experiments
from tests.workflow.conftest import planned

OTHERS = ("losses", "graph-embeddings", "ablations", "aspects", "objectives")


@pytest.mark.parametrize("name", ["cocite", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_an_experiment_at_paper_scale_is_planned_with_a_training_for_each_model_and_seed(run, experiments, name):
    config = copy.deepcopy(experiments(name))
    config["corpus"] |= {"buckets": 2}
    if config["corpus"]["source"] == "s2":
        config["corpus"]["shards"] = {"papers": 1, "abstracts": 1, "citations": 2}
    jobs = planned(run, config)
    assert len(jobs.of("train_encoder")) == sum(len(model["seeds"]) for model in config["models"].values())
    assert len(jobs.of("train_graph_embedding")) == len(config["embeddings"])


@pytest.mark.long
def test_the_published_setting_has_at_most_1200_jobs(run, experiments):
    assert len(planned(run, experiments("cocite")).jobs) <= 1200
