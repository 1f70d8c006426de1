"""The verdict names the best of each benchmark, by how much, and what the adjusted test shows; words, board and stars
agree."""

import polars as pl
import pytest
from tests.configurations import recorded

from cocite.report.labels import measure
from cocite.report.verdict import board_frame, judge

TASKS = ("cite", "cocite", "cite_matched", "cocite_matched")
MODELS = {
    "m": {"triplets": "s", "encoder": "e", "seeds": [1, 2]},
    "n": {"triplets": "s", "encoder": "e", "seeds": [1, 2]},
}
CONFIGURATION = {
    "encoders": {"e": {}},
    "triplets": {"s": {"sampler": "citations", "graph": "g"}},
    "graphs": {"g": {"signal": "citation"}},
    "models": MODELS,
    "benchmarks": {"h": {"kind": "holdout"}},
    "baselines": {"bm25": {"kind": "bm25"}, "random": {"kind": "random"}},
}


def score(model, *values, seeds=(0,), tasks=TASKS, benchmark="h", mode="both", metric="map"):
    """The values of a system on the tasks, the same for each seed but for a shift of it."""
    row = {"benchmark": benchmark, "metric": metric, "mode": mode, "model": model, "evaluation_seed": 1}
    return [
        row | {"task": task, "seed": seed, "value": value + shift}
        for shift, seed in enumerate(seeds)
        for task, value in zip(tasks, values, strict=True)
    ]


def compared(model, other, *differences, shown=(), tasks=TASKS, benchmark="h", mode="both", metric="map"):
    """The comparisons of two systems, task by task; `shown` are the tasks that the adjusted test shows."""
    row = {"benchmark": benchmark, "metric": metric, "mode": mode, "model": model, "other": other}
    return [
        row
        | {"task": task, "difference": value, "p_adjusted": 0.049 if task in shown else 0.051}
        | {"low": value - 9, "high": value + 9, "wide_low": value - 1, "wide_high": value + 2}
        for task, value in zip(tasks, differences, strict=True)
    ]


def judged(scores, comparisons, **configuration):
    return judge(pl.DataFrame(scores), pl.DataFrame(comparisons), recorded(CONFIGURATION | configuration))


SCORES = [
    *score("m", 40.0, 50.0, 60.0, 70.0, seeds=(1, 2)),
    *score("n", 38.0, 48.0, 58.0, 68.0, seeds=(1, 2)),
    *score("untrained_e", 10.0, 20.0, 30.0, 40.0),
    *score("bm25", 30.0, 40.0, 50.0, 60.0),
    *score("random", 90.0, 90.0, 90.0, 90.0),
]
COMPARISONS = [
    *compared("bm25", "m", -9.0, -10.0, -11.0, -12.0, shown=("cite", "cocite", "cite_matched")),
    *compared("bm25", "n", -8.0, -9.0, -10.0, -11.0, shown=("cite", "cocite")),
    *compared("bm25", "untrained_e", 20.0, 20.0, 20.0, 20.0, shown=TASKS),
    *compared("m", "n", 2.0, 2.0, 2.0, 2.0, shown=("cite",)),
    *compared("m", "untrained_e", 30.0, 30.0, 30.0, 30.0, shown=TASKS),
]


def test_the_board_has_means_over_tasks_and_differences_to_the_best_reference_that_is_not_chance():
    [board] = judged(SCORES, COMPARISONS)
    assert [each.name for each in board.systems] == ["random", "m", "n", "bm25", "untrained_e"]
    assert (board.reference, board.best, board.measure) == ("bm25", "m", "mean over 4 tasks")
    rows = {row["model"]: row for row in board_frame([board]).iter_rows(named=True)}
    m = rows["m"]
    assert (m["score"], m["deviation"], m["tasks"]) == (55.5, pytest.approx(0.71), 4)  # 55 and 56
    assert (m["difference"], m["low"], m["high"]) == (10.5, 8.5, 11.5)  # the mean of the tasks, either end
    assert rows["bm25"]["difference"] is None


def test_the_only_task_with_scores_names_the_measure():
    relish = {"tasks": ("relish",), "benchmark": "s", "metric": "ndcg"}
    scores = [*score("m", 50.0, seeds=(1, 2), **relish), *score("bm25", 30.0, **relish)]
    benchmarks = {"s": {"kind": "scirepeval", "folder": "x", "tasks": ["fos", "relish"]}}
    [board] = judged(scores, compared("bm25", "m", -20.0, **relish), benchmarks=benchmarks)
    assert board.measure == measure("relish", "ndcg", "both") != measure("fos", "f1_macro", "both")


def test_a_star_needs_most_tasks_by_the_adjusted_test_and_none_of_the_opposite():
    [board] = judged(SCORES, COMPARISONS)
    stars = {each.name: each.star for each in board.systems}
    assert stars == {"random": "", "m": "*", "n": "", "bm25": "", "untrained_e": "*"}
    mixed = compared("bm25", "m", 1.0, -9.0, -9.0, -9.0, shown=TASKS)
    [board] = judged(SCORES, [*mixed, *COMPARISONS[4:]])
    assert {each.name: each.star for each in board.systems}["m"] == ""
    assert "above bm25, the best reference (95% interval 4.5 to 7.5; " in board.words[1]
    assert board.words[1].endswith("shows it on 3 of 4 tasks, and the opposite on 1).")


def test_the_words_say_what_the_stars_say():
    [board] = judged(SCORES, COMPARISONS)
    assert list(board.words) == [
        "The best model is m with 55.5 ± 0.7.",
        "It is 10.5 above bm25, the best reference (95% interval 8.5 to 11.5; the adjusted test shows it on 3 of 4 "
        "tasks).",
        "It is 30.0 above untrained_e, its encoder (95% interval 29.0 to 32.0; the adjusted test shows it on 4 of 4 "
        "tasks).",
        "The test cannot tell m apart from n.",
    ]
    apart = compared("m", "n", 2.0, 2.0, 2.0, 2.0, shown=TASKS)
    [board] = judged(SCORES, [*COMPARISONS[:12], *apart, *COMPARISONS[16:]])
    assert board.words[-1] == "The test shows that m is above every other model."


def test_a_model_is_not_above_one_that_it_was_not_compared_with():
    [board] = judged(SCORES, [row for row in COMPARISONS if (row["model"], row["other"]) != ("m", "n")])
    assert board.words[-1] == "The test cannot tell m apart from n."


def test_what_was_trained_once_has_a_star_in_parentheses():
    once = {"m": MODELS["m"] | {"seeds": [1]}}
    [board] = judged([*score("m", *[50.0] * 4, seeds=(1,)), *SCORES[-12:]], COMPARISONS, models=once)
    assert {each.name: each.star for each in board.systems}["m"] == "(*)"


def test_a_model_below_the_reference_is_said_to_be_below_it():
    lower = [*score("m", *[20.0] * 4, seeds=(1, 2)), *SCORES[-12:]]
    [board] = judged(lower, compared("bm25", "m", 20.0, 20.0, 20.0, 20.0, shown=TASKS))
    assert board.words[1].startswith("It is 20.0 below bm25, the best reference (95% interval 19.0 to 22.0;")


def test_an_oracle_is_on_the_board_and_never_the_best():
    sets = CONFIGURATION["triplets"] | {"answers": {"sampler": "oracle", "benchmark": "h"}}
    models = {"m": MODELS["m"], "n": MODELS["n"] | {"triplets": "answers"}}
    better = [{**row, "value": row["value"] + 50} if row["model"] == "n" else row for row in SCORES]
    [board] = judged(better, COMPARISONS, triplets=sets, models=models)
    assert (board.systems[0].name, board.systems[0].kind, board.best) == ("n", "oracle", "m")


def test_a_system_without_some_tasks_comes_last_and_is_compared_on_those_that_it_has():
    tasks = ("fos", "relish")
    benchmark = {"s": {"kind": "scirepeval", "folder": "x", "tasks": list(tasks), "mode": "compat"}}
    scores = [
        *score("m", 50.0, seeds=(1, 2), tasks=("fos",), benchmark="s", mode="compat", metric="f1_macro"),
        *score("m", 60.0, seeds=(1, 2), tasks=("relish",), benchmark="s", metric="ndcg"),
        *score("untrained_e", 20.0, tasks=("fos",), benchmark="s", mode="compat", metric="f1_macro"),
        *score("untrained_e", 30.0, tasks=("relish",), benchmark="s", metric="ndcg"),
        *score("bm25", 95.0, tasks=("relish",), benchmark="s", metric="ndcg"),
    ]
    comparisons = compared("bm25", "untrained_e", 65.0, tasks=("relish",), benchmark="s", metric="ndcg", shown=tasks)
    [board] = judged(scores, comparisons, benchmarks=benchmark)
    assert (board.name, board.tasks, board.reference) == ("s (compat)", 2, "untrained_e")
    assert [(each.name, each.tasks) for each in board.systems] == [("m", 2), ("untrained_e", 2), ("bm25", 1)]
    assert board.systems[-1].gap.difference == 65.0


def test_searches_of_a_holdout_have_a_board_with_the_best_index_against_the_best_model():
    searches = ("cite_search", "cocite_search")
    found = {"tasks": searches, "metric": "recall_cap_20"}
    scores = [
        *SCORES,
        *score("papers", 30.0, 40.0, seeds=(1, 2), **found),
        *score("m", 20.0, 30.0, seeds=(1, 2), **found),
    ]
    comparisons = [*COMPARISONS, *compared("m", "papers", -10.0, -10.0, shown=searches, **found)]
    configuration = {
        "benchmarks": {"h": {"kind": "holdout", "search": True}},
        "indexes": {"papers": {"models": ["m"], "graph": "g"}},
    }
    ranking, searching = judged(scores, comparisons, **configuration)
    assert (ranking.name, searching.name) == ("h, ranking candidates", "h, whole corpus")
    assert searching.words[1:] == [
        "The best index is papers with 35.5 ± 0.7.",
        "It is 10.0 above m, the best model (95% interval 8.0 to 11.0; the adjusted test shows it on 2 of 2 tasks).",
    ]
