"""The rules of evaluation: folders that others put together, and models in any number."""

import gzip
import json
import os

import pytest
from tests.evaluation.collections import csfcube, library
from tests.workflow.conftest import SMALL, edited, planned

from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table


def test_a_benchmark_without_a_list_of_tasks_is_prepared_as_it_lies_and_again_when_a_file_changes(run):
    for dataset in ("qian", "zbmath"):
        folder = run.folder / "authors" / dataset
        folder.mkdir(parents=True)
        signatures = {f"s{n}": {"paper_id": n, "author_info": {"block": f"j smith {n}"}} for n in range(4)}
        tables = {
            "papers": {str(n): {"title": f"{dataset} {n}"} for n in range(4)},
            "signatures": signatures,
            "clusters": {"a": {"signature_ids": list(signatures)}},
        }
        for table, members in tables.items():
            (folder / f"{dataset}_{table}.json").write_text(json.dumps(members))
    run.configure(SMALL | {"benchmarks": {"authors": {"kind": "s2and", "folder": "authors"}}})
    prepared = "results/evaluation/authors/signatures.parquet"
    run.make(prepared)
    sizes = read_json(run.folder / "results/evaluation/authors/sizes.json")
    assert sizes["tasks"] == {"s2and_qian": 4, "s2and_zbmath": 4}
    clusters = {"a": {"signature_ids": ["s0"]}, "b": {"signature_ids": ["s1", "s2", "s3"]}}
    (run.folder / "authors/qian/qian_clusters.json").write_text(json.dumps(clusters))
    assert planned(run, None, prepared).rules() == {"prepare_folder"}


def test_of_litsearch_only_the_files_that_are_read_are_inputs_and_full_texts_take_no_memory(run):
    for name, size in (("query", 1), ("corpus_clean", 200_000_000), ("corpus_s2orc", 900_000_000)):
        file = run.folder / f"litsearch/{name}/full-00000-of-00001.parquet"
        file.parent.mkdir(parents=True)
        file.touch()
        os.truncate(file, size)
    config = SMALL | {"benchmarks": {"questions": {"kind": "litsearch", "folder": "litsearch"}}}
    prepared = planned(run, config, "results/evaluation/questions/sizes.json").one("prepare_folder")
    assert [path.split("/")[1] for path in sorted(prepared.inputs)] == ["corpus_clean", "query"]
    assert prepared.resources["mem_mb"] == "1101"


def test_no_command_grows_with_the_tables_of_all_models(run):
    # A shell takes no more than 128 KiB as a command, which the names of two thousand tables fill.
    plan = planned(run, edited(models__cocite__seeds=list(range(1, 41))))
    commands = plan.commands("evaluation average") + plan.commands("evaluation compare")
    assert len(commands) == 4
    assert max(len(command) for command in commands) < 3000


def test_scores_that_others_reported_are_read_beside_a_benchmark_and_again_when_a_file_changes(run):
    # As many queries and documents as SciFact has, and the judgement of one document for each.
    scifact = run.folder / "scifact"
    (scifact / "qrels").mkdir(parents=True)
    rows = {
        "corpus": [{"_id": f"d{number}", "title": f"Title {number}", "text": "Words."} for number in range(5183)],
        "queries": [{"_id": f"q{number}", "text": f"Claim {number}"} for number in range(300)],
    }
    for name, records in rows.items():
        (scifact / f"{name}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    judged = "".join(f"q{number}\td{number % 20}\t1\n" for number in range(300))
    (scifact / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    theirs = run.folder / "theirs/SciFact.json"
    theirs.parent.mkdir()
    scores = {"ndcg_at_10": 0.5, "main_score": 0.5, "hf_subset": "default", "languages": ["eng-Latn"]}
    theirs.write_text(json.dumps({"task_name": "SciFact", "mteb_version": "2.1.0", "scores": {"test": [scores]}}))
    config = SMALL | {
        "benchmarks": {"holdout": {"kind": "holdout"}, "beir": {"kind": "beir", "datasets": {"scifact": "scifact"}}},
        "baselines": {"theirs": {"kind": "reported", "path": "theirs"}, "bm25": {"kind": "bm25"}},
    }
    run.configure(config)
    read = "results/evaluation/beir/reported/theirs.parquet"
    run.make(read)
    [row] = read_table(run.folder / read, "reported_scores").to_pylist()
    assert (row["task"], row["value"]) == ("beir_scifact", 50)
    theirs.write_text(theirs.read_text().replace("0.5", "0.25"))
    again = [job.outputs for job in planned(run, None, "evaluation").jobs if "theirs" in job.command]
    assert again == [[read, "results/evaluation/omissions/beir_theirs.parquet"]]


@pytest.mark.long
def test_metrics_and_folds_that_the_configuration_asks_for_are_measured(run):
    library(run.folder / "data")
    corpus = run.folder / "data/library/corpus.jsonl"
    corpus.with_name("corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    corpus.unlink()
    csfcube(run.folder / "facets")
    [names] = [list(json.loads(path.read_text())) for path in (run.folder / "facets").glob("*-method.json")]
    named = {facet: [f"{query}_{facet}" for query in names] for facet in ("background", "method", "result")}
    named["all"] = [name for of in named.values() for name in of]
    folds = {facet: {"fold1_test": of[:3], "fold2_test": of[3:]} for facet, of in named.items()}
    (run.folder / "facets/evaluation_splits.json").write_text(json.dumps(folds))
    benchmarks = {
        "searches": {"kind": "beir", "folder": "data", "metrics": ["map", "recall_5"]},
        "facets": {"kind": "csfcube", "folder": "facets", "folds": True, "tasks": ["csfcube_method", "csfcube_all"]},
    }
    run.configure(SMALL | {"benchmarks": benchmarks, "baselines": {"bm25": {"kind": "bm25"}}})
    targets = [f"results/evaluation/{name}/scores/small/bm25-0.parquet" for name in benchmarks]
    run.make(*targets)
    searched, faceted = (read_table(run.folder / target, "scores").to_pylist() for target in targets)
    assert [row["metric"] for row in searched] == ["map", "ndcg_cut_10", "recall_5"]
    assert {row["unfindable"] for row in searched} == {0}
    assert {row["task"] for row in faceted} == {"csfcube_all", "csfcube_method"}
    assert {row["metric"].endswith("_folds") for row in faceted} == {True}


def test_searches_of_the_corpus_read_the_vectors_of_all_papers(run):
    config = SMALL | {
        "queries": SMALL["queries"] | {"holdout_from": 2015},
        "baselines": {
            "bm25": {"kind": "bm25"},
            "popularity": {"kind": "popularity"},
            "random": {"kind": "random"},
            "sgc": {"kind": "sgc", "encoder": "small", "graph": "citation"},
        },
        "benchmarks": {
            "holdout": {"kind": "holdout", "search": True, "seeds": [7, 8]},
            "later": {"kind": "holdout", "search": True, "by_time": True},
        },
    }
    plan = planned(run, config)
    searched = {
        rule: [job for job in plan.jobs if job.rule == rule] for rule in plan.rules() if "search_corpus" in rule
    }
    assert {rule: len(jobs) for rule, jobs in searched.items()} == {
        "search_corpus": 2 * 3,  # two models and the encoder before fine-tuning
        "search_corpus_by_baseline": 2 * 2,
        "search_corpus_by_words": 2,
        "search_corpus_by_citations": 2,
    }
    by_model = next(job for job in searched["search_corpus"] if job.wildcards["system"] == "cocite")
    vectors = [path for path in by_model.inputs if path.startswith("results/encoder/cocite/seed-1/papers/")]
    assert len(vectors) == 2
    assert "--vectors results/encoder/cocite/seed-1/papers" in by_model.command
    assert {job.command.partition("--evaluation-seed=")[2][0] for job in searched["search_corpus"]} == {"7", "1"}
    assert all("--papers results/corpus/papers" in job.command for job in searched["search_corpus_by_words"])
    by_year = plan.one("score_by_year")  # of the hold-out by time alone
    assert by_year.outputs == ["results/evaluation/later/scores_by_year.parquet"]
    assert by_year.outputs[0] in plan.one("write_page").inputs
    assert "by-year results/evaluation/later/outcomes --suites" in by_year.command
    assert "results/evaluation/later/outcomes/search/bm25-0.parquet" in by_year.inputs
    assert len(plan.commands("evaluation prepare-holdout")) == 2
    assert sum('"by_time": true' in command for command in plan.commands("evaluation prepare-holdout")) == 1
    none_by_chance = '"holdout_by_chance": false'
    assert none_by_chance not in plan.one("select_queries").command
    # Another choice of benchmarks is another parameter, so that what depends on it runs again.
    only_later = planned(run, config | {"benchmarks": {"later": config["benchmarks"]["later"]}})
    assert none_by_chance in only_later.one("select_queries").command
