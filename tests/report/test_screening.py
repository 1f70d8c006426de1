"""The curves of screened reviews, from the places at which included papers were found."""

import polars as pl
import pytest

from cocite.config.benchmarks.screening import FOUND_EARLY
from cocite.report.screening import curves, draw_screening


def outcomes(places, papers=100):
    """Outcomes of one model on one task: the places of each review, one list for each start."""
    rows = [
        {"benchmark": "b", "task": "screening", "model": "m", "metric": FOUND_EARLY, "item": review}
        | {"predicted": [str(place) for place in of_start], "expected": [str(papers)]}
        for review, of_review in places.items()
        for of_start in of_review
    ]
    return pl.DataFrame(rows)


def test_a_curve_is_the_mean_over_the_starts_of_each_review_and_over_reviews(tmp_path):
    found = outcomes({"one": [[1, 10, 20, 60], [1, 30, 40, 60]], "two": [[5, 6]]})
    recall = {row["screened"]: row for row in curves(found).iter_rows(named=True)}
    assert recall[10]["recall"] == pytest.approx((100 * (2 / 4 + 1 / 4) / 2 + 100) / 2)
    assert recall[2]["recall"] == pytest.approx((25 + 0) / 2)
    assert recall[100]["recall"] == 100
    # Student's t of one degree of freedom: 12.706 times the standard error over the two reviews, 12.5.
    assert recall[2]["high"] - recall[2]["recall"] == pytest.approx(12.706 * 12.5, rel=1e-3)
    draw_screening(found, tmp_path / "screening.svg")
    assert "included papers found, screening" in (tmp_path / "screening.svg").read_text()


def test_one_review_has_no_interval():
    row = curves(outcomes({"one": [[1, 50]]})).filter(screened=50).row(0, named=True)
    assert row["recall"] == row["low"] == row["high"] == 100
