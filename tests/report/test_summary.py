"""The summary says in a few lines what was trained on what, and what it took."""

import polars as pl
import pytest

from cocite.report.summary import facts, what_is_generated

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
