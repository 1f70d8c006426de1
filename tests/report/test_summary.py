"""The summary says in a few lines what was trained on what, and what it took; every metric has a name in words."""

import os

import polars as pl
import pytest

from cocite.config.benchmarks import BENCHMARKS
from cocite.config.benchmarks.by_aspect import RELEASED
from cocite.core.progress import Usage
from cocite.core.tables.files import read_table
from cocite.report.labels import measure, metric_in_words
from cocite.report.summary import costs_of_rules, facts, read_jobs, time_at_work, what_is_generated, write_costs

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


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        *(("ndcg_cut_10", "nDCG@10"), ("map_cut_100", "MAP@100"), ("recall_1000", "recall@1000"), ("P_7", "P@7")),
        *(("recip_rank", "MRR"), ("recip_rank_3", "MRR@3"), ("recip_rank_10_best", "MRR@10 of the highest grade")),
        *(("P_1_adjusted", "adjusted P@1"), ("success_5", "success@5"), ("map_folds", "MAP (mean over folds)")),
        ("ndcg_20_csfcube_folds", "nDCG@20 as CSFCube has it (mean over folds)"),
        ("f1_macro_with_few_shot", "macro F1, few-shot included"),
        ("an_unknown_one", "an_unknown_one"),
    ],
)
def test_a_metric_has_a_name_with_its_depth_and_the_way_in_which_it_is_averaged(metric, words):
    assert measure("cite", metric, "both") == f"papers it cites, {words}"


def test_no_declared_metric_goes_by_its_name_in_the_tables():
    metrics = {metric for tasks in BENCHMARKS.values() for task in tasks for metric in task.metrics}
    metrics |= {f"{metric}_folds" for metric in RELEASED}
    assert [metric for metric in metrics if metric_in_words(metric) == metric or "_" in metric_in_words(metric)] == []


COLUMNS = ["rule", "jobs", "seconds", "longest_seconds", "cpu_seconds", "peak_mb"]


def note(path, *took):
    """The log of a job that was run once for each (seconds, seconds of the processors, MB)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (Usage(seconds=seconds, cpu_seconds=cpu, peak_mb=peak) for seconds, cpu, peak in took)
    path.write_text("".join(f"at work\n{line}\n" for line in lines))


def costs(folder, **logs):
    """The rows of the table of rules with these logs, by the rule."""
    write_costs(read_jobs({rule: f"{folder}/l/{log}" for rule, log in logs.items()}, None), folder / "costs.parquet")
    return {row["rule"]: row for row in read_table(folder / "costs.parquet", "costs").to_pylist()}


def test_jobs_of_a_rule_are_summed_and_the_largest_is_stated(tmp_path):
    note(tmp_path / "l/graph/g/count-0.log", (2.0, 1.5, 100))
    note(tmp_path / "l/graph/h/count-1.log", (3.0, 2.5, 50))
    note(tmp_path / "l/graph/g/edges-0.log", (9.0, 1.0, 1))
    found = costs(tmp_path, count_pairs="graph/{graph}/count-{bucket}.log", train="train.log")
    assert {rule: tuple(row[name] for name in COLUMNS[1:]) for rule, row in found.items()} == {
        "count_pairs": (2, 5.0, 3.0, 4.0, 100.0)
    }


def test_of_a_repeated_job_the_last_run_counts_and_of_one_that_has_not_finished_none(tmp_path):
    note(tmp_path / "l/list-0.log", (2.0, 1.0, 1), (5.0, 1.0, 1))
    (tmp_path / "l/list-1.log").write_text("at work\n")
    row = costs(tmp_path, list="list-{n}.log")["list"]
    assert (row["jobs"], row["seconds"]) == (1, 5.0)


def test_rules_that_share_their_logs_are_named_together_and_a_log_is_of_the_rule_that_says_most_of_it(tmp_path):
    for name in ("edges-0", "score-fos-random-0", "score-fos-cocite-1"):
        note(tmp_path / f"l/{name}.log", (1.0, 1.0, 1))
    logs = {"weigh": "edges-{bucket}.log", "combine": "edges-{bucket}.log"}
    logs |= {"model": "score-{task}-{model}-{seed}.log", "random": "score-{task}-random-0.log"}
    found = {rule: row["jobs"] for rule, row in costs(tmp_path, **logs).items()}
    assert found == {"combine or weigh": 1, "model": 1, "random": 1}


def shown(*rows, at_work):
    return costs_of_rules(pl.DataFrame(rows, schema=COLUMNS, orient="row"), at_work).rows()


def test_the_longest_rule_comes_first_and_all_together_last_in_which_snakemake_is_no_job():
    rows = [("short", 1, 5.0, 5.0, 30.0, 1200.0), ("long", 1, 3700.0, 3600.0, 30.0, 1200.0)]
    assert shown(*rows, ("snakemake", 1, 3702.0, 3702.0, 2.0, 90.0), at_work=3702.0) == [
        ("snakemake", "1", "1:01:42", "1:01:42", "0:00:02", "90"),
        ("long", "1", "1:01:40", "1:00:00", "0:00:30", "1,200"),
        ("short", "1", "0:00:05", "0:00:05", "0:00:30", "1,200"),
        ("all together", "2", "1:01:42", "1:00:00", "0:01:02", "1,200"),
    ]


def test_the_time_at_work_counts_jobs_side_by_side_once_and_pauses_not_at_all(tmp_path):
    logs = {"r": f"{tmp_path}/l/{{n}}.log"}
    assert time_at_work(read_jobs(logs, None)) == 0.0
    # From 100 to 110; from 105 to 115, beside it; within the second; and after a pause.
    jobs = [(1_000_110.0, 10.0), (1_000_115.0, 10.0), (1_000_112.0, 1.0), (1_009_000.0, 20.0)]
    for number, (end, seconds) in enumerate(jobs):
        note(tmp_path / f"l/{number}.log", (seconds, 1.0, 1))
        os.utime(tmp_path / f"l/{number}.log", (end, end))
    assert time_at_work(read_jobs(logs, None)) == pytest.approx(15.0 + 20.0)
