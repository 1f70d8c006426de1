"""What is true of queries is read from the citations, and neighbours are held against it by their rank."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import write_rows
from tests.triplets.blocks import write_neighbours, write_queries

from cocite.core.tables.files import read_table
from cocite.triplets import checks
from cocite.triplets.checks import BandSettings, measure_bands, relate_sample, sample_queries

PAPERS = range(1, 10)
QUERIES = {1: "train", 2: "validation", 3: "train", 8: "holdout", 9: "excluded"}
KEPT_OUT = {8, 9}
LIMITS = {"memory_mb": 400, "threads": 1}


def write_citations(folder, citations, buckets=2):
    for bucket in range(buckets):
        rows = sorted(row for row in citations if row[0] % buckets == bucket)
        columns, rows = "citing cited influential intents", [(*row, False, []) for row in rows]
        write_rows(folder / f"citations/{bucket}.parquet", "citations", columns, rows)
    return [folder / f"citations/{bucket}.parquet" for bucket in range(buckets)]


def related(folder, citations, works=None):
    queries = write_queries(folder, QUERIES)
    if works:
        rows = [(paper, split, None) for paper, split in QUERIES.items()] + [(p, "twin", w) for p, w in works.items()]
        write_rows(queries, "queries", "corpusid split work", sorted(rows))
    relate_sample(
        write_citations(folder, citations),
        queries,
        seed=1,
        output=folder / "relations.parquet",
        **LIMITS,
    )
    rows = read_table(folder / "relations.parquet", "sampled_relations").to_pylist()
    return {(row["query"], row["paper"]): (row["cocited"], row["cited"]) for row in rows}


@given(st.sets(st.tuples(st.sampled_from(PAPERS), st.sampled_from(PAPERS)).filter(lambda ends: ends[0] != ends[1])))
def test_a_query_is_related_to_what_is_cited_with_it_what_it_cites_and_what_cites_it(tmp_path_factory, citations):
    known = {ends for ends in citations if not KEPT_OUT & set(ends)}
    cites = {paper: {cited for citing, cited in known if citing == paper} for paper in PAPERS}
    expected = {}
    for query in (1, 2, 3):
        for paper in set(PAPERS) - {query}:
            together = sum({query, paper} <= cited for cited in cites.values())
            directly = paper in cites[query] or query in cites[paper]
            if together or directly:
                expected[query, paper] = (together, directly)
    assert related(tmp_path_factory.mktemp("relations"), citations) == expected


@given(st.sets(st.tuples(st.sampled_from(PAPERS), st.sampled_from(PAPERS)).filter(lambda ends: ends[0] != ends[1])))
def test_records_of_a_work_are_related_as_one_paper(tmp_path_factory, citations):
    works = {4: 1, 5: 6, 7: 6}
    united = {(works.get(citing, citing), works.get(cited, cited)) for citing, cited in citations}
    expected = related(tmp_path_factory.mktemp("united"), {ends for ends in united if ends[0] != ends[1]})
    assert related(tmp_path_factory.mktemp("records"), citations, works) == expected


def test_a_neighbour_is_related_as_its_work_is(tmp_path):
    related(tmp_path, {(4, 1), (4, 5), (4, 6)}, {7: 6})
    files = [write_neighbours(tmp_path / "0.parquet", {1: [7, 3]})]
    asked = {"relations": tmp_path / "relations.parquet", "queries": tmp_path / "queries.parquet", "seed": 1}
    measure_bands(files, BandSettings(), **asked, output=tmp_path / "quality.parquet", **LIMITS)
    [row] = read_table(tmp_path / "quality.parquet", "band_quality").to_pylist()
    assert (row["papers"], row["cocited"]) == (2, 1)


def test_the_sample_follows_from_the_seed_and_holds_queries_only(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "QUERIES_SAMPLED", 20)
    queries = write_queries(tmp_path, {paper: "holdout" if paper % 2 else "train" for paper in range(1, 201)})
    one, again, other = (sample_queries(queries, seed)["corpusid"].to_pylist() for seed in (1, 1, 2))
    assert one == again != other
    assert len(set(one)) == 20
    assert not any(paper % 2 for paper in one)


@pytest.fixture
def quality(tmp_path):
    # Paper 4 cites 1, 5 and 6, and 7 cites 2: of the query 1, papers 5 and 6 are co-cited and 4 cites it.
    related(tmp_path, {(4, 1), (4, 5), (4, 6), (7, 2)})
    first = [5, 4, 6, *range(10, 20)]
    files = [
        write_neighbours(tmp_path / "0.parquet", {1: first, 9: [5]}),
        write_neighbours(tmp_path / "1.parquet", {2: [7, 5]}),
    ]

    def measured(*ranks):
        measure_bands(
            files,
            BandSettings(ranks=ranks),
            relations=tmp_path / "relations.parquet",
            queries=tmp_path / "queries.parquet",
            seed=1,
            output=tmp_path / "quality.parquet",
            **LIMITS,
        )
        return read_table(tmp_path / "quality.parquet", "band_quality").to_pylist()

    return measured


def test_the_related_among_the_first_five_ranks_are_counted(quality):
    first, second = quality()
    assert first == {"last_rank": 5, "first_rank": 1, "queries": 2, "papers": 7, "cocited": 2, "cited": 2}
    assert second == {"last_rank": 10, "first_rank": 6, "queries": 1, "papers": 5, "cocited": 0, "cited": 0}


def test_bands_end_where_sets_of_triplets_take_theirs_and_are_measured_once(quality):
    rows = {row["last_rank"]: row for row in quality(2, 7, 10)}
    assert list(rows) == [2, 5, 7, 10]
    assert (rows[2]["first_rank"], rows[2]["papers"], rows[2]["cocited"], rows[2]["cited"]) == (1, 4, 1, 2)
    assert (rows[7]["first_rank"], rows[7]["papers"], rows[7]["cocited"]) == (3, 5, 1)
