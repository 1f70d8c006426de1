"""The verdict names the best of each benchmark, by how much, and what the adjusted test shows, in agreement with the
stars on its board; and the packed differences hold what the comparisons say, with the sign of either order."""

from base64 import b64decode
from itertools import combinations
from struct import unpack

import polars as pl
import pytest
from tests.configurations import recorded

from cocite.report.labels import measure
from cocite.report.verdict import board_frame, differences, judge, questions_over_tasks

TASKS = ("cite", "cocite", "cite_matched", "cocite_matched")
MODELS = {name: {"triplets": "s", "encoder": "e", "seeds": [1, 2]} for name in ("m", "n")}
CONFIGURATION = {
    "encoders": {"e": {}},
    "triplets": {"s": {"sampler": "citations", "graph": "g"}},
    "graphs": {"g": {"signal": "citation"}},
    "models": MODELS,
    "benchmarks": {"h": {"kind": "holdout"}},
    "baselines": {"bm25": {"kind": "bm25"}, "random": {"kind": "random"}},
}


OF_HOLDOUT = {"benchmark": "h", "mode": "both", "metric": "map"}


def score(model, *values, seeds=(0,), tasks=TASKS, **of):
    """The values of a system on the tasks, the same for each seed but for a shift of it."""
    row = OF_HOLDOUT | {"model": model, "evaluation_seed": 1} | of
    return [
        row | {"task": task, "seed": seed, "value": value + shift}
        for shift, seed in enumerate(seeds)
        for task, value in zip(tasks, values, strict=True)
    ]


def compared(model, other, *differences, shown=(), tasks=TASKS, **of):
    """The comparisons of two systems, task by task; `shown` are the tasks that the adjusted test shows."""
    row = OF_HOLDOUT | {"model": model, "other": other} | of
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


def test_a_star_needs_most_tasks_and_none_of_the_opposite_and_what_was_trained_once_has_it_in_parentheses():
    [board] = judged(SCORES, COMPARISONS)
    stars = {each.name: each.star for each in board.systems}
    assert stars == {"random": "", "m": "*", "n": "", "bm25": "", "untrained_e": "*"}
    once = {"m": MODELS["m"] | {"seeds": [1]}}
    [board] = judged([*score("m", *[50.0] * 4, seeds=(1,)), *SCORES[-12:]], COMPARISONS, models=once)
    assert {each.name: each.star for each in board.systems}["m"] == "(*)"
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
    [board] = judged(SCORES, [row for row in COMPARISONS if (row["model"], row["other"]) != ("m", "n")])
    assert board.words[-1] == "The test cannot tell m apart from n."


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
    fos = {"tasks": ("fos",), "benchmark": "s", "mode": "compat", "metric": "f1_macro"}
    relish = {"tasks": ("relish",), "benchmark": "s", "metric": "ndcg"}
    scores = [
        *(*score("m", 50.0, seeds=(1, 2), **fos), *score("m", 60.0, seeds=(1, 2), **relish)),
        *(*score("untrained_e", 20.0, **fos), *score("untrained_e", 30.0, **relish), *score("bm25", 95.0, **relish)),
    ]
    comparisons = compared("bm25", "untrained_e", 65.0, shown=tasks, **relish)
    [board] = judged(scores, comparisons, benchmarks=benchmark)
    assert (board.name, board.tasks, board.reference) == ("s (compat)", 2, "untrained_e")
    assert [(each.name, each.tasks) for each in board.systems] == [("m", 2), ("untrained_e", 2), ("bm25", 1)]
    assert board.systems[-1].gap.difference == 65.0


def test_searches_of_a_holdout_have_a_board_with_the_best_index_against_the_best_model():
    searches = ("cite_search", "cocite_search")
    found = {"tasks": searches, "metric": "recall_cap_20"}
    scores = [*score("papers", 30.0, 40.0, seeds=(1, 2), **found), *score("m", 20.0, 30.0, seeds=(1, 2), **found)]
    comparisons = [*COMPARISONS, *compared("m", "papers", -10.0, -10.0, shown=searches, **found)]
    benchmarks = {"h": {"kind": "holdout", "search": True}}
    indexes = {"papers": {"models": ["m"], "graph": "g"}}
    ranking, searching = judged([*SCORES, *scores], comparisons, benchmarks=benchmarks, indexes=indexes)
    assert (ranking.name, searching.name) == ("h, ranking candidates", "h, whole corpus")
    assert searching.words[1:] == [
        "The best index is papers with 35.5 ± 0.7.",
        "It is 10.0 above m, the best model (95% interval 8.0 to 11.0; the adjusted test shows it on 2 of 2 tasks).",
    ]


COMPARED = recorded(
    {
        "models": {"b": {"seeds": [1, 2, 3]}, "a": {"seeds": [1], "averaged": True}},
        "encoders": {"e": {}},
        "benchmarks": {"second": {}, "first": {}},
        "baselines": {"bm25": {"kind": "bm25"}, "random": {"kind": "fasttext", "seeds": [1]}},
    }
)


def comparison(model, other, difference, low, high, *, benchmark="first", task="cite", p_adjusted=0.5):
    row = {"benchmark": benchmark, "task": task, "metric": "map", "mode": "both", "model": model, "other": other}
    row |= {"difference": difference, "low": low, "high": high, "wide_low": low - 1, "wide_high": high + 2}
    return row | {"items": 200, "p_value": 0.5, "p_adjusted": p_adjusted, "detectable": 2.0}


def packed(*compared):
    return differences(pl.DataFrame(compared), COMPARED)


def unpacked(packed, models):
    """Pair of models → difference, low and high, and the ends of the interval that counts seeds if there is one."""
    numbers = unpack(f"<{len(b64decode(packed)) // 2}h", b64decode(packed))
    pairs = list(combinations(models, 2))
    each = len(numbers) // len(pairs)
    return {pair: numbers[each * place : each * place + each] for place, pair in enumerate(pairs)}


def test_pairs_stand_in_the_order_of_the_models_with_their_sign_and_a_bit_for_a_small_adjusted_p_value():
    found = packed(
        comparison("a", "b", 2.04, -1.0, 5.0, p_adjusted=0.2),
        comparison("b", "random", 30.0, 28.5, 31.5, p_adjusted=0.04),
        comparison("a", "random", 32.0, 30.0, 34.0, p_adjusted=0.001),
    )
    assert found["models"] == ["b", "a", "random"]
    [question] = found["questions"]
    assert (question["benchmark"], question["measure"], question["items"]) == ("first", "papers it cites, MAP", 200)
    assert unpacked(question["packed"], found["models"]) == {
        ("b", "a"): (-200, -500, 100, -700, 200),
        ("b", "random"): (3000, 2850, 3150, 2750, 3350),
        ("a", "random"): (3200, 3000, 3400, 2900, 3600),
    }
    assert b64decode(question["sure"]) == bytes([0b110])  # pairs as above: b with a, b with random, a with random
    assert question["detectable"] == 2.0


def test_models_come_with_the_number_of_their_seeds():
    names = ["b", "a", "a_averaged", "untrained_e", "bm25", "random"]
    found = packed(*(comparison(*sorted(pair), 1.0, 0.0, 2.0) for pair in combinations(names, 2)))
    assert dict(zip(found["models"], found["seeds"], strict=True)) == dict(zip(names, (3, 1, 1, 0, 0, 1), strict=True))


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(-400.0, 401.0, (-32767, 32767, -32767, 32767)), (0.02, 2.0, (-200, -1, -400, 100))],
)
def test_an_interval_ends_where_sixteen_bits_do_and_an_end_that_rounds_to_zero_keeps_its_side(low, high, ends):
    [question] = packed(comparison("a", "b", 1.0, low, high))["questions"]
    assert unpacked(question["packed"], ["b", "a"]) == {("b", "a"): (-100, *ends)}


def test_models_that_were_not_compared_differ_from_equal_ones():
    found = packed(comparison("a", "b", 0.0, 0.0, 0.0), comparison("a", "bm25", 1.0, 0.0, 2.0, task="cocite"))
    cite, cocite = (unpacked(question["packed"], found["models"]) for question in found["questions"])
    none = (-32768,) * 5
    assert (cite["b", "a"], cite["b", "bm25"], cite["a", "bm25"]) == ((0, 0, 0, -200, 100), none, none)
    assert (cocite["b", "a"], cocite["a", "bm25"]) == (none, (100, 0, 200, -100, 400))


def over(over, model, other, difference, tasks, *, mode="both", p_adjusted=0.5):
    row = {"over": over, "mode": mode, "model": model, "other": other, "tasks": tasks, "difference": difference}
    return row | {"low": -9.0, "high": 9.0, "least_p_value": 2.0 ** (1 - tasks), "p_adjusted": p_adjusted}


def asked(models, *rows):
    return questions_over_tasks(pl.DataFrame(rows), models, COMPARED)


def test_questions_come_as_the_benchmarks_are_configured_and_all_of_them_over_tasks_last():
    questions = packed(*(comparison("a", "b", 1.0, 0.0, 2.0, benchmark=name) for name in ("first", "second")))
    assert [question["benchmark"] for question in questions["questions"]] == ["second", "first"]
    rows = [over(name, "a", "b", 1.0, 8) for name in ("all benchmarks", "first", "second")]
    assert [each["measure"] for each in asked(["b", "a"], *rows, over("first", "a", "b", 1.0, 9, mode="correct"))] == [
        "second, mean over its tasks",
        "first, mean over its tasks",
        "first, mean over its tasks (correct)",
        "all benchmarks, mean over tasks",
    ]


def test_over_tasks_a_remark_says_where_no_star_can_come_out():
    [question] = asked(["b", "a"], over("first", "a", "b", 1.0, 6, p_adjusted=0.03))
    assert question["remark"].startswith("over 6 tasks: ")  # 1/32 for one pair
    assert "cannot give a star" not in question["remark"]
    assert b64decode(question["sure"]) == bytes([1])
    assert unpacked(question["packed"], ["b", "a"]) == {("b", "a"): (-100, -900, 900)}
    pairs = (("a", "b"), ("a", "random"), ("b", "random"))
    [six], [fewer] = (
        asked(["b", "a", "random"], *(over("first", *pair, 1.0, n) for pair, n in zip(pairs, tasks, strict=True)))
        for tasks in ((6, 6, 6), (6, 4, 4))
    )
    assert six["remark"].endswith("cannot give a star among 3 pairs, however large the differences are")  # 3/32
    # Four tasks give 1/8 at best, so those pairs do not count for the one with 1/32.
    assert fewer["remark"].startswith("over 4 to 6 tasks: ")
    assert "cannot give a star" not in fewer["remark"]
