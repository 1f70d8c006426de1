"""What stands out in a table is the best of what can be compared."""

import polars as pl
import pytest

from cocite.report.page import number_in, ranking_of, shown


def best(table, name):
    """The first cell of a row and the column, of each cell that stands out."""
    page = shown(table, ranking_of(name))
    return {
        (row[0].text, column)
        for row in page.rows
        for column, cell in zip(page.columns, row, strict=True)
        if cell.is_best
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("71.0 ± 1.4 (9)", 71.0),
        ("-0.6", -0.6),
        ("−7.5 ± 0.1", -7.5),
        ("+2.9 (+0.2 to +5.3)", 2.9),
        ("12,000", 12000.0),
        ("–", None),
        ("a1", None),
    ],
)
def test_a_cell_is_the_number_that_it_begins_with(text, number):
    assert number_in(text) == number


def test_an_oracle_does_not_compete_in_any_of_its_spaces():
    table = pl.DataFrame({"model": ["a", "b", "oracle", "oracle_in_result"], "x": ["9.5", "10.1", "99.0", "99.5"]})
    page = shown(table, ranking_of("models"), aside={"oracle"})
    assert [row[0].text for row in page.rows if row[1].is_best] == ["b"]


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        ("models", {"x": ["9.5 ± 2.0", "10.1", "–"], "y": ["-3.0", "-7.0", "1.0"]}, {("b", "x"), ("bm25", "y")}),
        ("tasks_holdout", {"x": ["9.0", "9.0", "1.0"], "y": ["5.0", "5.0", "5.0"]}, {("a", "x"), ("b", "x")}),
        ("models", {"x": ["60.0", "70.0 (1 of 2 tasks)", "50.0"]}, {("a", "x")}),
        ("costs", {"x": ["1", "2", "3"]}, set()),
        ("trained", {"x": ["1", "2", "3"]}, set()),
    ],
    ids=["baselines included", "shown alike", "a mean over fewer tasks", "no scores", "nothing is better"],
)
def test_the_largest_score_of_a_column_stands_out(name, columns, expected):
    assert best(pl.DataFrame({"model": ["a", "b", "bm25"], **columns}), name) == expected


def test_published_rows_and_averages_over_fewer_values_do_not_compete():
    rows = [("a", "sre", "60.0", "25"), ("b", "sre", "50.0", "25"), ("c", "sre", "70.0", "24 of 25")]
    rows.append(("SPECTER", "published", "80.0", "25"))
    table = pl.DataFrame(rows, schema=["model", "source", "average", "values"], orient="row")
    assert best(table, "scirepeval_formats") == {("a", "average")}


def test_rows_of_one_benchmark_and_mode_compete_and_rankings_by_words_in_either_mode():
    rows = [("a", "sre (compat)", "40.0", "61.0"), ("b", "sre (compat)", "30.0", "62.0")]
    rows += [("c", "sre (correct)", "50.0", "61.0"), ("d", "sre (correct)", "55.0", "60.0")]
    rows += [("bm25", "sre", "–", "63.0"), ("e", "other", "10.0", "10.0"), ("f", "other", "20.0", "9.0")]
    table = pl.DataFrame(rows, schema=["model", "source", "classification", "search"], orient="row")
    assert best(table, "scirepeval_tasks") == {
        ("a", "classification"),
        ("d", "classification"),
        ("bm25", "search"),
        ("f", "classification"),
        ("e", "search"),
    }


def test_graph_embeddings_compete_on_the_same_edges_and_a_lower_rank_is_better():
    columns = ["embedding", "graph", "held-out edges", "negatives", "loss", "mean rank", "MRR"]
    rows = [
        ("a", "g", "10", "raw", "1.0", "200.5", "0.1"),
        ("b", "g", "10", "raw", "2.0", "150.5", "0.3"),
        ("c", "h", "10", "raw", "0.1", "10.5", "0.9"),
    ]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    assert best(table, "graph_embeddings") == {("b", "mean rank"), ("b", "MRR")}


def test_of_compared_models_scores_compete_and_what_they_differ_in_does_not():
    scores = {"validation accuracy": ["80.0", "70.0"], "holdout: papers it cites, MAP": ["1", "2"]}
    table = pl.DataFrame({"model": ["a", "b"], "k⁺": ["25", "500"], **scores})
    assert best(table, "difficulties") == {("a", "validation accuracy"), ("b", "holdout: papers it cites, MAP")}


def test_a_column_of_numbers_with_gaps_is_one_of_numbers_and_a_negative_one_has_a_minus_sign():
    page = shown(pl.DataFrame({"model": ["a-b", "b"], "x": ["-0.6 ± 1.0", "–"], "y": ["2 of 3", "none"]}))
    assert page.numbers == (False, True, False)
    assert [cell.text for cell in page.rows[0]] == ["a-b", "−0.6 ± 1.0", "2 of 3"]
