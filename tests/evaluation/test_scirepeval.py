"""SciRepEval's layout: every shape of row, clashing ids, and bad input; and what of it is fetched from the hub."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.evaluation.folders import BenchmarkFolder, read_benchmark, write_parquet
from tests.hub import COMMIT, serve_hub

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import splits_to_fetch
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation.preparation.readers import fetch_config, prepare_folder

DATASETS = {"metadata": "lab/texts", "test": "lab/labels"}


def document(name, **more):
    return {"doc_id": name, "title": f"title {name}", "abstract": f"abstract {name}", **more}


def judgement(query, candidate, score):
    return {"query_id": query, "cand_id": candidate, "score": score}


def labelled(paper, label):
    return {"paper_id": paper, "label": label}


class LayoutFolder(BenchmarkFolder):
    """A folder in SciRepEval's layout."""

    def write(self, path, *rows):
        self.write_lines(f"{path}.jsonl", *rows)

    def rows(self):
        """The rows of the table documents by document."""
        rows = read_table(self.tables / "documents.parquet", "documents").to_pylist()
        return {row["document"]: row for row in rows}

    def add_relish(self):
        self.write("metadata/relish/evaluation", *(document(name) for name in ("a", "b", "c", "unused")))
        self.write("test/relish/test", judgement("a", "b", 2), judgement("a", "c", 0))


@pytest.fixture
def layout(tmp_path):
    return LayoutFolder(tmp_path, "scirepeval")


def test_judgements_and_the_documents_they_name(layout):
    layout.add_relish()
    layout.write("metadata/drsm/evaluation", document("a"), document("d"))
    layout.write("test/drsm/train", labelled("a", 1))
    layout.write("test/drsm/test", labelled("d", 2))
    assert layout.prepare().judgements == {"relish": {"a": {"b": 2, "c": 0}}}
    assert layout.documents() == {name: (f"title {name}", f"abstract {name}") for name in "abcd"}
    assert layout.omitted()["document that no task asks for"] == 1
    assert layout.omitted()["task fos absent"] == 1
    assert "task relish absent" not in layout.omitted()
    assert read_json(layout.tables / "sizes.json") == {"documents": 4, "tasks": {"drsm": 2, "relish": 3}}
    assert "is_query" not in layout.rows()["a"]  # where no benchmark has short queries


def test_a_query_and_its_candidates_in_one_row_where_search_has_a_short_text_and_adds_venue_and_year(layout):
    searched = {"doc_id": "q0", "query": "graph methods", "candidates": [document("x", venue="ACL", year=2019)]}
    layout.write("metadata/search/evaluation", searched)
    layout.write("test/search/test", judgement("q0", "x", 1))
    layout.write("metadata/same_author/evaluation", {"query": document("q"), "candidates": [document("y", score=1)]})
    layout.write("test/same_author/test", judgement("q", "y", 1))
    layout.prepare()
    assert {name: (row["title"], row["more"], row["is_query"]) for name, row in layout.rows().items()} == {
        "q0": ("graph methods", [], True),
        "x": ("title x", ["ACL", "2019"], False),
        "q": ("title q", [], False),
        "y": ("title y", [], False),
    }


def test_the_same_text_in_two_tasks_is_one_document_and_one_id_with_two_texts_is_two(layout):
    layout.add_relish()
    layout.write("metadata/scidocs_view_cite_read/evaluation", document("a", abstract="another"), document("b"))
    layout.write("test/scidocs_cite/test", judgement("a", "b", 1))
    layout.write("test/scidocs_read/test", judgement("b", "a", 1))
    row = {"doc_id": "1", "query": "masks", "candidates": [document("1"), document("2")]}
    layout.write("metadata/trec_covid/evaluation", row)
    layout.write("test/trec_covid/test", judgement("1", "1", 2), judgement("1", "2", 0))
    assert layout.prepare().judgements == {
        "relish": {"relish:a": {"b": 2, "c": 0}},
        "scidocs_cite": {"scidocs_view_cite_read:a": {"b": 1}},
        "scidocs_read": {"b": {"scidocs_view_cite_read:a": 1}},
        "trec_covid": {"trec_covid-query:1": {"trec_covid:1": 2, "2": 0}},
    }
    assert layout.documents()["relish:a"] == ("title a", "abstract a")
    assert layout.documents()["scidocs_view_cite_read:a"] == ("title a", "another")


def test_labels_of_every_kind(layout):
    given = {
        "biomimicry": (True, 0, ["1"], ["0"]),
        "fos": ([1, 0, 1], ["Physics", "Art"], ["0", "2"], ["Art", "Physics"]),
        "pub_year": (2015, 2016.5, ["2015.0"], ["2016.5"]),
        "mesh_descriptors": ("Humans", 4.0, ["Humans"], ["4"]),
    }
    for task, (train, test, *_) in given.items():
        layout.write(f"metadata/{task}/evaluation", document("1"), document("2"))
        layout.write(f"test/{task}/train", labelled(1, train))
        layout.write(f"test/{task}/test", labelled("2", test))
    labels = layout.prepare().labels
    assert labels == {
        (task, split): {name: expected}
        for task, (_, _, train, test) in given.items()
        for split, name, expected in (("train", "1", train), ("test", "2", test))
    }


def test_reviewers_bring_their_papers(layout):
    layout.write("metadata/paper_reviewer_matching/evaluation", *(document(name) for name in "pabc"))
    layout.write("metadata/reviewers/metadata", {"r_id": "r1", "papers": ["a", "b"]}, {"r_id": "r2", "papers": ["c"]})
    layout.write("test/paper_reviewer_matching/test_hard", judgement("p", "r1", 1))
    layout.write("test/paper_reviewer_matching/test_soft", judgement("p", "r1", 0))
    benchmark = layout.prepare()
    assert benchmark.judgements["paper_reviewer_matching_hard"] == {"p": {"r1": 1}}
    assert benchmark.judgements["paper_reviewer_matching_soft"] == {"p": {"r1": 0}}
    assert benchmark.reviewers == {"r1": {"a", "b"}}
    assert set(layout.documents()) == {"p", "a", "b"}
    layout.write("metadata/reviewers/metadata", {"r_id": "r1", "papers": []})
    with pytest.raises(InputError, match="reviewers: no papers of the reviewer 'r1'"):
        layout.prepare()


def test_parquet_is_read_like_json_lines(layout):
    layout.add_relish()
    expected = layout.prepare()
    for file in layout.root.rglob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        pq.write_table(pa.Table.from_pylist(rows), file.with_suffix(".parquet"))
        file.unlink()
    assert layout.prepare() == expected


def test_repeated_judgements_and_queries_without_a_relevant_candidate_are_counted(layout):
    layout.write("metadata/relish/evaluation", *map(document, "abc"), document("b", abstract="another"))
    layout.write("test/relish/test", *(judgement(*row) for row in (("a", "b", 2), ("a", "b", 0), ("b", "c", 0))))
    assert layout.prepare().judgements == {"relish": {"a": {"b": 2}, "b": {"c": 0}}}
    for reason in ("repeated row (the first counts)", "query without a relevant candidate (scored 0)"):
        assert layout.omitted()[f"task relish: {reason}"] == 1
    assert layout.documents()["b"] == ("title b", "abstract b")
    assert layout.omitted()["document repeated with another text (the first counts)"] == 1


def test_a_query_whose_candidates_all_lack_a_text_is_counted(layout):
    layout.write("metadata/relish/evaluation", *(document(str(number)) for number in range(300)))
    rows = [judgement("0", str(number), 1) for number in range(1, 300)]
    layout.write("test/relish/test", *rows, judgement("1", "lost", 1), judgement("gone", "2", 1))
    assert layout.prepare().judgements["relish"].keys() == {"0"}
    omitted = layout.omitted()
    assert omitted["task relish: query without text, or without a candidate with text"] == 2
    assert omitted["task relish: document without text"] == 2


def test_a_document_to_train_on_and_to_test_is_counted_and_kept_in_both(layout):
    layout.write("metadata/drsm/evaluation", document("a"), document("b"))
    layout.write("test/drsm/train", labelled("a", 1), labelled("b", 2), labelled("b", 3))
    layout.write("test/drsm/test", labelled("a", 1))
    assert layout.prepare().labels == {("drsm", "train"): {"a": ["1"], "b": ["2"]}, ("drsm", "test"): {"a": ["1"]}}
    omitted = layout.omitted()
    assert omitted["task drsm: document to train on and to test (kept in both)"] == 1
    assert omitted["task drsm: repeated row (the first counts)"] == 1


def test_only_the_tasks_that_are_asked_for_are_read(layout):
    layout.add_relish()
    layout.write("metadata/drsm/evaluation", "broken")
    layout.write("test/drsm/train", "broken")
    assert layout.prepare("relish").judgements == {"relish": {"a": {"b": 2, "c": 0}}}
    assert "task fos absent" not in layout.omitted()


@pytest.mark.parametrize(
    ("path", "rows", "message"),
    [
        ("test/relish/test", [judgement("a", "b", 1), {"query_id": "a", "score": 1}], ", line 2: the key 'cand_id' is"),
        ("test/relish/test", [judgement("a", "lost", 1)], ", line 1: no text for the document 'lost'"),
        ("test/relish/test", [judgement("a", "b", 0.5)], ", line 1: score must be a whole number from 0, not 0.5"),
        ("test/relish/test", [judgement("a", "b", float("nan"))], ", line 1: score must be a whole number from 0"),
        ("test/relish/test", [judgement("a", "b", float("inf"))], ", line 1: score must be a whole number from 0"),
        ("test/relish/test", [["a", "b"]], ", line 1: must be an object"),
        ("test/relish/test", [], ": has no rows"),
        ("metadata/relish/evaluation", [{"title": "no id"}], ", line 1: the key 'doc_id' is missing or null"),
        ("metadata/relish/evaluation", [document(None)], ", line 1: the key 'doc_id' is missing or null"),
        ("metadata/relish/evaluation", [document(["a"])], ", line 1: doc_id must be a string or an integer"),
        ("metadata/relish/evaluation", [{"doc_id": "a", "title": 5}], ", line 1: title must be a text, not 5"),
        ("metadata/relish/evaluation", [{"query": document("a"), "candidates": 3}], ", line 1: candidates must be"),
        ("metadata/relish/evaluation", [{"query": document("a"), "candidates": ["b"]}], ", line 1, candidates[0]: mu"),
        ("test/fos/train", [labelled("a", "Physics")], ", line 1: label must be a list of class names or of 0 and 1"),
        ("test/pub_year/train", [labelled("a", "unknown")], ", line 1: label must be a finite number in the task pub_"),
        ("test/drsm/train", [labelled("a", [1, 2])], ", line 1: label must be one value in the task drsm"),
        ("test/biomimicry/train", [labelled("a", "yes")], ", line 1: label must be 0 or 1 in the task biomimicry"),
    ],
)
def test_bad_rows_are_reported_with_file_and_line(layout, path, rows, message):
    layout.add_relish()
    for task in ("fos", "pub_year", "drsm", "biomimicry"):
        if f"/{task}/" in path:
            layout.write(f"metadata/{task}/evaluation", document("a"))
    layout.write(path, *rows)
    layout.refuses(f"{layout.root / path}.jsonl{message}")


@pytest.mark.parametrize(("broken", "message"), [(b"{broken\n", "not JSON"), (b"\xff\n", "not UTF-8")])
def test_a_line_that_is_no_json_is_reported(layout, broken, message):
    layout.refuses("contains none of the tasks biomimicry, ")
    layout.add_relish()
    file = layout.root / "test/relish/test.jsonl"
    file.write_bytes(file.read_bytes() + broken)
    layout.refuses(f"test.jsonl, line 3: {message}")


@pytest.fixture
def hub(tmp_path):
    """A hub with texts in the layout of its main branch and labels in that of refs/convert/parquet."""
    texts, labels = tmp_path / "hub/texts", tmp_path / "hub/labels"
    documents = [{"doc_id": name, "title": f"title {name}", "abstract": None} for name in "abcp"]
    files = {
        texts / "relish/evaluation-00000-of-00002.parquet": documents[:2],
        texts / "relish/evaluation-00001-of-00002.parquet": documents[2:],
        texts / "relish/train-00000-of-00001.parquet": [{"doc_id": "z", "title": "z", "abstract": None}],
        texts / "paper_reviewer_matching/evaluation-00000-of-00001.parquet": documents,
        texts / "fos/evaluation-00000-of-00001.parquet": documents,
        labels / "relish/test/0000.parquet": [judgement("a", "b", 2), judgement("a", "c", 0)],
        labels / "paper_reviewer_matching/test_hard/0000.parquet": [judgement("p", "r", 1)],
        labels / "paper_reviewer_matching/test_soft/0000.parquet": [judgement("p", "r", 1)],
        labels / "reviewers/metadata/0000.parquet": [{"r_id": "r", "papers": ["a", "b"]}],
    }
    for path, rows in files.items():
        write_parquet(path, rows)
    (texts / "scirepeval.py").write_text("raise RuntimeError")
    with serve_hub({"lab/texts": texts, "lab/labels": labels}) as (url, asked):
        yield url, asked


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """Fetch some splits of a config from the hub at a URL into a folder."""
    monkeypatch.setenv("NO_PROXY", "*")

    def fetch_from(url, half, config, splits):
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
        template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        where = {"state": tmp_path / ".state" / half / config, "output": tmp_path / half / config}
        fetch_config(config, dataset=DATASETS[half], revision=COMMIT, splits=",".join(splits), **where)

    return fetch_from


def test_a_benchmark_is_fetched_config_by_config_and_read_offline(hub, fetch, tmp_path):
    url, asked = hub
    tasks = [TASKS[name] for name in ("relish", "paper_reviewer_matching_hard", "paper_reviewer_matching_soft")]
    tables = tmp_path / "tables"
    for (half, config), splits in splits_to_fetch(tasks).items():
        fetch(url, half, config, splits)
    prepare_folder(tmp_path, kind="scirepeval", tables=tables, omissions=tables / "omissions.parquet")
    benchmark = read_benchmark(tables)
    assert benchmark.judgements["relish"] == {"a": {"b": 2, "c": 0}}
    assert benchmark.judgements["paper_reviewer_matching_soft"] == {"p": {"r": 1}}
    assert benchmark.reviewers == {"r": {"a", "b"}}
    assert read_table(tables / "documents.parquet", "documents")["document"].to_pylist() == ["a", "b", "c", "p"]
    taken = {path.rpartition(f"/resolve/{COMMIT}/")[2] for path in asked if "/resolve/" in path}
    assert not [path for path in taken if path.endswith(".py") or "train" in path or path.startswith("fos")]
    assert not list((tmp_path / ".state").rglob("*.parquet"))


def test_every_config_of_the_benchmark_is_fetched_once_with_all_its_splits():
    asked = splits_to_fetch(SCIREPEVAL)
    labels = {config: splits for (half, config), splits in asked.items() if half == "test"}
    assert (len(asked) - len(labels), len(labels)) == (17, 22 + 1)
    assert (labels["fos"], labels["search"], labels["reviewers"]) == (["train", "test"], ["test"], ["metadata"])
    assert labels["paper_reviewer_matching"] == ["test_hard", "test_soft"]


def test_no_reachable_hub_and_a_revision_that_holds_only_scripts_are_refused(hub, fetch, tmp_path, monkeypatch):
    said = "has no Parquet or JSON Lines files of search, split evaluation; pin a commit"
    with pytest.raises(InputError, match=said):
        fetch(hub[0], "metadata", "search", ["evaluation"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    said = "cannot be fetched from the hub.* run that step where there is a network.* name a local"
    with pytest.raises(InputError, match=f"lab/labels at {COMMIT} {said}"):
        fetch("http://127.0.0.1:9", "test", "relish", ["test"])
    assert not (tmp_path / "metadata").exists()
    assert not (tmp_path / "test").exists()
