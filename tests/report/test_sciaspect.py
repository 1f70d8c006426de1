"""SciAspect's published results stand beside the models of the same names; what was not run stays empty."""

from pathlib import Path

import polars as pl
import pytest
import yaml

from cocite.config.configuration import resolve
from cocite.config.runs import scored_models
from cocite.report.published import OF_SCIDOCS
from cocite.report.sciaspect import MATRIX, matrix, published_values

EXPERIMENT = Path(__file__).parents[2] / "experiments/aspects.yaml"
CONFIGURATION = {
    "triplets": {
        "aspects": {"sampler": "aspects"},
        "one": {"sampler": "undirected"},
        "cited": {"sampler": "citations"},
    },
    "models": {
        "sciaspect": {"triplets": "aspects", "spaces": ["result", "concatenated"]},
        "mine": {"triplets": "one"},
        "specter": {"triplets": "cited"},
    },
    "benchmarks": {
        "sre": {"kind": "scirepeval"},
        "again": {"kind": "scirepeval"},
        "fields": {"kind": "mdcr"},
        "holdout": {"kind": "holdout"},
    },
}
OURS = [f"{name}, ours" for name in ("SciDocs", "SciRepEval", "MDCR MAP", "MDCR nDCG", "MDCR recall@5")]


def average(model, mean, *, benchmark="sre", mode="compat", of=("all", "all"), deviation=None, values=25, expected=25):
    row = {"benchmark": benchmark, "model": model, "mode": mode, "over": of[0], "average": of[1], "mean": mean}
    return row | {"deviation": deviation, "runs": 1, "values": values, "expected": expected}


def rows_of(averages, configuration=CONFIGURATION):
    return {row["model"]: row for row in matrix(pl.DataFrame(averages), configuration).to_dicts()}


def without(part, *names):
    kept = {name: entry for name, entry in CONFIGURATION[part].items() if name not in names}
    return {**CONFIGURATION, part: kept}


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.setenv("COCITE_SCIBERT", str(tmp_path))
    return resolve(yaml.safe_load(EXPERIMENT.read_text()))


def test_published_results_and_the_models_of_the_experiment_have_the_same_names(experiment):
    named = pl.read_csv(MATRIX)["model"].to_list()
    assert len(named) == len(set(named)) == 27
    assert set(experiment["models"]) <= set(named) <= set(scored_models(experiment))


def test_every_model_of_the_experiment_may_stand_beside_a_published_result(experiment):
    averages = [average(name, 50.0, benchmark="scirepeval") for name in scored_models(experiment)]
    rows = rows_of(averages, experiment)
    assert {row["SciRepEval, ours"] for row in rows.values()} == {"50.0"}


def test_ours_stand_beside_the_published_values_of_the_model_and_space():
    rows = rows_of(
        [
            average("sciaspect", 60.04, deviation=0.25),
            average("sciaspect_in_result", 61.0),
            average("sciaspect", 31.0, benchmark="fields", mode="both", of=("metric", "map"), expected=None),
        ]
    )
    of_model, of_space = rows["sciaspect"], rows["sciaspect_in_result"]
    assert of_model == {
        **{"published result": "SciAspect (L1)", "model": "sciaspect"},
        **{"SciDocs": "79.94", "SciDocs, ours": "–", "SciRepEval": "68.14", "SciRepEval, ours": "60.0 ± 0.2"},
        **{"MDCR MAP": "32.55", "MDCR MAP, ours": "31.0", "MDCR nDCG": "59.00", "MDCR nDCG, ours": "–"},
        **{"MDCR recall@5": "27.25", "MDCR recall@5, ours": "–"},
    }
    assert (of_space["SciDocs"], of_space["SciRepEval"], of_space["SciRepEval, ours"]) == ("79.91", "–", "61.0")


def test_what_was_not_run_stays_empty():
    rows = rows_of([average("sciaspect", 60.0)])
    assert {name for name, row in rows.items() if any(row[column] != "–" for column in OURS)} == {"sciaspect"}
    assert rows["sciaspect-weighted"]["SciDocs"] == "78.87"


def test_a_model_of_a_published_name_that_learns_from_other_triplets_is_another_one():
    row = rows_of([average("specter", 60.0)])["specter"]
    assert (row["SciRepEval"], row["SciRepEval, ours"]) == ("68.52", "–")


def test_a_model_without_a_published_result_stands_below_them():
    rows = rows_of([average("mine", 60.0)])
    assert (len(rows), list(rows)[-1]) == (28, "mine")
    assert (rows["mine"]["published result"], rows["mine"]["SciRepEval, ours"]) == ("–", "60.0")


def test_ours_are_in_the_published_mode_and_of_the_first_benchmark_of_a_kind():
    rows = rows_of(
        [
            average("sciaspect", 70.0, mode="correct"),
            average("sciaspect", 60.0),
            average("sciaspect", 50.0, benchmark="again"),
            average("mine", 40.0, mode="correct"),
        ]
    )
    assert rows["sciaspect"]["SciRepEval, ours"] == "60.0"
    assert rows["mine"]["SciRepEval, ours"] == "40.0"


def test_an_average_that_lacks_values_says_so():
    row = rows_of([average("sciaspect", 60.0, values=24)])["sciaspect"]
    assert row["SciRepEval, ours"] == "60.0 (24 of 25 values)"


@pytest.mark.parametrize(
    "configuration",
    [without("benchmarks", "sre", "again", "fields"), without("models", "sciaspect", "mine")],
    ids=["no such benchmark", "no such model"],
)
def test_a_run_that_has_nothing_to_do_with_it_has_no_matrix(configuration):
    assert matrix(pl.DataFrame([average("specter", 60.0)]), configuration).is_empty()


def test_the_published_average_of_specter_cl_agrees_with_the_columns_that_are_published():
    columns = [value for value in OF_SCIDOCS["SPECTERCL"] if value is not None] + [54.66, 20.56]  # the recommendation
    [average] = published_values("specter-cl", ["SciDocs"])
    lacking = (12 * average - sum(columns)) / 4  # nDCG of the four rankings
    assert len(columns) == 8
    assert lacking == pytest.approx(94.13, abs=0.01)
    assert max(columns) < lacking < 100


def test_the_named_settings_are_the_best_of_their_grids_as_published():
    of = {name: published_values(name, ["SciDocs"])[0] for name in pl.read_csv(MATRIX)["model"]}
    contrastive = {name: value for name, value in of.items() if name.startswith("specter-cl")}
    hybrid = {name: value for name, value in of.items() if name.startswith("hybrid") and value is not None}
    assert max(contrastive, key=contrastive.get) == "specter-cl"
    assert max(hybrid, key=hybrid.get) == "hybrid-7"
