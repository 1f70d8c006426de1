"""Files of mteb, in the layouts of its versions: what they report, what does not count, and what is refused."""

import json
import math

import pytest
from tests.evaluation.folders import omitted_in

from cocite.config.benchmarks import declared
from cocite.config.benchmarks.beir import PUBLISHED, BeirSettings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation.benchmark import Benchmark, write_tables
from cocite.evaluation.reported import read_result, write_reported

SUBSET = {"hf_subset": "default", "languages": ["eng-Latn"]}
SCORES = {"ndcg_at_10": 0.645082, "main_score": 0.645082, "recall_at_100": 0.92}
NO_TASK = "result on a task that the benchmark does not have"
WITHOUT = "task of the benchmark without a reported score"
OTHERS = "result on a task whose queries or documents are others here than in mteb"


def current(name="SciFact", split="test", version="2.26.0", **scores):
    """A file as mteb writes it since its version 1.11."""
    head = {"dataset_revision": "d56462d", "task_name": name, "mteb_version": version, "evaluation_time": 4.5}
    return head | {"scores": {split: [SCORES | SUBSET | scores]}}


def earlier(name="SciFact", **scores):
    """A file as mteb wrote it before."""
    of_test = {"evaluation_time": 12.3, "map_at_10": 0.59, "ndcg_at_10": 0.645082, **scores}
    return {"dataset_revision": None, "mteb_dataset_name": name, "mteb_version": "1.1.1", "test": of_test}


def write_results(folder, files, meta=None):
    """A folder of results of one model."""
    folder.mkdir(parents=True)
    for number, content in enumerate(files):
        (folder / f"{number}.json").write_text(json.dumps(content))
    if meta is not None:
        (folder / "model_meta.json").write_text(json.dumps(meta))
    return folder


def write_asked(tables, queries, **collections):
    """The tables of a benchmark with the judgements of so many queries of each task."""
    judgements = {task: {f"q{each}": {"d1": 1} for each in range(number)} for task, number in queries.items()}
    write_tables(Benchmark(judgements=judgements, collections=collections), tables)


@pytest.fixture
def beir(tmp_path):
    """The tables of a benchmark with as many queries as SciFact has, and with a sample of NFCorpus."""
    write_asked(tmp_path / "beir", {"beir_scifact": 300, "beir_nfcorpus": 20})
    return tmp_path / "beir"


def read(beir, folder, tasks="beir_scifact,beir_nfcorpus", **settings):
    """The rows that a folder gives, and what was counted."""
    files = {name: beir.parent / f"{name}.parquet" for name in ("output", "omissions")}
    asked = BeirSettings.model_validate(settings)
    write_reported(folder, tables=beir, tasks=tasks, settings=asked, baseline="theirs", **files)
    rows = read_table(files["output"], "reported_scores").to_pylist()
    return rows, {reason: count for reason, count in omitted_in(files["omissions"]).items() if count}


@pytest.mark.parametrize(
    "content",
    [current(), current(version="1.38.9"), earlier(), current(main_score=None), current(version="2.12.16-2.15.4")],
)
def test_a_score_is_read_from_either_layout(beir, tmp_path, content):
    folder = write_results(tmp_path / "theirs", [content], {"name": "them/model", "revision": "0123abc"})
    [row], omitted = read(beir, folder)
    assert row["value"] == pytest.approx(64.5082)
    assert (row["baseline"], row["benchmark"], row["task"]) == ("theirs", "beir", "beir_scifact")
    assert (row["metric"], row["mteb_task"]) == ("ndcg_cut_10", "SciFact")
    assert (row["mteb_model"], row["mteb_revision"]) == ("them/model", "0123abc")
    assert (row["dataset_revision"], row["mteb_version"]) == (content["dataset_revision"], content["mteb_version"])
    assert omitted == {WITHOUT: 1}


@pytest.mark.parametrize("content", [current(), earlier()])
def test_mteb_itself_reads_the_same_score_from_these_files(tmp_path, content):
    pytest.importorskip("mteb")
    from mteb.results import TaskResult

    path = write_results(tmp_path / "theirs", [content]) / "0.json"
    result = TaskResult.from_disk(path)
    [scores] = read_result(path).splits["test"]
    assert (result.task_name, result.get_score()) == (read_result(path).task, scores["ndcg_at_10"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (current("Banking77Classification", accuracy=0.8), NO_TASK),
        (current("SCIDOCS"), NO_TASK),
        (current("scifact"), NO_TASK),
        (current(split="dev"), "result without the split test"),
        (current(main_score=0.92), "result whose main score is not ndcg_at_10"),
        (current(ndcg_at_10=None), "result without ndcg_at_10"),
        (earlier(ndcg_at_10=None), "result without ndcg_at_10"),
        (current("NFCorpus"), OTHERS),
        ({**earlier(), "test": {"en": SCORES, "de": SCORES}}, "result with several subsets of a task, or with none"),
        ({**current(), "scores": {"test": []}}, "result with several subsets of a task, or with none"),
    ],
)
def test_what_answers_another_question_is_left_out_and_counted(beir, tmp_path, content, reason):
    rows, omitted = read(beir, write_results(tmp_path / "theirs", [content]))
    assert rows == []
    assert omitted == {reason: 1, WITHOUT: 2}


@pytest.mark.parametrize(
    ("settings", "documents", "found"),
    [
        ({}, 5183, {"ArguAna", "SciFact"}),
        ({}, 900, {"ArguAna"}),
        ({"missing_documents": "keep", "ignore_identical_ids": "auto"}, 5183, {"ArguAna", "SciFact"}),
        ({"missing_documents": "drop"}, 5183, set()),
        ({"ignore_identical_ids": False}, 5183, {"SciFact"}),
        ({"ignore_identical_ids": True}, 5183, {"ArguAna"}),
        ({"split": "dev"}, 5183, set()),
    ],
)
def test_a_score_counts_only_on_the_same_documents_split_judgements_and_ids(beir, tmp_path, settings, documents, found):
    of_scifact = {f"d{number}" for number in range(documents)}
    write_asked(beir, {"beir_scifact": 300, "beir_arguana": 1406}, beir_scifact=of_scifact)
    folder = write_results(tmp_path / "theirs", [current(), current("ArguAna")])
    rows, omitted = read(beir, folder, tasks="beir_scifact,beir_arguana", **settings)
    assert {row["mteb_task"] for row in rows} == found
    assert omitted.get(OTHERS, 0) == omitted.get(WITHOUT, 0) == 2 - len(found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (current(ndcg_at_10=math.nan), "ndcg_at_10: must be a number from 0 to 1, not nan"),
        (current(main_score=math.inf), "main_score: must be a number from 0 to 1, not inf"),
        (current(ndcg_at_10=64.5), "ndcg_at_10: must be a number from 0 to 1, not 64.5"),
        (current(ndcg_at_10="0.6"), "ndcg_at_10: must be a number from 0 to 1, not '0.6'"),
        (current(ndcg_at_10=True), "ndcg_at_10: must be a number from 0 to 1, not True"),
        (earlier(ndcg_at_10=[0.6]), r"ndcg_at_10: must be a number from 0 to 1, not \[0.6\]"),
        ({**current(), "scores": {"test": SCORES}}, r"scores\.test: must be a list of objects"),
        ({**current(), "scores": {"test": [0.6]}}, r"scores\.test: must be a list of objects"),
        ([current()], "is no result that is understood; those of mteb 1 and 2 have task_name and scores"),
        ({"mteb_version": "3.0.0", "results": []}, "is no result that is understood"),
        ({"task_name": "SciFact", "scores": [1]}, "is no result that is understood"),
    ],
)
def test_what_no_file_of_mteb_can_hold_is_refused(beir, tmp_path, content, said):
    with pytest.raises(InputError, match=rf"theirs/0\.json[:,] ?{said}"):
        read(beir, write_results(tmp_path / "theirs", [content]))


def test_two_results_on_one_task_are_refused_but_for_experiments_below_the_folder(beir, tmp_path):
    with pytest.raises(InputError, match=r"1\.json: is on SciFact, as .*0\.json is"):
        read(beir, write_results(tmp_path / "theirs", [current(), earlier()]))
    folder = write_results(tmp_path / "others", [current()])
    write_results(folder / "experiments/short", [current(ndcg_at_10=0.1, main_score=0.1)])
    [row], _ = read(beir, folder)
    assert row["value"] == pytest.approx(64.5082)


def test_the_folder_of_a_model_is_found_below_and_several_models_are_refused(beir, tmp_path):
    write_results(tmp_path / "all/them__one/abc", [current()])
    assert len(read(beir, tmp_path / "all")[0]) == len(read(beir, tmp_path / "all/them__one/abc/0.json")[0]) == 1
    write_results(tmp_path / "all/them__two/def", [current()])
    said = r"contains results of 2 models or revisions \(them__one/abc, them__two/def\); name the folder of one"
    with pytest.raises(InputError, match=said):
        read(beir, tmp_path / "all")
    with pytest.raises(InputError, match="contains no results of mteb"):
        read(beir, write_results(tmp_path / "none", [], {"name": "a/b"}))


def test_the_tasks_have_the_names_and_numbers_of_queries_that_mteb_has():
    pytest.importorskip("mteb")
    import mteb

    for dataset, of_mteb in PUBLISHED.items():
        task = mteb.get_task(of_mteb.name)
        assert task.metadata.main_score == "ndcg_at_10"
        assert task.metadata.eval_splits == ["test"]
        assert task.metadata.descriptive_stats["test"]["num_queries"] == of_mteb.queries
        assert task.metadata.dataset["path"] == f"mteb/{dataset}"
        assert declared(f"beir_{dataset.replace('-', '_')}").mteb == of_mteb
    assert declared("beir_my_papers").mteb is None
