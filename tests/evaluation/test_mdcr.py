"""MDCR: fields as tasks, kinds of candidates, and what is wrong with its files."""

import json

import pytest
from tests.evaluation.folders import BenchmarkFolder

from cocite.config.benchmarks.mdcr import Mdcr
from cocite.core.errors import InputError
from cocite.evaluation.averages import averages

NEGATIVE = ("bm25", "graph", "most_cited", "random", "scincl", "specter")


@pytest.fixture
def mdcr(tmp_path):
    folder = BenchmarkFolder(tmp_path, "mdcr")
    folder.write_lines("mdcr_test_data.jsonl", *({"paper_id": n, "title": f"t{n}", "abstract": None} for n in range(9)))
    return folder


def judge(folder, **fields):
    folder.write_text(
        "mdcr_test.json", json.dumps({name.replace("_", " "): queries for name, queries in fields.items()})
    )


def candidates(true, **negative):
    return {**{kind: [] for kind in NEGATIVE}, **negative, "true": true}


def test_a_field_is_a_task_whose_cited_papers_are_relevant(mdcr):
    judge(mdcr, Computer_Science={"0": candidates([1, "2"], bm25=["3"], random=[4])}, Art={"5": candidates(["6"])})
    benchmark = mdcr.prepare()
    assert benchmark.judgements == {
        "mdcr_computer_science": {"0": {"1": 1, "2": 1, "3": 0, "4": 0}},
        "mdcr_art": {"5": {"6": 1}},
    }
    assert mdcr.documents()["4"] == ("t4", None)
    omitted = mdcr.omitted()
    assert omitted["document that no task asks for"] == 2
    assert omitted["task mdcr_physics absent"] == 1


def test_a_candidate_of_two_kinds_counts_once_and_a_cited_one_is_relevant(mdcr):
    judge(mdcr, Art={"0": candidates(["1"], bm25=["1", "2"], graph=["2"])})
    assert mdcr.prepare().judgements == {"mdcr_art": {"0": {"1": 1, "2": 0}}}
    assert mdcr.omitted()["task mdcr_art: repeated candidate (once is enough)"] == 2


def test_the_average_of_a_metric_is_the_plain_mean_over_the_19_fields_as_published():
    # SciNCL's MAP by field and its average, as the authors of MDCR give them beside their evaluation.
    by_field = [34.7136, 36.8358, 28.4669, 36.5293, 37.2056, 28.3171, 34.1759, 31.4845, 29.4518, 25.72]
    by_field += [30.9442, 35.7855, 34.9152, 42.6579, 29.8966, 34.499, 26.3834, 34.1724, 26.6838]
    rows = [
        {"task": task.name, "metric": "map", "value": value, "seed": 1, "evaluation_seed": 1, "mode": "both"}
        | {"format": "proximity"}
        for task, value in zip(Mdcr.declared, by_field, strict=True)
    ]
    found = {average: mean for _, average, (mean, *_) in averages(rows)}
    assert found["metric", "map"] == pytest.approx(32.5704, abs=1e-4)


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        ('{"Art": {"0": {"bm25": []}}}', "mdcr_test.json, Art, 0: the key 'true', of the papers that the query cites"),
        ('{"Art": {"0": {"true": "1"}}}', "true must be a list of ids, not '1'"),
        ('{"Art": {"0": {"true": ["lost"]}}}', "no text for the document 'lost'"),
        ('{"Art": 3}', "mdcr_test.json, Art: must be an object, not 3"),
        ('{"Arts": {}}', "has no field 'Art'"),
        ('{"Art": {"0": {"true": ["1"]}}', "mdcr_test.json: not JSON (parse error: premature EOF"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(mdcr, judged, message):
    mdcr.write_text("mdcr_test.json", judged)
    with pytest.raises(InputError) as error:
        mdcr.prepare("mdcr_art")
    assert message in str(error.value)


def test_a_paper_without_id_is_reported_with_its_line(mdcr):
    judge(mdcr, Art={})
    mdcr.write_lines("mdcr_test_data.jsonl", {"paper_id": 1}, {"title": "t"})
    with pytest.raises(InputError, match="line 2: the key 'paper_id' is missing or null"):
        mdcr.prepare()


@pytest.mark.parametrize("lost", ["mdcr_test.json", "mdcr_test_data.jsonl"])
def test_a_missing_file_is_named(mdcr, lost):
    judge(mdcr, Art={})
    (mdcr.root / lost).unlink()
    with pytest.raises(InputError, match=f"{lost} does not exist"):
        mdcr.prepare()
