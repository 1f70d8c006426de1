"""Benchmarks in the configuration: the datasets and tasks of collections, and whose ids documents have."""

import gzip
import itertools

import pytest
from tests.configurations import recorded, refused

from cocite.config.benchmarks import KINDS, declared
from cocite.config.configuration import configure, resolve
from cocite.config.source import link_between
from cocite.core.errors import InputError


def resolved(written, **entry):
    written["benchmarks"]["searches"] = {"kind": "beir", **entry}
    return resolve(written)["benchmarks"]["searches"]


def typed(entry):
    return recorded({"benchmarks": {"searches": entry}}).benchmarks["searches"]


BOTH = {"own-papers": "own_papers", "scifact": "SciFact"}


@pytest.mark.parametrize(
    ("entry", "found", "tasks"),
    [
        ({"folder": "."}, BOTH, ["beir_own_papers", "beir_scifact"]),
        ({"folder": ".", "tasks": ["beir_scifact"]}, BOTH, ["beir_scifact"]),
        ({"folder": "SciFact"}, {"scifact": "SciFact"}, ["beir_scifact"]),
        (
            {"datasets": {"claims-2020": "SciFact"}, "queries": "short"},
            {"claims-2020": "SciFact"},
            ["beir_claims_2020"],
        ),
    ],
)
def test_the_datasets_and_tasks_of_a_collection_are_known_before_any_job(
    datasets, tmp_path, monkeypatch, entry, found, tasks
):
    monkeypatch.chdir(tmp_path)
    entry = resolved(datasets, **entry)
    assert entry["datasets"] == found
    assert "folder" not in entry
    assert [task.name for task in typed(entry).scored_tasks] == tasks
    assert list(typed(entry).suites) == ["small"]
    assert resolved(datasets, **entry) == entry


def test_two_datasets_of_one_name_are_refused(datasets, tmp_path):
    (tmp_path / "own papers").mkdir()
    (tmp_path / "own papers/corpus.jsonl").touch()
    message = refused(datasets, "benchmarks.searches", {"kind": "beir", "folder": str(tmp_path)})
    assert "benchmarks.searches.folder contains own papers and own_papers; both become one task" in message


def test_a_task_is_known_by_its_name_and_others_are_refused():
    assert declared("beir_trec_covid").test == "trec-covid"
    assert declared("beir_my_papers").test == "my-papers"
    for name in ("beir_", "beir_A", "beir_a/b"):
        with pytest.raises(InputError, match="The task: "):
            declared(name)


SPACES = ("s2", "openalex", "own")
BROUGHT = ("scirepeval", "scidocs", "mdcr", "csfcube", "litsearch", "s2and")


@pytest.fixture
def theirs(tmp_path):
    """A folder of Semantic Scholar's papers."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/0.gz").write_bytes(gzip.compress(b'{"corpusid": 1, "externalids": {"MAG": "1"}}\n'))
    return str(tmp_path / "papers")


@pytest.fixture
def of_openalex(written, tmp_path):
    """A configuration with a corpus of OpenAlex and a benchmark whose documents have Semantic Scholar's ids."""
    (tmp_path / "folder").mkdir()
    written["corpus"] = {"source": "openalex"}
    written["benchmarks"]["scirepeval"] = {"kind": "scirepeval", "folder": str(tmp_path / "folder")}
    return written


def test_ids_are_compared_where_both_are_of_one_origin_and_known():
    same = {("s2", "s2"), ("openalex", "openalex"), *(("corpus", corpus) for corpus in SPACES)}
    for documents, corpus in itertools.product((*SPACES, "corpus"), SPACES):
        for has_match in (False, True):
            link = link_between(documents, corpus, has_match=has_match)
            assert (link == "ids") == ((documents, corpus) in same)
            assert (link == "matches") == (documents == "s2" and corpus != "s2" and has_match)


def test_hashes_are_looked_for_where_ids_are_semantic_scholars():
    assert link_between("s2", "s2", has_match=False, has_hashes=True) == "hashes"
    others = [("corpus", "s2"), ("openalex", "openalex"), ("own", "own"), ("s2", "openalex")]
    for documents, corpus in others:
        with_hashes, without = (link_between(documents, corpus, has_match=True, has_hashes=h) for h in (True, False))
        assert with_hashes == without
    assert {name for name in KINDS if KINDS[name].has_hashes} == {"scidocs", "scirepeval", "beir"}


def test_benchmarks_have_the_ids_of_semantic_scholar_or_of_the_corpus_or_their_own():
    assert {kind: KINDS[kind].model_fields["id_space"].default for kind in BROUGHT} == dict.fromkeys(BROUGHT, "s2")
    assert KINDS["beir"].model_fields["id_space"].default == "own"
    made = [{"kind": "holdout"}, {"kind": "aspects"}, {"kind": "scirepeval", "folder": "demo", "id_space": "s2"}]
    assert {KINDS[entry["kind"]](**entry).document_ids for entry in made} == {"corpus"}


def test_a_benchmark_of_other_ids_is_looked_for_by_text_or_with_a_match(of_openalex, theirs):
    of_openalex["exclude"] = ["scirepeval"]
    assert configure(of_openalex).link_of("scirepeval") == "text"
    of_openalex["corpus"]["match"] = theirs
    assert configure(of_openalex).link_of("scirepeval") == "matches"


def test_published_queries_and_triplets_need_the_ids_of_semantic_scholar(of_openalex, theirs, tmp_path):
    published = {"from": "triplets", "dataset": str(tmp_path / "folder"), "count": 5}
    said = refused(of_openalex, "queries", published)
    assert "queries.from is triplets, whose ids are Semantic Scholar's, and those of the corpus are OpenAlex's" in said
    of_openalex["corpus"]["match"] = theirs
    of_openalex["queries"] = published | {"holdout": 10}
    assert resolve(of_openalex)["queries"]["from"] == "triplets"
    said = refused(of_openalex, "triplets.published", {"sampler": "file", "group": "published"})
    assert "triplets.published has no path, and so uses published triplets, whose ids are Semantic Scholar's" in said


def test_a_folder_without_papers_to_match_with_is_refused(of_openalex, tmp_path):
    of_openalex["corpus"]["match"] = str(tmp_path / "folder")
    said = refused(of_openalex, "release", "2026-06-24")
    assert said.startswith(
        f"Configuration key corpus.match: {tmp_path}/folder is no folder of Semantic Scholar's papers"
    )
    (tmp_path / "folder/1.csv").touch()
    assert "corpus.match: " in (said := refused(of_openalex, "release", "2026-06-24"))
    assert "1.csv would not be read" in said


def test_a_match_of_papers_that_have_semantic_scholars_ids_is_refused_for_it_has_no_effect(written, release, theirs):
    del written["benchmarks"]["scirepeval"]
    (release / "release.json").unlink()
    corpus = {"source": "directory", "path": str(release), "match": theirs}
    said = refused(written, "corpus", corpus)
    assert said.startswith("Configuration key corpus.match has no effect, since the corpus has Semantic Scholar's ids")
    written["corpus"] = corpus | {"id_space": "own"}
    assert resolve(written)["corpus"]["id_space"] == "own"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"match": True}, "corpus.match needs corpus.papers.columns.doi, the column of DOIs"),
        ({"ids": "string", "id_space": "s2"}, "corpus.id_space: with corpus.ids: string, papers are numbered"),
    ],
)
def test_tables_are_matched_by_their_dois_and_texts_are_nobody_elses_ids(written, theirs, tmp_path, keys, said):
    (tmp_path / "papers.csv").write_text("id,doi\n1,10.1/a\n")
    (tmp_path / "citations.csv").write_text("from,to\n1,2\n")
    del written["benchmarks"]["scirepeval"]
    corpus = {
        "source": "table",
        "papers": {"files": str(tmp_path / "papers.csv"), "columns": {"id": "id"}},
        "citations": {"files": str(tmp_path / "citations.csv"), "columns": {"citing": "from", "cited": "to"}},
        **keys,
    }
    if "match" in keys:
        corpus["match"] = theirs
    assert said in refused(written, "corpus", corpus)
