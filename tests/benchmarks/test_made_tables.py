"""The tables that benchmarks make fit their declarations: nobody runs benchmarks often enough to see it there."""

from collections import Counter

import numpy as np
from tests.benchmarks import baselines, brought, from_query, made_documents, made_papers, made_release, serve, triplets

from cocite.core.tables.files import read_table
from cocite.demo.release import read_rows


def test_made_papers_have_texts_and_a_hundred_are_held_out(tmp_path):
    made_papers.main(tmp_path, 120)
    papers = read_table(tmp_path / "papers", "papers", ["corpusid", "title", "abstract", "has_text"]).to_pylist()
    assert [paper["corpusid"] for paper in papers] == list(range(1, 121))
    assert all(paper["has_text"] and paper["abstract"] for paper in papers)
    assert {len(paper["title"].split()) for paper in papers} == {10}
    assert read_table(tmp_path / "queries.parquet", "queries", ["split"])["split"].to_pylist() == ["holdout"] * 100


def test_each_made_paper_has_a_vector_and_cites_earlier_ones(tmp_path):
    baselines.write_features(tmp_path, 30)
    assert len(read_table(tmp_path / "vectors.parquet", "baseline_paper_embeddings", ["corpusid"])) == 30
    edges = read_table(tmp_path / "edges.parquet", "edges", ["source", "target"]).to_pylist()
    assert {edge["source"] for edge in edges} == set(range(2, 31))
    assert all(1 <= edge["target"] < edge["source"] for edge in edges)


def test_made_papers_of_triplets_lie_in_two_buckets_with_neighbours_of_each_query(tmp_path, monkeypatch):
    monkeypatch.setattr(triplets, "DRAWN_WORDS", 10_000)
    triplets.write_tables(tmp_path, 50, 4, 6)
    assert len(read_table(tmp_path / "papers", "papers", ["corpusid"])) == 50
    neighbours = read_table(tmp_path / "neighbours", "neighbours", ["query", "rank"]).to_pylist()
    assert sorted(row["rank"] for row in neighbours) == sorted([1, 2, 3, 4, 5, 6] * 4)


def test_made_documents_have_titles_and_abstracts(tmp_path):
    made_documents.write_documents(tmp_path / "documents.parquet", 12)
    documents = read_table(tmp_path / "documents.parquet", "documents", ["title", "abstract"]).to_pylist()
    assert [bool(row["title"] and row["abstract"]) for row in documents] == [True] * 12


def test_brought_vectors_are_of_made_documents(tmp_path):
    brought.write_vectors(tmp_path / "made", 3)
    assert len(read_table(tmp_path / "made/documents.parquet", "documents", ["document"])) == 3
    assert len((tmp_path / "made/vectors.jsonl").read_text().splitlines()) == 3


def test_a_made_run_has_titles_citations_and_a_vector_of_each_paper(tmp_path):
    serve.write_run(tmp_path, 60, 8)
    assert len(read_table(tmp_path / "encoder/model/seed-1/papers", "paper_embeddings", ["corpusid"])) == 60
    titles = read_table(tmp_path / "corpus/papers", "papers", ["title"])["title"].to_pylist()
    assert {len(title.split()) for title in titles} == {10}
    for name, path in (("citations", "corpus/citations"), ("cocitations", "graph/cocitation/cocitations")):
        assert len(read_table(tmp_path / path, name)) == 600


def test_as_many_made_works_match_as_a_query_shall_find_and_they_cite_earlier_ones():
    works = from_query.made(1000, 300)
    assert len(from_query.Unchanging(works).matching({"filter": from_query.FILTER})) == 300
    year = {each["id"]: each["publication_year"] for each in works}
    cited = [(each, other) for each in works for other in each["referenced_works"] if other in year]
    assert sum(year[other] < year[each["id"]] for each, other in cited) > 0.9 * len(cited) > 2000


def test_a_made_release_has_the_flaws_and_the_tails_of_a_real_one(tmp_path, monkeypatch):
    monkeypatch.setattr(made_release, "sentences_of", lambda _: ["It cites.", "So does this."])
    counts = made_release.write_release(
        tmp_path / "release", 1e-5, "2026-01-06", {"papers": 2, "abstracts": 1, "citations": 3}
    )
    papers = {row["corpusid"]: row for row in read_rows(tmp_path / "release/papers")}
    rows = list(read_rows(tmp_path / "release/citations"))
    assert (len(papers), len(rows)) == (counts["papers"], counts["rows"]) == (2200, 51_000)
    abstracts = {row["corpusid"] for row in read_rows(tmp_path / "release/abstracts")}
    assert abstracts < papers.keys()
    assert abs(len(abstracts) / len(papers) - 100 / 220) < 0.05
    pairs = Counter((row["citingcorpusid"], row["citedcorpusid"]) for row in rows if row["citedcorpusid"])
    assert len(pairs) == counts["citations"]
    assert 0.2 < sum(row["citedcorpusid"] is None for row in rows) / len(rows) < 0.24
    known = [pair for pair in pairs if pair[1] in papers]
    assert 0.03 < 1 - len(known) / len(pairs) < 0.07
    assert all(
        papers[cited]["year"] <= papers[citing]["year"]
        for citing, cited in known
        if papers[citing]["year"] and papers[cited]["year"]
    )
    cited = np.sort([*Counter(cited for _, cited in pairs).values()])[::-1]
    assert cited[:22].sum() > 0.1 * cited.sum()
    assert {type(row["contexts"]) for row in rows} == {list, type(None)}
