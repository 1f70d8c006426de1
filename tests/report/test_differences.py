"""The packed differences hold what the comparisons say, with the sign of either order."""

from base64 import b64decode
from itertools import combinations
from struct import unpack

import polars as pl
import pytest
from tests.configurations import recorded

from cocite.report.verdict import differences, questions_over_tasks

CONFIGURATION = recorded(
    {
        "models": {"b": {"seeds": [1, 2, 3]}, "a": {"seeds": [1], "averaged": True}},
        "encoders": {"e": {}},
        "benchmarks": {"second": {}, "first": {}},
        "baselines": {"bm25": {"kind": "bm25"}, "random": {"kind": "fasttext", "seeds": [1]}},
    }
)


def comparison(model, other, difference, low, high, *, benchmark="first", task="cite", metric="map"):
    row = {"benchmark": benchmark, "task": task, "metric": metric, "mode": "both", "model": model, "other": other}
    row |= {"difference": difference, "low": low, "high": high, "wide_low": low - 1, "wide_high": high + 2}
    return row | {"items": 200, "p_value": 0.5, "p_adjusted": 0.5, "detectable": 2.0}


def unpacked(packed, models):
    """Pair of models → difference, low and high, and the ends of the interval that counts seeds if there is one."""
    numbers = unpack(f"<{len(b64decode(packed)) // 2}h", b64decode(packed))
    pairs = list(combinations(models, 2))
    each = len(numbers) // len(pairs)
    return {pair: numbers[each * place : each * place + each] for place, pair in enumerate(pairs)}


def test_pairs_stand_in_the_order_of_the_models_with_their_sign_and_a_bit_for_a_small_adjusted_p_value():
    compared = [comparison("a", "b", 2.04, -1.0, 5.0) | {"p_adjusted": 0.2}]
    compared.append(comparison("b", "random", 30.0, 28.5, 31.5) | {"p_adjusted": 0.04})
    compared.append(comparison("a", "random", 32.0, 30.0, 34.0) | {"p_adjusted": 0.001})
    found = differences(pl.DataFrame(compared), CONFIGURATION)
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
    compared = [comparison(*sorted(pair), 1.0, 0.0, 2.0) for pair in combinations(names, 2)]
    found = differences(pl.DataFrame(compared), CONFIGURATION)
    assert dict(zip(found["models"], found["seeds"], strict=True)) == dict(zip(names, (3, 1, 1, 0, 0, 1), strict=True))


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(-400.0, 401.0, (-32767, 32767, -32767, 32767)), (0.02, 2.0, (-200, -1, -400, 100))],
)
def test_an_interval_ends_where_sixteen_bits_do_and_an_end_that_rounds_to_zero_keeps_its_side(low, high, ends):
    [question] = differences(pl.DataFrame([comparison("a", "b", 1.0, low, high)]), CONFIGURATION)["questions"]
    assert unpacked(question["packed"], ["b", "a"]) == {("b", "a"): (-100, *ends)}


def test_models_that_were_not_compared_differ_from_equal_ones():
    compared = [comparison("a", "b", 0.0, 0.0, 0.0), comparison("a", "bm25", 1.0, 0.0, 2.0, task="cocite")]
    found = differences(pl.DataFrame(compared), CONFIGURATION)
    cite, cocite = (unpacked(question["packed"], found["models"]) for question in found["questions"])
    none = (-32768,) * 5
    assert (cite["b", "a"], cite["b", "bm25"], cite["a", "bm25"]) == ((0, 0, 0, -200, 100), none, none)
    assert (cocite["b", "a"], cocite["a", "bm25"]) == (none, (100, 0, 200, -100, 400))


def test_questions_come_as_the_benchmarks_are_configured():
    compared = [comparison("a", "b", 1.0, 0.0, 2.0, benchmark=name) for name in ("first", "second")]
    questions = differences(pl.DataFrame(compared), CONFIGURATION)["questions"]
    assert [question["benchmark"] for question in questions] == ["second", "first"]


def over(over, model, other, difference, tasks, *, mode="both", p_adjusted=0.5):
    row = {"over": over, "mode": mode, "model": model, "other": other, "tasks": tasks, "difference": difference}
    return row | {"low": -9.0, "high": 9.0, "least_p_value": 2.0 ** (1 - tasks), "p_adjusted": p_adjusted}


def test_over_tasks_the_benchmarks_come_as_configured_and_all_of_them_last():
    rows = [over(name, "a", "b", 1.0, 8) for name in ("all benchmarks", "first", "second")]
    rows += [over("first", "a", "b", 1.0, 9, mode="correct")]
    measures = [each["measure"] for each in questions_over_tasks(pl.DataFrame(rows), ["b", "a"], CONFIGURATION)]
    assert measures == [
        "second, mean over its tasks",
        "first, mean over its tasks",
        "first, mean over its tasks (correct)",
        "all benchmarks, mean over tasks",
    ]


def test_over_tasks_a_remark_says_where_no_star_can_come_out():
    six = [over("first", "a", "b", 1.0, 6, p_adjusted=0.03)]
    [question] = questions_over_tasks(pl.DataFrame(six), ["b", "a"], CONFIGURATION)
    assert question["remark"].startswith("over 6 tasks: ")  # 1/32 for one pair
    assert "cannot give a star" not in question["remark"]
    assert b64decode(question["sure"]) == bytes([1])
    assert unpacked(question["packed"], ["b", "a"]) == {("b", "a"): (-100, -900, 900)}
    pairs = (("a", "b"), ("a", "random"), ("b", "random"))
    remarks = {
        tasks: questions_over_tasks(
            pl.DataFrame([over("first", *pair, 1.0, number) for pair, number in zip(pairs, tasks, strict=True)]),
            ["b", "a", "random"],
            CONFIGURATION,
        )[0]["remark"]
        for tasks in ((6, 6, 6), (6, 4, 4))
    }
    assert remarks[6, 6, 6].endswith("cannot give a star among 3 pairs, however large the differences are")  # 3/32
    # Four tasks give 1/8 at best, so those pairs do not count for the one with 1/32.
    assert remarks[6, 4, 4].startswith("over 4 to 6 tasks: ")
    assert "cannot give a star" not in remarks[6, 4, 4]
