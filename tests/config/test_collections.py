"""Benchmarks in BEIR's layout in the configuration: which datasets and tasks an entry has, and what is refused."""

import pytest
from tests.configurations import recorded, refused

from cocite.config.benchmarks import declared
from cocite.config.configuration import resolve
from cocite.core.errors import InputError

FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


@pytest.fixture
def datasets(tmp_path):
    """A folder with the datasets SciFact and own_papers, and a folder that is none."""
    for path in (f"{name}/{file}" for name in ("SciFact", "own_papers") for file in FILES):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "notes").mkdir()
    return tmp_path


def resolved(written, **entry):
    written["benchmarks"]["searches"] = {"kind": "beir", **entry}
    return resolve(written)["benchmarks"]["searches"]


def typed(entry):
    return recorded({"benchmarks": {"searches": entry}}).benchmarks["searches"]


def test_the_datasets_of_a_folder_are_known_before_any_job(written, datasets):
    entry = resolved(written, folder=str(datasets))
    assert entry["datasets"] == {"own-papers": f"{datasets}/own_papers", "scifact": f"{datasets}/SciFact"}
    assert "folder" not in entry
    assert [task.name for task in typed(entry).scored_tasks] == ["beir_own_papers", "beir_scifact"]
    assert list(typed(entry).suites) == ["small"]


def test_a_resolved_entry_is_resolved_to_itself(written, datasets):
    entry = resolved(written, folder=str(datasets))
    assert resolved(written, **entry) == entry


def test_a_folder_can_be_a_dataset_itself(written, datasets):
    assert resolved(written, folder=f"{datasets}/SciFact")["datasets"] == {"scifact": f"{datasets}/SciFact"}


def test_datasets_can_have_any_names(written, datasets):
    entry = resolved(written, datasets={"claims-2020": f"{datasets}/SciFact"}, queries="short")
    assert [task.name for task in typed(entry).scored_tasks] == ["beir_claims_2020"]


def test_of_the_datasets_those_are_scored_whose_tasks_are_named(written, datasets):
    entry = resolved(written, folder=str(datasets), tasks=["beir_scifact"])
    assert [task.name for task in typed(entry).scored_tasks] == ["beir_scifact"]


def test_two_datasets_of_one_name_are_refused(written, datasets):
    (datasets / "own papers").mkdir()
    (datasets / "own papers/corpus.jsonl").touch()
    message = refused(written, "benchmarks.searches", {"kind": "beir", "folder": str(datasets)})
    assert "benchmarks.searches.folder holds own papers and own_papers, whose tasks have one name" in message


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "benchmarks.searches needs exactly one of folder and datasets"),
        ({"folder": "{0}", "datasets": {"a": "{0}/SciFact"}}, "needs exactly one of folder and datasets"),
        ({"folder": "{0}/none"}, "benchmarks.searches.folder: the folder {0}/none does not exist"),
        ({"folder": "{0}/notes"}, "{0}/notes holds no dataset, nor is it one: there is no corpus.jsonl"),
        ({"datasets": {"a": "{0}/notes"}}, "the folder {0}/notes of the dataset a has no file corpus.jsonl"),
        ({"datasets": {"A b": "{0}/SciFact"}}, "benchmarks.searches.datasets"),
        ({"folder": "{0}", "split": "dev"}, "{0}/own_papers of the dataset own-papers has no file qrels/dev.tsv"),
        (
            {"folder": "{0}", "tasks": ["beir_arguana"]},
            "names 'beir_arguana', which is the task of no dataset (they are beir_own_papers, beir_scifact)",
        ),
        ({"folder": "{0}", "queries": "papers"}, "queries is 'papers'; it must be one of auto, short, documents"),
    ],
)
def test_what_is_wrong_is_named(written, datasets, entry, message):
    filled = {
        key: value.format(datasets)
        if isinstance(value, str)
        else {name: path.format(datasets) for name, path in value.items()}
        if isinstance(value, dict)
        else value
        for key, value in entry.items()
    }
    assert message.format(datasets) in refused(written, "benchmarks.searches", {"kind": "beir", **filled})


def test_a_task_is_known_by_its_name_and_others_are_refused():
    assert declared("beir_trec_covid").test == "trec-covid"
    assert declared("beir_my_papers").test == "my-papers"
    for name in ("beir_", "beir_A", "beir_a/b"):
        with pytest.raises(InputError, match="The task: "):
            declared(name)
