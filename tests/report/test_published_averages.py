"""Published averages beside ours."""

import polars as pl

from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.evaluation.averages import expected_values
from cocite.report.published import WEIGHTS, published_rows, scirepeval

CONFIGURATION = {
    "models": {"ours": {}},
    "encoders": {"e": {}},
    "benchmarks": {"sre": {"kind": "scirepeval"}, "holdout": {"kind": "holdout"}},
}


def average(model, over, name, mean, *, benchmark="sre", mode="compat", deviation=None, runs=1, values=25, expected=25):
    row = {"benchmark": benchmark, "model": model, "mode": mode, "over": over, "average": name}
    return row | {"mean": mean, "deviation": deviation, "runs": runs, "values": values, "expected": expected}


def test_published_averages_follow_from_their_formats_but_for_one_misprint():
    averages = {row["model"]: row["average"] for row in published_rows()}
    assert averages.pop("SciNCL") == "67.8 (its formats give 68.7)"
    assert averages == {
        "SciBERT": "57.2",
        "SPECTER": "67.4",
        "GTE": "68.7",
        "CoCite 25-3000": "67.9",
        "CoCite 200-3000": "68.3",
        "CoCite 500-3000": "68.3",
        "CoCite 25-1000": "68.1",
        "CoCite 25-5000": "68.7",
    }


def test_published_averages_are_over_the_values_that_ours_are():
    over = expected_values(SCIREPEVAL)
    assert {name: over["format", name] for name in WEIGHTS} == WEIGHTS
    assert over["all", "all"] == sum(WEIGHTS.values()) == 25


def test_our_averages_stand_before_the_published_ones():
    averages = [
        average("random", "all", "all", 30.0),
        average("ours", "all", "all", 60.0, deviation=0.5, runs=9),
        average("ours", "format", "search", 70.04, deviation=0.25, runs=9),
        average("ours", "group", "scidocs", 50.0, deviation=1.0, runs=9),
        average("ours", "all", "all", 99.0, benchmark="holdout", mode="both"),
    ]
    first, second, *rest = scirepeval(pl.DataFrame(averages), CONFIGURATION).to_dicts()
    assert first == {
        **{"model": "ours", "source": "sre (compat)", "average": "60.0 ± 0.5 (9)", "search": "70.0 ± 0.2 (9)"},
        **{"classification": "–", "regression": "–", "proximity": "–", "values": "25"},
        **{"in-train": "–", "out-of-train": "–", "SciDocs": "50.0 ± 1.0 (9)"},
    }
    assert (second["model"], second["average"]) == ("random", "30.0")
    assert {row["source"] for row in rest} == {"published"}


def test_an_average_that_lacks_values_says_so():
    [row, *_] = scirepeval(pl.DataFrame([average("ours", "all", "all", 60.0, values=24)]), CONFIGURATION).to_dicts()
    assert row["values"] == "24 of 25"


def test_without_such_a_benchmark_nothing_published_is_shown():
    averages = [average("ours", "all", "all", 60.0, benchmark="holdout")]
    assert scirepeval(pl.DataFrame(averages), CONFIGURATION).is_empty()
