"""A published result belongs to the model with its settings."""

import pytest
import yaml
from tests.published_sizes import experiments as experiments

from cocite.config.runs import scored_models
from cocite.report.matched import model_with_settings_of, read_published


@pytest.mark.parametrize("table", ["ablations", "aspects", "objectives"])
def test_the_models_of_an_experiment_have_the_settings_of_the_published_results_of_their_names(table, experiments):
    configuration = experiments(table)
    published = {row["model"]: row for row in read_published(table).iter_rows(named=True)}
    assert published.keys() <= set(scored_models(configuration))
    assert {name: model_with_settings_of(row, configuration) for name, row in published.items()} == {
        name: name for name in published
    }


@pytest.mark.parametrize("table", ["ablations", "aspects", "objectives"])
def test_no_two_published_results_have_the_same_settings(table):
    rows = read_published(table)
    settings = [yaml.safe_load(row) for row in rows["settings"]]
    spaces = [name.partition("_in_")[2] for name in rows["model"]]
    same = [
        (rows["name"][i], rows["name"][j])
        for i in range(len(rows))
        for j in range(i)
        if settings[i] == settings[j] and spaces[i] == spaces[j]
    ]
    assert not same


def test_a_renamed_model_has_the_published_result_and_a_changed_one_has_not(experiments):
    resolved = experiments("ablations")
    renamed = {"mine": resolved["models"]["specter"], "specter": resolved["models"]["specter-no-hard"]}
    configuration = {**resolved, "models": renamed}
    found = {
        row["name"]: model_with_settings_of(row, configuration)
        for row in read_published("ablations").iter_rows(named=True)
    }
    assert {name: model for name, model in found.items() if model} == {
        "SPECTER": "mine",
        "SPECTER, no hard negatives": "specter",
    }
