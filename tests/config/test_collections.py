"""Benchmarks in BEIR's layout in the configuration: which datasets and tasks an entry has, and what is refused."""

import pytest
from tests.configurations import recorded, refused

from cocite.config.benchmarks import declared
from cocite.config.configuration import resolve
from cocite.core.errors import InputError


def resolved(written, **entry):
    written["benchmarks"]["searches"] = {"kind": "beir", **entry}
    return resolve(written)["benchmarks"]["searches"]


def typed(entry):
    return recorded({"benchmarks": {"searches": entry}}).benchmarks["searches"]


def test_the_datasets_of_a_folder_are_known_before_any_job(datasets, tmp_path):
    entry = resolved(datasets, folder=str(tmp_path))
    assert entry["datasets"] == {"own-papers": f"{tmp_path}/own_papers", "scifact": f"{tmp_path}/SciFact"}
    assert "folder" not in entry
    assert [task.name for task in typed(entry).scored_tasks] == ["beir_own_papers", "beir_scifact"]
    assert list(typed(entry).suites) == ["small"]


def test_a_resolved_entry_is_resolved_to_itself(datasets, tmp_path):
    entry = resolved(datasets, folder=str(tmp_path))
    assert resolved(datasets, **entry) == entry


def test_a_folder_can_be_a_dataset_itself(datasets, tmp_path):
    assert resolved(datasets, folder=f"{tmp_path}/SciFact")["datasets"] == {"scifact": f"{tmp_path}/SciFact"}


def test_datasets_can_have_any_names(datasets, tmp_path):
    entry = resolved(datasets, datasets={"claims-2020": f"{tmp_path}/SciFact"}, queries="short")
    assert [task.name for task in typed(entry).scored_tasks] == ["beir_claims_2020"]


def test_of_the_datasets_those_are_scored_whose_tasks_are_named(datasets, tmp_path):
    entry = resolved(datasets, folder=str(tmp_path), tasks=["beir_scifact"])
    assert [task.name for task in typed(entry).scored_tasks] == ["beir_scifact"]


def test_two_datasets_of_one_name_are_refused(datasets, tmp_path):
    (tmp_path / "own papers").mkdir()
    (tmp_path / "own papers/corpus.jsonl").touch()
    message = refused(datasets, "benchmarks.searches", {"kind": "beir", "folder": str(tmp_path)})
    assert "benchmarks.searches.folder holds own papers and own_papers, whose tasks have one name" in message


def test_a_task_is_known_by_its_name_and_others_are_refused():
    assert declared("beir_trec_covid").test == "trec-covid"
    assert declared("beir_my_papers").test == "my-papers"
    for name in ("beir_", "beir_A", "beir_a/b"):
        with pytest.raises(InputError, match="The task: "):
            declared(name)
