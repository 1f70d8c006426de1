"""The rules of evaluation: folders that others put together, and models in any number."""

import json
import os

from tests.evaluation.collections import csfcube, library
from tests.workflow.conftest import SMALL, edited, planned


def test_files_of_benchmarks_and_of_scores_that_others_reported_are_inputs_and_what_is_chosen_of_them_is_told(run):
    for name in ("qian", "zbmath"):
        (run.folder / f"authors/{name}").mkdir(parents=True)
        for table in ("papers", "signatures", "clusters"):
            (run.folder / f"authors/{name}/{name}_{table}.json").touch()
    library(run.folder / "data")
    csfcube(run.folder / "facets")
    (run.folder / "facets/evaluation_splits.json").touch()
    (run.folder / "theirs").mkdir()
    (run.folder / "theirs/SciFact.json").write_text(json.dumps({"task_name": "SciFact"}))
    benchmarks = {
        "authors": {"kind": "s2and", "folder": "authors"},
        "searches": {"kind": "beir", "datasets": {"scifact": "data/library"}, "metrics": ["map", "recall_5"]},
        "facets": {"kind": "csfcube", "folder": "facets", "folds": True, "tasks": ["csfcube_method", "csfcube_all"]},
    }
    baselines = {"theirs": {"kind": "reported", "path": "theirs"}, "bm25": {"kind": "bm25"}}
    plan = planned(run, SMALL | {"benchmarks": benchmarks, "baselines": baselines}, "evaluation")

    authors, facets = (plan.one("prepare_folder", benchmark=name) for name in ("authors", "facets"))
    files = sorted(str(path.relative_to(run.folder)) for path in (run.folder / "authors").rglob("*.json"))
    assert sorted(authors.inputs) == files
    assert " --tasks= " in authors.command  # all that lie there
    assert "facets/evaluation_splits.json" in facets.inputs
    assert " --metrics=ndcg_cut_10,map,recall_5 " in plan.one("score_words", benchmark="searches").command
    for job in (facets, plan.one("score_words", benchmark="facets")):
        assert "csfcube_method,csfcube_all " in job.command
        assert all(each.endswith("_folds") for each in job.command.partition("--metrics=")[2].split()[0].split(","))
    reported = plan.one("read_reported")
    assert reported.inputs[0] == "theirs/SciFact.json"
    assert reported.outputs[0] == "results/evaluation/searches/reported/theirs.parquet"
    assert [job for job in plan.jobs if "theirs" in job.command] == [reported]


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
    searched = {rule: plan.of(rule) for rule in plan.rules() if "search_corpus" in rule}
    assert {rule: len(jobs) for rule, jobs in searched.items()} == {
        "search_corpus": 2 * 3,  # two models and the encoder before fine-tuning
        "search_corpus_by_baseline": 2 * 2,
        "search_corpus_by_words": 2,
        "search_corpus_by_citations": 2,
    }
    by_model = plan.of("search_corpus", system="cocite")[0]
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
