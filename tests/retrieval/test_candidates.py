"""What an index finds and knows of papers, against a plain definition over all papers at once."""

import numpy as np
import pyarrow as pa
import pytest
from tests.retrieval.small import Small

from cocite.core import searching
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.graph.edges import edges_of_citations
from cocite.retrieval import candidates, search

LISTED = 8
VOTES = {"votes_10": (3, 0, 0), "votes_30": (5, 0.5, 0.3), "votes_100": (9, 0, 0)}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Lists that are shorter than the corpus."""
    monkeypatch.setattr(candidates, "LISTED", LISTED)
    monkeypatch.setattr(candidates, "VOTES", {name: search.Vote(*vote) for name, vote in VOTES.items()})


def test_candidates_and_what_is_known_of_them_are_those_of_a_plain_definition(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "PAPERS_AT_ONCE", 7)
    monkeypatch.setattr(candidates, "PAIRS_AT_ONCE", 5)
    small = Small(tmp_path).write()
    table = small.find()
    found, expected = small.plain(LISTED, VOTES)
    rows = {(row.pop("query"), row.pop("paper")): row for row in table.to_pylist()}
    judged = {(q, int(p)) for q, of in small.judged.items() for p in of if q != int(p)}
    assert rows.keys() == {(q, p) for q, of in found.items() for p in of} | judged
    for (query, paper), row in rows.items():
        assert row.pop("split") == small.splits[query]
        assert row.pop("is_found") == (paper in found[query])
        assert row.pop("cosines") == pytest.approx(expected[query, paper].pop("cosines"), abs=1e-6)
        assert row == pytest.approx(expected[query, paper], abs=1e-5)


def test_what_a_text_lacks_is_not_a_number(tmp_path):
    small = Small(tmp_path)
    small.texts[small.held_out[1]] = ("unheard", "unseen")
    del small.vectors["two"][small.ids[-1]]
    table = small.write().find().to_pylist()
    assert all(row["words"] is None for row in table if row["query"] == small.held_out[1])
    assert all(row["words"] is not None for row in table if row["query"] != small.held_out[1])
    unlinked = {each for each in small.ids if not any(each in edge for edge in small.edges)}
    assert all((row["votes_10"] is None) == (row["paper"] in unlinked) for row in table)
    assert {np.isnan(row["cosines"][1]) for row in table if row["paper"] == small.ids[-1]} == {True}
    assert not np.isnan([row["cosines"][0] for row in table]).any()


def test_planted_citations_of_held_out_papers_change_nothing(tmp_path):
    small = Small(tmp_path).write()
    split = ["holdout"] * len(small.held_out)
    write_table(tmp_path / "queries.parquet", "queries", pa.table({"corpusid": small.held_out, "split": split}))

    def candidates_of(citations):
        citing, cited = zip(*sorted(citations), strict=True)
        columns = {"citing": citing, "cited": cited, "influential": [False] * len(citing)}
        intents = pa.array([[]] * len(citing), pa.list_(pa.string()))
        write_table(tmp_path / "citations.parquet", "citations", pa.table(columns | {"intents": intents}))
        edges_of_citations(
            tmp_path / "citations.parquet",
            queries=tmp_path / "queries.parquet",
            bucket=0,
            buckets=1,
            memory_mb=500,
            threads=1,
            output=tmp_path / "edges.parquet",
        )
        small.link()
        return small.find()

    planted = [(query, paper) for query, papers in small.relevant.items() for paper in papers]
    without = candidates_of(small.edges)
    assert candidates_of({*small.edges, *planted, *((b, a) for a, b in planted)}) == without
    # The same citations as edges of training would be found in the votes.
    small.edges = sorted({*small.edges, *planted})
    assert small.write().find() != without


def test_vectors_of_no_held_out_paper_and_a_graph_of_other_papers_are_refused(tmp_path):
    small = Small(tmp_path).write()
    for name in ("one", "two"):
        small.vectors[name] = {each: small.vectors[name][each] for each in small.ids[small.queries :]}
    small.write()
    with pytest.raises(InputError, match="holds no vector of a held-out paper; embed the corpus by the model first"):
        small.find()
    small = Small(tmp_path)
    small.edges = [(7, 9)]
    with pytest.raises(InputError, match="links none of the papers that are searched"):
        small.write().find()
