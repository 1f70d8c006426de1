"""Figures show what they are given."""

import re

import polars as pl

from cocite.report.figures import draw_link_prediction
from cocite.report.triplet_figures import draw_band_quality, draw_triplets

METRICS = ("loss", "mean_rank", "mrr", "hits_at_1", "hits_at_10", "hits_at_50", "auc")


def test_the_curves_of_link_prediction_have_a_panel_a_metric_and_a_line_an_embedding_and_kind(tmp_path):
    rows = [
        {"epoch": epoch, "metric": metric, "filtered": filtered, "value": epoch / 4 + filtered, "edges": 10}
        for epoch in (1, 2, 3)
        for metric in METRICS
        for filtered in (False, True)
    ]
    draw_link_prediction({"dot": pl.DataFrame(rows), "cos": pl.DataFrame(rows)}, tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text()
    words = re.findall(r">([^<>]+)</text>", drawn)
    assert {"loss", "mean rank", "MRR", "Hits@1", "Hits@10", "Hits@50", "AUC", "dot", "cos"} <= set(words)
    assert drawn.count("opacity: 0.35") + drawn.count("stroke-opacity: 0.35") >= 2 * len(METRICS)


BANDS = pl.DataFrame({"last_rank": [5, 10, 25], "papers": [10, 10, 5], "cocited": [9, 7, 2], "cited": [2, 1, 0]})
NO_CURVE = pl.DataFrame(schema={"k_negative": pl.Int32, "collisions": pl.Int64, "pairs": pl.Int64})


def test_the_quality_of_bands_has_a_panel_a_relation_and_a_line_an_embedding(tmp_path):
    draw_band_quality({"dot": BANDS, "cos": BANDS}, tmp_path / "bands.svg")
    words = re.findall(r">([^<>]+)</text>", (tmp_path / "bands.svg").read_text())
    assert {"neighbours co-cited with the query", "neighbours citing it or cited by it", "rank"} <= set(words)
    assert words.count("dot") == words.count("cos") == 1


def test_the_figure_of_triplets_marks_the_rank_of_each_set_that_is_drawn_from_neighbours(tmp_path):
    curve = pl.DataFrame({"k_negative": [30, 100, 300], "collisions": [9, 4, 0], "pairs": [90, 90, 90]})
    counts = pl.DataFrame({"split": ["train", "train", "validation"], "count": [0, 5, 5], "queries": [1, 8, 1]})
    drawn = []
    for collisions in ({"cocite": curve, "specter": NO_CURVE}, {"cocite": NO_CURVE, "specter": NO_CURVE}):
        draw_triplets(collisions, {"cocite": counts, "specter": counts}, {"cocite": 100}, tmp_path / "triplets.svg")
        drawn.append((tmp_path / "triplets.svg").read_text())
    words = re.findall(r">([^<>]+)</text>", drawn[0])
    assert {"cocite", "specter", "triplets a query", "queries"} <= set(words)
    colour = "#0072b2"  # of the first set, whose curve and dot the second figure lacks
    assert drawn[0].count(colour) > drawn[1].count(colour) > 0


def test_nothing_to_show_is_drawn_as_nothing(tmp_path):
    draw_band_quality({}, tmp_path / "bands.svg")
    draw_triplets({}, {}, {}, tmp_path / "triplets.svg")
    assert "<svg" in (tmp_path / "bands.svg").read_text()
    assert "<svg" in (tmp_path / "triplets.svg").read_text()
