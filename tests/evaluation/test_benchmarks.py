"""Benchmarks: the declarations of their tasks, who is scored on them, and ten collections, in the layouts in which they
are released, that are read by one command a kind and ranked by words."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.collections import LAYOUTS, topic_of, write_collections
from tests.evaluation.folders import RUN, read_benchmark, scored_by, scores_of
from tests.workflow.conftest import SMALL

from cocite.config.benchmarks import BENCHMARKS, TASKS, declared, names
from cocite.config.benchmarks.beir import BeirSettings
from cocite.config.benchmarks.scirepeval import SciDocs, SciRepEval
from cocite.config.configuration import configure
from cocite.config.runs import scored_runs
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation.bm25 import read_document_texts, score_words
from cocite.evaluation.preparation.readers import prepare_folder
from cocite.evaluation.preparation.searches import prepare_beir

DOCUMENTATION = Path(__file__).parents[2] / "docs/benchmarks.md"


def test_no_two_tasks_share_a_name_and_the_documentation_lists_every_one():
    for tasks in BENCHMARKS.values():
        assert all(TASKS[task.name] is task for task in tasks)
    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert [name for name in TASKS if f"`{name}`" not in text] == []
    shared = {task.name for task in SciDocs.declared} & {task.name for task in SciRepEval.declared}
    assert shared == {f"scidocs_{name}" for name in ("cite", "cocite", "view", "read")}


def test_an_entry_has_the_tasks_that_it_lists_in_their_declared_order_or_all_of_its_kind():
    listed = SciRepEval(kind="scirepeval", folder=".", tasks=("fos", "drsm")).scored_tasks
    assert [task.name for task in listed] == ["drsm", "fos"]
    assert tuple(SciDocs(kind="scidocs", folder=".").scored_tasks) == SciDocs.declared


def test_a_name_that_is_not_declared_is_refused_with_those_that_are():
    assert (names(""), names("fos,drsm")) == ([], ["fos", "drsm"])
    said = "The task: 'chess' is not known; known are background, beir_arguana, beir_nfcorpus"
    with pytest.raises(InputError, match=said):
        declared("chess")


def test_who_is_scored_on_what():
    sre = {"kind": "scirepeval", "folder": str(DOCUMENTATION.parent), "tasks": ["fos", "pub_year", "relish"]}
    benchmarks = {"holdout": {"kind": "holdout", "search": True}, "sre": sre}
    config = configure(SMALL | {"models": {}, "benchmarks": benchmarks})
    of_sre, of_holdout = ({s: {*runs} for s, runs in scored_runs(config, name).items()} for name in ("sre", "holdout"))
    everywhere = {"untrained_small-0", "random-0"}
    ranked = everywhere | {"bm25-0", "popularity-0"}
    # BM25 ranks and does nothing else; popularity is known of papers of the corpus alone.
    assert of_sre == {"fos": everywhere, "small": everywhere | {"bm25-0"}}
    assert of_holdout == {"small": ranked, "search": ranked}


def test_the_small_tasks_of_a_benchmark_are_scored_together_and_each_large_one_alone():
    published = SciRepEval(kind="scirepeval", folder="scirepeval").suites
    assert [task.name for task in published["fos"]] == ["fos"]
    assert list(published) == ["small", "mesh_descriptors", "fos"]
    assert sum(map(len, published.values())) == 23
    assert list(SciRepEval(kind="scirepeval", folder="scirepeval", tasks=("fos",)).suites) == ["fos"]
    assert list(SciRepEval(kind="scirepeval", folder="demo").suites) == ["small"]  # none is large if it is generated


def prepare(name, folder, tables, tasks=""):
    kind, _ = LAYOUTS[name]
    where = {"tables": tables, "omissions": tables / "omissions.parquet", "tasks": tasks}
    if kind == "beir":
        prepare_beir(settings=BeirSettings(datasets={name: f"{folder}/{name}"}), **where)
    else:
        prepare_folder(Path(folder), kind=kind, **where)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder of the tables of each collection, by name."""
    folder = tmp_path_factory.mktemp("collections")
    for name, entry in write_collections(folder).items():
        prepare(name, entry["folder"], folder / "tables" / name)
    return {name: folder / "tables" / name for name in LAYOUTS}


@pytest.mark.parametrize("name", LAYOUTS)
def test_words_find_what_is_of_the_topic_of_a_query_and_random_vectors_do_not(prepared, name, tmp_path):
    tables = prepared[name]
    benchmark = read_benchmark(tables)
    documents = read_table(tables / "documents.parquet", "documents")["document"].to_pylist()
    draw = np.random.default_rng(7)
    vectors = {each: draw.normal(size=9) for each in documents}
    ranked = [task for task in map(declared, sorted(benchmark.tasks)) if task.is_ranking]
    assert ranked or name == "s2and"
    for task in ranked:
        texts = read_document_texts(tables / "documents.parquet", benchmark.documents_of(task))
        words = scores_of(score_words(task, benchmark, texts, RUN))
        chance = scores_of(scored_by(tmp_path, vectors, task, benchmark))
        metric = task.metrics[0]
        assert words[metric] > 1.2 * chance[metric], (task.name, metric)


@pytest.mark.parametrize(
    ("name", "task", "metric"), [("s2and", "s2and_qian", "b3_f1"), ("scirepeval", "drsm", "f1_macro")]
)
def test_vectors_of_topics_tell_authors_and_classes_apart(prepared, tmp_path, name, task, metric):
    documents = read_table(prepared[name] / "documents.parquet", "documents").to_pylist()
    vectors = {each["document"]: np.eye(4)[topic_of(int(each["title"].split()[-1]))] for each in documents}
    found = scored_by(tmp_path, vectors, task, read_benchmark(prepared[name]))
    assert scores_of(found)[metric] == pytest.approx(100)


@pytest.mark.parametrize(
    ("name", "tasks", "lost", "message"),
    [
        ("mdcr", "", "mdcr_test.json", "mdcr_test.json does not exist"),
        ("mdcr", "", "mdcr_test_data.jsonl", "mdcr_test_data.jsonl does not exist"),
        ("mdcr", "mdcr_physics", None, "has no field 'Physics'"),
        ("csfcube", "csfcube_method", "test-pid2anns-csfcube-method.json", "csfcube-method.json does not exist"),
        ("s2and", "", "qian/qian_papers.json", "qian_papers.json does not exist"),
        ("s2and", "", "qian/qian_signatures.json", "qian_signatures.json does not exist"),
        ("s2and", "", "qian/qian_clusters.json", "qian_clusters.json does not exist"),
        ("s2and", "s2and_qian,s2and_kisti", None, "no folder kisti for the requested task s2and_kisti; it contains s"),
        ("doris-mae", "", "DORIS-MAE_dataset_v1.json", "DORIS-MAE_dataset_v1.json does not exist"),
        ("litsearch", "", "query", "query: contains neither full.jsonl nor full.parquet, nor shards"),
        ("litsearch", "", "corpus_clean", "corpus_clean: contains neither full.jsonl nor full.parquet, nor shards"),
        ("scirepeval", "", "metadata/relish", "metadata/relish: contains neither evaluation.jsonl nor evaluation.p"),
        ("scirepeval", "relish,fos", None, "no folder test/fos for the requested task fos; it contains drsm, relish"),
        ("scidocs", "mag", "mag", "has no folder mag for the requested task mag; it contains"),
        ("scifact", "", "scifact/corpus.jsonl", "corpus.jsonl does not exist"),
        ("scifact", "", "scifact/queries.jsonl", "queries.jsonl does not exist"),
        ("scifact", "", "scifact/qrels/test.tsv", "qrels/test.tsv does not exist"),
    ],
)
def test_a_file_or_a_task_that_is_not_there_is_named(tmp_path, name, tasks, lost, message):
    folder = tmp_path / name
    LAYOUTS[name][1](folder)
    if lost:
        shutil.rmtree(folder / lost) if (folder / lost).is_dir() else (folder / lost).unlink()
    with pytest.raises(InputError, match=re.escape(message)):
        prepare(name, folder, tmp_path / "tables", tasks)
    assert not (tmp_path / "tables").exists()
