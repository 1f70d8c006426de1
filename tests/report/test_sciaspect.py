"""SciAspect's published results are in the rows of the models with the same settings."""

import polars as pl
import pytest

from cocite.report.matched import read_published
from cocite.report.sciaspect import matrix

SUPCON = {"kind": "supcon", "temperature": 0.05}
SETS = {"graph": "citation", "positives": 1, "easy": 3, "paired": False, "oversample": False}
MODEL = {"encoder": "scibert", "trainable": {"kind": "all"}}
CONFIGURATION = {
    "graphs": {"citation": {"signal": "citation", "directed": True}},
    "triplets": {
        "aspects": {**SETS, "sampler": "aspects", "linked": 10, "two_away": 0, "miscellaneous": False},
        "one": {**SETS, "sampler": "undirected", "positives": 3, "hard": 2},
        "undirected": {**SETS, "sampler": "undirected", "positives": 5, "hard": 2},
        "cited": {"sampler": "citations", "graph": "citation", "per_query": 5, "easy": 3, "directed": True},
    },
    "encoders": {"scibert": {"model": "x", "pooling": "cls", "text": ["title", "abstract"]}},
    "models": {
        "l1": {
            **MODEL,
            "triplets": "aspects",
            "objectives": [{"loss": SUPCON, "space": "aspects"}],
            "spaces": ["result", "concatenated"],
        },
        "mine": {**MODEL, "triplets": "one", "loss": SUPCON},
        "specter": {**MODEL, "triplets": "cited", "loss": {"kind": "triplet"}},
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
    """The rows by the published result, or by the model without one."""
    rows = matrix(pl.DataFrame(averages), configuration).to_dicts()
    return {row["model"] if row["published result"] == "–" else row["published result"]: row for row in rows}


def without(part, *names):
    kept = {name: entry for name, entry in CONFIGURATION[part].items() if name not in names}
    return {**CONFIGURATION, part: kept}


def test_ours_stand_beside_the_published_values_of_the_model_and_space():
    rows = rows_of(
        [
            average("l1", 60.04, deviation=0.25),
            average("l1_in_result", 61.0),
            average("l1", 31.0, benchmark="fields", mode="both", of=("metric", "map"), expected=None),
        ]
    )
    of_model, of_space = rows["SciAspect (L1)"], rows["SciAspect, space of result"]
    assert of_model == {
        **{"published result": "SciAspect (L1)", "reference": "SciAspect, Table 6.2", "model": "l1"},
        **{"SciDocs": "79.94", "SciDocs, ours": "–", "SciRepEval": "68.14", "SciRepEval, ours": "60.0 ± 0.2"},
        **{"MDCR MAP": "32.55", "MDCR MAP, ours": "31.0", "MDCR nDCG": "59.00", "MDCR nDCG, ours": "–"},
        **{"MDCR recall@5": "27.25", "MDCR recall@5, ours": "–"},
    }
    assert (of_space["SciDocs"], of_space["SciRepEval"], of_space["SciRepEval, ours"]) == ("79.91", "–", "61.0")


def test_what_was_not_run_stays_empty():
    rows = rows_of([average("l1", 60.0)])
    assert {name for name, row in rows.items() if any(row[column] != "–" for column in OURS)} == {"SciAspect (L1)"}
    assert (rows["SciAspectWeighted"]["SciDocs"], rows["SciAspectWeighted"]["model"]) == ("78.87", "–")


def test_a_published_result_is_in_the_row_of_the_model_with_its_settings_whatever_its_name():
    """A model named specter samples citations in one direction; SPECTER (undirected) samples both."""
    both = {**CONFIGURATION["models"], "other": {**MODEL, "triplets": "undirected", "loss": {"kind": "triplet"}}}
    configuration = {**CONFIGURATION, "models": both}
    row = rows_of([average("specter", 60.0), average("other", 61.0)], configuration)["SPECTER (undirected)"]
    assert (row["model"], row["SciRepEval"], row["SciRepEval, ours"]) == ("other", "68.52", "61.0")


def test_without_a_model_of_its_settings_a_published_result_has_none_of_ours():
    row = rows_of([average("specter", 60.0)])["SPECTER (undirected)"]
    assert (row["model"], row["SciRepEval"], row["SciRepEval, ours"]) == ("–", "68.52", "–")


def test_a_model_without_a_published_result_stands_below_them():
    rows = rows_of([average("mine", 60.0)])
    assert (len(rows), list(rows)[-1]) == (31, "mine")
    assert (rows["mine"]["published result"], rows["mine"]["SciRepEval, ours"]) == ("–", "60.0")


def test_ours_are_in_the_published_mode_and_of_the_first_benchmark_of_a_kind():
    rows = rows_of(
        [
            average("l1", 70.0, mode="correct"),
            average("l1", 60.0),
            average("l1", 50.0, benchmark="again"),
            average("mine", 40.0, mode="correct"),
        ]
    )
    assert rows["SciAspect (L1)"]["SciRepEval, ours"] == "60.0"
    assert rows["mine"]["SciRepEval, ours"] == "40.0"


def test_an_average_that_lacks_values_says_so():
    row = rows_of([average("l1", 60.0, values=24)])["SciAspect (L1)"]
    assert row["SciRepEval, ours"] == "60.0 (24 of 25 values)"


@pytest.mark.parametrize(
    "configuration",
    [without("benchmarks", "sre", "again", "fields"), without("models", "l1", "mine")],
    ids=["no such benchmark", "no such model"],
)
def test_a_run_that_has_nothing_to_do_with_it_has_no_matrix(configuration):
    assert matrix(pl.DataFrame([average("specter", 60.0)]), configuration).is_empty()


def test_the_named_settings_are_the_best_of_their_grids_as_published():
    of = {name: float(value) for name, value in read_published("aspects").select("model", "SciDocs").rows()}
    contrastive = {name: value for name, value in of.items() if name.startswith("specter-cl")}
    hybrid = {name: value for name, value in of.items() if name.startswith("hybrid")}
    assert max(contrastive, key=contrastive.get) == "specter-cl"
    assert max(hybrid, key=hybrid.get) == "hybrid-7"


def test_the_published_averages_are_those_of_the_published_values():
    values = dict(
        read_published("scidocs")
        .filter(pl.col("reference").str.starts_with("SciAspect"))
        .select("model", "average")
        .rows()
    )
    assert sorted(values.values()) == sorted(read_published("aspects")["SciDocs"])
