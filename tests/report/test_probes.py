"""The table and the figure of probes: order, differences, and sets that are far behind."""

from itertools import product

import polars as pl
import pytest

from cocite.report.probes import draw_probes, probes_table

VALUES = {"untrained": 80.0, "good": 84.0, "even": 83.9, "far": 60.0}
RANKS = {"good": 1, "even": 2, "untrained": 3, "far": 4}


@pytest.fixture
def scores() -> pl.DataFrame:
    rows = []
    for (name, value), part, task in product(VALUES.items(), ("selection", "test"), ("cite", "cocite", "all")):
        found = value - (part == "selection") + {"cite": 1, "cocite": -1, "all": 0}[task]
        difference = value - VALUES["good"]
        is_trained = name != "untrained"
        row = {"triplets": name, "loss": "triplet margin=1.0" if is_trained else "untrained", "rank": RANKS[name]}
        row |= {"batch_size": 128 * is_trained, "part": part, "task": task, "value": found, "queries": 100}
        row |= {"deviation": 0.12 if is_trained else None, "low": found - 1, "high": found + 1}
        row |= {"difference": difference, "difference_low": difference - 0.3, "difference_high": difference + 0.3}
        rows.append(row)
    return pl.DataFrame(rows)


def test_sets_stand_in_the_order_of_the_papers_that_choose_with_the_values_of_those_that_prove(scores):
    table = probes_table({"which": scores})
    assert table["triplets"].to_list() == ["good", "even", "untrained", "far"]
    assert table["selection"].to_list() == ["83.0", "82.9", "79.0", "59.0"]
    best, even, untrained, _ = table.to_dicts()
    assert (best["cite"], best["cocite"], best["from the best"]) == ("85.0 ± 0.1", "83.0 ± 0.1", "")
    assert even["from the best"] == "-0.1 (-0.4 to +0.2)"
    assert (untrained["loss"], untrained["batch size"], untrained["cite"]) == ("", "", "81.0")


def test_several_probes_are_told_apart_by_their_names_and_without_any_the_table_is_empty(scores):
    table = probes_table({"one": scores, "other": scores})
    assert table["probe"].to_list() == ["one"] * 4 + ["other"] * 4
    assert len(probes_table({})) == 0


def test_a_set_that_is_far_behind_does_not_stretch_the_axis(scores, tmp_path):
    draw_probes({"which": scores}, tmp_path / "figure.svg")
    figure = (tmp_path / "figure.svg").read_text()
    assert all(f">{name}<" in figure for name in VALUES)
    ticks = [int(number) for number in range(40, 100) if f">{number}<" in figure]
    assert ticks
    assert min(ticks) > 65
