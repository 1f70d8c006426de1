"""A published result belongs to the model with its settings."""

from pathlib import Path

import pytest
import yaml

from cocite.config.configuration import resolve
from cocite.config.runs import scored_models
from cocite.report.matched import model_with_settings_of, read_published

ROOT = Path(__file__).parents[2]
DATASETS = ("scifact", "nfcorpus", "trec-covid", "arguana", "scidocs", "iclr2022")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders for all that the experiments at paper scale take from the environment."""
    for variable in ("SCIBERT", "BERT", "BERT_LARGE", "BIOBERT", "GTE", "MINILM", "MSMARCO", "SCIDOCS", "MDCR"):
        monkeypatch.setenv(f"COCITE_{variable}", str(tmp_path))
    (tmp_path / "scores.tsv").touch()
    for variable in ("INPARS", "BEIR"):
        monkeypatch.setenv(f"COCITE_{variable}", str(tmp_path / variable))
        for dataset in DATASETS:
            (tmp_path / variable / dataset / "qrels").mkdir(parents=True)
            for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "qrels.tsv"):
                (tmp_path / variable / dataset / file).touch()


@pytest.mark.parametrize("table", ["ablations", "aspects"])
def test_the_models_of_an_experiment_have_the_settings_of_the_published_results_of_their_names(table, folders):
    configuration = resolve(yaml.safe_load((ROOT / f"experiments/{table}.yaml").read_text()))
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


def test_a_renamed_model_has_the_published_result_and_a_changed_one_has_not(folders):
    raw = yaml.safe_load((ROOT / "experiments/ablations.yaml").read_text())
    raw["models"] = {"mine": raw["models"]["specter"], "specter": raw["models"]["specter-no-hard"]}
    raw["baselines"].pop("citeomatic")
    configuration = resolve(raw)
    found = {
        row["name"]: model_with_settings_of(row, configuration)
        for row in read_published("ablations").iter_rows(named=True)
    }
    assert {name: model for name, model in found.items() if model} == {
        "SPECTER": "mine",
        "SPECTER, no hard negatives": "specter",
    }
