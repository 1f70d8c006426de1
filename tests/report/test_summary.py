"""The summary says in a few lines what was trained on what, how well it does and what it took."""

import polars as pl
import pytest
from tests.configurations import recorded as configured

from cocite.report.summary import best_scores, facts, what_is_generated

BUILT = {"layers": 2, "hidden": 64, "heads": 2, "vocabulary": 4000}
STATISTICS = pl.DataFrame({"measure": ["papers", "papers with text", "citations"], "value": [3000, 2806, 41_572]})
COSTS = pl.DataFrame({"rule": ["train_encoder", "ingest"], "cpu_seconds": [90.0, 10.0], "peak_mb": [700.0, 300.0]})


def lines(recorded, trained_in=None):
    """The facts of a run."""
    return facts(recorded, STATISTICS, COSTS, 61.0, trained_in or {})


def provenance(source="demo", seeds=((1,),), **benchmarks):
    models = {f"m{number}": {"encoder": "e", "seeds": list(of)} for number, of in enumerate(seeds)}
    configuration = {"models": models, "encoders": {"e": {"build": BUILT}}, "benchmarks": benchmarks}
    configuration["precision"] = "auto"
    configuration["corpus"] = {"source": source, **({"path": "/data/mine"} if source == "directory" else {})}
    machine = {"processor": "P", "cores": 2, "memory_mb": 8000, "gpus": ["H200"]}
    return {"configuration": configuration, "release": "2026-01-06", "machine": machine}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("demo", "a generated release: no such paper was ever written; release 2026-01-06, 3,000 papers (2,806 with "),
        ("s2", "Semantic Scholar; release 2026-01-06, 3,000 papers"),
        ("directory", "a release in the folder mine; release 2026-01-06"),
    ],
)
def test_the_corpus_is_described_by_its_source_release_and_size(source, said):
    assert lines(provenance(source))["Corpus"].startswith(said)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ([(1,)], "1, trained with seed 1"),
        ([(1, 2), (1, 2)], "2, each trained with seeds 1, 2"),
        ([(1, 2), (3,)], "2, in 3 trainings with the seeds 1, 2, 3"),
        ([], "none were trained"),
    ],
)
def test_models_are_counted_with_their_seeds(seeds, said):
    assert lines(provenance(seeds=seeds))["Models"] == said


def test_time_memory_and_machine_are_stated():
    said = lines(provenance())
    assert said["Time (h:mm:ss)"] == "0:01:01 from start to end, without pauses"
    assert said["Processor time"] == "0:01:40 of all steps together"
    assert said["Largest memory"] == "700 MB, a job of the rule train_encoder"
    assert said["Machine"] == "P, 2 cores, 8 GB of memory, H200"
    assert said["Base encoders"].startswith("e: a BERT with random weights (2 layers of width 64, 2 heads)")


REAL = {"kind": "csfcube", "folder": "x"}
OTHERS = {"models": {}, "encoders": {"e": {"package": "p"}}, "baselines": {"bm25": {"kind": "bm25"}}}
"""Of a comparison of what exists."""
HELD_OUT = {"h": {"kind": "holdout"}}
NOTHING, LEARNED = "say nothing about real papers", "learned from generated papers"
OF_REAL = "The documents of the benchmark real are not generated."


@pytest.mark.parametrize(
    ("source", "benchmarks", "others", "said", "not_said"),
    [
        ("s2", HELD_OUT, {}, None, None),
        ("demo", {}, {}, "made up the corpus with its citations: no such papers exist.", "benchmark"),
        ("demo", HELD_OUT, {}, "the corpus with its citations and the benchmark h: ", "not generated"),
        ("directory", {"d": {"kind": "scirepeval", "folder": "demo"}}, {}, "made up the benchmark d: ", "the corpus"),
        ("demo", {"real": REAL}, OTHERS, None, None),
        ("demo", {"real": REAL, "other": REAL}, OTHERS, None, None),
        ("demo", {}, OTHERS, "made up the corpus with its citations: ", "benchmark"),
        ("demo", {"real": REAL}, {}, LEARNED, NOTHING),
        ("demo", {"real": REAL}, {**OTHERS, "encoders": {"e": {"build": {}}}}, LEARNED, NOTHING),
        ("demo", {"real": REAL}, {**OTHERS, "baselines": {"w": {"kind": "doc2vec"}}}, f"{OF_REAL} What this", NOTHING),
        ("demo", {**HELD_OUT, "real": REAL}, OTHERS, f"on the benchmark h {NOTHING}. {OF_REAL}", "learned"),
    ],
)
def test_what_is_generated_is_named_with_the_scores_that_it_touches(source, benchmarks, others, said, not_said):
    recorded = provenance(source, **benchmarks)
    recorded["configuration"] |= others
    found = what_is_generated(recorded)
    assert (said in found and not_said not in found) if said else found == ""


def test_a_benchmark_is_described_by_its_kind_the_number_of_its_tasks_and_whether_it_is_generated():
    asked = {"h": {"kind": "holdout"}, "s": {"kind": "scirepeval", "folder": "demo", "tasks": ["fos"]}}
    said = lines(provenance("s2", **asked))["Benchmarks"]
    assert said == "h: papers held out of everything (4 tasks); s: SciRepEval (1 task, generated)"


@pytest.mark.parametrize(
    ("configured", "trained_in", "said"),
    [
        ("auto", {}, "documents of benchmarks were embedded in float32"),
        ("auto", {"m0": "bfloat16", "m1": "bfloat16"}, "embedded in float32; models were trained in bfloat16"),
        ("bfloat16", {"m0": "bfloat16"}, "embedded in bfloat16; models were trained in bfloat16"),
        ("auto", {"m0": "bfloat16", "m1": "float32"}, "trained: m0 in bfloat16; m1 in float32"),
    ],
)
def test_the_page_names_what_was_computed_in(configured, trained_in, said):
    recorded = provenance("s2")
    recorded["configuration"]["precision"] = configured
    assert lines(recorded, trained_in)["Precision"].endswith(said)


def test_baselines_are_named_with_their_kinds():
    recorded = provenance("s2")
    assert lines(recorded)["Baselines"] == "bm25; popularity; random"
    recorded["configuration"]["baselines"] = {"bm25": {"kind": "bm25"}, "rare": {"kind": "sif", "of": "ft"}}
    assert lines(recorded)["Baselines"] == "bm25; rare: sif"


def score(model, value, *, seed=1, task="cite", metric="map"):
    row = {"benchmark": "h", "task": task, "metric": metric, "mode": "both", "model": model}
    return row | {"seed": seed, "evaluation_seed": 1, "value": value}


def comparison(model, other, difference):
    row = {"benchmark": "h", "task": "cite", "metric": "map", "mode": "both", "model": model, "other": other}
    return row | {"difference": difference, "low": difference - 1, "high": difference + 2}


def average(model, mean, *, values=4, mode="compat", deviation=None, of=("all", "all")):
    row = {"benchmark": "s", "model": model, "mode": mode, "over": of[0], "average": of[1]}
    return row | {"mean": mean, "deviation": deviation, "values": values}


def best(recorded, scores=(), compared=(), averages=()):
    """The rows of the table of the best models."""
    frames = [
        pl.DataFrame([*rows, row]).head(len(rows))  # with all columns, if there is no row as well
        for rows, row in (
            (scores, score("m0", 1.0)),
            (averages, average("m0", 1.0, deviation=0.5)),
            (compared, comparison("m0", "m1", 1.0)),
        )
    ]
    return best_scores(*frames, configured(recorded["configuration"])).rows()


def test_the_best_model_of_a_task_stands_with_its_gains_and_their_intervals():
    scores = [score("m0", 60.0), score("m1", 70.0), score("m1", 74.0, seed=2), score("bm25", 99.0, seed=0)]
    compared = [comparison("m1", "untrained_e", 30.0), comparison("bm25", "m1", 27.0), comparison("bm25", "m0", 39.0)]
    assert best(provenance(seeds=[(1,), (1, 2)], **HELD_OUT), scores, compared) == [
        ("h", "cite MAP", "m1", "72.0 ± 2.8", "+30.0 (+29.0 to +32.0)", "−27.0 (−29.0 to −26.0)"),
    ]


@pytest.mark.parametrize(
    ("entry", "metric", "label"),
    [
        ({"kind": "csfcube"}, "map", "mean MAP over the tasks"),
        ({"kind": "csfcube", "folds": True}, "map_folds", "mean MAP (mean over folds) over the tasks"),
        ({"kind": "doris_mae", "tasks": ["doris_mae_graded"]}, "ndcg_10%", "mean nDCG at 10% over the tasks"),
    ],
)
def test_the_best_model_is_that_by_the_metric_that_the_tasks_have(entry, metric, label):
    averages = [average(f"m{n}", mean, mode="both", of=("metric", metric)) for n, mean in enumerate((40.0, 50.0))]
    [row] = best(provenance(seeds=[(1,), (1,)], s=entry), averages=averages)
    assert row[:4] == ("s", label, "m1", "50.0")


def test_an_oracle_is_never_the_best_model():
    recorded = provenance(seeds=[(1,), (1,)], **HELD_OUT)
    sets = {"answers": {"sampler": "oracle", "benchmark": "h"}, "t": {"sampler": "citations"}}
    recorded["configuration"]["triplets"] = sets
    for name, of in (("m0", "t"), ("m1", "answers")):
        recorded["configuration"]["models"][name]["triplets"] = of
    [row] = best(recorded, [score("m0", 60.0), score("m1", 70.0)])
    assert row[2] == "m0"


@pytest.mark.parametrize(
    ("baselines", "gains"),
    [
        ({"r": {"kind": "random"}, "words": {"kind": "bm25"}, "more": {"kind": "bm25"}}, ["+9.0 (+8.0 to +11.0)"]),
        ({"r": {"kind": "random"}}, []),
        ({}, []),
    ],
)
def test_the_best_model_is_measured_against_the_first_baseline_that_ranks_by_words_if_there_is_one(baselines, gains):
    recorded = provenance(**HELD_OUT)
    recorded["configuration"]["baselines"] = baselines
    [row] = best(recorded, [score("m0", 60.0)], [comparison("m0", "words", 9.0), comparison("m0", "more", 5.0)])
    assert list(row[4:]) == ["–", *gains]


def test_the_best_model_may_be_one_in_a_space_of_its_own_and_is_measured_against_its_encoder():
    recorded = provenance(**HELD_OUT)
    recorded["configuration"]["models"]["m0"]["spaces"] = ["result"]
    scores = [score("m0", 60.0), score("m0_in_result", 80.0), score("bm25", 70.0, seed=0)]
    compared = [comparison("m0_in_result", "untrained_e", 30.0), comparison("m0_in_result", "bm25", 10.0)]
    [row] = best(recorded, scores, compared)
    assert row[2:5] == ("m0_in_result", "80.0", "+30.0 (+29.0 to +32.0)")


def test_by_averages_models_with_all_values_compete_mode_by_mode():
    averages = [average("m0", 60.0), average("m1", 65.5, deviation=0.5), average("untrained_e", 40.0)]
    averages += [average("m0", 99.0, values=3, mode="compat"), average("m0", 50.0, mode="correct")]
    recorded = provenance(seeds=[(1,), (1, 2)], s={"kind": "scirepeval", "folder": "x"})
    assert best(recorded, averages=averages) == [
        ("s", "average of 4 values (compat)", "m1", "65.5 ± 0.5", "+25.5", "–"),
        ("s", "average of 4 values (correct)", "m0", "50.0", "–", "–"),
    ]
