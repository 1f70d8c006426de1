"""Published averages beside ours."""

import polars as pl
import pytest

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
    averages = {row["model"].partition(" [")[0]: row["average"] for row in published_rows()}
    assert averages["SciNCL"] == "67.8 (its formats give 68.7)"
    assert [name for name, average in averages.items() if "give" in average] == ["SciNCL"]
    assert len(averages) == 25
    assert averages["SciBERT-cls Triplet"] == "68.6 ± 0.8"


def test_published_averages_of_groups_follow_their_average_over_25_values():
    """In-train has 7 values, SciDocs 10, out-of-train 8; SciNCL's published average is a misprint."""
    rows = [row for row in published_rows() if row["SciDocs"] != "–" and not row["model"].startswith("SciNCL")]
    for row in rows:
        inside, outside, scidocs = (float(row[name].split()[0]) for name in ("in-train", "out-of-train", "SciDocs"))
        assert (7 * inside + 8 * outside + 10 * scidocs) / 25 == pytest.approx(
            float(row["average"].split()[0]), abs=0.1
        )
    assert len(rows) == 20


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
